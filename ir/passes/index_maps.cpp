// Index maps of index maps become one map, and maps that change nothing go. Slices are brought to
// one form (an axis of one element has step 1, an empty one start 0), so that equal views are equal
// nodes. Broadcast and transpose compose to a broadcast, since its axes may come in any order.
#include "ir/build.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace ufuse::ir {
namespace {

Dims composed(const Dims& outer, const Dims& inner) {
  Dims axes;
  for (std::int64_t a : outer) axes.push_back(a < 0 ? -1 : inner[a]);
  return axes;
}

bool is_counting(const Dims& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

NodeId rewrite_broadcast(Graph& g, const Node& node) {
  const Node& x = g[node.inputs[0]];
  if (x.op == Op::Broadcast || x.op == Op::Transpose)
    return broadcast(g, x.inputs[0], node.shape, composed(node.ints, x.ints));
  if (node.shape != x.shape) return {};
  for (std::size_t i = 0; i < node.ints.size(); ++i)
    if (node.ints[i] != static_cast<std::int64_t>(i) && !(node.ints[i] == -1 && x.shape[i] == 1))
      return {};
  return node.inputs[0];
}

NodeId rewrite_transpose(Graph& g, const Node& node) {
  const Node& x = g[node.inputs[0]];
  if (x.op == Op::Transpose) {
    Dims permutation = composed(node.ints, x.ints);
    const NodeId source = x.inputs[0];
    return is_counting(permutation) ? source : transpose(g, source, std::move(permutation));
  }
  if (x.op == Op::Broadcast)
    return broadcast(g, x.inputs[0], node.shape, composed(node.ints, x.ints));
  return is_counting(node.ints) ? node.inputs[0] : NodeId{};
}

NodeId rewrite_slice(Graph& g, const Node& node) {
  const std::size_t nd = node.shape.size();
  NodeId source = node.inputs[0];
  Dims start(node.ints.begin(), node.ints.begin() + static_cast<std::ptrdiff_t>(nd));
  Dims step(node.ints.begin() + static_cast<std::ptrdiff_t>(nd), node.ints.end());
  if (const Node& x = g[source]; x.op == Op::Slice) {
    for (std::size_t i = 0; i < nd; ++i) {
      start[i] = x.ints[i] + start[i] * x.ints[nd + i];
      step[i] *= x.ints[nd + i];
    }
    source = x.inputs[0];
  }
  bool is_identity = node.shape == g[source].shape;
  for (std::size_t i = 0; i < nd; ++i) {
    if (node.shape[i] <= 1) step[i] = 1;
    if (node.shape[i] == 0) start[i] = 0;
    is_identity = is_identity && start[i] == 0 && step[i] == 1;
  }
  return is_identity ? source : slice(g, source, start, step, node.shape);
}

NodeId rewrite_reshape(Graph& g, const Node& node) {
  NodeId source = node.inputs[0];
  if (g[source].op == Op::Reshape) source = g[source].inputs[0];
  return g[source].shape == node.shape ? source : reshape(g, source, node.shape);
}

NodeId rule(Graph& g, const Node& node) {
  switch (node.op) {
    case Op::Broadcast: {
      // A broadcast that composed with the map under it may have become one that changes nothing.
      const NodeId composed_map = rewrite_broadcast(g, node);
      if (!composed_map || g[composed_map].op != Op::Broadcast) return composed_map;
      const Node copy = g[composed_map];
      const NodeId identity = rewrite_broadcast(g, copy);
      return identity ? identity : composed_map;
    }
    case Op::Transpose:
      return rewrite_transpose(g, node);
    case Op::Slice:
      return rewrite_slice(g, node);
    case Op::Reshape:
      return rewrite_reshape(g, node);
    case Op::Cast:
      return g[node.inputs[0]].dtype == node.dtype ? node.inputs[0] : NodeId{};
    default:
      return {};
  }
}

}  // namespace

Graph index_maps(const Graph& graph) { return rewrite(graph, rule); }

}  // namespace ufuse::ir
