// See untraced.h. An Untraced is a callable: it calls the function itself, with nothing of ours but
// a look at whether the reason still stands.
#include "pyext/bind/replay/untraced.h"

#include <structmember.h>

#include <memory>

#include "codegen/runtime/threads.h"
#include "pyext/bind/call/call.h"
#include "pyext/bind/replay/guards.h"

namespace ufuse::pyext {
namespace {

struct State {
  py::object function, code, otherwise;
  Guards guards;

  bool stands() const { return PyFunction_GET_CODE(function.ptr()) == code.ptr() && guards.hold(); }
};

struct UntracedObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  State* state;
};

State* state_of(PyObject* self) { return reinterpret_cast<UntracedObject*>(self)->state; }

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  return guard([&] {
    const State& state = *state_of(self);
    if (Call::active() || !state.stands())
      return PyObject_Vectorcall(state.otherwise.ptr(), args, flags, keywords);
    const Call::Aside aside;  // jitted functions that it calls are recorded for themselves
    const py::object kept = state.function;
    codegen::Threads::leave_cores();
    return PyObject_Vectorcall(kept.ptr(), args, flags, keywords);
  });
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* names[] = {"function", "guards", "otherwise", nullptr};
    PyObject *function, *guards, *otherwise;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO", const_cast<char**>(names),
                                     &PyFunction_Type, &function, &guards, &otherwise))
      throw py::error_already_set();
    auto state = std::make_unique<State>();
    state->function = borrow(function);
    state->code = borrow(PyFunction_GET_CODE(function));
    state->otherwise = borrow(otherwise);
    state->guards.add(borrow(guards));
    auto* self = reinterpret_cast<UntracedObject*>(type->tp_alloc(type, 0));
    if (self == nullptr) throw py::error_already_set();
    self->vectorcall = call;
    self->state = state.release();
    return reinterpret_cast<PyObject*>(self);
  });
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete state_of(self);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const State* state = state_of(self);
  if (state == nullptr) return 0;
  Py_VISIT(state->function.ptr());
  Py_VISIT(state->code.ptr());
  Py_VISIT(state->otherwise.ptr());
  return state->guards.traverse(visit, arg);
}

int clear(PyObject* self) {
  if (State* state = state_of(self)) {
    state->guards.clear();
    state->otherwise = py::none();
  }
  return 0;
}

PyObject* get_stands(PyObject* self, void*) { return PyBool_FromLong(state_of(self)->stands()); }

PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(UntracedObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"stands", get_stands, nullptr, "Whether code and guards are as they were.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

void bind_untraced(py::module_& m) {
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(create)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, kMembers},
      {Py_tp_getset, kAttributes},
      {Py_tp_doc,
       const_cast<char*>("Untraced(function, guards, otherwise)\n\n"
                         "Calls `function` while its code and what the guards name stay as they "
                         "are; else, and inside a traced call, `otherwise`. A guard is (dict or "
                         "cell, name, value), or (dict or cell, name, type, True) where only the "
                         "type must stay.")},
      {0, nullptr}};
  static PyType_Spec spec = {"ufuse._core.Untraced", sizeof(UntracedObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                             slots};
  m.attr("Untraced") = steal(PyType_FromSpec(&spec));
}

}  // namespace ufuse::pyext
