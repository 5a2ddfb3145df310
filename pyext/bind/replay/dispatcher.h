// Replay: calls of a pure function by its recorded plans, without running Python.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

void bind_dispatcher(py::module_& m);

}  // namespace ufuse::pyext
