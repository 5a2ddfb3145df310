// reshape: without a copy where NumPy's _attempt_nocopy_reshape finds strides for it, else with
// one. Part of view.h.
#include <algorithm>
#include <functional>
#include <numeric>

#include "numpy_shim/layout.h"
#include "numpy_shim/view.h"

namespace ufuse::numpy_shim {

using ir::Op;

namespace {

std::int64_t size_of(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

// Strides of `shape` on the memory of `x`, which has no empty axis; unset when axes that are merged
// do not chain. Groups of old and new axes with equal numbers of elements are matched from the
// first axis on, which decides the strides of size-1 axes.
std::optional<Dims> no_copy_strides(const Layout& x, const Dims& shape, bool fortran) {
  Dims old_shape, old_strides;  // without size-1 axes, whose strides do not matter
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (x.shape[i] == 1) continue;
    old_shape.push_back(x.shape[i]);
    old_strides.push_back(x.strides[i]);
  }
  const auto chains = [&](std::size_t k) {
    return fortran ? old_strides[k + 1] == old_shape[k] * old_strides[k]
                   : old_strides[k] == old_shape[k + 1] * old_strides[k + 1];
  };
  Dims strides(shape.size());
  std::size_t old_begin = 0, old_end = 1, begin = 0, end = 1;
  while (begin < shape.size() && old_begin < old_shape.size()) {
    std::int64_t count = shape[begin], old_count = old_shape[old_begin];
    while (count != old_count) {
      if (count < old_count)
        count *= shape[end++];
      else
        old_count *= old_shape[old_end++];
    }
    for (std::size_t k = old_begin; k + 1 < old_end; ++k)
      if (!chains(k)) return std::nullopt;
    if (fortran) {
      strides[begin] = old_strides[old_begin];
      for (std::size_t k = begin + 1; k < end; ++k) strides[k] = strides[k - 1] * shape[k - 1];
    } else {
      strides[end - 1] = old_strides[old_end - 1];
      for (std::size_t k = end - 1; k > begin; --k) strides[k - 1] = strides[k] * shape[k];
    }
    begin = end++;
    old_begin = old_end++;
  }
  auto trailing = static_cast<std::int64_t>(ir::size_of(x.dtype));  // of the last 1s in `shape`
  if (begin > 0) trailing = strides[begin - 1] * (fortran ? shape[begin - 1] : 1);
  std::fill(strides.begin() + static_cast<std::ptrdiff_t>(begin), strides.end(), trailing);
  return strides;
}

// Steps of a reshape in index space. Fortran order is C order of the reversed axes.
std::vector<ViewStep> reshape_steps(const Dims& from, const Dims& to, bool fortran) {
  if (from == to) return {};
  if (!fortran || (from.size() <= 1 && to.size() <= 1)) return {{Op::Reshape, to, {}}};
  const auto reversal = [](const Dims& shape) {
    Dims axes(shape.size());
    std::iota(axes.rbegin(), axes.rend(), std::int64_t{0});
    return axes;
  };
  const Dims reversed_from(from.rbegin(), from.rend()), reversed_to(to.rbegin(), to.rend());
  std::vector<ViewStep> steps;
  if (from.size() > 1) steps.push_back({Op::Transpose, reversed_from, reversal(from)});
  steps.push_back({Op::Reshape, reversed_to, {}});
  if (to.size() > 1) steps.push_back({Op::Transpose, to, reversal(to)});
  return steps;
}

}  // namespace

Dims reshape_shape(const Layout& x, const Dims& shape) {
  const std::int64_t total = size_of(x.shape);
  Dims result = shape;
  std::int64_t known = 1;
  std::optional<std::size_t> unknown;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) {
      if (__builtin_mul_overflow(known, shape[i], &known))
        throw Unsupported(Reason::Shape, "elements do not fit");
    } else {
      if (shape[i] != -1 || unknown) throw Unsupported(Reason::Shape, "elements do not fit");
      unknown = i;
    }
  }
  if (unknown) {
    if (known == 0 || total % known != 0) throw Unsupported(Reason::Shape, "elements do not fit");
    result[*unknown] = total / known;
  } else if (known != total) {
    throw Unsupported(Reason::Shape, "elements do not fit");
  }
  return result;
}

std::optional<View> reshape_view(const Layout& x, const Dims& shape, bool fortran) {
  const Dims to = reshape_shape(x, shape);
  if (shape == x.shape) return View{x, 0, {}};  // as it is; a -1 makes NumPy compute strides anew
  const bool packed = fortran ? is_f_contiguous(x) : is_c_contiguous(x);
  const std::optional<Dims> strides =
      packed ? packed_strides(to, ir::size_of(x.dtype), fortran) : no_copy_strides(x, to, fortran);
  if (!strides) return std::nullopt;
  return View{{x.dtype, to, *strides}, 0, reshape_steps(x.shape, to, fortran)};
}

Result reshaped_copy(ir::Graph& g, NodeId node, const Layout& x, const Dims& shape, bool fortran) {
  const Dims to = reshape_shape(x, shape);
  const std::size_t itemsize = ir::size_of(x.dtype);
  const Dims strides = fortran ? f_strides(to, itemsize) : c_strides(to, itemsize);
  return {apply(g, node, reshape_steps(x.shape, to, fortran)), {x.dtype, to, strides}, false};
}

}  // namespace ufuse::numpy_shim
