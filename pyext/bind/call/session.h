// Traced calls as module functions of `_core`: begin, wrap, numpy_call, finish, and what explain
// reads.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// The Python function that answers np.function(lazy) (borrowed); null: none is registered.
PyObject* array_function_handler();

class Call;
// Of this thread; throws where there is none.
Call& active_call();

void bind_session(py::module_& m);
void bind_describe(py::module_& m);  // describe.cpp
void bind_primitives(py::module_& m);
void bind_caller(py::module_& m);  // caller.cpp

}  // namespace ufuse::pyext
