// Which elements of its operands is an element of a node made of? The one place that says it for
// every kind of node; scheduling asks it wherever it looks through nodes.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace ufuse::codegen {

enum class Reach : std::uint8_t {
  None,    // a leaf
  Mapped,  // one at another index, as it is
  Same,    // those at the same index
  Chosen,  // one of the first operand, where the others say
  Many,    // all along some axes
};

constexpr Reach reach_of(ir::Op op) {
  switch (ir::kind_of(op)) {
    case ir::NodeKind::Input:
    case ir::NodeKind::Param:
    case ir::NodeKind::Const:
    case ir::NodeKind::Iota:
      return Reach::None;
    case ir::NodeKind::Broadcast:
    case ir::NodeKind::Transpose:
    case ir::NodeKind::Slice:
    case ir::NodeKind::Reshape:
      return Reach::Mapped;
    case ir::NodeKind::Cast:
    case ir::NodeKind::Ufunc:
    case ir::NodeKind::Elementwise:
      return Reach::Same;
    case ir::NodeKind::Gather:
      return Reach::Chosen;
    case ir::NodeKind::Reduce:
    case ir::NodeKind::ArgReduce:
    case ir::NodeKind::Scan:
    case ir::NodeKind::Scatter:
    case ir::NodeKind::Nonzero:
      return Reach::Many;
  }
  return Reach::Many;
}

}  // namespace ufuse::codegen
