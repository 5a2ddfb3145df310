// Memory order as NumPy chooses it. The axis sort is nditer's npyiter_find_best_axis_ordering, the
// allocation its npyiter_new_temp_array, and the short way for contiguous operands
// try_trivial_single_output_loop. None of it looks at memory.
#include "numpy_shim/layout.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <numeric>

namespace ufuse::numpy_shim {

namespace {

using Axes = ir::SmallVector<std::size_t, 8>;

// Strides of packed memory whose axes, innermost first, are `inner_first`. An empty axis does not
// count (_array_fill_strides).
Dims strides_in_order(const Dims& shape, const Axes& inner_first, std::size_t itemsize) {
  Dims strides(shape.size());
  auto stride = static_cast<std::int64_t>(itemsize);
  for (std::size_t axis : inner_first) {
    strides[axis] = stride;
    if (shape[axis] != 0) stride *= shape[axis];
  }
  return strides;
}

Axes c_order(std::size_t ndim) {
  Axes axes(ndim);
  std::iota(axes.rbegin(), axes.rend(), std::size_t{0});
  return axes;
}

Axes f_order(std::size_t ndim) {
  Axes axes(ndim);
  std::iota(axes.begin(), axes.end(), std::size_t{0});
  return axes;
}

bool is_empty(const Dims& shape) { return std::ranges::find(shape, 0) != shape.end(); }

// New memory: all strides are 0 when there is none.
Dims fresh_strides(const Dims& shape, const Axes& inner_first, std::size_t itemsize) {
  check_size(shape);
  if (is_empty(shape)) return Dims(shape.size(), 0);
  return strides_in_order(shape, inner_first, itemsize);
}

bool is_contiguous(const Layout& layout, const Axes& inner_first) {
  if (is_empty(layout.shape)) return true;
  auto expected = static_cast<std::int64_t>(ir::size_of(layout.dtype));
  for (std::size_t axis : inner_first) {
    if (layout.shape[axis] == 1) continue;
    if (layout.strides[axis] != expected) return false;
    expected *= layout.shape[axis];
  }
  return true;
}

std::size_t most_axes(Layouts operands) {
  std::size_t ndim = 0;
  for (const Layout* x : operands) ndim = std::max(ndim, x->shape.size());
  return ndim;
}

// The stride along axis `axis` of an iteration over `ndim` axes: 0 where the operand is broadcast
// or has one element.
std::int64_t iteration_stride(const Layout& x, std::size_t ndim, std::size_t axis) {
  const std::size_t missing = ndim - x.shape.size();
  if (axis < missing || x.shape[axis - missing] == 1) return 0;
  return x.strides[axis - missing];
}

// One step of nditer's insertion sort: does axis `a` go inside axis `b`? Unset: no operand varies
// along both, so the strides do not say. Where operands disagree C order wins, that is, `a` (the
// outer one in C order) stays outside.
std::optional<bool> goes_inside(Layouts operands, std::size_t ndim, std::size_t a, std::size_t b) {
  std::optional<bool> inside;
  for (const Layout* x : operands) {
    const std::int64_t sa = std::abs(iteration_stride(*x, ndim, a));
    const std::int64_t sb = std::abs(iteration_stride(*x, ndim, b));
    if (sa == 0 || sb == 0) continue;
    inside = sb <= sa ? false : inside.value_or(true);
  }
  return inside;
}

Axes sorted_axes(Layouts operands, std::size_t ndim) {
  Axes axes = c_order(ndim);
  for (std::size_t i = 1; i < ndim; ++i) {
    std::size_t position = i;
    for (std::size_t j = i; j-- > 0;) {
      const std::optional<bool> inside = goes_inside(operands, ndim, axes[i], axes[j]);
      if (!inside) continue;
      if (!*inside) break;
      position = j;
    }
    const auto at = axes.begin();
    std::rotate(at + static_cast<std::ptrdiff_t>(position), at + static_cast<std::ptrdiff_t>(i),
                at + static_cast<std::ptrdiff_t>(i + 1));
  }
  return axes;
}

// NumPy's way around its iterator: operands of one shape that are all C or all F contiguous, or 1-d
// of any stride; 0-d operands do not count. The strides are then those of a fresh C or F array.
std::optional<Dims> direct_strides(Layouts operands, const Dims& shape, std::size_t itemsize) {
  std::optional<std::pair<bool, bool>> order;
  for (const Layout* x : operands) {
    if (x->shape.empty()) continue;
    if (x->shape != shape) return std::nullopt;
    if (shape.size() == 1) continue;
    const std::pair own{is_c_contiguous(*x), is_f_contiguous(*x)};
    if (own == std::pair{false, false} || own != order.value_or(own)) return std::nullopt;
    order = own;
  }
  const bool fortran = order && *order == std::pair{false, true};
  return fortran ? f_strides(shape, itemsize) : c_strides(shape, itemsize);
}

}  // namespace

void check_size(const Dims& shape) {
  constexpr std::size_t kWidest = 16;  // bytes of the widest dtype
  auto room = std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(kWidest);
  for (std::int64_t n : shape) {
    if (n > room) throw Unsupported(Reason::Shape, "too many elements");
    if (n > 0) room /= n;
  }
}

Dims broadcast_shapes(Layouts operands) {
  Dims result(most_axes(operands), 1);
  for (const Layout* x : operands)
    for (std::size_t i = 0; i < x->shape.size(); ++i) {
      std::int64_t& n = result[result.size() - x->shape.size() + i];
      if (x->shape[i] == 1) continue;
      if (n != 1 && n != x->shape[i]) throw Unsupported(Reason::Shape, "do not broadcast");
      n = x->shape[i];
    }
  check_size(result);
  return result;
}

Dims c_strides(const Dims& shape, std::size_t itemsize) {
  return fresh_strides(shape, c_order(shape.size()), itemsize);
}

Dims f_strides(const Dims& shape, std::size_t itemsize) {
  return fresh_strides(shape, f_order(shape.size()), itemsize);
}

Dims packed_strides(const Dims& shape, std::size_t itemsize, bool fortran) {
  return strides_in_order(shape, fortran ? f_order(shape.size()) : c_order(shape.size()), itemsize);
}

std::size_t bytes_of(const Layout& layout) {
  std::size_t bytes = ir::size_of(layout.dtype);
  for (std::int64_t n : layout.shape) bytes *= static_cast<std::size_t>(n);
  return bytes;
}

bool is_c_contiguous(const Layout& layout) {
  return is_contiguous(layout, c_order(layout.shape.size()));
}

bool is_f_contiguous(const Layout& layout) {
  return is_contiguous(layout, f_order(layout.shape.size()));
}

Dims result_strides(Layouts operands, const Dims& shape, std::size_t itemsize, bool direct) {
  if (direct)
    if (std::optional<Dims> strides = direct_strides(operands, shape, itemsize)) return *strides;
  return fresh_strides(shape, sorted_axes(operands, shape.size()), itemsize);
}

// PyArray_NewLikeArray: C or F where the array is, else its axes by |stride| (equal ones in C
// order).
Dims like_strides(const Layout& layout, std::size_t itemsize) {
  const std::size_t ndim = layout.shape.size();
  if (ndim <= 1 || is_c_contiguous(layout)) return c_strides(layout.shape, itemsize);
  if (is_f_contiguous(layout)) return f_strides(layout.shape, itemsize);
  Axes axes = c_order(ndim);
  std::ranges::stable_sort(axes, {},
                           [&](std::size_t axis) { return std::abs(layout.strides[axis]); });
  return fresh_strides(layout.shape, axes, itemsize);
}

bool is_fortran_order(const Layout& layout, char order) {
  return order == 'F' || (order == 'A' && is_f_contiguous(layout) && !is_c_contiguous(layout));
}

Dims ordered_strides(const Layout& layout, std::size_t itemsize, char order) {
  if (order == 'K') return like_strides(layout, itemsize);
  return is_fortran_order(layout, order) ? f_strides(layout.shape, itemsize)
                                         : c_strides(layout.shape, itemsize);
}

bool is_packed_inside(const Layout& layout) {
  const auto itemsize = static_cast<std::int64_t>(ir::size_of(layout.dtype));
  std::int64_t shortest = itemsize;
  bool found = false;
  for (std::size_t a = 0; a < layout.shape.size(); ++a) {
    if (layout.shape[a] == 1) continue;
    if (found && std::abs(layout.strides[a]) >= std::abs(shortest)) continue;
    shortest = layout.strides[a];
    found = true;
  }
  return shortest == itemsize;
}

Dims iteration_axes(Layouts operands) {
  const Axes axes = sorted_axes(operands, most_axes(operands));
  return {axes.begin(), axes.end()};
}

// npyiter_flip_negative_strides.
Walk iteration_walk(Layouts operands) {
  const std::size_t ndim = most_axes(operands);
  const Axes inner_first = sorted_axes(operands, ndim);
  Walk walk{{inner_first.rbegin(), inner_first.rend()}, {}};
  for (std::int64_t axis : walk.axes) {
    const auto stride = [&](const Layout* x) {
      return iteration_stride(*x, ndim, static_cast<std::size_t>(axis));
    };
    walk.backwards.push_back(std::ranges::any_of(
                                 operands, [](std::int64_t s) { return s < 0; }, stride) &&
                             std::ranges::none_of(
                                 operands, [](std::int64_t s) { return s > 0; }, stride));
  }
  return walk;
}

}  // namespace ufuse::numpy_shim
