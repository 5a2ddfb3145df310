// Memory, views and copies of the interpreter's values. Elements are moved as unsigned integers,
// whatever their dtype: moving needs no arithmetic, and it keeps the payload of a NaN.
#include "ir/interp/value.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>
// xtensor moved its headers into folders in version 0.26.
#if __has_include(<xtensor/containers/xadapt.hpp>)
#include <xtensor/containers/xadapt.hpp>
#include <xtensor/core/xnoalias.hpp>
#include <xtensor/views/xstrided_view.hpp>
#else
#include <xtensor/xadapt.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xstrided_view.hpp>
#endif

#include "ir/support/error.h"

namespace ufuse::ir::interp {
namespace {

// The memory that a value spans, counted in units of one unsigned integer type, and the value as a
// strided view onto it. Strides in NumPy need not be multiples of the element's size (a field of a
// record): the unit divides them all, and an axis of the units of one element is added.
struct Span {
  char* begin;
  std::size_t units, offset;
  std::vector<std::size_t> shape;
  std::vector<std::ptrdiff_t> strides;
};

Span span_of(const Value& value, std::int64_t unit) {
  Span span{value.data, 0, 0, {}, {}};
  std::int64_t low = 0, high = static_cast<std::int64_t>(size_of(value.dtype));
  for (std::size_t i = 0; i < value.shape.size(); ++i) {
    const std::int64_t reach = (value.shape[i] - 1) * value.strides[i];
    (reach < 0 ? low : high) += reach;
    span.shape.push_back(static_cast<std::size_t>(value.shape[i]));
    span.strides.push_back(value.strides[i] / unit);
  }
  span.shape.push_back(size_of(value.dtype) / static_cast<std::size_t>(unit));
  span.strides.push_back(1);
  span.begin += low;
  span.units = static_cast<std::size_t>((high - low) / unit);
  span.offset = static_cast<std::size_t>(-low / unit);
  return span;
}

template <class Unit>
void copy_units(const Value& from, const Value& to) {
  const Span source = span_of(from, sizeof(Unit)), target = span_of(to, sizeof(Unit));
  const std::array<std::size_t, 1> source_shape{source.units}, target_shape{target.units};
  const auto source_memory = xt::adapt(reinterpret_cast<const Unit*>(source.begin), source.units,
                                       xt::no_ownership(), source_shape);
  auto target_memory = xt::adapt(reinterpret_cast<Unit*>(target.begin), target.units,
                                 xt::no_ownership(), target_shape);
  const auto source_view =
      xt::strided_view(source_memory, std::vector(source.shape), std::vector(source.strides),
                       source.offset, xt::layout_type::dynamic);
  auto target_view =
      xt::strided_view(target_memory, std::vector(target.shape), std::vector(target.strides),
                       target.offset, xt::layout_type::dynamic);
  xt::noalias(target_view) = source_view;
}

constexpr std::int64_t kCopied = 16 * Pulse::kElements;  // at once

std::int64_t common_unit(const Value& a, const Value& b) {
  auto unit = static_cast<std::int64_t>(std::min<std::size_t>(size_of(a.dtype), 8));
  for (const Value* value : {&a, &b})
    for (std::size_t i = 0; i < value->shape.size(); ++i)
      if (value->shape[i] > 1) unit = std::gcd(unit, value->strides[i]);
  return unit;
}

}  // namespace

std::int64_t count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Dims c_strides(const Dims& shape, std::size_t itemsize) {
  Dims strides(shape.size());
  auto stride = static_cast<std::int64_t>(itemsize);
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

bool is_contiguous(const Value& value) {
  const Dims wanted = c_strides(value.shape, size_of(value.dtype));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (value.shape[i] > 1 && value.strides[i] != wanted[i]) return count(value.shape) == 0;
  return true;
}

Value allocate(DType dtype, const Dims& shape, const Dims& order) {
  const auto bytes = static_cast<std::size_t>(count(shape)) * size_of(dtype);
  // 16 bytes a unit: the strictest alignment of an element; one unit for an empty array, so that
  // there is an address.
  using Memory = xt::uvector<std::array<std::uint64_t, 2>>;
  auto memory = std::make_shared<Memory>(bytes / 16 + 1);
  Value value{dtype, shape, Dims(shape.size()), reinterpret_cast<char*>(memory->data()), memory};
  auto stride = static_cast<std::int64_t>(size_of(dtype));
  for (auto axis = order.rbegin(); axis != order.rend(); ++axis) {
    value.strides[*axis] = stride;
    stride *= shape[*axis];
  }
  return value;
}

Value allocate(DType dtype, const Dims& shape) {
  Dims order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  return allocate(dtype, shape, order);
}

Value scalar(DType dtype, const Scalar& bits) {
  Value value = allocate(dtype, {});
  std::memcpy(value.data, bits.bits, size_of(dtype));
  return value;
}

void copy_elements(const Value& from, const Value& to, const Pulse& pulse) {
  const std::int64_t elements = count(from.shape);
  if (elements == 0) return;
  if (elements > kCopied) {
    // In two halves along the longest axis.
    const auto axis =
        static_cast<std::size_t>(std::ranges::max_element(from.shape) - from.shape.begin());
    const std::int64_t half = from.shape[axis] / 2;
    for (const bool second : {false, true}) {
      Value source = from, target = to;
      for (Value* part : {&source, &target}) {
        part->shape[axis] = second ? from.shape[axis] - half : half;
        if (second) part->data += half * part->strides[axis];
      }
      copy_elements(source, target, pulse);
    }
    return;
  }
  if (elements > kCopied / 4) pulse.beat();
  switch (common_unit(from, to)) {
    case 1:
      return copy_units<std::uint8_t>(from, to);
    case 2:
      return copy_units<std::uint16_t>(from, to);
    case 4:
      return copy_units<std::uint32_t>(from, to);
    default:
      return copy_units<std::uint64_t>(from, to);
  }
}

Value contiguous(const Value& value, const Pulse& pulse) {
  if (is_contiguous(value)) {
    Value same = value;
    same.strides = c_strides(value.shape, size_of(value.dtype));
    return same;
  }
  Value copy = allocate(value.dtype, value.shape);
  copy_elements(value, copy, pulse);
  return copy;
}

Value apply_map(const Node& node, const Value& x, const Pulse& pulse) {
  const std::size_t nd = node.shape.size();
  Value y{x.dtype, node.shape, Dims(nd, 0), x.data, x.owner};
  switch (kind_of(node.op)) {
    case NodeKind::Broadcast:
    case NodeKind::Transpose:
      for (std::size_t i = 0; i < nd; ++i)
        if (node.ints[i] >= 0) y.strides[i] = x.strides[node.ints[i]];
      return y;
    case NodeKind::Slice:
      for (std::size_t i = 0; i < nd; ++i) {
        if (node.shape[i] > 0) y.data += node.ints[i] * x.strides[i];
        y.strides[i] = node.ints[nd + i] * x.strides[i];
      }
      return y;
    case NodeKind::Reshape:
      y = contiguous(x, pulse);
      y.shape = node.shape;
      y.strides = c_strides(node.shape, size_of(x.dtype));
      return y;
    case NodeKind::Input:
    case NodeKind::Param:
    case NodeKind::Const:
    case NodeKind::Iota:
    case NodeKind::Cast:
    case NodeKind::Ufunc:
    case NodeKind::Reduce:
    case NodeKind::ArgReduce:
    case NodeKind::Scan:
    case NodeKind::Gather:
    case NodeKind::Scatter:
    case NodeKind::Nonzero:
    case NodeKind::Elementwise:
      break;
  }
  throw InternalError("apply_map: not an index map");
}

}  // namespace ufuse::ir::interp
