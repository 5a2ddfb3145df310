// Operators and indices of other packages' objects, as functions of `_core`.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

void bind_others(py::module_& m);

}  // namespace ufuse::pyext
