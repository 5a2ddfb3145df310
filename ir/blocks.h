// Along which axes can a graph be computed block by block? Axes of all its values that are cut
// together are one *dimension*: those of an operand and a result of an elementwise node, say. Where
// no node needs more than one block of a dimension, blocks of the arguments give the same blocks of
// the outputs. Whether to the bit, the graph of a block says: the order in which NumPy sums depends
// on extents. For arrays that are cut into blocks (Dask's).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace ufuse::ir {

class Dimensions {
 public:
  // Inputs from the number `arguments` on are the same for all blocks.
  Dimensions(const Graph& graph, std::size_t arguments);

  // The dimension of an axis; equal numbers are equal dimensions.
  std::uint32_t of(NodeId node, std::size_t axis) const { return root(axes_[node.value][axis]); }
  // The first node that needs more of it than a block; unset: none does.
  NodeId whole_for(std::uint32_t dimension) const { return whole_for_[dimension]; }

 private:
  using Axes = SmallVector<std::uint32_t, 4>;
  std::uint32_t root(std::uint32_t dimension) const;
  std::uint32_t fresh(NodeId whole_for = {});
  void unite(std::uint32_t a, std::uint32_t b);
  void unite(const Axes& a, const Axes& b);
  void need_whole(std::uint32_t dimension, NodeId node);
  void need_whole(const Axes& dimensions, NodeId node);
  void need_distinct(NodeId node);
  Axes fresh_axes(std::size_t count, NodeId whole_for = {});
  Axes axes_of(const Graph& graph, NodeId id, std::size_t arguments);
  Axes reshaped(const Graph& graph, NodeId id);
  Axes gathered(const Graph& graph, NodeId id);
  Axes others(const Graph& graph, NodeId id);

  std::vector<Axes> axes_;             // by node
  std::vector<std::uint32_t> parent_;  // by dimension
  std::vector<NodeId> whole_for_;
};

// Whether `block` is `whole` with other extents of some dimensions, those in the map, and nothing
// else: the same nodes in the same order, with the same attributes.
bool is_block_of(const Graph& block, const Graph& whole, const Dimensions& dimensions,
                 const std::unordered_map<std::uint32_t, std::int64_t>& extents);

}  // namespace ufuse::ir
