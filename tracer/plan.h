// A recorded call, without Python: which executable ran, where each input, parameter and output
// comes from, and what was returned. Recorded by a session whose trace was pure (one run at the
// end, nothing forced, nothing but arguments read); replayed by pyext's dispatcher for later calls
// of the same signature.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/backend.h"
#include "tracer/storage.h"

namespace ufuse::tracer {

// Where in the user's program an operation stands. `code` is the host's number of a code object.
struct Origin {
  std::uint32_t code = 0;
  std::int32_t instruction = -1;
  friend bool operator==(const Origin&, const Origin&) = default;
};

struct PlanInput {
  int argument = 0;
  std::int64_t offset = 0;  // bytes from the argument's first element
  Layout layout;
};
struct PlanParam {
  DType dtype = DType::Float64;
  ir::Scalar bits;
  int argument = -1;  // the NumPy scalar among the arguments whose value it is
  int number = -1;    // the host's Python number whose value it is; neither: always `bits`
};
struct PlanOutput {
  Layout layout;
  int argument = -1;  // the argument it is copied to after a clean run; -1: a fresh array
  int alias = -1;     // the input it overwrites in place
};
struct PlanResult {
  int argument = -1;  // a view of this argument; -1: of `output`
  int output = -1;
  bool whole = true;
  bool scalar = false;
  bool read_only = false;
  Layout layout;
  std::int64_t offset = 0;
};
struct Plan {
  std::shared_ptr<const ir::Executable> executable;  // unset when nothing is computed
  std::vector<PlanInput> inputs;
  std::vector<PlanParam> params;
  std::vector<PlanOutput> outputs;
  std::vector<PlanResult> results;
  std::uint32_t report_mask = 0;  // flags that some node must report
  // The one operation that raises them. Unset: the call is traced then, to find out which did.
  struct Sole {
    std::string ufunc;
    Origin origin;
  };
  std::optional<Sole> sole;
};

// NumPy's words for the flags (divide by zero 1, overflow 2, underflow 4, invalid 8) of a ufunc.
std::vector<std::string> messages_of(std::string_view ufunc, std::uint32_t flags);

}  // namespace ufuse::tracer
