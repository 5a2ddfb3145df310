// What files with methods of lazy arrays share: their arguments, and the two ways to answer.
#pragma once

#include <array>

#include "pyext/bind/lazy/lazy_ops.h"

namespace ufuse::pyext {

// Arguments by position or keyword, unset ones null. Anything else is for NumPy.
template <std::size_t N>
using Args = std::array<PyObject*, N>;
template <std::size_t N>
Args<N> parse(const std::array<const char*, N>& names, PyObject* args, PyObject* kwargs) {
  Args<N> found{};
  const auto given = static_cast<std::size_t>(PyTuple_GET_SIZE(args));
  if (given > N) throw Unsupported(Reason::Arguments);
  for (std::size_t i = 0; i < given; ++i)
    found[i] = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
    std::size_t i = 0;
    while (i < N && PyUnicode_CompareWithASCIIString(key, names[i]) != 0) ++i;
    if (i == N || found[i]) throw Unsupported(Reason::Arguments);
    found[i] = value;
  }
  return found;
}

// The method of the real type on real arrays.
inline py::object numpy_method(PyObject* self, const char* name, PyObject* args, PyObject* kwargs,
                               Reason reason, bool pure = true) {
  const py::object type = steal(PyObject_GetAttrString(self, "__class__"));
  const py::object method = steal(PyObject_GetAttrString(type.ptr(), name));
  const py::object all = steal(PySequence_Concat(py::make_tuple(borrow(self)).ptr(), args));
  return numpy_call(method.ptr(), all.ptr(), kwargs, reason, pure);
}

template <class Native>
PyObject* method(PyObject* self, const char* name, PyObject* args, PyObject* kwargs,
                 Native native) {
  return guard([&] {
    return native_or(
               tracing_call(self),
               [&](Call& call) -> py::object {
                 call.enter();
                 return native(call, as_lazy(self)->array);
               },
               [&](Reason reason) { return numpy_method(self, name, args, kwargs, reason); })
        .release()
        .ptr();
  });
}

template <PyObject* (*Function)(PyObject*, PyObject*, PyObject*)>
PyMethodDef row(const char* name, const char* doc) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Function)),
          METH_VARARGS | METH_KEYWORDS, doc};
}

// Methods that pick elements by positions or masks, or carry values along (lazy_positions.cpp).
std::vector<PyMethodDef> position_methods();

}  // namespace ufuse::pyext
