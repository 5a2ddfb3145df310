// Ufuncs of NumPy and of other packages as numpy_shim describes them: names and inner loops, read
// once from the PyUFuncObject.
#pragma once

#include "ir/graph.h"
#include "numpy_shim/ufunc.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

// The description of a ufunc object; it is kept alive for good, like the ufunc.
const numpy_shim::Ufunc& describe_ufunc(PyObject* ufunc);
// NumPy's ufunc of this name (borrowed); null when this NumPy has none.
PyObject* numpy_ufunc(const char* name);
// The ufunc that a described loop belongs to (borrowed).
PyObject* ufunc_of(const ir::LoopEntry& entry);
// The one table of inner loops that graphs and backends of this process share.
ir::LoopTable& loop_table();

}  // namespace ufuse::pyext
