// In which order does NumPy combine the elements of a reduction? Follows its iterator: axes sorted
// by stride, coalesced where input and output chain, and cut into inner loops by the buffering
// rules of the NumPy at hand. Part of reduce.h.
#include <algorithm>
#include <numeric>

#include "numpy_shim/layout.h"
#include "numpy_shim/reduce.h"

namespace ufuse::numpy_shim {

using ir::Order;

namespace {

constexpr std::int64_t kBufferSize = 8192;  // np.getbufsize(): elements per buffer

// One dimension of the coalesced iteration, innermost first.
struct Dim {
  std::int64_t extent;
  std::int64_t in, out;  // strides; out = 0: reduced
  std::uint32_t axes;    // how many axes of the operand were merged into it
  bool reduced() const { return out == 0; }
};

std::vector<Dim> coalesced(const Layout& x, const Dims& inner_first,
                           const std::vector<bool>& reduced) {
  std::vector<Dim> dims;
  std::int64_t out_stride = 1;  // in elements: the output is packed in the order of iteration
  for (std::int64_t a : inner_first) {
    const auto axis = static_cast<std::size_t>(a);
    const std::int64_t n = x.shape[axis];
    if (n == 1) continue;
    const std::int64_t out = reduced[axis] ? 0 : out_stride;
    if (!reduced[axis]) out_stride *= n;
    if (!dims.empty() && dims.back().extent * dims.back().in == x.strides[axis] &&
        dims.back().extent * dims.back().out == out) {
      dims.back().extent *= n;
      ++dims.back().axes;
    } else {
      dims.push_back({n, x.strides[axis], out, 1});
    }
  }
  if (dims.empty()) dims.push_back({1, 0, 0, 0});
  return dims;
}

std::int64_t size_of(std::span<const Dim> dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1},
                         [](std::int64_t n, const Dim& d) { return n * d.extent; });
}

// How many of the innermost dims are of the kind (reduced or kept) of the very first.
std::size_t leading_group(std::span<const Dim> dims) {
  const auto other = std::ranges::find_if(
      dims, [&](const Dim& d) { return d.reduced() != dims.front().reduced(); });
  return static_cast<std::size_t>(other - dims.begin());
}

struct Runs {
  std::int64_t chunk;  // elements of one inner call
  std::size_t dims;    // the innermost dims it can run over
};

// Where sums are not cut at buffers: npyiter_find_buffering_setup for the operands (output, input).
// It grows the part that one buffer covers dim by dim and keeps the one with the least overhead; an
// operand must be buffered when it is cast or has no single stride in that part.
Runs buffering(std::span<const Dim> dims, bool cast) {
  int cost = cast ? 2 : 1, best_cost = cost;
  std::size_t single_in = 1, single_out = 1, reduce_dim = 0, best_dim = 0;
  std::int64_t size = dims[0].extent, best_size = size, best_core = 1;
  for (std::size_t d = 1; d < dims.size(); ++d) {
    if (reduce_dim != 0 || (size >= kBufferSize && cost > 1)) break;
    const Dim &inner = dims[d - 1], &outer = dims[d];
    if (single_out == d && inner.out * inner.extent == outer.out) {
      ++single_out;
    } else {
      cost += single_out == d;
      if (outer.out == 0 || inner.out == 0) reduce_dim = d;
    }
    if (single_in == d) {
      if (inner.in * inner.extent == outer.in)
        ++single_in;
      else
        cost += !cast;
    }
    const std::int64_t core = size;
    size *= outer.extent;
    const bool limited = size > kBufferSize && cost > 1;
    const auto usable = static_cast<double>(limited ? kBufferSize : size);
    if (cost * static_cast<double>(best_size) <= best_cost * usable) {
      best_dim = d;
      best_cost = cost;
      best_size = size;
      best_core = core;
    }
  }
  const bool reduce = reduce_dim != 0 && best_dim == reduce_dim;
  if (reduce) return {best_core, best_dim};
  const bool buffered = cast || single_in <= best_dim || single_out <= best_dim;
  if (buffered && best_size > kBufferSize) best_size = best_core * (kBufferSize / best_core);
  return {best_size, best_dim + 1};
}

