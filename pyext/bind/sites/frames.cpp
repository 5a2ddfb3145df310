// See frames.h.
#include "pyext/bind/sites/frames.h"

#include <atomic>

#include "pyext/bind/call/call.h"
#include "pyext/bind/gil.h"

#if PY_VERSION_HEX < 0x030C0000
// Python 3.11 has no function for it. A frame begins so, as long as there is a 3.11.
struct _PyInterpreterFrame {
  PyObject *function, *globals, *builtins, *locals;
  PyCodeObject* code;
};
#endif

namespace ufuse::pyext {
namespace {

enum class Code : std::uintptr_t {
  Unknown,   // nobody has asked yet
  Traced,    // it has call sites
  Harmless,  // it hands on what it is given, or is NumPy's own
  Stranger,  // anything else
};

std::atomic<int> watches = 0;
_PyFrameEvalFunction others_function = nullptr;
PyObject* the_judge = nullptr;  // callees.is_harmless_code
thread_local bool unwatched = false;

Py_ssize_t place_in_code() {
#if PY_VERSION_HEX < 0x030C0000
  static const Py_ssize_t place = _PyEval_RequestCodeExtraIndex(nullptr);
#else
  static const Py_ssize_t place = PyUnstable_Eval_RequestCodeExtraIndex(nullptr);
#endif
  return place;
}

Code noted(PyObject* code) {
  void* found = nullptr;
#if PY_VERSION_HEX < 0x030C0000
  _PyCode_GetExtra(code, place_in_code(), &found);
#else
  PyUnstable_Code_GetExtra(code, place_in_code(), &found);
#endif
  return static_cast<Code>(reinterpret_cast<std::uintptr_t>(found));
}

void note(PyObject* code, Code kind) {
  void* value = reinterpret_cast<void*>(static_cast<std::uintptr_t>(kind));
#if PY_VERSION_HEX < 0x030C0000
  const int status = _PyCode_SetExtra(code, place_in_code(), value);
#else
  const int status = PyUnstable_Code_SetExtra(code, place_in_code(), value);
#endif
  if (status < 0) throw py::error_already_set();
}

py::object code_of(_PyInterpreterFrame* frame) {
#if PY_VERSION_HEX < 0x030C0000
  return borrow(reinterpret_cast<PyObject*>(frame->code));
#else
  return steal(PyUnstable_InterpreterFrame_GetCode(frame));
#endif
}

Code judged(const py::object& code) {
  const py::error_scope kept;
  const Unwatched judging;
  const py::object answer = steal(PyObject_CallOneArg(the_judge, code.ptr()));
  const Code kind = answer.ptr() == Py_True ? Code::Harmless : Code::Stranger;
  note(code.ptr(), kind);
  return kind;
}

// What is pending is computed and written; an exception that is on its way stays, but for one of
// that.
bool settle(Call& call) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const bool done = guard([&]() -> PyObject* {
                      call.settle();
                      return Py_None;
                    }) != nullptr;
  if (done)
    PyErr_Restore(type, value, trace);
  else
    for (PyObject* part : {type, value, trace}) Py_XDECREF(part);
  return done;
}

PyObject* evaluate(PyThreadState* state, _PyInterpreterFrame* frame, int throwing) {
  const _PyFrameEvalFunction go_on = others_function;
  Call* active = unwatched ? nullptr : Call::active();
  if (active == nullptr) return go_on(state, frame, throwing);
  Code kind = Code::Harmless;
  const bool known = guard([&]() -> PyObject* {
                       const py::object code = code_of(frame);
                       kind = noted(code.ptr());
                       if (kind == Code::Unknown) kind = judged(code);
                       return Py_None;
                     }) != nullptr;
  if (!known) return go_on(state, frame, 1);
  if (kind == Code::Harmless || (kind == Code::Stranger) == active->among_strangers())
    return go_on(state, frame, throwing);
  const std::shared_ptr<Call> call = active->shared_from_this();
  const bool enters = kind == Code::Stranger;
  if (enters && call->is_busy()) {
    // A finalizer, or a signal's handler: it has nothing to do with what is being computed.
    const Call::Aside aside;
    return go_on(state, frame, throwing);
  }
  if (enters && !settle(*call)) throwing = 1;
  call->set_among_strangers(enters);
  PyObject* result = go_on(state, frame, throwing);
  call->set_among_strangers(!enters);
  if (call->is_open() && !settle(*call)) Py_CLEAR(result);
  return result;
}

PyInterpreterState* interpreter() { return PyInterpreterState_Get(); }

PyObject* mark_traced(PyObject*, PyObject* code) {
  return guard([&]() -> PyObject* {
    if (!PyCode_Check(code)) throw py::type_error("mark_traced needs a code object");
    note(code, Code::Traced);
    Py_RETURN_NONE;
  });
}

PyMethodDef kFunctions[] = {{"mark_traced", mark_traced, METH_O,
                             "mark_traced(code): this code has call sites, and records."},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_traced(PyObject* code) { return noted(code) == Code::Traced; }

Unwatched::Unwatched() : before_(std::exchange(unwatched, true)) {}
Unwatched::~Unwatched() { unwatched = before_; }

FrameWatch::FrameWatch() {
  ++watches;
  const _PyFrameEvalFunction present = _PyInterpreterState_GetEvalFrameFunc(interpreter());
  if (present == evaluate) return;
  others_function = present;
  _PyInterpreterState_SetEvalFrameFunc(interpreter(), evaluate);
}

// Where somebody else has come in between, who calls us, it stays.
FrameWatch::~FrameWatch() {
  if (--watches > 0 || is_ending()) return;
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter()) == evaluate)
    _PyInterpreterState_SetEvalFrameFunc(interpreter(), others_function);
}

void bind_frames(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), kFunctions) < 0) throw py::error_already_set();
  m.def(
      "set_harmless",
      [](py::object judge) {
        Py_XDECREF(the_judge);
        the_judge = judge.release().ptr();
      },
      py::arg("is_harmless_code"),
      "is_harmless_code(code) says whether a code object may run while values are pending.");
}

}  // namespace ufuse::pyext
