// Masks that are used twice, and updates of what one picks, `x[mask] = f(x[mask])`, without a list
// of positions: f is computed for whole arrays, and taken where the mask is true. Where it is
// false, f is handed ones, of which no operation raises a floating-point flag, so that its warnings
// are those of what was picked.
#include <algorithm>
#include <span>
#include <utility>

#include "ir/build.h"
#include "numpy_shim/assign.h"
#include "numpy_shim/layout.h"
#include "tracer/session.h"

namespace ufuse::tracer {
namespace {

using ir::Graph;
using ir::Node;
using ir::Op;

// More operations are not done twice as often as is needed.
constexpr std::size_t kMostOperations = 32;
// So many masks are known again, by so many operations one upon the other.
constexpr std::size_t kMostMasks = 4;
constexpr int kDeepestMask = 3;

// The mask whose true elements are at these positions along an axis; unset: they are no such ones.
NodeId mask_of(const Graph& g, NodeId positions, std::int64_t axis) {
  NodeId rows = positions;
  while (g[rows].op == Op::Reshape) rows = g[rows].inputs[0];
  if (const Node& column = g[rows]; column.op == Op::Slice) {
    rows = column.inputs[0];
    const Dims taken{0, axis, 1, 1};
    if (g[rows].op != Op::Nonzero || column.ints != taken ||
        column.shape != Dims{g[rows].shape[0], 1})
      return {};
  } else if (axis != 0 || column.op != Op::Nonzero || column.shape[1] != 1) {
    return {};
  }
  return g[rows].inputs[0];
}

// The mask of an array's shape whose true elements are at these positions, one for each of `axes`;
// unset: there is none.
NodeId mask_of(const Graph& g, const Dims& shape, const Dims& axes,
               std::span<const NodeId> positions) {
  if (axes.size() != shape.size()) return {};
  NodeId mask;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const NodeId found = mask_of(g, positions[i], axes[i]);
    const bool in_order = axes[i] == static_cast<std::int64_t>(i);
    if (!found || !in_order || (i > 0 && found != mask)) return {};
    mask = found;
  }
  return mask && g[mask].shape == shape ? mask : NodeId{};
}

// The same number for all elements.
bool is_number(const Graph& g, const Node& node) {
  return node.op == Op::Broadcast &&
         std::ranges::all_of(g[node.inputs[0]].shape, [](std::int64_t n) { return n == 1; });
}

NodeId ones(Graph& g, ir::DType dtype, const Dims& shape) {
  ir::Scalar one;
  one.bits[0] = 1;
  return ir::broadcast_to(g, ir::cast(g, ir::constant(g, ir::DType::Int64, one), dtype), shape);
}

Operand packed(const Graph& g, NodeId node) {
  const Dims& shape = g[node].shape;
  const ir::DType dtype = g[node].dtype;
  return {node, {dtype, shape, numpy_shim::c_strides(shape, ir::size_of(dtype))}, false, {}};
}

}  // namespace

// An operand that has been computed meanwhile is another node, which reads memory.
NodeId Session::known_mask(NodeId mask) const {
  const auto is_known = [&](NodeId known) {
    return computed_.contains(known.value) && are_equal(mask, known, kDeepestMask);
  };
  const auto found = std::ranges::find_if(masks_, is_known);
  return found == masks_.end() ? mask : *found;
}

void Session::note_mask(NodeId mask) {
  if (std::ranges::find(masks_, mask) != masks_.end()) return;
  if (masks_.size() == kMostMasks) masks_.erase(masks_.begin());
  masks_.push_back(mask);
  note_place(mask, kDeepestMask);
}

void Session::note_place(NodeId node, int depth) {
  if (const Want* want = computed(node))
    stood_.insert_or_assign(node.value, Stood{want->memory.owner, want->bytes(), want->layout});
  if (depth > 0 && ir::kind_of(graph_[node].op) == ir::NodeKind::Elementwise)
    for (NodeId input : graph_[node].inputs) note_place(input, depth - 1);
}

