// See signals.h.
#include "pyext/bind/signals.h"

#include <fenv.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {
namespace {

constexpr std::int64_t kEvery = 20'000'000;                    // ns
constexpr std::chrono::milliseconds kPatience{1000}, kNap{1};  // at the very end

std::atomic<int> running{0};                // loops
std::atomic<unsigned long> main_thread{0};  // Python's, which handles signals
std::int64_t last_look = 0;                 // of that thread at signals; steady_ns()

// A child has none of the parent's other threads; the one that forked is its main thread.
void after_fork() {
  running = 0;
  main_thread = PyThread_get_thread_ident();
}

// Called when the interpreter is gone. The end of the process, of libomp among others, frees what
// loops on other threads still use; loops end as soon as they ask whether to stop.
void wait_for_loops() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (running > 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kNap);
}

// A Python function that does nothing. Python runs the handlers of signals between two instructions
// of a function, and only afterwards a garbage collection that is due. PyErr_CheckSignals has done
// it the other way round since Python 3.12: the handler then ran in whatever function the
// collection called first, a callback of a weak reference for example, where its exception is lost.
PyObject* instructions = nullptr;

PyObject* make_instructions() {
  py::dict globals;
  globals["__builtins__"] = borrow(PyEval_GetBuiltins());
  const py::object code =
      steal(Py_CompileString("def handle_signals(): pass", "<ufuse>", Py_file_input));
  steal(PyEval_EvalCode(code.ptr(), globals.ptr(), globals.ptr()));
  return py::object(globals["handle_signals"]).release().ptr();
}

// Runs the handlers of signals. Whether one raised: Python's error is set.
bool run_handlers() {
  if (PyObject* done = PyObject_CallNoArgs(instructions)) {
    Py_DECREF(done);
    return false;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (trace == nullptr) {  // one call too deep for Python
    for (PyObject* part : {type, value}) Py_XDECREF(part);
    return PyErr_CheckSignals() != 0;
  }
  // Without the frame of `instructions`, which is the first; handlers in C have none.
  PyObject* following = PyObject_GetAttrString(trace, "tb_next");
  Py_DECREF(trace);
  if (following == Py_None) Py_CLEAR(following);
  trace = following;
  PyErr_Restore(type, value, trace);
  return true;
}

}  // namespace

SignalWatch::SignalWatch(WithoutGil& released, bool may_stop)
    : released_(released), looks_(may_stop && handles_signals()) {
  ++running;
}
SignalWatch::~SignalWatch() { --running; }

bool SignalWatch::stops(bool half_written) noexcept {
  if (released_.is_late()) return true;
  if (!looks_ || half_written) return false;
  if (raised_) return true;
  const std::int64_t now = steady_ns();
  if (now - last_look < kEvery) return false;
  raised_ = released_.within(handler_raises);
  last_look = steady_ns();
  return raised_;
}

void SignalWatch::without_forks(const std::function<void()>& body) { released_.within(body); }

bool handles_signals() { return PyThread_get_thread_ident() == main_thread; }

// Handlers are anybody's code. They are no part of the call that this thread may be tracing, and
// floating-point flags that they raise are not the loop's.
bool handler_raises() {
  if (PyErr_Occurred()) return true;  // by an inner loop of some other library
  fenv_t flags;
  fegetenv(&flags);
  const Call::Aside aside;
  const bool raises = run_handlers();
  fesetenv(&flags);
  return raises;
}

void init_signals() {
  const py::object main = py::module_::import("threading").attr("main_thread")();
  main_thread = main.attr("ident").cast<unsigned long>();
  instructions = make_instructions();
  pthread_atfork(nullptr, nullptr, after_fork);
  Py_AtExit(wait_for_loops);  // Python may have no room for it: then nobody waits
}

}  // namespace ufuse::pyext
