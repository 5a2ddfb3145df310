// How long will it take, roughly, to compute what is pending? What is due must not keep a user
// waiting who has pressed Ctrl-C.
#pragma once

#include "ir/graph.h"

namespace ufuse::tracer {

// Nanoseconds. What is due is computed where it takes longer than this and a loop comes around:
// there the same operations are pending each time, so that they run in the same compiled loops.
// Where it takes twice as long, it is computed at the statement that makes it due.
inline constexpr double kLongDue = 100e6;
// For arrays that are so large that it takes about as long to write one, so many times that.
inline constexpr double kPasses = 3;
// To write a byte of an array, reading another one for it; 10 GB/s.
inline constexpr double kPassByte = 0.2;

// What a node takes beside its operands on one thread, in nanoseconds. Measured with AVX-512: for
// each element an addition takes 0.05 in a long chain, a division 0.3, a call of NumPy's inner
// loops 0.5 (exp) to 15 (arctan), an element at a position 2.5.
inline double expected_ns_of(const ir::Graph& graph, ir::NodeId id) {
  const auto is_slow = [](ir::Op op) { return op == ir::Op::Divide || op == ir::Op::Sqrt; };
  const ir::Node& node = graph[id];
  const auto elements_times = [](const ir::Node& of, double ns) {
    double elements = 1;
    for (std::int64_t n : of.shape) elements *= static_cast<double>(n);
    return elements * ns;
  };
  switch (ir::kind_of(node.op)) {
    case ir::NodeKind::Input:
    case ir::NodeKind::Param:
    case ir::NodeKind::Const:
    case ir::NodeKind::Iota:
    case ir::NodeKind::Broadcast:
    case ir::NodeKind::Transpose:
    case ir::NodeKind::Slice:
    case ir::NodeKind::Reshape:
      return 0;
    case ir::NodeKind::Cast:
    case ir::NodeKind::Elementwise:
      return elements_times(node, is_slow(node.op) ? 0.3 : 0.06);
    case ir::NodeKind::Ufunc:
      return elements_times(node, 8);
    case ir::NodeKind::Reduce:
    case ir::NodeKind::ArgReduce:
    case ir::NodeKind::Scan:
    case ir::NodeKind::Nonzero:
      return elements_times(graph[node.inputs[0]], 1);
    case ir::NodeKind::Gather:
      return elements_times(node, 3);
    case ir::NodeKind::Scatter:  // copies its first operand, then writes at the positions
      return elements_times(node, 0.2) + elements_times(graph[node.inputs[1]], 3);
  }
  return 0;
}

}  // namespace ufuse::tracer