bool Session::are_equal(NodeId fresh, NodeId known, int depth) const {
  if (fresh == known) return true;
  const Node &a = graph_[fresh], &b = graph_[known];
  if (a.op == Op::Input) {
    const InputRow& row = inputs_[a.id];
    const auto stood = stood_.find(known.value);
    return stood != stood_.end() && !row.stale && row.layout == stood->second.layout &&
           row.memory.owner && row.memory.owner == stood->second.owner.lock() &&
           row.bytes().low == stood->second.bytes.low;
  }
  return depth > 0 && a.op == b.op && a.dtype == b.dtype &&
         ir::kind_of(a.op) == ir::NodeKind::Elementwise &&
         std::ranges::equal(a.inputs, b.inputs,
                            [&](NodeId x, NodeId y) { return are_equal(x, y, depth - 1); });
}

// What has been computed may be of memory that was overwritten since.
bool Session::is_picked(NodeId values, NodeId mask, std::set<std::uint32_t>& operations) const {
  const Node& node = graph_[values];
  const NodeInfo& info = info_[values.value];
  if (is_number(graph_, node) || operations.contains(values.value)) return true;
  if (info.computed) return false;
  if (node.op == Op::Gather)
    return mask_of(graph_, graph_[node.inputs[0]].shape, node.ints,
                   std::span(node.inputs).subspan(1)) == mask;
  const bool is_inline = ir::kind_of(node.op) == ir::NodeKind::Elementwise || node.op == Op::Cast;
  if (!is_inline || call_records_.contains(values.value) || output_casts_.contains(values.value) ||
      operations.size() == kMostOperations)
    return false;
  operations.insert(values.value);
  return std::ranges::all_of(node.inputs,
                             [&](NodeId input) { return is_picked(input, mask, operations); });
}

NodeId Session::unpicked(NodeId values, NodeId mask,
                         std::unordered_map<std::uint32_t, NodeId>& made) {
  if (const auto known = made.find(values.value); known != made.end()) return known->second;
  Node node = graph_[values];
  const Dims shape = graph_[mask].shape;
  NodeId result;
  if (is_number(graph_, node)) {
    result = ir::broadcast_to(graph_, ir::reshape(graph_, node.inputs[0], {}), shape);
  } else if (node.op == Op::Gather) {
    result = node.inputs[0];
  } else {
    for (NodeId& input : node.inputs) {
      const NodeId whole = unpicked(input, mask, made);
      input = ir::elementwise(graph_, Op::Where,
                              {mask, whole, ones(graph_, graph_[whole].dtype, shape)});
    }
    node.shape = shape;
    const std::size_t first = graph_.size();
    note_nodes(first);
    const NodeInfo here = std::exchange(current_, info_[values.value]);
    set_report_mask(current_.report_mask);
    result = graph_.add(std::move(node));
    note_nodes(first, {&result, 1});
    current_ = here;
    set_report_mask(here.report_mask);
  }
  made.emplace(values.value, result);
  return result;
}

bool Session::assign_picked(const LazyArray& x, const numpy_shim::Selection& selection,
                            const Operand& value) {
  if (!selection.only_arrays || value.weak || value.layout.shape != selection.index_shape ||
      selection.index_shape.size() != 1)
    return false;
  ir::NodeIds positions;
  for (const numpy_shim::IndexArray& array : selection.arrays)
    positions.push_back(array.positions.node);
  const NodeId mask = mask_of(graph_, x.layout.shape, selection.axes, positions);
  const ir::DType from = value.layout.dtype, to = x.layout.dtype;
  std::set<std::uint32_t> operations;
  if (!mask || (from != to && ir::cast_may_raise(from, to)) ||
      !is_picked(value.node, mask, operations))
    return false;
  // Warnings come in the order of the nodes.
  if (!operations.empty())
    for (std::size_t i = *operations.begin(); i < graph_.size(); ++i)
      if (!operations.contains(static_cast<std::uint32_t>(i)) && !info_[i].computed &&
          may_warn(graph_.at(i)))
        return false;
  std::unordered_map<std::uint32_t, NodeId> made;
  const NodeId whole = unpicked(value.node, mask, made);
  for (const std::uint32_t operation : operations)
    info_[operation].computed = info_[operation].moved = true;
  assign_where(x, packed(graph_, mask), packed(graph_, whole));
  return true;
}

}  // namespace ufuse::tracer
