// Functions that are not traced, for a reason that the scan of their code has found.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

void bind_untraced(py::module_& m);

}  // namespace ufuse::pyext
