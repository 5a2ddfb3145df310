// Call sites with `*` or `**`: see spread.cpp.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

void bind_spread(py::module_& m);

}  // namespace ufuse::pyext
