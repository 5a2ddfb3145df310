// ufunc.accumulate as NumPy runs it: the dtype of the carried value, the layout of the result, and
// whether a row of ops.def or NumPy's own inner loop carries it. Throws Unsupported for what NumPy
// would reject or what has no native form.
#pragma once

#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim {

// Along one axis, which may be negative. `dtype`: the dtype= argument.
Result accumulate(Context& context, const Ufunc& ufunc, const Operand& x, std::int64_t axis,
                  std::optional<DType> dtype);

// The operand with one axis, as `cumsum` and others take it for axis=None: its elements in C order.
Operand flattened(ir::Graph& graph, const Operand& x);

}  // namespace ufuse::numpy_shim
