// See frames.h.
#include "pyext/bind/sites/frames.h"

#include <atomic>

#include "pyext/bind/call/call.h"
#include "pyext/bind/gil.h"
#include "pyext/bind/numpy/native_call.h"

#if PY_VERSION_HEX < 0x030C0000
// A frame in Python 3.11, which has no function that gives a frame's code.
struct _PyInterpreterFrame {
  PyObject *function, *globals, *builtins, *locals;
  PyCodeObject* code;
  void *object, *previous, *instruction;
  int top;
  bool is_entry;
  char owner;
  PyObject* variables[1];  // arguments first
};
#endif

namespace ufuse::pyext {
namespace {

enum class Code : std::uintptr_t {
  Unknown,   // not looked at yet
  Traced,    // it has call sites
  Harmless,  // it only hands on what it is given, or is NumPy's own
  OfNumPy,   // NumPy's own, and may read arrays that it is not given
  Untraced,  // anything else
};

std::atomic<int> watches = 0;
_PyFrameEvalFunction others_function = nullptr;
PyObject* the_judge = nullptr;            // callees.is_harmless_code
PyObject* collector_callbacks = nullptr;  // gc.callbacks
thread_local bool unwatched = false;
thread_local bool numpy_computes = false;

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
  const Code kind = answer.ptr() == Py_True   ? Code::Harmless
                    : answer.ptr() == Py_None ? Code::OfNumPy
                                              : Code::Untraced;
  note(code.ptr(), kind);
  return kind;
}

#if PY_VERSION_HEX < 0x030C0000
// The function behind a method or an object with `__call__`.
py::object function_behind(PyObject* callable) {
  if (PyFunction_Check(callable)) return borrow(callable);
  if (PyMethod_Check(callable)) return borrow(PyMethod_GET_FUNCTION(callable));
  return py::getattr(reinterpret_cast<PyObject*>(Py_TYPE(callable)), "__call__", py::none());
}

// Whether the garbage collector has called one of `gc.callbacks`, with the name of a phase. It does
// so wherever an object is made, also in the middle of Python's own code and of ours.
bool is_called_by_collector(_PyInterpreterFrame* frame) {
  if (PyList_GET_SIZE(collector_callbacks) == 0) return false;
  const auto is_phase = [&](int argument) {
    PyObject* value = argument < frame->code->co_argcount ? frame->variables[argument] : nullptr;
    return value != nullptr && PyUnicode_CheckExact(value) &&
           (PyUnicode_CompareWithASCIIString(value, "start") == 0 ||
            PyUnicode_CompareWithASCIIString(value, "stop") == 0);
  };
  if (!is_phase(0) && !is_phase(1)) return false;  // the first one may be `self`
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(collector_callbacks); ++i)
    if (function_behind(PyList_GET_ITEM(collector_callbacks, i)).ptr() == frame->function)
      return true;
  return false;
}
#else
// It runs between two steps of Python code only.
bool is_called_by_collector(_PyInterpreterFrame*) { return false; }
#endif

// Computes and writes what is pending. A Python error that is set stays set, unless this raises
// one.
bool flushed(Call& call) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const bool done = guard([&]() -> PyObject* {
                      call.flush_and_share();
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
  bool is_aside = false;
  const bool known = guard([&]() -> PyObject* {
                       const py::object code = code_of(frame);
                       kind = noted(code.ptr());
                       if (kind == Code::Unknown) kind = judged(code);
                       if (kind == Code::OfNumPy)
                         kind = numpy_computes ? Code::Harmless : Code::Untraced;
                       is_aside = kind == Code::Untraced && is_called_by_collector(frame);
                       return Py_None;
                     }) != nullptr;
  if (!known) return go_on(state, frame, 1);
  if (kind == Code::Harmless || (kind == Code::Untraced) == active->in_untraced_code())
    return go_on(state, frame, throwing);
  const std::shared_ptr<Call> call = active->shared_from_this();
  const bool enters = kind == Code::Untraced;
  if (enters && (is_aside || call->is_busy())) {
    // A finalizer, a signal's handler, or one of the collector's. It is no part of the call.
    const Call::Aside aside;
    return go_on(state, frame, throwing);
  }
  if (enters && !flushed(*call)) throwing = 1;
  call->set_in_untraced_code(enters);
  PyObject* result = go_on(state, frame, throwing);
  call->set_in_untraced_code(!enters);
  if (!call->is_open()) return result;
  if (!enters && result != nullptr) call->holders().add_if_lazy(result);
  if (!flushed(*call)) Py_CLEAR(result);
  if (enters || result == nullptr) return result;
  // Traced code that untraced code has called gives it real arrays.
  const py::object given = py::reinterpret_steal<py::object>(result);
  return guard([&] { return unwrap(given.ptr()).release().ptr(); });
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

NumPyComputes::NumPyComputes(bool does)
    : before_(std::exchange(numpy_computes, numpy_computes || does)) {}
NumPyComputes::~NumPyComputes() { numpy_computes = before_; }

FrameWatch::FrameWatch() {
  ++watches;
  const _PyFrameEvalFunction present = _PyInterpreterState_GetEvalFrameFunc(interpreter());
  if (present == evaluate) return;
  others_function = present;
  _PyInterpreterState_SetEvalFrameFunc(interpreter(), evaluate);
}

// Another library may have set a function since, which calls ours; then ours stays.
FrameWatch::~FrameWatch() {
  if (--watches > 0 || is_ending()) return;
  if (_PyInterpreterState_GetEvalFrameFunc(interpreter()) == evaluate)
    _PyInterpreterState_SetEvalFrameFunc(interpreter(), others_function);
}

void bind_frames(py::module_& m) {
  const py::list callbacks = py::module_::import("gc").attr("callbacks");
  collector_callbacks = callbacks.inc_ref().ptr();
  if (PyModule_AddFunctions(m.ptr(), kFunctions) < 0) throw py::error_already_set();
  bind_hand_over(
      m, "set_harmless", "is_harmless_code", the_judge,
      "is_harmless_code(code) says whether a code object may run while values are pending; None: "
      "while NumPy computes a value of arrays that it was given.");
}

}  // namespace ufuse::pyext
