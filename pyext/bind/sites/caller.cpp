// Callables that the Python package puts in the place of NumPy's functions, or around them. They
// are C functions: without a Python frame of their own, warnings and tracebacks show the user's
// line. `functools.partial(call_numpy, func, reason, pure)` is a function that runs on real arrays.
#include <algorithm>
#include <array>

#include "numpy_shim/surface.h"
#include "pyext/bind/call/containers.h"
#include "pyext/bind/call/session.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/sites/others.h"
#include "pyext/bind/sites/site.h"

namespace ufuse::pyext {
namespace {

PyObject* call_numpy(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    if (PyTuple_GET_SIZE(args) < 3) throw py::type_error("call_numpy needs func, reason and pure");
    const py::object rest = steal(PyTuple_GetSlice(args, 3, PyTuple_GET_SIZE(args)));
    const Reason reason = reason_of(text_of(PyTuple_GET_ITEM(args, 1)));
    const int pure = PyObject_IsTrue(PyTuple_GET_ITEM(args, 2));
    if (pure < 0) throw py::error_already_set();
    return numpy_call(PyTuple_GET_ITEM(args, 0), rest.ptr(), kwargs, reason, pure == 1)
        .release()
        .ptr();
  });
}

// Whether a type is one of those of most arguments, which have no override. Looking for an
// attribute that is not there is slow.
bool is_basic(PyTypeObject* type) {
  const std::array basic = {&PyArray_Type,   &PyLong_Type,  &PyFloat_Type,
                            &PyComplex_Type, &PyBool_Type,  &PyType_Type,
                            &PyUnicode_Type, &PyBytes_Type, Py_TYPE(Py_None)};
  return std::ranges::find(basic, type) != basic.end();
}

bool has_override(PyTypeObject* type) {
  static auto* name = new py::str("__array_function__");
  static auto* of_array =
      new py::object(py::handle(reinterpret_cast<PyObject*>(&PyArray_Type)).attr(*name));
  const py::handle asked = reinterpret_cast<PyObject*>(type);
  return py::hasattr(asked, *name) && !py::object(asked.attr(*name)).is(*of_array);
}

// Whether an argument may override the function (`__array_function__`), or NumPy's dispatcher would
// treat it in a special way, as np.stack refuses iterators. `harmless`: a type known not to.
bool may_override(PyObject* root, PyTypeObject*& harmless) {
  return any_inside(root, Into::Sequences, [&](PyObject* object) {
    PyTypeObject* type = Py_TYPE(object);
    if (type == harmless || is_basic(type) || is_lazy(object)) return false;
    if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) return false;
    // For subclasses of ndarray, NumPy needs real arrays to give the result the right class.
    if (PyArray_Check(object) || PyIter_Check(object) || has_override(type)) return true;
    harmless = type;
    return false;
  });
}

bool any_may_override(PyObject* args, PyObject* kwargs) {
  PyTypeObject* harmless = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (may_override(PyTuple_GET_ITEM(args, i), harmless)) return true;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value);)
    if (may_override(value, harmless)) return true;
  return false;
}

PyObject* call_handled(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) < 3) throw py::type_error("call_handled needs func, stand_in, pure");
    PyObject* func = PyTuple_GET_ITEM(args, 0);
    const py::object rest = steal(PyTuple_GetSlice(args, 3, PyTuple_GET_SIZE(args)));
    if (any_may_override(rest.ptr(), kwargs))
      return numpy_call(func, rest.ptr(), kwargs, Reason::ForeignObject, false).release().ptr();
    PyObject* result = PyObject_Call(PyTuple_GET_ITEM(args, 1), rest.ptr(), kwargs);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    const bool pure = PyTuple_GET_ITEM(args, 2) == Py_True;
    return numpy_call(func, rest.ptr(), kwargs, Reason::Arguments, pure).release().ptr();
  });
}

// Calls the first argument with the others: on real arrays where `needs_real(others)` says so.
template <class NeedsReal>
PyObject* call_first(PyObject* args, PyObject* kwargs, NeedsReal needs_real) {
  return guard([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) < 1) throw py::type_error("there is no function to call");
    PyObject* func = PyTuple_GET_ITEM(args, 0);
    const py::object rest = steal(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
    if (needs_real(rest.ptr()))
      return numpy_call(func, rest.ptr(), kwargs, Reason::UserCall, false).release().ptr();
    return PyObject_Call(func, rest.ptr(), kwargs);
  });
}

// Calls a function that needs real arrays, but gets arrays in few of its calls.
PyObject* call_real(PyObject*, PyObject* args, PyObject* kwargs) {
  return call_first(args, kwargs, [&](PyObject* rest) {
    return any_inside(rest, Into::All, is_lazy) ||
           (kwargs != nullptr && any_inside(kwargs, Into::All, is_lazy)) ||
           shows_memory(rest, kwargs);
  });
}

// Calls a method of `object` that concerns the memory of its first argument, whatever the others.
PyObject* call_on_real(PyObject*, PyObject* args, PyObject* kwargs) {
  return call_first(args, kwargs, [](PyObject* rest) {
    return PyTuple_GET_SIZE(rest) > 0 && is_lazy(PyTuple_GET_ITEM(rest, 0));
  });
}

