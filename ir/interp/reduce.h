// Reductions of the interpreter, each in the order its node names.
#pragma once

#include "ir/interp/pulse.h"
#include "ir/interp/value.h"

namespace ufuse::ir::interp {

struct Reduced {
  Value value;
  // Order::Extremum found NaNs of different bits, or zeros of both signs, where NumPy's vector
  // order decides (backend.h, RunStatus).
  bool redo = false;
};

// `initial` is null when the node has no initial operand.
Reduced reduce(const Node& node, const Value& x, const Value* initial, const Pulse& pulse);
Value arg_reduce(const Node& node, const Value& x, const Pulse& pulse);

}  // namespace ufuse::ir::interp
