// See error_state.h.
#include "pyext/bind/numpy/error_state.h"

#include <utility>

#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

// NumPy's own objects for it; those that the installed version does not have are unset.
struct Source {
  py::object geterr;                // the modes by name; with a context variable also the callback
  py::object variable, make_state;  // the context variable, and what makes a value for it
  py::object get_list, set_list;    // of this thread: [size of buffers, modes, callback]
  py::object watch;                 // the log of WatchedErrors
  struct Watching {
    py::object from, state;
  } watching[16];  // by flags: the last state that was made, and the one that was current then
};

// Never freed: Python may outlive static destruction.
Source& source() {
  static auto* one = new Source;
  return *one;
}

bool has_variable() { return numpy().version.has_error_variable(); }

// The object in which the present state is kept, where that is the same as long as the state is.
py::object holder() {
  if (!has_variable()) return {};
  PyObject* value = nullptr;
  if (PyContextVar_Get(source().variable.ptr(), nullptr, &value) < 0) throw py::error_already_set();
  return value ? py::reinterpret_steal<py::object>(value) : py::object();
}

py::object contents() {
  if (has_variable()) return steal(PyObject_CallNoArgs(source().geterr.ptr()));
  // np.seterr changes the list in place.
  return steal(PySequence_Tuple(steal(PyObject_CallNoArgs(source().get_list.ptr())).ptr()));
}

// What np.seterrcall was given.
PyObject* callback(const py::object& contents) {
  return has_variable() ? PyDict_GetItemString(contents.ptr(), "call")
                        : PyTuple_GET_ITEM(contents.ptr(), 2);
}

}  // namespace

ErrorState ErrorState::now() {
  ErrorState state;
  state.holder_ = holder();
  state.contents_ = contents();
  return state;
}

bool ErrorState::is_current() {
  if (!contents_ || (special_ && !special_errors_are_ignored())) return false;
  py::object present = holder();
  if (has_variable() && present.ptr() == holder_.ptr()) return true;
  const py::object held = contents();
  // By identity: the callback's `==` may be anybody's code. The rest are words and numbers.
  if (callback(held) != callback(contents_)) return false;
  if (PyObject_RichCompareBool(held.ptr(), contents_.ptr(), Py_EQ) != 1) return false;
  holder_ = std::move(present);
  return true;
}

std::optional<std::uint8_t> current_report_mask() {
  const py::object modes = steal(PyObject_CallNoArgs(source().geterr.ptr()));
  std::uint8_t mask = 0;
  const std::pair<const char*, std::uint8_t> flags[] = {
      {"divide", 1}, {"over", 2}, {"under", 4}, {"invalid", 8}};
  for (const auto& [name, bit] : flags) {
    PyObject* mode = PyDict_GetItemString(modes.ptr(), name);
    if (mode == nullptr) return std::nullopt;
    if (PyUnicode_CompareWithASCIIString(mode, "ignore") == 0) continue;
    if (PyUnicode_CompareWithASCIIString(mode, "warn") != 0) return std::nullopt;
    mask |= bit;
  }
  return mask;
}

bool special_errors_are_ignored() {
  static PyObject* geterr = nullptr;
  if (geterr == nullptr) {
    PyObject* module = PyDict_GetItemString(PyImport_GetModuleDict(), "scipy.special");
    if (module == nullptr) return true;
    geterr = PyObject_GetAttrString(module, "geterr");
    if (geterr == nullptr) {  // it is being imported
      PyErr_Clear();
      return true;
    }
  }
  const py::object modes = steal(PyObject_CallNoArgs(geterr));
  PyObject *name, *mode;
  for (Py_ssize_t at = 0; PyDict_Next(modes.ptr(), &at, &name, &mode);)
    // A lack of memory raises by default, and does so inside of loops, too.
    if (PyUnicode_CompareWithASCIIString(mode, "ignore") != 0 &&
        PyUnicode_CompareWithASCIIString(name, "memory") != 0)
      return false;
  return true;
}

py::object LoggedErrors::state(std::uint8_t mask, const py::object& log) {
  if (has_variable()) {
    const auto mode = [&](int bit) { return mask & bit ? "log" : "ignore"; };
    return source().make_state(py::arg("call") = log, py::arg("divide") = mode(1),
                               py::arg("over") = mode(2), py::arg("under") = mode(4),
                               py::arg("invalid") = mode(8));
  }
  // Three bits for each flag, from the lowest: divide by zero, overflow, underflow, invalid.
  constexpr int kLog = 5;
  int modes = 0;
  for (int flag = 0; flag < 4; ++flag)
    if (mask >> flag & 1) modes |= kLog << 3 * flag;
  py::list state;
  state.append(source().get_list()[py::int_(0)]);  // the size of buffers
  state.append(modes);
  state.append(log);
  return state;
}

LoggedErrors::LoggedErrors(const py::object& state) {
  if (has_variable()) {
    // In a context of its own: a finalizer that the collector runs may bring us here in the middle
    // of a change of the present one, which Python 3.11 does not survive.
    before_ = steal(PyContext_CopyCurrent());
    if (PyContext_Enter(before_.ptr()) < 0) throw py::error_already_set();
    if (PyObject* token = PyContextVar_Set(source().variable.ptr(), state.ptr())) {
      Py_DECREF(token);
      return;
    }
    const py::error_already_set error;
    PyContext_Exit(before_.ptr());
    throw error;
  }
  before_ = steal(PyObject_CallNoArgs(source().get_list.ptr()));
  source().set_list(state);
}

LoggedErrors::~LoggedErrors() {
  const py::error_scope pending;
  if (has_variable()) {
    if (PyContext_Exit(before_.ptr()) == 0) return;
  } else {
    PyObject* done = PyObject_CallOneArg(source().set_list.ptr(), before_.ptr());
    Py_XDECREF(done);
    if (done != nullptr) return;
  }
  PyErr_WriteUnraisable(before_.ptr());
}

namespace {

thread_local bool error_was_noted = false;

PyObject* note_error(PyObject*, PyObject*) {
  error_was_noted = true;
  Py_RETURN_NONE;
}

}  // namespace

py::object WatchedErrors::watching_state(std::uint8_t mask) {
  Source& known = source();
  py::object from = holder();
  if (!from) return state(mask, known.watch);
  Source::Watching& last = known.watching[mask & 15];
  if (last.from.ptr() != from.ptr()) last = {from, state(mask, known.watch)};
  return last.state;
}

WatchedErrors::WatchedErrors(std::uint8_t mask)
    : LoggedErrors(watching_state(mask)), before_(std::exchange(error_was_noted, false)) {}

WatchedErrors::~WatchedErrors() { error_was_noted = before_; }

bool WatchedErrors::any() const { return error_was_noted; }

void init_error_state() {
  Source& made = source();
  static PyMethodDef write = {"write", note_error, METH_O, nullptr};
  made.watch = py::module_::import("types").attr("SimpleNamespace")(
      py::arg("write") = steal(PyCFunction_New(&write, nullptr)));
  if (has_variable()) {
    const std::string core = numpy().version.core_package();
    const py::module_ umath = py::module_::import((core + ".umath").c_str());
    made.variable = umath.attr("_extobj_contextvar");
    made.make_state = umath.attr("_make_extobj");
    made.geterr = umath.attr("_get_extobj_dict");
  } else {
    made.geterr = numpy().module.attr("geterr");
    made.get_list = numpy().module.attr("geterrobj");
    made.set_list = numpy().module.attr("seterrobj");
  }
}

}  // namespace ufuse::pyext
