// See variables.h.
#include "pyext/bind/sites/variables.h"

#include <optional>

#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/native_call.h"
#include "pyext/bind/sites/frames.h"

namespace ufuse::pyext {
namespace {

PyObject* the_replacer = nullptr;  // escape.replace

py::object code_of(PyFrameObject* frame) {
  return steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
}

// The plain number of a recorded one, the real array of a lazy one whose call has ended; unset for
// any other object.
py::object real_for(PyObject* value) {
  if (is_number(value)) return borrow(as_number(value)->value);
  if (!is_lazy(value) || as_lazy(value)->array.storage->session != nullptr) return {};
  return unwrap(value);
}

void replace_in(PyFrameObject* frame, const py::object& code) {
  if ((reinterpret_cast<PyCodeObject*>(code.ptr())->co_flags & CO_OPTIMIZED) == 0) return;
  const py::object variables = steal(PyFrame_GetLocals(frame));
  const py::list items = steal(PyMapping_Items(variables.ptr()));
  for (py::handle item : items) {
    PyObject* name = PyTuple_GET_ITEM(item.ptr(), 0);
    const py::object real = real_for(PyTuple_GET_ITEM(item.ptr(), 1));
    if (real && PyObject_SetItem(variables.ptr(), name, real.ptr()) < 0)
      throw py::error_already_set();
  }
#if PY_VERSION_HEX < 0x030D0000
  PyFrame_LocalsToFast(frame, 0);
  PyDict_Clear(variables.ptr());  // a copy of the variables, which would keep old values alive
#endif
}

// A signal's handler may raise in the middle of it. Its exception is the user's, and leaves when
// all is replaced.
void replace_all(const std::vector<py::object>& lazies) {
  constexpr int kTries = 10;
  std::optional<py::error_already_set> raised;
  for (int i = 0; i < kTries; ++i) {
    const py::object done = py::reinterpret_steal<py::object>(PyObject_CallNoArgs(the_replacer));
    if (!done) raised.emplace();
    // Some may still be on Python's stack, and be put elsewhere later: they are to be found again
    // then.
    for (const py::object& lazy : lazies) as_lazy(lazy.ptr())->left_behind = false;
    if (done) break;
  }
  if (raised) throw py::error_already_set(*raised);
}

}  // namespace

bool is_at_traced_code() {
  PyFrameObject* frame = PyEval_GetFrame();
  return frame != nullptr && is_traced(code_of(frame).ptr());
}

std::vector<py::object> make_variables_real() {
  std::vector<py::object> lazies = lazies_of_ended_calls();
  auto frame = borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* running = reinterpret_cast<PyFrameObject*>(frame.ptr());
    if (const py::object code = code_of(running); is_traced(code.ptr())) replace_in(running, code);
    frame =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(running)));
  }
  const Unwatched replacing;
  replace_all(lazies);
  return lazies;
}

void bind_variables(py::module_& m) {
  bind_hand_over(
      m, "set_replacer", "replacer", the_replacer,
      "replacer() puts real arrays into the places of lazy ones that calls have left behind.");
}

}  // namespace ufuse::pyext
