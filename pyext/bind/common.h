// What every file of the binding includes: Python, NumPy's C API (imported once, in module.cpp) and
// pybind11's handles. References are owned by py::object; a null from the C API becomes the C++
// exception py::error_already_set.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <pybind11/pybind11.h>

#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
// The oldest NumPy that the module runs with; the headers of some versions assume an older one.
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL UFUSE_ARRAY_API
#define PY_UFUNC_UNIQUE_SYMBOL UFUSE_UFUNC_API
#ifndef UFUSE_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include <utility>

#include "ir/support/error.h"

namespace ufuse::pyext {

namespace py = pybind11;

inline py::object steal(PyObject* object) {
  if (object == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(object);
}
inline py::object borrow(PyObject* object) { return py::reinterpret_borrow<py::object>(object); }

// Whether nobody but the stack of the running Python code refers to an object: it is a temporary.
// From Python 3.14 on the stack does not count as one who refers to what is in a variable.
inline bool is_only_on_stack(PyObject* object) {
#if PY_VERSION_HEX >= 0x030E0000
  return PyUnstable_Object_IsUniqueReferencedTemporary(object) != 0;
#else
  return Py_REFCNT(object) == 1;
#endif
}

// After code of somebody's was run that no line of the user's program asks for: an Exception of its
// is of no interest. KeyboardInterrupt is, which a signal's handler raised meanwhile.
inline void forget_exception() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
  PyErr_Clear();
}

// A str as UTF-8. Surrogates, which stand in file names for bytes that are no UTF-8, are written
// out as "\\udc80".
inline std::string text_of(PyObject* str) {
  Py_ssize_t size = 0;
  if (const char* text = PyUnicode_AsUTF8AndSize(str, &size))
    return {text, static_cast<std::size_t>(size)};
  PyErr_Clear();
  const py::object bytes = steal(PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace"));
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

// Adds a function `name` to the module by which the Python package hands over an object, a function
// of its own mostly. It is kept in `place`, for good: Python may outlive static destruction.
inline void bind_hand_over(py::module_& m, const char* name, const char* argument, PyObject*& place,
                           const char* words) {
  m.def(
      name,
      [&place](py::object object) { Py_XDECREF(std::exchange(place, object.release().ptr())); },
      py::arg(argument), words);
}

// `_core.InternalError`: a defect of ufuse, raised where UFUSE_DEBUG asks for it.
PyObject* internal_error_type();
// Raised where a call that is only described needs a value.
PyObject* needs_value_type();

// Runs a slot's body: C++ exceptions become Python's.
template <class Body, class Failure = PyObject*>
auto guard(Body body, Failure failure = nullptr) -> decltype(body()) {
  try {
    return body();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const InternalError& error) {
    PyErr_SetString(internal_error_type(), error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return static_cast<decltype(body())>(failure);
}

}  // namespace ufuse::pyext
