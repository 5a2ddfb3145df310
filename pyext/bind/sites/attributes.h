// Traced code reads and assigns attributes and items through the functions of attributes.cpp.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// What traced code gets for an array that it found; takes the reference. `fresh`: nobody else holds
// it.
PyObject* traced_from_here(PyObject* array, bool fresh);

void bind_attributes(py::module_& m);

}  // namespace ufuse::pyext
