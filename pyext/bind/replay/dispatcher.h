// Answers calls of a jitted function: by replaying recorded calls, without Python, by tracing, or
// by the plain function.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

void bind_dispatcher(py::module_& m);

}  // namespace ufuse::pyext
