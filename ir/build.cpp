// Nodes in a line: each function fills in what inference gives and adds the node. Used by
// everything that writes graphs.
#include "ir/build.h"

#include <utility>

#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

Node make(Op op, NodeIds inputs) {
  Node node;
  node.op = op;
  node.dtype = DType::Bool;  // a placeholder until inference has spoken
  node.inputs = std::move(inputs);
  return node;
}

NodeId add_inferred(Graph& g, const LoopTable* loops, Node&& node) {
  Inferred inferred = infer(g, loops, node);
  node.dtype = inferred.dtype;
  node.shape = std::move(inferred.shape);
  return g.add(std::move(node));
}

}  // namespace

NodeId input(Graph& g, std::uint32_t index, DType dtype, Dims shape) {
  Node node = make(Op::Input, {});
  node.dtype = dtype;
  node.shape = std::move(shape);
  node.id = index;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId param(Graph& g, std::uint32_t index, DType dtype) {
  Node node = make(Op::Param, {});
  node.dtype = dtype;
  node.id = index;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId constant(Graph& g, DType dtype, Scalar bits) {
  Node node = make(Op::Const, {});
  node.dtype = dtype;
  node.constant = bits;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId broadcast(Graph& g, NodeId x, Dims shape, Dims axes) {
  Node node = make(Op::Broadcast, {x});
  node.shape = std::move(shape);
  node.ints = std::move(axes);
  return add_inferred(g, nullptr, std::move(node));
}

NodeId broadcast_to(Graph& g, NodeId x, const Dims& shape) {
  const Dims& from = g[x].shape;
  if (from == shape) return x;
  if (from.size() > shape.size())
    throw InternalError("broadcast_to: the result has fewer axes than the operand");
  const std::size_t added = shape.size() - from.size();
  Dims axes(shape.size(), -1);
  // An extent of 1 that stays 1 is followed, not dropped: it makes fewer different nodes of the
  // same meaning.
  for (std::size_t a = 0; a < from.size(); ++a)
    if (from[a] == shape[added + a]) axes[added + a] = static_cast<std::int64_t>(a);
  return broadcast(g, x, shape, std::move(axes));
}

NodeId transpose(Graph& g, NodeId x, Dims permutation) {
  Node node = make(Op::Transpose, {x});
  node.ints = std::move(permutation);
  return add_inferred(g, nullptr, std::move(node));
}

NodeId slice(Graph& g, NodeId x, const Dims& start, const Dims& step, Dims shape) {
  Node node = make(Op::Slice, {x});
  node.shape = std::move(shape);
  node.ints = start;
  node.ints.insert(node.ints.end(), step.begin(), step.end());
  return add_inferred(g, nullptr, std::move(node));
}

NodeId reshape(Graph& g, NodeId x, Dims shape) {
  if (g[x].shape == shape) return x;
  Node node = make(Op::Reshape, {x});
  node.shape = std::move(shape);
  return add_inferred(g, nullptr, std::move(node));
}

NodeId cast(Graph& g, NodeId x, DType dtype) {
  if (g[x].dtype == dtype) return x;
  Node node = make(Op::Cast, {x});
  node.dtype = dtype;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId elementwise(Graph& g, Op op, NodeIds operands) {
  return add_inferred(g, nullptr, make(op, std::move(operands)));
}

NodeId ufunc(Graph& g, const LoopTable& loops, std::uint32_t row, std::uint32_t slot,
             NodeIds operands) {
  Node node = make(Op::Ufunc, std::move(operands));
  node.id = row;
  node.slot = slot;
  return add_inferred(g, &loops, std::move(node));
}

NodeId reduce(Graph& g, Reduction r, NodeId x, Dims axes, ReduceOrder order, NodeId initial) {
  Node node = make(Op::Reduce, initial ? NodeIds{x, initial} : NodeIds{x});
  node.reduction = r;
  node.ints = std::move(axes);
  node.order = order.order;
  if (order.order == Order::Pairwise) {
    node.run_axes = order.run_axes;
    node.chunk = order.chunk;
  }
  return add_inferred(g, nullptr, std::move(node));
}

NodeId arg_reduce(Graph& g, bool largest, NodeId x, std::int64_t axis) {
  Node node = make(Op::ArgReduce, {x});
  node.id = largest ? 1 : 0;
  node.ints = {axis};
  return add_inferred(g, nullptr, std::move(node));
}

NodeId iota(Graph& g, std::int64_t elements) {
  Node node = make(Op::Iota, {});
  node.shape = {elements};
  return add_inferred(g, nullptr, std::move(node));
}

NodeId scan(Graph& g, Op combine, NodeId x, std::int64_t axis) {
  Node node = make(Op::Scan, {x});
  node.ints = {axis};
  node.combine = combine;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId gather(Graph& g, NodeId x, const NodeIds& positions, Dims axes, Bounds bounds) {
  Node node = make(Op::Gather, {x});
  node.inputs.insert(node.inputs.end(), positions.begin(), positions.end());
  node.ints = std::move(axes);
  node.bounds = bounds;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId scatter(Graph& g, NodeId x, const NodeIds& positions, NodeId values, Dims axes,
               Bounds bounds, std::optional<Op> combine) {
  Node node = make(Op::Scatter, {x});
  node.inputs.insert(node.inputs.end(), positions.begin(), positions.end());
  if (values) node.inputs.push_back(values);
  node.ints = std::move(axes);
  node.bounds = bounds;
  node.combine = combine;
  return add_inferred(g, nullptr, std::move(node));
}

NodeId nonzero(Graph& g, NodeId mask, std::int64_t count) {
  Node node = make(Op::Nonzero, {mask});
  node.shape = {count, static_cast<std::int64_t>(g[mask].shape.size())};
  return add_inferred(g, nullptr, std::move(node));
}

}  // namespace ufuse::ir
