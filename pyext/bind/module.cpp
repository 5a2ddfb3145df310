// The module `ufuse._core`: NumPy's C API is imported here, and each topic binds its own names.
#define UFUSE_IMPORTS_NUMPY
#include "pyext/bind/call/holders.h"
#include "pyext/bind/call/session.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/error_state.h"
#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/numpy/repeated_call.h"
#include "pyext/bind/programs/loop.h"
#include "pyext/bind/replay/dispatcher.h"
#include "pyext/bind/replay/untraced.h"
#include "pyext/bind/signals.h"
#include "pyext/bind/sites/attributes.h"
#include "pyext/bind/sites/frames.h"
#include "pyext/bind/sites/jitted.h"
#include "pyext/bind/sites/others.h"
#include "pyext/bind/sites/site.h"
#include "pyext/bind/sites/spread.h"
#include "pyext/bind/sites/variables.h"

namespace ufuse::pyext {

PyObject* internal_error_type() {
  static PyObject* type = PyErr_NewExceptionWithDoc(
      "ufuse.InternalError", "A defect of ufuse. Please report it.", PyExc_RuntimeError, nullptr);
  return type;
}

PyObject* needs_value_type() {
  static PyObject* type = PyErr_NewExceptionWithDoc(
      "ufuse._core.NeedsValue",
      "A call that is only described needs a value: (reason, detail, file, line).",
      PyExc_BaseException, nullptr);
  return type;
}

namespace {

void import_numpy() {
  if (_import_array() < 0 || _import_umath() < 0) throw py::error_already_set();
}

}  // namespace
}  // namespace ufuse::pyext

PYBIND11_MODULE(_core, m) {
  namespace py = pybind11;
  m.doc() = "The core of ufuse: lazy arrays, traced calls and the backends that compute them.";
  ufuse::pyext::import_numpy();
  ufuse::pyext::bind_numpy_facts(m);
  ufuse::pyext::init_error_state();
  ufuse::pyext::init_repeated_calls();
  ufuse::pyext::init_signals();
  m.attr("__version__") = UFUSE_VERSION;
  m.attr("InternalError") = ufuse::pyext::borrow(ufuse::pyext::internal_error_type());
  m.attr("NeedsValue") = ufuse::pyext::borrow(ufuse::pyext::needs_value_type());
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const ufuse::InternalError& error) {
      PyErr_SetString(ufuse::pyext::internal_error_type(), error.what());
    }
  });
  ufuse::pyext::bind_lazy_array(m);
  ufuse::pyext::bind_number(m);
  ufuse::pyext::operator_function("add");  // imports their module before there are threads
  ufuse::pyext::bind_session(m);
  ufuse::pyext::bind_describe(m);
  ufuse::pyext::bind_primitives(m);
  ufuse::pyext::bind_jitted(m);
  ufuse::pyext::bind_caller(m);
  ufuse::pyext::bind_site(m);
  ufuse::pyext::bind_spread(m);
  ufuse::pyext::bind_others(m);
  ufuse::pyext::bind_holders(m);
  ufuse::pyext::bind_attributes(m);
  ufuse::pyext::bind_frames(m);
  ufuse::pyext::bind_variables(m);
  ufuse::pyext::bind_dispatcher(m);
  ufuse::pyext::bind_untraced(m);
  ufuse::pyext::bind_loop(m);
}
