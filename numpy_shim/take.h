// Elements picked by arrays of positions and by masks, outside of x[key]: np.take, put, nonzero,
// bincount, and the questions that must be answered before a position is used. Throws Unsupported
// where NumPy would raise.
#pragma once

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

// Whether all positions are within an axis, negative ones counted from its end: bool, 0-d.
NodeId are_within(ir::Graph& graph, NodeId positions, std::int64_t extent);
// How many elements of a mask are true: int64, 0-d.
NodeId count_of(ir::Graph& graph, NodeId mask);

// The positions of the `count` true elements of a mask in C order: one row each, one column for
// each of its axes, as the array of which np.nonzero returns the columns.
Result nonzero(Context& context, NodeId mask, std::int64_t count);
// One of the columns: its place in the array, and the positions along one axis of the mask.
View column(const Layout& rows, std::int64_t axis);
Operand column(Context& context, const Result& rows, std::int64_t axis);

// An operand as positions for take and put, which cast safely only.
NodeId as_positions(Context& context, const Operand& positions);

// How many elements np.take chooses from: along the axis, or all of them.
std::int64_t taken_extent(const Layout& x, std::optional<std::int64_t> axis);
// np.take at int64 positions, of which those of Signed and Unsigned are within the axis.
Result take(Context& context, const Operand& x, NodeId positions, std::optional<std::int64_t> axis,
            ir::Bounds bounds);
// The value of x after np.put(x, positions, values), which repeats the values as often as needed.
NodeId put(Context& context, NodeId x, NodeId positions, const Operand& values, ir::Bounds bounds);
// np.bincount with `size` bins for positions that are all within them. `weights`: unset for none.
Result bincount(Context& context, const Operand& positions, const std::optional<Operand>& weights,
                std::int64_t size);

}  // namespace ufuse::numpy_shim