// Python's `id` of what stands for an object when the call ends: the real array of a lazy one, the
// caller's own list, dict or tuple. Containers of traced code stay the objects that they are.
PyObject* identity(PyObject*, PyObject* object) {
  return guard([&] {
    Call* call = Call::active();
    if (call == nullptr) return PyLong_FromVoidPtr(object);
    if (is_lazy(object)) call->record(tracer::Event::Kind::NumpyCall, Reason::Array, "id");
    return PyLong_FromVoidPtr(call->copies().real(object).ptr());
  });
}

PyObject* call_late(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    if (PyTuple_GET_SIZE(args) < 1) throw py::type_error("call_late needs resolve");
    const py::object function = steal(PyObject_CallNoArgs(PyTuple_GET_ITEM(args, 0)));
    const py::object rest = steal(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
    return PyObject_Call(function.ptr(), rest.ptr(), kwargs);
  });
}

PyMethodDef kFunctions[] = {
    {"call_numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_numpy)),
     METH_VARARGS | METH_KEYWORDS,
     "call_numpy(func, reason, pure, /, *args, **kwargs): numpy_call with the arguments in a row."},
    {"call_handled", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_handled)),
     METH_VARARGS | METH_KEYWORDS,
     "call_handled(func, stand_in, pure, /, *args, **kwargs): stand_in(*args, **kwargs), or "
     "NumPy's func where that gives NotImplemented or an argument's __array_function__ may "
     "answer."},
    {"call_real", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_real)),
     METH_VARARGS | METH_KEYWORDS,
     "call_real(func, /, *args, **kwargs): func on real arrays where some argument is a lazy one."},
    {"call_on_real", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_on_real)),
     METH_VARARGS | METH_KEYWORDS,
     "call_on_real(func, x, /, *args, **kwargs): func, on real arrays where x is a lazy one."},
    {"identity", identity, METH_O, "identity(x): id(x) of what stands for x when the call ends."},
    {"call_late", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_late)),
     METH_VARARGS | METH_KEYWORDS,
     "call_late(resolve, /, *args, **kwargs): resolve()(*args, **kwargs)."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

namespace {

// A method for the type of lazy arrays that calls the method of the real type.
py::object numpy_method(const numpy_shim::SurfaceRow& row) {
  const std::string name(row.name);
  const py::cpp_function call(
      [name, reason = reason_of(row.what), pure = !row.writes.argument](const py::args& args,
                                                                        const py::kwargs& kwargs) {
        if (args.empty())
          throw py::type_error("descriptor '" + name +
                               "' of 'numpy.ndarray' object needs an argument");
        const py::object type = args[0].attr("__class__");
        if (!py::hasattr(type, name.c_str()))  // scalars lack some: the real object raises
          return py::object(unwrap(args[0].ptr()).attr(name.c_str()));
        const py::object method = type.attr(name.c_str());
        return numpy_call(method.ptr(), args.ptr(), kwargs.ptr(), reason, pure);
      },
      py::name(name.c_str()));
  return steal(PyInstanceMethod_New(call.ptr()));
}

// By name, the methods of NumPy's arrays that run as NumPy's own calls. In the place of methods
// that NumPy 2 has removed, its early versions have attributes that say so when they are read.
py::dict numpy_methods() {
  const py::object type = borrow(reinterpret_cast<PyObject*>(&PyArray_Type));
  py::dict methods;
  for (const numpy_shim::SurfaceRow& row : numpy_shim::surface()) {
    if (row.module != "ndarray" || !numpy_shim::runs_numpy(row.form)) continue;
    const py::object method = py::getattr(type, row.name.data(), py::none());
    if (PyCallable_Check(method.ptr()))
      methods[py::str(row.name.data(), row.name.size())] = numpy_method(row);
  }
  return methods;
}

// What dispatchers of NumPy 1 call in the place of NumPy's implement_array_function. `func`:
// NumPy's function, for overrides; `implementation`: what runs otherwise. From 1.24.3 on they also
// say whether the function has `like=`, which is in `relevant` then.
py::object implement(py::handle func, py::handle implementation, py::handle,
                     const py::object& relevant, const py::tuple& args, const py::dict& kwargs,
                     const py::args&) {
  const py::tuple asked = steal(PySequence_Tuple(relevant.ptr()));
  if (any_may_override(asked.ptr(), nullptr))
    return numpy_call(func.ptr(), args.ptr(), kwargs.ptr(), Reason::ForeignObject, false);
  return steal(PyObject_Call(implementation.ptr(), args.ptr(), kwargs.ptr()));
}

}  // namespace

py::object into_array(const py::object& result) {
  if (!PyTuple_CheckExact(result.ptr())) return as_array(result.ptr());
  const auto given = borrow(result.ptr()).cast<py::tuple>();
  py::tuple made(given.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = as_array(py::object(given[i]).ptr());
  return made;
}

void bind_caller(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), kFunctions) < 0) throw py::error_already_set();
  m.def("numpy_methods", numpy_methods,
        "The methods of arrays that run as NumPy's own calls, by name, for the lazy array.");
  m.def(
      "instance_method",
      [](py::handle callable) { return steal(PyInstanceMethod_New(callable.ptr())); },
      py::arg("callable"), "Any callable as a method of a type.");
  m.def("implement", implement, "NumPy 1's implement_array_function.");
}

}  // namespace ufuse::pyext
