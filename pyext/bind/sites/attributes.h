// How traced code reads and assigns attributes and items: see attributes.cpp.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// The lazy array for a real one that traced code has found; takes the reference. `fresh`: nobody
// else holds it.
PyObject* traced_from_here(PyObject* array, bool fresh);

void bind_attributes(py::module_& m);

}  // namespace ufuse::pyext
