// The variables of the functions that are running: where tracing stops in the middle of a call,
// real arrays take the places of lazy ones.
#pragma once

#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Whether the Python code that runs now has call sites, so that nothing of the package's own stands
// between it and the operation that asks.
bool is_at_traced_code();
// In the variables of all running code with call sites, and wherever the garbage collector finds
// arrays that ended calls have left behind. What only Python's stack or a generator holds stays a
// lazy array, which hands on all that it is asked. Gives the lazy ones: to be kept by whoever may
// have been handed one of them.
std::vector<py::object> make_variables_real();

void bind_variables(py::module_& m);

}  // namespace ufuse::pyext
