// x[key] where arrays of integers stand in the key (NumPy's advanced indexing): which view of x
// they index, the shape and layout of what is read, the order in which is written. Boolean masks
// have become arrays of integers before, one for each of their axes: the positions of what is true
// (take.h). Throws Unsupported where NumPy would raise; whether positions are within their axes is
// asked elsewhere.
#pragma once

#include <span>
#include <variant>
#include <vector>

#include "numpy_shim/ufunc.h"
#include "numpy_shim/view.h"

namespace ufuse::numpy_shim {

struct IndexArray {
  Operand positions;
  // Of a mask: the extent of the axis whose true elements these are.
  std::optional<std::int64_t> masked = std::nullopt;
  bool within = false;  // none is negative or outside of its axis
};
using KeyItem = std::variant<IndexItem, IndexArray>;

struct Selection {
  View view;  // of x: what slices, new axes and single integers leave; indexed axes are whole
  Dims axes;  // of the view: those that arrays index, in the order of the key
  std::vector<IndexArray> arrays;  // one for each of them
  Dims index_shape;                // to which they broadcast
  std::size_t place = 0;           // of the first axis of that shape in the result
  bool only_arrays = true;         // nothing but arrays stands in the key, one for each axis of x
};
Selection select(const Layout& x, std::span<const KeyItem> key);

// The shape of x[key].
Dims shape_of(const Selection& selection);

// x[key], as NumPy lays it out: a new array whose first axes are those of the arrays, and the
// transposed view of it that is the result. `x` is the view's value.
struct Gathered {
  Result made;
  std::optional<View> view;  // unset: the array itself
};
Gathered gather(Context& context, const Selection& selection, NodeId x);

// The view's value after x[key] = value. `value` says how the operand lies; `fitted` is its value
// as x's dtype and the result's shape. Where several positions are the same, the last one in
// NumPy's order of iteration counts.
NodeId assigned(Context& context, const Selection& selection, NodeId x, const Operand& value,
                NodeId fitted);
// The same after ufunc.at(x, key, value), in the order of the positions; `value` is unset for a
// ufunc of one operand.
NodeId combined(Context& context, const Selection& selection, NodeId x, const Ufunc& ufunc,
                const std::optional<Operand>& value);

}  // namespace ufuse::numpy_shim
