// Views that pick, permute, insert or repeat axes: basic indexing, transpose, squeeze,
// broadcast_to; and those of the parts of complex numbers. Each answers twice, in memory (Layout
// and offset, as NumPy's `.strides` will show them) and in index space (steps to replay on a graph
// node).
#include "numpy_shim/view.h"

#include <algorithm>
#include <numeric>

#include "numpy_shim/layout.h"

namespace ufuse::numpy_shim {

using ir::NodeKind;
using ir::Op;

namespace {

std::int64_t ndim_of(const Layout& x) { return static_cast<std::int64_t>(x.shape.size()); }

// A non-negative axis, or Unsupported (NumPy raises AxisError).
std::size_t checked_axis(std::int64_t axis, std::int64_t ndim) {
  if (axis < -ndim || axis >= ndim) throw Unsupported(Reason::Shape, "axis out of range");
  return static_cast<std::size_t>(axis < 0 ? axis + ndim : axis);
}

std::vector<bool> marked_axes(const Dims& axes, std::int64_t ndim) {
  std::vector<bool> marked(static_cast<std::size_t>(ndim));
  for (std::int64_t axis : axes) {
    const std::size_t a = checked_axis(axis, ndim);
    if (marked[a]) throw Unsupported(Reason::Shape, "repeated axis");
    marked[a] = true;
  }
  return marked;
}

void add_reshape(View& view, const Dims& from) {
  if (from != view.layout.shape) view.steps.push_back({Op::Reshape, view.layout.shape, {}});
}

// Start, step and length of a slice on an axis of `n` elements: Python's slice.indices.
struct Range {
  std::int64_t start, step, length;
};
Range clipped(const IndexItem& item, std::int64_t n) {
  const std::int64_t step = item.step.value_or(1);
  if (step == 0) throw Unsupported(Reason::Shape, "slice step of zero");
  const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
  const auto bound = [&](std::optional<std::int64_t> at, std::int64_t missing) {
    if (!at) return missing;
    return std::clamp(*at < 0 ? *at + n : *at, low, high);
  };
  const std::int64_t start = bound(item.start, step < 0 ? high : low);
  const std::int64_t stop = bound(item.stop, step < 0 ? low : high);
  if (step > 0 ? start >= stop : stop >= start) return {0, 1, 0};
  // Divided before adding, so that a step near the largest integer does not overflow.
  return {start, step, step > 0 ? (stop - start - 1) / step + 1 : (start - stop - 1) / -step + 1};
}

// One item per operand axis or new axis: the Ellipsis (or the axes not named) filled with full
// slices.
ir::SmallVector<IndexItem, 6> without_ellipsis(const Layout& x, std::span<const IndexItem> items) {
  using Kind = IndexItem::Kind;
  std::int64_t used = 0, ellipses = 0;
  for (const IndexItem& item : items) {
    used += item.kind == Kind::Integer || item.kind == Kind::Slice;
    ellipses += item.kind == Kind::Ellipsis;
  }
  const std::int64_t missing = ndim_of(x) - used;
  if (missing < 0) throw Unsupported(Reason::Shape, "too many indices");
  if (ellipses > 1) throw Unsupported(Reason::Shape, "repeated ellipsis");
  IndexItem everything;
  everything.kind = Kind::Slice;
  ir::SmallVector<IndexItem, 6> full;
  const auto fill = [&] {
    full.resize(full.size() + static_cast<std::size_t>(missing), everything);
  };
  for (const IndexItem& item : items) {
    if (item.kind == Kind::Ellipsis)
      fill();
    else
      full.push_back(item);
  }
  if (ellipses == 0) fill();
  return full;
}

}  // namespace

NodeId apply(ir::Graph& g, NodeId x, const std::vector<ViewStep>& steps) {
  for (const ViewStep& step : steps) {
    switch (ir::kind_of(step.op)) {
      case NodeKind::Broadcast:
        x = ir::broadcast(g, x, step.shape, step.ints);
        break;
      case NodeKind::Transpose:
        x = ir::transpose(g, x, step.ints);
        break;
      case NodeKind::Reshape:
        x = ir::reshape(g, x, step.shape);
        break;
      case NodeKind::Slice: {
        const auto half = static_cast<std::ptrdiff_t>(step.ints.size() / 2);
        const auto begin = step.ints.begin();
        x = ir::slice(g, x, Dims(begin, begin + half), Dims(begin + half, step.ints.end()),
                      step.shape);
        break;
      }
      case NodeKind::Elementwise:  // of complex numbers
        x = ir::elementwise(g, step.op, {x});
        break;
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
        throw InternalError("a view's step is no index map");
    }
  }
  return x;
}

View part(const Layout& x, ir::Op op) {
  const ir::DType real = ir::real_part(x.dtype);
  const auto half = static_cast<std::int64_t>(ir::size_of(real));
  return {{real, x.shape, x.strides}, op == Op::ImagPart ? half : 0, {{op, x.shape, {}}}};
}

View basic_index(const Layout& x, std::span<const IndexItem> items) {
  View view{{x.dtype, {}, {}}, 0, {}};
  Dims starts, steps, lengths;
  std::size_t axis = 0;
  for (const IndexItem& item : without_ellipsis(x, items)) {
    if (item.kind == IndexItem::Kind::NewAxis) {
      view.layout.shape.push_back(1);
      view.layout.strides.push_back(0);
      continue;
    }
    const std::int64_t n = x.shape[axis], stride = x.strides[axis];
    Range range{item.integer < 0 ? item.integer + n : item.integer, 1, 1};
    if (item.kind == IndexItem::Kind::Slice) {
      range = clipped(item, n);
      view.layout.shape.push_back(range.length);
      view.layout.strides.push_back(stride * range.step);
    } else if (range.start < 0 || range.start >= n) {
      throw Unsupported(Reason::Shape, "index out of bounds");
    }
    view.offset += stride * range.start;
    starts.push_back(range.start);
    steps.push_back(range.step);
    lengths.push_back(range.length);
    ++axis;
  }
  const bool whole =
      lengths == x.shape && std::ranges::all_of(steps, [](auto s) { return s == 1; });
  if (!whole) {
    Dims ints = starts;
    ints.insert(ints.end(), steps.begin(), steps.end());
    view.steps.push_back({Op::Slice, lengths, ints});
  }
  add_reshape(view, lengths);
  return view;
}

View transpose(const Layout& x, const std::optional<Dims>& axes) {
  Dims permutation(x.shape.size());
  if (axes) {
    if (axes->size() != x.shape.size()) throw Unsupported(Reason::Shape, "axes do not match");
    marked_axes(*axes, ndim_of(x));
    std::ranges::transform(*axes, permutation.begin(), [&](std::int64_t axis) {
      return static_cast<std::int64_t>(checked_axis(axis, ndim_of(x)));
    });
  } else {
    std::iota(permutation.rbegin(), permutation.rend(), std::int64_t{0});
  }
  View view{{x.dtype, {}, {}}, 0, {}};
  for (std::int64_t axis : permutation) {
    view.layout.shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
    view.layout.strides.push_back(x.strides[static_cast<std::size_t>(axis)]);
  }
  if (!std::ranges::is_sorted(permutation))
    view.steps.push_back({Op::Transpose, view.layout.shape, permutation});
  return view;
}

View swapaxes(const Layout& x, std::int64_t a, std::int64_t b) {
  Dims axes(x.shape.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  std::swap(axes[checked_axis(a, ndim_of(x))], axes[checked_axis(b, ndim_of(x))]);
  return transpose(x, axes);
}

View squeeze(const Layout& x, const std::optional<Dims>& axes) {
  std::vector<bool> dropped(x.shape.size());
  if (axes)
    dropped = marked_axes(*axes, ndim_of(x));
  else
    for (std::size_t axis = 0; axis < x.shape.size(); ++axis) dropped[axis] = x.shape[axis] == 1;
  View view{{x.dtype, {}, {}}, 0, {}};
  for (std::size_t axis = 0; axis < x.shape.size(); ++axis) {
    if (dropped[axis]) {
      if (x.shape[axis] != 1) throw Unsupported(Reason::Shape, "squeezed axis is not of size one");
      continue;
    }
    view.layout.shape.push_back(x.shape[axis]);
    view.layout.strides.push_back(x.strides[axis]);
  }
  add_reshape(view, x.shape);
  return view;
}

View expand_dims(const Layout& x, const Dims& axes) {
  const std::vector<bool> added =
      marked_axes(axes, ndim_of(x) + static_cast<std::int64_t>(axes.size()));
  Dims shape;
  std::size_t from = 0;
  for (bool is_new : added) shape.push_back(is_new ? 1 : x.shape[from++]);
  return *reshape_view(x, shape,
                       false);  // as np.expand_dims does; only size-1 axes, so never a copy
}

View broadcast_to(const Layout& x, const Dims& shape) {
  if (shape.size() < x.shape.size()) throw Unsupported(Reason::Shape, "do not broadcast");
  if (std::ranges::any_of(shape, [](std::int64_t n) { return n < 0; }))
    throw Unsupported(Reason::Shape, "a negative size");
  check_size(shape);
  const std::size_t missing = shape.size() - x.shape.size();
  View view{{x.dtype, shape, Dims(shape.size(), 0)}, 0, {}};
  Dims axes(shape.size(), -1);
  for (std::size_t i = missing; i < shape.size(); ++i) {
    const std::int64_t n = x.shape[i - missing];
    if (n != shape[i] && n != 1) throw Unsupported(Reason::Shape, "do not broadcast");
    if (n == shape[i]) axes[i] = static_cast<std::int64_t>(i - missing);
    if (n != 1) view.layout.strides[i] = x.strides[i - missing];
  }
  if (shape != x.shape) view.steps.push_back({Op::Broadcast, shape, axes});
  return view;
}

}  // namespace ufuse::numpy_shim
