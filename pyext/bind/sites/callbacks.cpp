// See callbacks.h.
#include "pyext/bind/sites/callbacks.h"

#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {

RealVariables::RealVariables(const Call& call) {
  for (const py::object& function : call.made_functions()) {
    PyObject* closure = PyFunction_GET_CLOSURE(function.ptr());
    for (Py_ssize_t i = 0; closure != nullptr && i < PyTuple_GET_SIZE(closure); ++i) {
      PyObject* cell = PyTuple_GET_ITEM(closure, i);
      PyObject* value = PyCell_GET(cell);
      if (value != nullptr && is_lazy(value))
        changes_.push_back({borrow(cell), borrow(value), unwrap(value)});
    }
    PyObject* defaults = PyFunction_GET_DEFAULTS(function.ptr());
    if (defaults == nullptr) continue;
    py::object real = unwrap(defaults);
    if (real.ptr() != defaults) changes_.push_back({function, borrow(defaults), std::move(real)});
  }
  for (const Change& change : changes_) {
    if (PyCell_Check(change.place.ptr()))
      PyCell_Set(change.place.ptr(), change.real.ptr());
    else
      PyFunction_SetDefaults(change.place.ptr(), change.real.ptr());
  }
}

// Values that were assigned meanwhile stay.
RealVariables::~RealVariables() {
  for (const Change& change : changes_) {
    PyObject* place = change.place.ptr();
    if (!PyCell_Check(place)) {
      if (PyFunction_GET_DEFAULTS(place) == change.real.ptr())
        PyFunction_SetDefaults(place, change.lazy.ptr());
    } else if (PyCell_GET(place) == change.real.ptr()) {
      PyCell_Set(place, change.lazy.ptr());
    }
  }
}

}  // namespace ufuse::pyext
