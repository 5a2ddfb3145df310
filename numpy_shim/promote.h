// Which dtype NumPy chooses: promotion (NEP 50), casting rules, weak Python scalars. dtype *facts*
// stand in ir/dtype.h.
#pragma once

#include <span>
#include <string_view>

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

DType promote(DType a, DType b);                // np.promote_types
bool can_cast_safely(DType from, DType to);     // np.can_cast(from, to)
bool can_cast_same_kind(DType from, DType to);  // np.can_cast(from, to, "same_kind")
bool can_cast(DType from, DType to, std::string_view casting);  // false for an unknown casting=
DType result_type(std::span<const Operand> operands);  // np.result_type with weak scalars; all
                                                       // weak: their default dtypes
DType default_dtype(const WeakScalar& weak);           // int64, float64, complex128
// Whether an operand is a Python int or of a dtype of these kinds.
bool is_integer(const Operand& x, ir::Kinds kinds);
// The value as `dtype`, exactly as NumPy converts it; Unsupported when NumPy would raise or warn
// (int out of bounds, overflow).
ir::Scalar convert(const WeakScalar& weak, DType dtype);
// The operand's node as `dtype` (a cast node or a run-time parameter).
NodeId as_dtype(Context& context, const Operand& operand, DType dtype);

}  // namespace ufuse::numpy_shim
