// How a recorded call is repeated without Python. A Recording is one path that calls of a signature
// have gone; a Replay is a call on its way along one of them. Where a value that Python would be
// told comes out otherwise, it goes on along another recording, or ends; what it has written to the
// caller's memory can then be taken back. Used by the dispatcher, which knows whose recordings
// these are.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pyext/bind/call/call.h"
#include "pyext/bind/replay/shape.h"
#include "pyext/bind/replay/signature.h"

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
    std::vector<char> lasting;  // in memory that is there already
  };
  using AllSlots = std::vector<Slots>;  // one per run
  std::unique_ptr<AllSlots> take_slots();

  std::shared_ptr<const tracer::Plan> plan_;
  // Of the result; where attributes are assigned, of a tuple that begins with it.
  Shape shape_;
  std::vector<ObjectWatch::Store> stores_;
  std::size_t bytes_ = 0;
  std::optional<Place> sole_;              // of the plan's sole operation
  std::vector<std::size_t> first_output_;  // of each run, among those of all
  std::vector<py::object> output_descrs_;
  std::vector<std::vector<std::size_t>> needless_;  // outputs, after so many runs
  std::vector<std::unique_ptr<AllSlots>> idle_;     // one per concurrent call
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
  // The arguments hold again what they held when the call began.
  void take_back();

 private:
  bool goes_on(const Recording& recording) const;
  // The array that holds the place, and the place's first byte.
  PyObject* owner(const tracer::PlanPlace& place, const Recording& recording) const;
  char* address(const tracer::PlanPlace& place, const Recording& recording) const;
  ir::Scalar outcome(const tracer::PlanForced& forced, const Recording& recording) const;
  bool run(Recording& recording, std::size_t at, Recording::Slots& slots,
           const std::vector<py::object>& numbers);
  py::object array_at(const tracer::PlanPlace& place, const Layout& layout,
                      const Recording& recording) const;
  // Before a run: what it overwrites of the arguments, if the call might begin anew afterwards.
  void save(const Recording& recording, std::size_t at);
  py::object result_of(const tracer::PlanResult& result, const Recording& recording) const;
  void assign(const std::vector<ObjectWatch::Store>& stores, const py::object& values) const;

  const Signature& signature_;
  const Recording* followed_ = nullptr;  // the last one; outlives the replay
  std::size_t runs_ = 0;                 // done
  std::vector<py::object> outputs_;      // of all runs, as long as they are needed
  std::vector<ir::Scalar> told_;         // outcomes of forced values
  struct Saved {
    tracer::PlanPlace place;
    Layout layout;
    py::object part, contents;
  };
  std::vector<Saved> saved_;  // of the arguments, in the order of time
  py::object result_;
};

}  // namespace ufuse::pyext
