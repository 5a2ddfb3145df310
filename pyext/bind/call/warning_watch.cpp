// See warning_watch.h.
#include "pyext/bind/call/warning_watch.h"

#include <algorithm>
#include <string_view>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {
namespace {

thread_local int at_work = 0, own_words = 0;

// Warnings of a module that is being imported do not belong to the call.
bool is_importing() {
  PyFrameObject* frame = PyEval_GetFrame();
  py::object held;
  while (frame != nullptr) {
    const py::object code = steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    PyObject* file = reinterpret_cast<PyCodeObject*>(code.ptr())->co_filename;
    if (PyUnicode_CompareWithASCIIString(file, "<frozen importlib._bootstrap>") == 0) return true;
    frame = PyFrame_GetBack(frame);
    held = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(frame));
  }
  return false;
}

PyObject* hear(PyObject*, PyObject* text) {
  return guard([&]() -> PyObject* {
    Call* call = Call::active();
    if (call != nullptr && own_words == 0 && !is_importing()) {
      // NumPy's warnings of numbers that are the same in each call. Python may show it once only.
      const bool of_numbers =
          PyUnicode_Check(text) && text_of(text).find(" encountered in ") != std::string::npos;
      call->heard_warning(of_numbers);
      if (at_work == 0 && call->session().has_pending_warnings()) call->session().flush();
    }
    return Py_NewRef(Py_False);
  });
}

// What others read of the row's message, or send to other processes, is a pattern of module re that
// never matches.
constexpr const char* kNever = "(?!)";

PyObject* never(PyObject*, void*) { return PyUnicode_FromString(kNever); }

PyObject* reduce(PyObject*, PyObject*) {
  return guard([&] {
    const py::object compile = py::module_::import("re").attr("compile");
    return py::make_tuple(compile, py::make_tuple(kNever)).release().ptr();
  });
}

PyMethodDef kMethods[] = {{"match", hear, METH_O, "Hears a message; never matches it."},
                          {"__reduce__", reduce, METH_NOARGS, "As a pattern that never matches."},
                          {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"pattern", never, nullptr, "A regular expression that never matches.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// (action, message, category, module, line), as in warnings.filters.
PyObject* the_row() {
  static PyObject* row = nullptr;  // no initialiser: making it may run another thread
  if (row == nullptr) {
    PyType_Slot slots[] = {{Py_tp_methods, kMethods},
                           {Py_tp_getset, kAttributes},
                           {Py_tp_doc, const_cast<char*>("Hears the warnings of traced calls.")},
                           {0, nullptr}};
    PyType_Spec spec = {"ufuse._core.warning_watch", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT,
                        slots};
    const py::object type = steal(PyType_FromSpec(&spec));
    row = py::make_tuple("ignore", type(), borrow(PyExc_Warning), py::none(), 0).release().ptr();
  }
  return row;
}

// The list that Python looks at; null where somebody has put something else there.
PyObject* filters() {
  static PyObject *names = nullptr, *name = nullptr;
  if (names == nullptr) {
    name = py::str("filters").release().ptr();
    names = py::object(py::module_::import("warnings").attr("__dict__")).release().ptr();
  }
  PyObject* list = PyDict_GetItem(names, name);
  return list != nullptr && PyList_Check(list) ? list : nullptr;
}

}  // namespace

void WarningWatch::listen() {
  PyObject* list = filters();
  if (list == nullptr) return;
  PyObject* row = the_row();
  if (PyList_GET_SIZE(list) > 0 && PyList_GET_ITEM(list, 0) == row) {
    // The row may be another thread's. Each thread removes as many rows as it has put there.
    if (std::ranges::any_of(lists_, [&](const py::object& known) { return known.ptr() == list; }))
      return;
  }
  if (PyList_Insert(list, 0, row) < 0) throw py::error_already_set();
  lists_.push_back(borrow(list));
}

void WarningWatch::stop() {
  PyObject* row = lists_.empty() ? nullptr : the_row();
  for (const py::object& list : lists_)
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list.ptr()); ++i)
      if (PyList_GET_ITEM(list.ptr(), i) == row) {
        const py::error_scope kept;
        if (PyList_SetSlice(list.ptr(), i, i + 1, nullptr) < 0) PyErr_Clear();
        break;
      }
  lists_.clear();
}

AtWork::AtWork() { ++at_work; }
AtWork::~AtWork() { --at_work; }
bool is_at_work() { return at_work > 0; }
OwnWords::OwnWords() { ++own_words; }
OwnWords::~OwnWords() { --own_words; }

bool warnings_may_raise() {
  PyObject* list = filters();
  if (list == nullptr) return true;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* row = PyList_GET_ITEM(list, i);
    if (!PyTuple_Check(row) || PyTuple_GET_SIZE(row) == 0) return true;
    PyObject* action = PyTuple_GET_ITEM(row, 0);
    if (!PyUnicode_Check(action) || PyUnicode_CompareWithASCIIString(action, "error") == 0)
      return true;
  }
  return false;
}

}  // namespace ufuse::pyext
