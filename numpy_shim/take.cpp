// Follows NumPy's item_selection.c (PyArray_TakeFrom, PutTo, Nonzero) and arr_bincount.
#include "numpy_shim/take.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "numpy_shim/accumulate.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/view.h"

namespace ufuse::numpy_shim {

using ir::Bounds;
using ir::Op;

namespace {

std::int64_t count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Dims all_axes(const Dims& shape) {
  Dims axes(shape.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  return axes;
}

// The shape is a copy: one in the graph moves when nodes are added.
NodeId integer(ir::Graph& g, std::int64_t value, Dims shape) {
  const ir::Scalar bits{{static_cast<std::uint64_t>(value)}};
  return ir::broadcast_to(g, ir::constant(g, DType::Int64, bits), shape);
}

std::int64_t non_negative(std::int64_t axis, std::size_t axes) {
  const auto ndim = static_cast<std::int64_t>(axes);
  if (axis < -ndim || axis >= ndim) throw Unsupported(Reason::Shape, "axis out of range");
  return axis < 0 ? axis + ndim : axis;
}

// Over all axes; an order is not needed.
NodeId reduced(ir::Graph& g, ir::Reduction r, NodeId x) {
  const Dims shape = g[x].shape;
  return shape.empty() ? x : ir::reduce(g, r, x, all_axes(shape), {});
}

// The first `wanted` of values that are repeated without end.
NodeId repeated(ir::Graph& g, NodeId values, std::int64_t wanted) {
  const std::int64_t given = g[values].shape.front();
  if (given == 1) return ir::broadcast(g, values, {wanted}, {wanted == 1 ? 0 : -1});
  if (const std::int64_t rounds = (wanted + given - 1) / given; rounds > 1) {
    values = ir::broadcast_to(g, values, {rounds, given});
    values = ir::reshape(g, values, {rounds * given});
  }
  return g[values].shape.front() == wanted ? values : ir::slice(g, values, {0}, {1}, {wanted});
}

}  // namespace

NodeId are_within(ir::Graph& g, NodeId positions, std::int64_t extent) {
  const Dims shape = g[positions].shape;
  const NodeId low = ir::elementwise(g, Op::GreaterEqual, {positions, integer(g, -extent, shape)});
  const NodeId high = ir::elementwise(g, Op::Less, {positions, integer(g, extent, shape)});
  return reduced(g, ir::Reduction::All, ir::elementwise(g, Op::LogicalAnd, {low, high}));
}

NodeId count_of(ir::Graph& g, NodeId mask) {
  return reduced(g, ir::Reduction::Sum, ir::cast(g, mask, DType::Int64));
}

Result nonzero(Context& context, NodeId mask, std::int64_t count) {
  ir::Graph& g = context.graph();
  const auto axes = static_cast<std::int64_t>(g[mask].shape.size());
  const Dims shape{count, axes};
  return {ir::nonzero(g, mask, count), {DType::Int64, shape, c_strides(shape, 8)}, false};
}

View column(const Layout& rows, std::int64_t axis) {
  std::array<IndexItem, 2> items;
  items[0].kind = IndexItem::Kind::Slice;
  items[1].integer = axis;
  View view = basic_index(rows, items);
  // NumPy gives the steps also where there is nothing, and begins at the first byte then.
  view.layout.strides = {rows.shape[1] * 8};
  if (rows.shape[0] == 0) view.offset = 0;
  return view;
}

Operand column(Context& context, const Result& rows, std::int64_t axis) {
  const View view = column(rows.layout, axis);
  return {apply(context.graph(), rows.node, view.steps), view.layout, false, std::nullopt};
}

NodeId as_positions(Context& context, const Operand& positions) {
  if (!positions.weak && !can_cast_safely(positions.layout.dtype, DType::Int64))
    throw Unsupported(Reason::UnsafeCast, "positions");
  return as_dtype(context, positions, DType::Int64);
}

std::int64_t taken_extent(const Layout& x, std::optional<std::int64_t> axis) {
  if (!axis || x.shape.empty()) return count(x.shape);
  return x.shape[static_cast<std::size_t>(non_negative(*axis, x.shape.size()))];
}

Result take(Context& context, const Operand& x, NodeId positions, std::optional<std::int64_t> axis,
            Bounds bounds) {
  if (x.weak) throw Unsupported(Reason::Arguments, "a Python number");
  ir::Graph& g = context.graph();
  const Operand from = axis && !x.layout.shape.empty() ? x : flattened(g, x);
  const auto ndim = static_cast<std::int64_t>(from.layout.shape.size());
  const std::int64_t at = non_negative(axis.value_or(0), from.layout.shape.size());
  const Dims index_shape = g[positions].shape, shape = from.layout.shape;
  if (shape[static_cast<std::size_t>(at)] == 0 && count(index_shape) > 0)
    throw Unsupported(Reason::OutOfBounds, "of an empty axis");
  NodeId node = ir::gather(g, from.node, {positions}, {at}, bounds);
  // The axes of the positions take the place of the axis.
  const auto index_ndim = static_cast<std::int64_t>(index_shape.size());
  Dims permutation, result_shape;
  for (std::int64_t a = 0; a < at; ++a) permutation.push_back(index_ndim + a);
  for (std::int64_t a = 0; a < index_ndim; ++a) permutation.push_back(a);
  for (std::int64_t a = at; a + 1 < ndim; ++a) permutation.push_back(index_ndim + a);
  if (!std::ranges::is_sorted(permutation)) node = ir::transpose(g, node, permutation);
  result_shape = g[node].shape;
  check_size(result_shape);
  const DType dtype = from.layout.dtype;
  return {node,
          {dtype, result_shape, c_strides(result_shape, ir::size_of(dtype))},
          result_shape.empty()};
}

NodeId put(Context& context, NodeId x, NodeId positions, const Operand& values, Bounds bounds) {
  ir::Graph& g = context.graph();
  const Dims shape = g[x].shape;
  const DType dtype = g[x].dtype;
  const auto flat = [&](NodeId node) {
    const std::int64_t elements = count(g[node].shape);
    return g[node].shape.size() == 1 ? node : ir::reshape(g, node, {elements});
  };
  const NodeId where = flat(positions);
  const std::int64_t wanted = g[where].shape.front();
  if (wanted > 0 && count(shape) == 0) throw Unsupported(Reason::OutOfBounds, "an empty array");
  const NodeId given = flat(as_dtype(context, values, dtype));
  if (g[given].shape.front() == 0 || wanted == 0) return x;
  const NodeId written =
      ir::scatter(g, flat(x), {where}, repeated(g, given, wanted), {0}, bounds, std::nullopt);
  return shape.size() == 1 ? written : ir::reshape(g, written, shape);
}

Result bincount(Context& context, const Operand& positions, const std::optional<Operand>& weights,
                std::int64_t size) {
  ir::Graph& g = context.graph();
  const Dims shape{size};
  const NodeId where = ir::cast(g, positions.node, DType::Int64);
  const DType dtype = weights ? DType::Float64 : DType::Int64;
  NodeId added = integer(g, 1, g[where].shape);
  if (weights) {
    if (!can_cast_safely(weights->layout.dtype, dtype))
      throw Unsupported(Reason::UnsafeCast, "weights");
    if (weights->layout.shape != g[where].shape)
      throw Unsupported(Reason::Shape, "weights of another size");
    added = ir::cast(g, weights->node, dtype);
  }
  const NodeId zeros = ir::broadcast_to(g, ir::constant(g, dtype, {}), shape);
  const NodeId node = ir::scatter(g, zeros, {where}, added, {0}, Bounds::Unsigned, Op::Add);
  return {node, {dtype, shape, c_strides(shape, ir::size_of(dtype))}, false};
}

}  // namespace ufuse::numpy_shim
