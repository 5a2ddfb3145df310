// Where tracing stops in the middle of a call, real arrays take the places of lazy ones in the
// variables of the functions that are running.
#pragma once

#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Whether the Python code that runs now has call sites: then no function of the package is between
// it and the operation that asks.
bool is_at_traced_code();
// Replaces lazy arrays of ended calls in the variables of all running code with call sites, and
// wherever the garbage collector finds them. Those that only Python's stack or a generator holds
// stay; they hand on to the real array what they are asked. Gives the lazy arrays, to be kept by
// callers that may have been handed one.
std::vector<py::object> make_variables_real();

void bind_variables(py::module_& m);

}  // namespace ufuse::pyext
