// Operators and indices of other packages' objects, as functions of `_core`.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Whether an object's class is that of another package.
bool is_other(PyObject* object);
// What stands for an object at the left of an operator or an index: a new reference.
PyObject* operand_of(PyObject* object);
// What stands for the value in `object += value`.
py::object value_beside(PyObject* object, PyObject* value);

void bind_others(py::module_& m);

}  // namespace ufuse::pyext
