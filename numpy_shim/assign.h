// What does NumPy put into an array? `x[...] = value`, `x[mask] = value` and np.copyto; also
// np.where, which chooses between two values as a masked assignment does. All functions throw
// Unsupported where NumPy would raise or warn.
#pragma once

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

// A cast of a complex value to a real dtype warns that the imaginary part is lost.
void check_assignable(const Operand& value, DType target);
// `x[i] = value`: a NumPy scalar goes into a signed integer by way of Python's int, which raises
// where the value does not fit.
void check_item(const Operand& value, DType target);
// np.copyto of a Python number under casting="same_kind", where that does the same as `x[...] =`.
void check_copied_number(const NumpyVersion& version, const WeakScalar& number, DType target);

// A value as it is put into an array of this layout: as its dtype and shape. Leading axes of extent
// 1 that the array does not have are ignored.
NodeId assigned(Context& context, const Operand& value, const Layout& target);
// What an array that holds `old` holds after np.copyto(x, value, where=mask).
NodeId assigned_where(Context& context, NodeId old, const Layout& target, const Operand& mask,
                      const Operand& value);
// np.where(condition, x, y).
Result where(Context& context, const Operand& condition, const Operand& x, const Operand& y);

// Whether the result of an assignment depends on the order in which NumPy copies the elements,
// where the source overlaps the target. `source_stride`: of its last axis, 0 where that has one
// element.
bool depends_on_order(const Layout& target, std::int64_t source_stride);

}  // namespace ufuse::numpy_shim
