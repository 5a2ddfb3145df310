// Follows NumPy's mapping.c: prepare_index (what the items of a key are), mapiter_fill_info (where
// the axes of the arrays stand), PyArray_MapIterNew (layout of what is read, order of what is
// written).
#include "numpy_shim/advanced_index.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim {

using ir::Bounds;

namespace {

using Kind = IndexItem::Kind;

// Where the axes of the arrays stand in the result. They take the place of the indexed axes where
// arrays and single integers are neighbours in the key, and stand first otherwise.
class PlaceOfArrays {
 public:
  void saw_index() {
    if (state_ == State::Before) place_ = axes_;
    if (state_ == State::Behind) place_ = 0;
    if (state_ == State::Before) state_ = State::Within;
    if (state_ == State::Behind) state_ = State::Apart;
  }
  void saw_axes(std::size_t axes) {
    if (state_ == State::Within) state_ = State::Behind;
    axes_ += axes;
  }
  std::size_t place() const { return place_; }

 private:
  enum class State { Before, Within, Behind, Apart } state_ = State::Before;
  std::size_t axes_ = 0, place_ = 0;
};

const IndexArray* array_of(const KeyItem& item) { return std::get_if<IndexArray>(&item); }

// How many axes of x an item names.
std::size_t axes_named(const KeyItem& item) {
  if (array_of(item)) return 1;
  const Kind kind = std::get<IndexItem>(item).kind;
  return kind == Kind::Integer || kind == Kind::Slice ? 1 : 0;
}

// The axes that a view has beside the indexed ones, in order.
Dims other_axes(const Selection& selection) {
  Dims others;
  for (std::size_t a = 0; a < selection.view.layout.shape.size(); ++a)
    if (std::ranges::find(selection.axes, static_cast<std::int64_t>(a)) == selection.axes.end())
      others.push_back(static_cast<std::int64_t>(a));
  return others;
}

std::int64_t count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<const Layout*> layouts_of(const Selection& selection) {
  std::vector<const Layout*> layouts;
  for (const IndexArray& array : selection.arrays) layouts.push_back(&array.positions.layout);
  return layouts;
}

// Strides of packed memory whose axes, innermost first, are `inner_first`.
Dims packed(const Dims& shape, const Dims& inner_first, std::int64_t itemsize) {
  Dims strides(shape.size());
  for (std::int64_t axis : inner_first) {
    strides[static_cast<std::size_t>(axis)] = itemsize;
    itemsize *= shape[static_cast<std::size_t>(axis)];
  }
  return strides;
}

Dims reversed_range(std::size_t n) {
  Dims axes(n);
  std::iota(axes.rbegin(), axes.rend(), std::int64_t{0});
  return axes;
}

// Of the array that holds the result, whose first axes are those of the arrays.
Dims made_strides(const Selection& selection, const Dims& rest, const Dims& rest_strides,
                  std::size_t itemsize) {
  const Dims& shape = selection.index_shape;
  const std::vector<const Layout*> layouts = layouts_of(selection);
  if (selection.only_arrays) {
    const Layout& first = *layouts.front();
    // NumPy's short way for one array of its own kind of integers.
    const bool fortran = is_f_contiguous(first) && !is_c_contiguous(first);
    if (layouts.size() == 1 && first.dtype == DType::Int64 &&
        (shape.size() == 1 || fortran || is_c_contiguous(first)))
      return fortran ? f_strides(shape, itemsize) : c_strides(shape, itemsize);
    return result_strides(layouts, shape, itemsize, false);
  }
  const std::int64_t elements = count(rest);
  if (elements == 0 || count(shape) == 0) return Dims(shape.size() + rest.size(), 0);
  const Dims order = elements == 1 ? iteration_axes(layouts) : reversed_range(shape.size());
  Dims strides = packed(shape, order, static_cast<std::int64_t>(itemsize) * elements);
  // The rest as it lies in x, the largest steps outermost.
  Dims axes(rest.size());
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  const auto step = [&](std::int64_t axis) {
    return std::abs(rest_strides[static_cast<std::size_t>(axis)]);
  };
  std::ranges::stable_sort(axes, std::greater<>(), step);
  std::ranges::reverse(axes);
  const Dims inner = packed(rest, axes, static_cast<std::int64_t>(itemsize));
  strides.insert(strides.end(), inner.begin(), inner.end());
  return strides;
}

// From the axes of the result to those of what is gathered, whose first ones are the arrays'.
Dims arrays_first(const Selection& selection, std::size_t ndim) {
  const std::size_t place = selection.place, arrays = selection.index_shape.size();
  Dims axes;
  for (std::size_t a = place; a < place + arrays; ++a) axes.push_back(static_cast<std::int64_t>(a));
  for (std::size_t a = 0; a < ndim; ++a)
    if (a < place || a >= place + arrays) axes.push_back(static_cast<std::int64_t>(a));
  return axes;
}

Dims inverse(const Dims& permutation) {
  Dims result(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  return result;
}

NodeId transposed(ir::Graph& g, NodeId x, const Dims& axes) {
  return std::ranges::is_sorted(axes) ? x : ir::transpose(g, x, axes);
}

// The positions as one node for each indexed axis, all of one shape.
ir::NodeIds positions_of(ir::Graph& g, const Selection& selection) {
  ir::NodeIds nodes;
  for (const IndexArray& array : selection.arrays)
    nodes.push_back(ir::broadcast_to(g, ir::cast(g, array.positions.node, DType::Int64),
                                     selection.index_shape));
  return nodes;
}

Bounds bounds_of(const Selection& selection) {
  return std::ranges::all_of(selection.arrays, &IndexArray::within) ? Bounds::Unsigned
                                                                    : Bounds::Signed;
}

// The strides of a value along the axes of the arrays.
Layout along_arrays(const Selection& selection, const Layout& value, std::size_t ndim) {
  Layout layout{value.dtype, selection.index_shape, Dims(selection.index_shape.size(), 0)};
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    const std::size_t axis = selection.place + i;  // of the result
    if (axis + value.shape.size() < ndim) continue;
    const std::size_t own = axis + value.shape.size() - ndim;
    if (value.shape[own] != 1) layout.strides[i] = value.strides[own];
  }
  return layout;
}

// A node whose first axes are walked in another order.
NodeId walked(ir::Graph& g, NodeId x, const Walk& walk) {
  Dims axes = walk.axes;
  const Dims shape = g[x].shape;
  for (std::size_t a = axes.size(); a < shape.size(); ++a)
    axes.push_back(static_cast<std::int64_t>(a));
  Dims start(shape.size(), 0), step(shape.size(), 1);
  for (std::size_t i = 0; i < walk.axes.size(); ++i) {
    const auto axis = static_cast<std::size_t>(walk.axes[i]);
    if (!walk.backwards[i] || shape[axis] == 0) continue;
    start[axis] = shape[axis] - 1;
    step[axis] = -1;
  }
  const bool turns = std::ranges::any_of(step, [](std::int64_t s) { return s < 0; });
  if (turns) x = ir::slice(g, x, start, step, shape);
  return transposed(g, x, axes);
}

// In which order NumPy's iterator walks positions and values together.
Walk walk_of(const Selection& selection, const Operand& value, std::size_t ndim) {
  std::vector<const Layout*> layouts = layouts_of(selection);
  Layout along;
  if (!value.weak) {
    along = along_arrays(selection, value.layout, ndim);
    layouts.push_back(&along);
  }
  Walk walk = iteration_walk(layouts);
  // It keeps the order of a single array with one axis.
  if (selection.arrays.size() == 1 && layouts.front()->shape.size() == 1)
    walk.backwards.assign(walk.axes.size(), false);
  return walk;
}

// NumPy 1 iterates over so many at once; NumPy 2 over more.
constexpr std::size_t kMostArrays = 31;

}  // namespace

