// How a recorded call is repeated without Python. A Recording is one path that calls of a signature
// have gone; a Replay is a call on its way along one of them. Where a value that Python would be
// told comes out otherwise, it goes on along another recording, or ends, with nothing written to
// the caller's memory. Used by the dispatcher, which knows whose recordings these are.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pyext/bind/call.h"
#include "pyext/bind/shape.h"
#include "pyext/bind/signature.h"

namespace ufuse::pyext {

class Recording {
 public:
  Recording(const Call& call, Shape shape);
  const tracer::Plan& plan() const { return *plan_; }
  // What the runs read and write.
  std::size_t bytes() const { return bytes_; }
  // False while loops of it are being compiled: its times say nothing yet.
  bool settled() const;
  // Whether Python was told the same in the same order.
  bool is_path_of(const Recording& other) const;

 private:
  friend class Replay;
  // Buffers and parameters of one run, ready but for the addresses.
  struct Slots {
    std::vector<ir::Buffer> inputs, outputs;
    std::vector<ir::Scalar> params;
    std::vector<int> alias;
    std::vector<char> lasting;  // written in place
  };
  using AllSlots = std::vector<Slots>;  // one per run
  std::unique_ptr<AllSlots> take_slots();

  std::shared_ptr<const tracer::Plan> plan_;
  Shape shape_;
  std::size_t bytes_ = 0;
  std::optional<Place> sole_;              // of the plan's sole operation
  std::vector<std::size_t> first_output_;  // of each run, among those of all
  std::vector<py::object> output_descrs_;
  std::vector<std::unique_ptr<AllSlots>> idle_;  // one per concurrent call
};

class Replay {
 public:
  explicit Replay(const Signature& signature) : signature_(signature) {}

  // Done: `result` is there. Elsewhere: Python would have been told something else. Traced: a
  // warning, a tie or a number that does not fit asks for Python.
  enum class End { Done, Elsewhere, Traced };
  // `numbers`: the values of the recording's Python numbers.
  End follow(Recording& recording, const std::vector<py::object>& numbers);
  // Whether a recording tells Python what this call has come to know.
  bool may_follow(const Recording& recording) const;
  py::object result() { return std::move(result_); }

 private:
  bool goes_on(const Recording& recording) const;
  const char* address(const tracer::PlanPlace& place, const Recording& recording) const;
  ir::Scalar outcome(const tracer::PlanForced& forced, const Recording& recording) const;
  bool run(Recording& recording, std::size_t at, Recording::Slots& slots,
           const std::vector<py::object>& numbers);
  py::object result_of(const tracer::PlanResult& result, const Recording& recording) const;

  const Signature& signature_;
  const Recording* followed_ = nullptr;  // the last one; outlives the replay
  std::size_t runs_ = 0;                 // done
  std::vector<py::object> outputs_;      // of all runs, as long as they are needed
  std::vector<ir::Scalar> told_;         // outcomes of forced values
  py::object result_;
};

}  // namespace ufuse::pyext
