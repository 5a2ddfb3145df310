// Operators and indices of other packages' and the user's objects, as functions of `_core`.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Stands in the place of an object while traced code does something with it; what it does then is
// its type's.
struct StandIn {
  PyObject_HEAD PyObject* object;
};
inline PyObject* object_of(PyObject* stand_in) {
  return reinterpret_cast<StandIn*>(stand_in)->object;
}
// A new reference; null where there is no memory.
PyObject* stand_in(PyTypeObject* type, PyObject* object);
void dealloc_stand_in(PyObject* self);

// Whether an object's class is that of another package.
bool is_other(PyObject* object);
// Whether what an object does with a number is known without asking it.
bool is_array_or_number(PyObject* object);
// What stands for an object at the left of an operator or an index: a new reference.
PyObject* operand_of(PyObject* object);
// What stands for the value in `object += value`.
py::object value_beside(PyObject* object, PyObject* value);

void bind_others(py::module_& m);

}  // namespace ufuse::pyext
