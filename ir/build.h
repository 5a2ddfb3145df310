// Short ways to add nodes: each fills in the dtype and shape that inference gives, so that a graph
// can be written down in a line. Used by numpy_shim, tracer, codegen and tests. Each throws
// InternalError (ir/support/error.h) on a malformed node.
#pragma once

#include "ir/graph.h"

namespace ufuse::ir {

NodeId input(Graph& g, std::uint32_t index, DType dtype, Dims shape);
NodeId param(Graph& g, std::uint32_t index, DType dtype);
NodeId constant(Graph& g, DType dtype, Scalar bits);
NodeId broadcast(Graph& g, NodeId x, Dims shape,
                 Dims axes);  // axes[i]: operand's axis for result axis i, or -1
NodeId broadcast_to(Graph& g, NodeId x, const Dims& shape);  // NumPy's alignment at the last axis
NodeId transpose(Graph& g, NodeId x, Dims permutation);
NodeId slice(Graph& g, NodeId x, const Dims& start, const Dims& step, Dims shape);
NodeId reshape(Graph& g, NodeId x, Dims shape);  // x itself when the shape is the same
NodeId cast(Graph& g, NodeId x, DType dtype);    // x itself when the dtype is the same
NodeId elementwise(Graph& g, Op op,
                   NodeIds operands);  // operands already of one shape and dtype
NodeId ufunc(Graph& g, const LoopTable& loops, std::uint32_t row, std::uint32_t slot,
             NodeIds operands);
struct ReduceOrder {
  Order order = Order::Free;
  std::uint32_t run_axes = 0;
  std::int64_t chunk = 0;
};
NodeId reduce(Graph& g, Reduction r, NodeId x, Dims axes, ReduceOrder order, NodeId initial = {});
NodeId arg_reduce(Graph& g, bool largest, NodeId x, std::int64_t axis);
NodeId iota(Graph& g, std::int64_t elements);
NodeId scan(Graph& g, Op combine, NodeId x, std::int64_t axis);
NodeId gather(Graph& g, NodeId x, const NodeIds& positions, Dims axes, Bounds bounds);
// `values`: unset for a `combine` of one operand.
NodeId scatter(Graph& g, NodeId x, const NodeIds& positions, NodeId values, Dims axes,
               Bounds bounds, std::optional<Op> combine = std::nullopt);
NodeId nonzero(Graph& g, NodeId mask, std::int64_t count);  // of as many true elements

// Inference and verification. `infer` gives dtype and shape that a node must have; `verify` throws
// InternalError naming the first bad node of a graph (operands out of order, wrong dtype, wrong
// shape, attributes out of range).
struct Inferred {
  DType dtype;
  Dims shape;
};
Inferred infer(const Graph& g, const LoopTable* loops, const Node& node);
void verify(const Graph& g, const LoopTable* loops);

}  // namespace ufuse::ir
