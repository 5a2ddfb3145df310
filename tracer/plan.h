// A recorded call, without Python: which executables ran, where each input, parameter and output
// comes from, what the program learnt of values on the way, and what was returned. Recorded by a
// session whose trace was pure (nothing but arguments read and written); repeated by pyext's
// dispatcher for later calls of the same signature. The plans of one signature are the paths of a
// tree: they part where a forced value comes out differently.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/backend.h"
#include "tracer/host.h"
#include "tracer/storage.h"

namespace ufuse::tracer {

// Where in the user's program an operation stands. `code` is the host's number of a code object.
struct Site {
  std::uint32_t code = 0;
  std::int32_t instruction = -1;
  friend bool operator==(const Site&, const Site&) = default;
};

// Where a value stands when the call is repeated.
struct PlanPlace {
  int argument = -1;               // of the call; -1: what a run made
  int run = -1, output = -1;       // which
  std::int64_t offset = 0;         // bytes from its first element
  const void* constant = nullptr;  // in memory that the plan keeps; null: elsewhere
  friend bool operator==(const PlanPlace&, const PlanPlace&) = default;
};
struct PlanInput {
  PlanPlace place;
  Layout layout;
  friend bool operator==(const PlanInput&, const PlanInput&) = default;
};
struct PlanParam {
  DType dtype = DType::Float64;
  ir::Scalar bits;
  int argument = -1;  // the NumPy scalar among the arguments whose value it is
  int number = -1;    // the host's Python number whose value it is; neither: always `bits`
  friend bool operator==(const PlanParam&, const PlanParam&) = default;
};
struct PlanOutput {
  Layout layout;                    // in which the run writes it
  std::optional<PlanPlace> target;  // memory that is there already and holds it in the end, in the
  Layout held = {};                 // layout `held`; unset: a fresh array
  bool direct = false;              // the run writes to the target; else it is copied there
  int alias = -1;                   // the input that stands in the target and is overwritten
  friend bool operator==(const PlanOutput&, const PlanOutput&) = default;
};
// A value as Python has it.
struct PlanValue {
  PlanPlace place;  // its offset is the view's
  bool whole = true;
  bool scalar = false;
  bool read_only = false;
  bool warned = false;
  Layout layout;
};
struct PlanRun {
  // Neither is set: only makes its outputs' memory.
  std::shared_ptr<const ir::Executable> executable;
  std::shared_ptr<const HostCall> host_call;  // makes the outputs of `given`
  std::vector<PlanInput> inputs;
  std::vector<PlanParam> params;
  std::vector<PlanOutput> outputs;
  std::vector<std::size_t> until;  // of each output: after how many runs nobody needs it
  std::uint32_t report_mask = 0;   // flags that some node must report
  bool may_redo = false;           // its executable may ask for NumPy
  bool may_stop = true;            // before it, memory is as some moment of the program leaves it
  std::vector<PlanValue> given = {};  // to the host's call
  // Whether the same is made in the same places, by whichever executable.
  bool does_as(const PlanRun& other) const {
    return inputs == other.inputs && params == other.params && outputs == other.outputs;
  }
};
// A value that Python was told, and went one way or the other for.
struct PlanForced {
  std::size_t runs = 0;  // that come before
  PlanPlace place;
  DType dtype = DType::Bool;
  bool truth = false;  // it was only asked whether the value is true
  ir::Scalar outcome;  // the value's bits, or 1 for true
};
// What Python is told where the value stands at `data`.
ir::Scalar outcome_of(const PlanForced& forced, const void* data);

struct Plan {
  std::vector<PlanRun> runs;  // none when nothing is computed
  std::vector<PlanForced> forced;
  std::vector<PlanValue> results;
  std::vector<Memory> constants;  // arrays that the text of the program says
  // The one operation of the only run that raises flags. Unset: the call is traced then, to find
  // out which did.
  struct Sole {
    std::string ufunc;
    Site site;
  };
  std::optional<Sole> sole;

  bool calls_host() const {
    return std::ranges::any_of(runs, [](const PlanRun& run) { return run.host_call != nullptr; });
  }
};

}  // namespace ufuse::tracer
