// Inner loops over n-dimensional values: which axes are walked in which order, and one call of the
// loop per innermost run. The order is the one of NumPy's iterator, so NumPy's own loops (which
// choose their code by stride) see the strides that NumPy would give them.
#pragma once

#include <vector>

#include "ir/interp/pulse.h"
#include "ir/interp/value.h"

namespace ufuse::ir::interp {

// Axes, outermost first, in the order in which NumPy walks operands of one shape: by |stride|, an
// axis of stride 0 wherever it stands.
Dims walking_order(const std::vector<Value>& operands);

// Calls `loop` over all elements; `operands` are inputs, then outputs, all of one shape.
// `repeated`: see LoopEntry.
void run_loop(InnerLoop loop, void* data, const std::vector<Value>& operands, const Pulse& pulse,
              std::uint32_t repeated = 0);

}  // namespace ufuse::ir::interp
