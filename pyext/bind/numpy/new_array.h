// New arrays, as NumPy would make them. When large ones die, their memory is kept for the next ones
// of their size: the page faults of fresh memory cost more than most loops.
#pragma once

#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {

// An ndarray of this layout that owns its memory, which is not initialised.
py::object new_array(const Layout& layout, const py::object& descr);

}  // namespace ufuse::pyext