Selection select(const Layout& x, std::span<const KeyItem> key) {
  std::size_t named = 0;
  bool has_ellipsis = false;
  for (const KeyItem& item : key) {
    named += axes_named(item);
    has_ellipsis |= !array_of(item) && std::get<IndexItem>(item).kind == Kind::Ellipsis;
  }
  if (named > x.shape.size()) throw Unsupported(Reason::Shape, "too many indices");
  const std::size_t left = x.shape.size() - named;

  Selection selection;
  selection.only_arrays = !has_ellipsis && left == 0;
  PlaceOfArrays place;
  std::vector<IndexItem> basic;
  std::size_t axis = 0, view_axis = 0;  // of x, of the view
  for (const KeyItem& item : key) {
    if (const IndexArray* array = array_of(item)) {
      if (array->masked && *array->masked != x.shape[axis])
        throw Unsupported(Reason::Shape, "a mask of another size");
      place.saw_index();
      basic.emplace_back().kind = Kind::Slice;
      selection.axes.push_back(static_cast<std::int64_t>(view_axis++));
      selection.arrays.push_back(*array);
      ++axis;
      continue;
    }
    const IndexItem& one = basic.emplace_back(std::get<IndexItem>(item));
    selection.only_arrays = false;
    if (one.kind == Kind::Integer) {
      place.saw_index();
      ++axis;
      continue;
    }
    const std::size_t axes = one.kind == Kind::Ellipsis ? left : 1;
    place.saw_axes(axes);
    view_axis += axes;
    axis += one.kind == Kind::NewAxis ? 0 : axes;
  }
  if (selection.arrays.size() > kMostArrays)
    throw Unsupported(Reason::AdvancedIndex, "more index arrays than every NumPy takes");
  selection.place = place.place();
  selection.view = basic_index(x, basic);
  selection.index_shape = broadcast_shapes(layouts_of(selection));
  return selection;
}

