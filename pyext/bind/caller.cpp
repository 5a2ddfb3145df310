// How does Python name a function that shall always run on real arrays?
// `functools.partial(call_numpy, func, reason, pure)` is such a function: being C all the way down,
// it has no Python frame of its own, so warnings and tracebacks show the user's line.
#include "pyext/bind/native_call.h"
#include "pyext/bind/session.h"

namespace ufuse::pyext {
namespace {

PyObject* call_numpy(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    if (PyTuple_GET_SIZE(args) < 3) throw py::type_error("call_numpy needs func, reason and pure");
    const py::object rest = steal(PyTuple_GetSlice(args, 3, PyTuple_GET_SIZE(args)));
    const char* reason = PyUnicode_AsUTF8(PyTuple_GET_ITEM(args, 1));
    if (reason == nullptr) throw py::error_already_set();
    const int pure = PyObject_IsTrue(PyTuple_GET_ITEM(args, 2));
    if (pure < 0) throw py::error_already_set();
    return numpy_call(PyTuple_GET_ITEM(args, 0), rest.ptr(), kwargs, reason, pure == 1)
        .release()
        .ptr();
  });
}
PyMethodDef kFunctions[] = {
    {"call_numpy", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_numpy)),
     METH_VARARGS | METH_KEYWORDS,
     "call_numpy(func, reason, pure, /, *args, **kwargs): numpy_call with the arguments in a row."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void bind_caller(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), kFunctions) < 0) throw py::error_already_set();
}

}  // namespace ufuse::pyext
