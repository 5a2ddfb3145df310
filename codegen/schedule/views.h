// Where a value lies in memory, and which nodes are mere views of that. It knows layouts, not
// loops.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "codegen/loop/ir.h"
#include "ir/graph.h"

namespace ufuse::codegen {

// Memory that holds a node's value. Strides and offset in elements.
struct Place {
  loop::Buffer::Role role = loop::Buffer::Role::Input;
  int index = 0;
  std::int64_t offset = 0;
  ir::Dims shape;
  ir::Dims strides;
};
using Places = std::unordered_map<std::uint32_t, Place>;  // by NodeId::value

// The memory that `node` is a view of, if it is one: a placed node seen through slices, transposes,
// broadcasts, reshapes.
std::optional<Place> view_of(const ir::Graph& g, const Places& places, ir::NodeId node);

// The same elements in C order under another shape, without moving them; empty when the strides do
// not allow it.
std::optional<ir::Dims> reshape_strides(const ir::Dims& shape, const ir::Dims& strides,
                                        const ir::Dims& to);

ir::Dims contiguous_strides(const ir::Dims& shape);
std::int64_t element_count(const ir::Dims& shape);

// Whether no element is -0.0, whatever the inputs are: +0.0 may be added to it without effect. Nor
// is one a NaN that an addition would change.
bool is_never_minus_zero(const ir::Graph& graph, ir::NodeId node);

// `x` reshaped, with the reshape pushed down through elementwise nodes to views that can bear it;
// no id when some leaf cannot.
ir::NodeId sink_reshape(ir::Graph& g, const Places& places, ir::NodeId x, const ir::Dims& shape);

}  // namespace ufuse::codegen
