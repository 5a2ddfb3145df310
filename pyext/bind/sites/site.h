// Call sites of traced code: see site.cpp.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// args[0](*args[1:count], **keywords) at a call site; null where it raised.
PyObject* site(PyObject* const* args, std::size_t count, PyObject* keywords);
// The results of a ufunc that was called with `out=...` (an Ellipsis): arrays in the place of
// scalars.
py::object into_array(const py::object& result);

void bind_site(py::module_& m);

}  // namespace ufuse::pyext