Dims shape_of(const Selection& selection) {
  Dims shape;
  for (std::int64_t axis : other_axes(selection))
    shape.push_back(selection.view.layout.shape[static_cast<std::size_t>(axis)]);
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(selection.place),
               selection.index_shape.begin(), selection.index_shape.end());
  check_size(shape);
  return shape;
}

Gathered gather(Context& context, const Selection& selection, NodeId x) {
  ir::Graph& g = context.graph();
  Dims rest, rest_strides;
  for (std::int64_t axis : other_axes(selection)) {
    rest.push_back(selection.view.layout.shape[static_cast<std::size_t>(axis)]);
    rest_strides.push_back(selection.view.layout.strides[static_cast<std::size_t>(axis)]);
  }
  const DType dtype = selection.view.layout.dtype;
  Layout layout{dtype, selection.index_shape,
                made_strides(selection, rest, rest_strides, ir::size_of(dtype))};
  layout.shape.insert(layout.shape.end(), rest.begin(), rest.end());
  check_size(layout.shape);
  const NodeId node =
      ir::gather(g, x, positions_of(g, selection), selection.axes, bounds_of(selection));
  Gathered gathered{{node, layout, false}, std::nullopt};
  if (selection.place > 0)
    gathered.view = transpose(layout, inverse(arrays_first(selection, layout.shape.size())));
  return gathered;
}

NodeId assigned(Context& context, const Selection& selection, NodeId x, const Operand& value,
                NodeId fitted) {
  ir::Graph& g = context.graph();
  const std::size_t ndim = g[fitted].shape.size();
  NodeId values = transposed(g, fitted, arrays_first(selection, ndim));
  ir::NodeIds positions = positions_of(g, selection);
  const auto arrays = static_cast<std::ptrdiff_t>(selection.index_shape.size());
  const Dims& all = g[values].shape;
  const bool in_c_order = count(Dims(all.begin() + arrays, all.end())) != 1;
  if (!in_c_order) {
    const Walk walk = walk_of(selection, value, ndim);
    for (NodeId& position : positions) position = walked(g, position, walk);
    values = walked(g, values, walk);
  }
  return ir::scatter(g, x, std::move(positions), values, selection.axes, bounds_of(selection));
}

NodeId combined(Context& context, const Selection& selection, NodeId x, const Ufunc& ufunc,
                const std::optional<Operand>& value) {
  ir::Graph& g = context.graph();
  Operand old;
  old.layout = selection.view.layout;
  std::vector<Operand> operands{old};
  if (value) operands.push_back(*value);
  const UfuncOptions options{std::nullopt, false};
  const Resolved& resolved = resolve(ufunc, operands, options);
  const DType dtype = resolved.outputs.front();
  const bool uniform = std::ranges::all_of(resolved.inputs, [&](DType t) { return t == dtype; });
  const bool loses = ir::is_in(dtype, ir::kComplex) && !ir::is_in(old.layout.dtype, ir::kComplex);
  // NumPy casts what is there to the loop's dtype and back.
  if (!resolved.op || !uniform || loses) throw Unsupported(Reason::AdvancedAssignment, ufunc.name);
  // NumPy's loop for single positions leaves the flag that a comparison with NaN raises.
  const bool compares = resolved.op == ir::Op::Maximum || resolved.op == ir::Op::Minimum;
  if (compares && ir::is_in(dtype, ir::kInexact))
    throw Unsupported(Reason::AdvancedAssignment, ufunc.name);
  NodeId added;
  if (value) {
    const Dims shape = shape_of(selection);
    const Layout whole{dtype, shape, Dims(shape.size(), 0)};
    if (value->layout.shape.size() > shape.size() ||
        broadcast_shapes(std::array{&whole, &value->layout}) != shape)
      throw Unsupported(Reason::Shape, "do not broadcast");
    added = ir::broadcast_to(g, as_dtype(context, *value, dtype), shape);
    added = transposed(g, added, arrays_first(selection, shape.size()));
  } else if (dtype != old.layout.dtype) {
    throw Unsupported(Reason::AdvancedAssignment, ufunc.name);
  }
  return ir::scatter(g, x, positions_of(g, selection), added, selection.axes, bounds_of(selection),
                     resolved.op);
}

}  // namespace ufuse::numpy_shim
