// See blocks.h.
#include "ir/blocks.h"

#include <algorithm>

namespace ufuse::ir {

Dimensions::Dimensions(const Graph& graph, std::size_t arguments) {
  for (std::size_t i = 0; i < graph.size(); ++i)
    axes_.push_back(axes_of(graph, graph.at(i), arguments));
  // Of x[:, None] + x, each block would need two blocks of x. It is rather said of the sum than of
  // what it is made of.
  for (bool computed : {true, false})
    for (std::size_t i = 0; i < graph.size(); ++i)
      if (op_info(graph[graph.at(i)].op).group == Group::Computed || !computed)
        need_distinct(graph.at(i));
}

// No block of a value has the same block of a dimension along two axes.
void Dimensions::need_distinct(NodeId node) {
  const Axes& axes = axes_[node.value];
  for (std::size_t a = 0; a < axes.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (root(axes[a]) == root(axes[b]) && !whole_for_[root(axes[a])]) need_whole(axes[a], node);
}

std::uint32_t Dimensions::root(std::uint32_t dimension) const {
  while (parent_[dimension] != dimension) dimension = parent_[dimension];
  return dimension;
}

std::uint32_t Dimensions::fresh(NodeId whole_for) {
  parent_.push_back(static_cast<std::uint32_t>(parent_.size()));
  whole_for_.push_back(whole_for);
  return parent_.back();
}

void Dimensions::unite(std::uint32_t a, std::uint32_t b) {
  a = root(a);
  b = root(b);
  if (a == b) return;
  parent_[std::max(a, b)] = std::min(a, b);
  if (const NodeId node = whole_for_[std::max(a, b)]) need_whole(a, node);
}

void Dimensions::unite(const Axes& a, const Axes& b) {
  for (std::size_t i = 0; i < a.size(); ++i) unite(a[i], b[i]);
}

void Dimensions::need_whole(std::uint32_t dimension, NodeId node) {
  NodeId& first = whole_for_[root(dimension)];
  if (!first || node.value < first.value) first = node;
}

void Dimensions::need_whole(const Axes& dimensions, NodeId node) {
  for (std::uint32_t dimension : dimensions) need_whole(dimension, node);
}

Dimensions::Axes Dimensions::fresh_axes(std::size_t count, NodeId whole_for) {
  Axes made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(fresh(whole_for));
  return made;
}

// Operands before the node have theirs already.
Dimensions::Axes Dimensions::axes_of(const Graph& graph, NodeId id, std::size_t arguments) {
  const Node& node = graph[id];
  const auto operand = [&](std::size_t k) -> const Axes& { return axes_[node.inputs[k].value]; };
  switch (kind_of(node.op)) {
    case NodeKind::Input:
      return fresh_axes(node.shape.size(), node.id < arguments ? NodeId{} : id);
    case NodeKind::Param:
    case NodeKind::Const:
      return {};
    case NodeKind::Iota:
      return fresh_axes(1, id);
    case NodeKind::Broadcast:
    case NodeKind::Transpose: {
      Axes made;
      for (std::int64_t axis : node.ints) made.push_back(axis < 0 ? fresh() : operand(0)[axis]);
      return made;
    }
    case NodeKind::Slice: {
      Axes made = operand(0);
      const Dims& shape = graph[node.inputs[0]].shape;
      for (std::size_t a = 0; a < made.size(); ++a) {
        if (node.ints[a] == 0 && node.ints[made.size() + a] == 1 && node.shape[a] == shape[a])
          continue;
        need_whole(made[a], id);
        made[a] = fresh(id);
      }
      return made;
    }
    case NodeKind::Reshape:
      return reshaped(graph, id);
    case NodeKind::Cast:
    case NodeKind::Ufunc:
    case NodeKind::Elementwise: {
      const Axes made = operand(0);
      for (std::size_t k = 1; k < node.inputs.size(); ++k) unite(made, operand(k));
      return made;
    }
    case NodeKind::Reduce:
    case NodeKind::ArgReduce:
      return others(graph, id);
    case NodeKind::Scan:
      need_whole(operand(0)[node.ints[0]], id);
      return operand(0);
    case NodeKind::Gather:
      return gathered(graph, id);
    case NodeKind::Scatter: {
      const Axes block = gathered(graph, id);
      for (std::size_t a = 0; a < operand(1).size(); ++a) need_whole(operand(1)[a], id);
      if (const NodeId values = scattered_values(node)) unite(axes_[values.value], block);
      return operand(0);
    }
    case NodeKind::Nonzero:
      need_whole(operand(0), id);
      return fresh_axes(node.shape.size(), id);
  }
  return {};
}

// Axes that neither come apart nor go together with others stay what they are.
Dimensions::Axes Dimensions::reshaped(const Graph& graph, NodeId id) {
  const Axes& from = axes_[graph[id].inputs[0].value];
  const Dims &given = graph[graph[id].inputs[0]].shape, &shape = graph[id].shape;
  Axes made;
  std::size_t a = 0, b = 0;
  while (a < given.size() || b < shape.size()) {
    if (a < given.size() && b < shape.size() && given[a] == shape[b]) {
      made.push_back(from[a]);
      ++a;
      ++b;
      continue;
    }
    if (a < given.size() && given[a] == 1) {
      ++a;
      continue;
    }
    if (b < shape.size() && shape[b] == 1) {
      made.push_back(fresh(id));
      ++b;
      continue;
    }
    // The shortest runs of axes with equally many elements.
    const std::size_t first = b;
    std::int64_t left = 1, right = 1;
    do {
      if (a < given.size() && (left <= right || b == shape.size())) {
        need_whole(from[a], id);
        left *= given[a++];
      } else {
        right *= shape[b++];
      }
    } while (left != right && (a < given.size() || b < shape.size()));
    for (std::size_t i = first; i < b; ++i) made.push_back(fresh(id));
  }
  return made;
}

Dimensions::Axes Dimensions::gathered(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  Axes made = axes_[node.inputs[1].value];
  for (std::size_t k = 2; k <= node.ints.size(); ++k) unite(made, axes_[node.inputs[k].value]);
  for (std::uint32_t dimension : others(graph, id)) made.push_back(dimension);
  return made;
}

// The first operand's axes but for those that the node names, all elements of which it needs.
Dimensions::Axes Dimensions::others(const Graph& graph, NodeId id) {
  const Axes& from = axes_[graph[id].inputs[0].value];
  Axes made;
  for (std::size_t a = 0; a < from.size(); ++a) {
    if (std::ranges::find(graph[id].ints, static_cast<std::int64_t>(a)) != graph[id].ints.end())
      need_whole(from[a], id);
    else
      made.push_back(from[a]);
  }
  return made;
}

bool is_block_of(const Graph& block, const Graph& whole, const Dimensions& dimensions,
                 const std::unordered_map<std::uint32_t, std::int64_t>& extents) {
  if (block.size() != whole.size() || block.outputs != whole.outputs) return false;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    Node node = whole[whole.at(i)];
    for (std::size_t a = 0; a < node.shape.size(); ++a)
      if (const auto it = extents.find(dimensions.of(whole.at(i), a)); it != extents.end())
        node.shape[a] = it->second;
    if (node != block[block.at(i)]) return false;
  }
  return true;
}

}  // namespace ufuse::ir
