// Elements at positions that are values themselves, in the interpreter: gather, scatter, nonzero.
#pragma once

#include <span>

#include "ir/interp/pulse.h"
#include "ir/interp/value.h"

namespace ufuse::ir::interp {

struct Placed {
  Value value;
  // The graph is not what its maker takes it for: a position is outside of its axis, or a mask has
  // another number of true elements than its node says.
  bool redo = false;
};

// `positions`: one for each axis of node.ints.
Placed gather(const Node& node, const Value& x, std::span<const Value> positions,
              const Pulse& pulse);
// `values` is null where the node has none.
Placed scatter(const Node& node, const Value& x, std::span<const Value> positions,
               const Value* values, const Pulse& pulse);
Placed nonzero(const Node& node, const Value& mask, const Pulse& pulse);
Value iota(const Node& node);

}  // namespace ufuse::ir::interp
