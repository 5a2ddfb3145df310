// `_core.Jitted`, the base of jitted functions, and its own, `_core.Answered`, which the functions
// of the drop-in module have as well: see jitted.cpp.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// The function of Python's that a call of a jitted one calls with the same arguments; unset where
// the object is no such one.
py::object function_of_jitted(PyObject* object);

void bind_jitted(py::module_& m);

}  // namespace ufuse::pyext
