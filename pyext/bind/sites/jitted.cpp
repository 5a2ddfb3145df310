// See jitted.h. What ufuse answers is called as C functions are: there is no Python frame, and no
// tuple of arguments, between the caller and what answers.
#include "pyext/bind/sites/jitted.h"

#include <structmember.h>

#include <vector>

#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {
namespace {

struct AnsweredObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *at_once, *plain;
};

PyTypeObject *answered_type = nullptr, *jitted_type = nullptr;

AnsweredObject* answered_of(PyObject* self) { return reinterpret_cast<AnsweredObject*>(self); }

// The frames of a traceback without the package's own: it begins at the caller's line and goes on
// with the user's functions. All of them where there is no stack left to find out.
py::object without_own_frames(const py::object& frames) {
  try {
    return py::module_::import("ufuse.tracing.tracebacks").attr("without_ours")(frames);
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_RecursionError)) throw;
    return frames;
  }
}

// Removes the package's own frames from the traceback of the error that is set.
void drop_own_frames() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const py::object kind = steal(type), error = steal(value);
  const py::object users = without_own_frames(trace ? steal(trace) : py::object(py::none()));
  PyException_SetTraceback(error.ptr(), users.ptr());
  PyErr_Restore(kind.inc_ref().ptr(), error.inc_ref().ptr(),
                users.is_none() ? nullptr : users.inc_ref().ptr());
}

// Who is told of calls; see ufuse/tracing/watchers.py.
PyObject* watchers() {
  static PyObject* const list = PyList_New(0);
  return list;
}

// A call of a function that has to be asked what is to answer.
PyObject* call_answering(PyObject* function, PyObject* const* args, std::size_t flags,
                         PyObject* keywords) {
  static PyObject* const joins = PyUnicode_InternFromString("_is_joined");
  static PyObject* const joined = PyUnicode_InternFromString("joined");
  static PyObject* const answering = PyUnicode_InternFromString("answering");
  const auto asked = [&] { return steal(PyObject_CallMethodNoArgs(function, answering)); };
  if (steal(PyObject_GetAttr(function, joins)).ptr() != Py_True)
    return PyObject_Vectorcall(asked().ptr(), args, flags, keywords);
  const auto count = static_cast<std::size_t>(PyVectorcall_NARGS(flags));
  py::tuple rest(count);
  for (std::size_t i = 0; i < count; ++i) rest[i] = borrow(args[i]);
  py::dict named;
  const Py_ssize_t names = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  for (Py_ssize_t i = 0; i < names; ++i)
    named[PyTuple_GET_ITEM(keywords, i)] = borrow(args[static_cast<Py_ssize_t>(count) + i]);
  const py::tuple both =
      steal(PyObject_CallMethodObjArgs(function, joined, rest.ptr(), named.ptr(), nullptr));
  return PyObject_Call(asked().ptr(), py::object(both[0]).ptr(), py::object(both[1]).ptr());
}

// Whether a function is a method that Python or NumPy call themselves, which accept only objects of
// a certain class as its result: by its own name, or by that which the class of the first argument
// has for it.
bool is_asked_for_class(PyObject* self, PyObject* const* args, std::size_t flags) {
  static PyObject* names = nullptr;  // no initialiser: see operator_function
  if (names == nullptr)
    names = py::make_tuple("__array__", "__bool__", "__complex__", "__float__", "__hash__",
                           "__index__", "__int__", "__len__")
                .release()
                .ptr();
  const py::object function = function_of_jitted(self);
  PyObject* own =
      function ? reinterpret_cast<PyFunctionObject*>(function.ptr())->func_name : nullptr;
  PyTypeObject* of = PyVectorcall_NARGS(flags) > 0 ? Py_TYPE(args[0]) : nullptr;
  for (const py::handle name : py::handle(names)) {
    if (own != nullptr && PyUnicode_Compare(own, name.ptr()) == 0) return true;
    if (of != nullptr && _PyType_Lookup(of, name.ptr()) == self) return true;
  }
  return false;
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  PyObject* const runs = answered_of(self)->at_once;
  PyObject* result;
  if (runs != nullptr && runs != Py_None && PyList_GET_SIZE(watchers()) == 0) {
    Py_INCREF(runs);
    result = PyObject_Vectorcall(runs, args, flags, keywords);
    Py_DECREF(runs);
  } else {
    result = guard([&] { return call_answering(self, args, flags, keywords); });
  }
  if (result != nullptr && is_lazy(result) && is_asked_for_class(self, args, flags)) {
    const py::object lazy = steal(result);
    result = guard([&] { return unwrap(lazy.ptr()).release().ptr(); });
  }
  if (result != nullptr) return result;
  return guard([]() -> PyObject* {
    drop_own_frames();
    return nullptr;
  });
}

PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* self = type->tp_alloc(type, 0);
  if (self != nullptr) answered_of(self)->vectorcall = call;
  return self;
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(answered_of(self)->at_once);
  Py_VISIT(answered_of(self)->plain);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(answered_of(self)->at_once);
  Py_CLEAR(answered_of(self)->plain);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// As a function's: in a class it is a method.
PyObject* bind_to(PyObject* self, PyObject* instance, PyObject*) {
  return instance == nullptr || instance == Py_None ? Py_NewRef(self)
                                                    : PyMethod_New(self, instance);
}

// Before Python 3.12, a class made in Python is not called so, though its base is; in none is it
// known that a call as a method needs no object of a bound method.
PyObject* call_as_base(PyObject*, PyObject* type) {
  auto* given = reinterpret_cast<PyTypeObject*>(type);
  if (!PyType_Check(type) || !PyType_IsSubtype(given, answered_type) ||
      given->tp_call != PyVectorcall_Call) {
    PyErr_SetString(PyExc_TypeError, "call_as_base needs a class that is called as Answered is");
    return nullptr;
  }
  given->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  if (given->tp_descr_get == bind_to) given->tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Modified(given);
  return Py_NewRef(type);
}

PyMethodDef kFunctions[] = {{"call_as_base", call_as_base, METH_O,
                             "call_as_base(type): have the objects of a class derived from "
                             "Answered called at once, also as "
                             "methods."},
                            {nullptr, nullptr, 0, nullptr}};

PyTypeObject* make_type(const char* name, std::vector<PyType_Slot> slots) {
  slots.insert(slots.end(), {{Py_tp_new, reinterpret_cast<void*>(create)},
                             {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                             {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                             {Py_tp_clear, reinterpret_cast<void*>(clear)},
                             {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                             {0, nullptr}});
  PyType_Spec spec = {
      name, sizeof(AnsweredObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
      slots.data()};
  return reinterpret_cast<PyTypeObject*>(steal(PyType_FromSpec(&spec)).release().ptr());
}

}  // namespace

py::object function_of_jitted(PyObject* object) {
  if (!PyObject_TypeCheck(object, jitted_type)) return {};
  PyObject* const plain = answered_of(object)->plain;
  return plain != nullptr && PyFunction_Check(plain) ? borrow(plain) : py::object();
}

void bind_jitted(py::module_& m) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(AnsweredObject, vectorcall), READONLY, nullptr},
      {"_at_once", T_OBJECT, offsetof(AnsweredObject, at_once), 0,
       "What a call calls; where this is None, what answering() gives."},
      {"_plain", T_OBJECT, offsetof(AnsweredObject, plain), 0,
       "The function that a call calls with the same arguments, or None."},
      {nullptr, 0, 0, 0, nullptr}};
  answered_type = make_type(
      "ufuse._core.Answered",
      {{Py_tp_members, members},
       {Py_tp_doc, const_cast<char*>("The base of what is called without a frame of Python's: "
                                     "answering() gives what answers each call.")}});
  jitted_type = make_type(
      "ufuse._core.Jitted",
      {{Py_tp_base, answered_type},
       {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
       {Py_tp_doc,
        const_cast<char*>("The base of jitted functions, by which all others know one.")}});
  m.attr("Answered") = borrow(reinterpret_cast<PyObject*>(answered_type));
  m.attr("Jitted") = borrow(reinterpret_cast<PyObject*>(jitted_type));
  m.attr("watchers") = borrow(watchers());
  if (PyModule_AddFunctions(m.ptr(), kFunctions) < 0) throw py::error_already_set();
}

}  // namespace ufuse::pyext