// Reduced axes, outermost first; those of one element stand first, where they do not matter.
Dims reduced_axes(const Layout& x, const Dims& inner_first, const std::vector<bool>& reduced) {
  Dims axes(inner_first.rbegin(), inner_first.rend());
  const auto others = std::ranges::remove_if(
      axes, [&](std::int64_t axis) { return !reduced[static_cast<std::size_t>(axis)]; });
  axes.erase(others.begin(), others.end());
  std::stable_partition(axes.begin(), axes.end(), [&](std::int64_t axis) {
    return x.shape[static_cast<std::size_t>(axis)] == 1;
  });
  return axes;
}

ir::ReduceOrder pairwise_order(std::span<const Dim> dims, bool cast, const NumpyVersion& version) {
  const Runs runs = version.cuts_sums_at_buffers() ? Runs{kBufferSize, leading_group(dims)}
                                                   : buffering(dims, cast);
  const std::span<const Dim> inside = dims.first(runs.dims);
  std::uint32_t axes = 0;
  for (const Dim& d : inside) axes += d.axes;
  return {Order::Pairwise, axes, size_of(inside) <= runs.chunk ? 0 : runs.chunk};
}

std::vector<bool> marked(std::size_t ndim, const Dims& axes) {
  std::vector<bool> result(ndim);
  for (std::int64_t axis : axes) result[static_cast<std::size_t>(axis)] = true;
  return result;
}

Dims inner_first_axes(const Layout& x, const Layout* mask) {
  const std::array operands{&x, mask};
  return iteration_axes(std::span(operands).first(mask ? 2 : 1));
}

}  // namespace

Combination combination(ir::Reduction r, const Layout& x, const Dims& axes, bool cast,
                        const NumpyVersion& version, const Layout* mask) {
  const std::vector<bool> reduced = marked(x.shape.size(), axes);
  const Dims inner_first = inner_first_axes(x, mask);
  Combination result{reduced_axes(x, inner_first, reduced), {}};
  if (!ir::is_in(x.dtype, ir::kInexact)) return result;

  result.order.order = Order::Sequential;
  const std::vector<Dim> dims = coalesced(x, inner_first, reduced);
  if (!dims.front().reduced() || size_of(dims) <= 1) return result;
  // An inner loop multiplies halves as floats, and rounds when it is done.
  if (r == ir::Reduction::Prod && x.dtype == DType::Float16)
    throw Unsupported(Reason::Reduction, "product of a run of float16");
  if (r == ir::Reduction::Sum) result.order = pairwise_order(dims, cast, version);
  if (r == ir::Reduction::Min || r == ir::Reduction::Max) result.order.order = Order::Extremum;
  return result;
}

// npyiter_new_temp_array with reduction axes: packed in the order of iteration, where a kept-as-1
// axis takes its place but no room.
Layout reduced_layout(const Layout& x, const Dims& axes, DType dtype, bool keepdims,
                      const Layout* mask) {
  const std::vector<bool> reduced = marked(x.shape.size(), axes);
  Dims shape = x.shape, strides(x.shape.size());
  auto stride = static_cast<std::int64_t>(ir::size_of(dtype));
  for (std::int64_t a : inner_first_axes(x, mask)) {
    const auto axis = static_cast<std::size_t>(a);
    if (reduced[axis]) shape[axis] = 1;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  if (stride == 0) strides.assign(strides.size(), 0);  // new memory without elements
  Layout result{dtype, {}, {}};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (reduced[axis] && !keepdims) continue;
    result.shape.push_back(shape[axis]);
    result.strides.push_back(strides[axis]);
  }
  return result;
}

}  // namespace ufuse::numpy_shim
