// ufunc.reduce, argmin and argmax as nodes: the accumulator's dtype, the axes, initial= and where=.
// The order of combination and the layout of the result come from reduce_order.cpp.
#include "numpy_shim/reduce.h"

#include <algorithm>
#include <numeric>

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/view.h"

namespace ufuse::numpy_shim {

using ir::Op;
using ir::Order;
using ir::Reduction;

namespace {

constexpr std::array kReductions = {
#define REDUCTION(id, name, combine, accepts, identity) Reduction::id,
#include "ir/reductions.def"
#undef REDUCTION
};

// What is reduced and how: NumPy's ufunc on an accumulator of this dtype.
struct Kernel {
  Reduction reduction;
  DType dtype;
};

Kernel kernel_of(std::string_view ufunc, DType operand, std::optional<DType> asked) {
  if (ufunc.starts_with("logical_")) {  // truth of the elements, whatever their dtype
    if (asked.value_or(DType::Bool) != DType::Bool)
      throw Unsupported(Reason::Reduction, "dtype of a logical reduction");
    operand = DType::Bool;
  }
  const DType dtype = accumulator_dtype(ufunc, operand, asked);
  // On bool `+` is `or` and `*` is `and`; without NaN fmax is maximum.
  if (dtype == DType::Bool && ufunc == "add") return {Reduction::Any, dtype};
  if (dtype == DType::Bool && ufunc == "multiply") return {Reduction::All, dtype};
  if (!ir::is_in(dtype, ir::kInexact) && ufunc == "fmax") return {Reduction::Max, dtype};
  if (!ir::is_in(dtype, ir::kInexact) && ufunc == "fmin") return {Reduction::Min, dtype};
  for (Reduction r : kReductions) {
    if (ir::reduction_info(r).name != ufunc) continue;
    if (ir::is_accepted(dtype, ir::reduction_info(r).accepts)) return {r, dtype};
  }
  throw Unsupported(Reason::Reduction, std::string(ufunc));
}

// Sorted and non-negative. NumPy lets 0 and -1 pass as axes of a 0-d array, but not in a tuple.
Dims normalized_axes(const std::optional<Dims>& axes, bool in_tuple, std::int64_t ndim) {
  Dims result;
  if (!axes) {
    result.resize(static_cast<std::size_t>(ndim));
    std::iota(result.begin(), result.end(), std::int64_t{0});
    return result;
  }
  if (ndim == 0 && !in_tuple && (*axes == Dims{0} || *axes == Dims{-1})) return {};
  for (std::int64_t axis : *axes) {
    if (axis < -ndim || axis >= ndim) throw Unsupported(Reason::Shape, "axis out of range");
    result.push_back(axis < 0 ? axis + ndim : axis);
  }
  std::ranges::sort(result);
  if (std::ranges::adjacent_find(result) != result.end())
    throw Unsupported(Reason::Shape, "repeated axis");
  return result;
}

std::int64_t elements_along(const Layout& x, const Dims& axes) {
  std::int64_t n = 1;
  for (std::int64_t axis : axes) n *= x.shape[static_cast<std::size_t>(axis)];
  return n;
}

NodeId initial_node(Context& context, const Operand& initial, DType dtype) {
  if (!initial.layout.shape.empty()) throw Unsupported(Reason::Reduction, "initial is no scalar");
  if (!initial.weak) check_accumulator_cast(initial.layout.dtype, dtype);
  return as_dtype(context, initial, dtype);
}

// An element that leaves every accumulator as it is: -0.0 for sums (0.0 would turn -0.0 into 0.0),
// the initial value for extrema.
NodeId neutral_node(ir::Graph& g, const Kernel& kernel, NodeId initial) {
  if (ir::reduction_info(kernel.reduction).identity == ir::Identity::None) return initial;
  ir::Scalar bits = ir::identity_bits(kernel.reduction, kernel.dtype);
  if (kernel.reduction == Reduction::Sum && ir::is_in(kernel.dtype, ir::kInexact))
    bits = ir::negated(bits, kernel.dtype);
  return ir::constant(g, kernel.dtype, bits);
}

// where=: left-out elements are replaced by a neutral one. Exact wherever NumPy combines one by one
// or the order is free; its pairwise sums follow the runs of the mask, so those stay NumPy's.
NodeId masked(ir::Graph& g, const Kernel& kernel, NodeId x, const Operand& where, NodeId initial,
              ir::ReduceOrder& order) {
  if (where.weak || where.layout.dtype != DType::Bool)
    throw Unsupported(Reason::Reduction, "where is not bool");
  if (order.order == Order::Pairwise)
    throw Unsupported(Reason::Reduction, "where= in a pairwise sum");
  const NodeId neutral = neutral_node(g, kernel, initial);
  if (!neutral) throw Unsupported(Reason::Reduction, "where= without initial");
  const bool extremum = kernel.reduction == Reduction::Min || kernel.reduction == Reduction::Max;
  // A repeated initial value could take the place of an equal zero of the other sign.
  if (extremum && order.order == Order::Sequential) order.order = Order::Extremum;
  const Dims shape = g[x].shape;  // a copy: adding nodes moves them
  return ir::elementwise(
      g, Op::Where,
      {ir::broadcast_to(g, where.node, shape), x, ir::broadcast_to(g, neutral, shape)});
}

}  // namespace

DType accumulator_dtype(std::string_view ufunc, DType operand, std::optional<DType> asked) {
  if (asked) return *asked;
  if (ufunc != "add" && ufunc != "multiply") return operand;
  if (ir::is_in(operand, ir::kBool | ir::kInt)) return DType::Int64;
  return ir::is_in(operand, ir::kUInt) ? DType::UInt64 : operand;
}

void check_accumulator_cast(DType from, DType to) {
  if (to == DType::Bool || can_cast_same_kind(from, to)) return;
  if (ir::is_in(from, ir::kInteger) && ir::is_in(to, ir::kInteger)) return;
  throw Unsupported(Reason::UnsafeCast, std::string(ir::info(to).name));
}

Result reduce(Context& context, std::string_view ufunc, const Operand& x,
              const ReduceOptions& options) {
  if (x.weak) throw Unsupported(Reason::Reduction, "a Python number");
  ir::Graph& g = context.graph();
  // Without dtype=, NumPy accumulates in the dtype of the output.
  if (options.out && *options.out != x.layout.dtype) throw Unsupported(Reason::Arguments);
  const Kernel kernel =
      kernel_of(ufunc, x.layout.dtype, options.dtype ? options.dtype : options.out);
  check_accumulator_cast(x.layout.dtype, kernel.dtype);
  const auto ndim = static_cast<std::int64_t>(x.layout.shape.size());
  const Dims axes = normalized_axes(options.axes, options.in_tuple, ndim);
  const Layout* mask = options.where ? &options.where->layout : nullptr;
  if (mask != nullptr && broadcast_shapes(std::array{&x.layout, mask}) != x.layout.shape)
    throw Unsupported(Reason::Shape, "where= does not broadcast");
  const NodeId initial =
      options.initial ? initial_node(context, *options.initial, kernel.dtype) : NodeId{};
  if (elements_along(x.layout, axes) == 0 && !initial &&
      ir::reduction_info(kernel.reduction).identity == ir::Identity::None)
    throw Unsupported(Reason::Reduction, "nothing to reduce");

  Layout operand = x.layout;
  operand.dtype = kernel.dtype;
  Combination how = combination(kernel.reduction, operand, axes, x.layout.dtype != kernel.dtype,
                                context.version, mask);
  NodeId node = ir::cast(g, x.node, kernel.dtype);
  if (options.where) node = masked(g, kernel, node, *options.where, initial, how.order);
  if (axes.empty()) {  // NumPy still combines each element with the identity or initial value
    Dims shape = x.layout.shape;
    shape.push_back(1);
    node = ir::reshape(g, node, shape);
    how.axes = {ndim};
  }
  node = ir::reduce(g, kernel.reduction, node, how.axes, how.order, initial);
  const Layout layout = reduced_layout(x.layout, axes, kernel.dtype, options.keepdims, mask);
  if (g[node].shape != layout.shape) node = ir::reshape(g, node, layout.shape);
  return {node, layout, layout.shape.empty()};
}

Result arg_reduce(Context& context, bool largest, const Operand& x,
                  std::optional<std::int64_t> axis, bool keepdims) {
  if (x.weak) throw Unsupported(Reason::Reduction, "a Python number");
  if (!ir::is_accepted(x.layout.dtype, ir::kBool | ir::kReal | ir::kHalf))
    throw Unsupported(Reason::Reduction, "order of " + std::string(ir::info(x.layout.dtype).name));
  ir::Graph& g = context.graph();
  const auto ndim = static_cast<std::int64_t>(x.layout.shape.size());
  const bool flat = !axis || ndim == 0;
  const Dims axes = normalized_axes(axis ? std::optional(Dims{*axis}) : std::nullopt, false, ndim);
  if (elements_along(x.layout, axes) == 0)
    throw Unsupported(Reason::Reduction, "nothing to reduce");

  // Halves stand where their floats stand.
  NodeId node = x.layout.dtype == DType::Float16 ? ir::cast(g, x.node, DType::Float32) : x.node;
  if (flat) node = ir::reshape(g, node, {elements_along(x.layout, axes)});
  node = ir::arg_reduce(g, largest, node, flat ? 0 : axes.front());
  Dims shape;
  for (std::int64_t i = 0; i < ndim; ++i) {
    const bool reduced = std::ranges::binary_search(axes, i);
    if (!reduced || keepdims)
      shape.push_back(reduced ? 1 : x.layout.shape[static_cast<std::size_t>(i)]);
  }
  if (g[node].shape != shape) node = ir::reshape(g, node, shape);
  return {node, {DType::Int64, shape, c_strides(shape, 8)}, shape.empty()};
}

}  // namespace ufuse::numpy_shim
