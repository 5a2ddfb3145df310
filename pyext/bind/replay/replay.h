// How is a recorded call repeated without Python? A Recording is what one call has done, with the
// values that Python was told on the way. A Replay does the same for another call. Where a value
// comes out otherwise, it can go on with another recording, in which Python was told that value; or
// it ends, and what it has written to the caller's memory is taken back. Used by the dispatcher.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "pyext/bind/call/call.h"
#include "pyext/bind/replay/result_tree.h"
#include "pyext/bind/replay/signature.h"

namespace ufuse::pyext {

class Recording {
 public:
  // `may_warn`: the line of the recorded call is the one that a replay's warning is about.
  Recording(const Call& call, ResultTree results, bool may_warn);
  const tracer::Plan& plan() const { return *plan_; }
  // How much memory the runs read and write.
  std::size_t bytes() const { return bytes_; }
  // False while loops of it are being compiled, so that its times do not count yet.
  bool is_final() const;
  // Whether Python was told the same in the same order.
  bool is_path_of(const Recording& other) const;

 private:
  friend class Replay;
  // Buffers and parameters of one run, complete but for the addresses.
  struct Slots {
    std::vector<ir::Buffer> inputs, outputs;
    std::vector<ir::Scalar> params;
    std::vector<int> alias;
    std::vector<char> lasting;  // of each output: it is written to memory that is there already
  };
  using AllSlots = std::vector<Slots>;  // one per run
  std::unique_ptr<AllSlots> take_slots();

  std::shared_ptr<const tracer::Plan> plan_;
  // Of what is returned; where attributes are assigned, of a tuple of that and their values.
  ResultTree results_;
  std::vector<ObjectWatch::Store> stores_;
  std::size_t bytes_ = 0;
  std::optional<SourceLine> sole_;         // of the plan's sole operation
  std::vector<std::size_t> first_output_;  // of each run, among those of all
  std::vector<py::object> output_descrs_;
  std::vector<std::vector<std::size_t>> needless_;  // after so many runs: outputs to be freed
  std::vector<std::unique_ptr<AllSlots>> idle_;     // used again; one for each call at a time
};

class Replay {
 public:
  explicit Replay(const Signature& signature) : signature_(signature) {}

  // Done: there is a result. Elsewhere: Python has to be told another value than in the recording.
  // Traced: a warning, a tie or a number that does not fit has to be dealt with by tracing the
  // call.
  enum class End { Done, Elsewhere, Traced };
  // `numbers`: those of the recording's history, for this call.
  End follow(Recording& recording, const std::vector<py::object>& numbers);
  // Whether Python was told the same values in a recording as in this call so far.
  bool may_follow(const Recording& recording) const;
  py::object result() { return std::move(result_); }
  // Gives the arguments the contents that they had when the call began.
  void take_back();

 private:
  bool goes_on(const Recording& recording) const;
  // The array in whose memory a place is, and the first byte of the place.
  PyObject* owner(const tracer::PlanPlace& place, const Recording& recording) const;
  char* address(const tracer::PlanPlace& place, const Recording& recording) const;
  ir::Scalar outcome(const tracer::PlanForced& forced, const Recording& recording) const;
  bool run(Recording& recording, std::size_t at, Recording::Slots& slots,
           const std::vector<py::object>& numbers);
  bool call_host(const Recording& recording, std::size_t at);
  py::object array_at(const tracer::PlanPlace& place, const Layout& layout,
                      const Recording& recording) const;
  // Before a run: copies what it overwrites of the arguments, if it may have to be taken back.
  void save(const Recording& recording, std::size_t at);
  py::object value_of(const tracer::PlanValue& value, const Recording& recording) const;
  void assign(const std::vector<ObjectWatch::Store>& stores, const py::object& values) const;

  const Signature& signature_;
  const Recording* followed_ = nullptr;  // the last one; kept alive by the dispatcher
  std::size_t runs_ = 0;                 // done
  std::vector<py::object> outputs_;      // of all runs, as long as they are needed
  std::vector<ir::Scalar> told_;         // outcomes of forced values
  struct Saved {
    tracer::PlanPlace place;
    Layout layout;
    py::object part, contents;
  };
  std::vector<Saved> saved_;  // parts of arguments, in the order in which they were overwritten
  py::object result_;
};

}  // namespace ufuse::pyext
