// See repeated_call.h.
#include "pyext/bind/numpy/repeated_call.h"

#include <unordered_set>

#include "codegen/runtime/threads.h"
#include "codegen/runtime/timeline.h"
#include "numpy_shim/surface.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/error_state.h"
#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

// Those of the tables that make new arrays, and NumPy's ufuncs. Never freed: Python may outlive
// static destruction.
std::unordered_set<PyObject*>& functions() {
  static auto* all = new std::unordered_set<PyObject*>;
  return *all;
}

// Whether it is such a function, or a method of a ufunc that makes an array.
bool is_repeatable(PyObject* func) {
  if (functions().contains(func)) return true;
  if (!PyCFunction_Check(func)) return false;
  PyObject* owner = PyCFunction_GET_SELF(func);
  if (owner == nullptr || !functions().contains(owner)) return false;
  const std::string_view name = reinterpret_cast<PyCFunctionObject*>(func)->m_ml->ml_name;
  return name == "reduce" || name == "accumulate" || name == "reduceat" || name == "outer";
}

// Numbers and texts, and what names a dtype: they are what they are in each call that goes the same
// way.
bool is_constant(PyObject* object) {
  return object == Py_None || PyBool_Check(object) || PyLong_CheckExact(object) ||
         PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyArray_DescrCheck(object) || PyType_Check(object) ||
         scalar_dtype(object) || object == numpy().no_value.ptr();
}

}  // namespace

py::object RepeatedCall::Item::made(std::span<const py::object> values) const {
  if (given >= 0) return values[static_cast<std::size_t>(given)];
  if (constant) return constant;
  const auto size = static_cast<Py_ssize_t>(items.size());
  py::object container = steal(is_list ? PyList_New(size) : PyTuple_New(size));
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* item = items[static_cast<std::size_t>(i)].made(values).release().ptr();
    is_list ? PyList_SET_ITEM(container.ptr(), i, item)
            : PyTuple_SET_ITEM(container.ptr(), i, item);
  }
  return container;
}

bool RepeatedCall::read(Call& call, PyObject* object, Item& item, std::vector<LazyArray>& given,
                        int depth) {
  if (is_lazy(object)) {
    if (tracing_call(object) != &call || as_lazy(object)->array.storage->literal) return false;
    item.given = static_cast<int>(given.size());
    given.push_back(as_lazy(object)->array);
    return true;
  }
  if (is_constant(object)) {
    item.constant = borrow(object);
    return true;
  }
  item.is_list = PyList_CheckExact(object);
  if (!item.is_list && !PyTuple_CheckExact(object)) return false;
  constexpr int kDeepest = 4;  // a list may have itself in it
  constexpr Py_ssize_t kMost = 64;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  if (depth == kDeepest || size > kMost) return false;
  for (Py_ssize_t i = 0; i < size; ++i) {
    PyObject* inside = PySequence_Fast_GET_ITEM(object, i);
    if (!read(call, inside, item.items.emplace_back(), given, depth + 1)) return false;
  }
  return true;
}

std::shared_ptr<const RepeatedCall> RepeatedCall::of(Call& call, PyObject* func, PyObject* args,
                                                     PyObject* kwargs,
                                                     std::vector<LazyArray>& given) {
  if (!Call::is_recording() || !call.session().is_pure() || !is_repeatable(func)) return {};
  if (!call.error_state_is_traceable()) return {};
  const std::optional<std::uint8_t> mask = current_report_mask();
  if (!mask) return {};
  auto made = std::make_shared<RepeatedCall>();
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (!read(call, PyTuple_GET_ITEM(args, i), made->args_.emplace_back(), given)) return {};
  py::list names;
  PyObject *key = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value);) {
    names.append(borrow(key));
    if (!read(call, value, made->args_.emplace_back(), given)) return {};
  }
  if (!names.empty()) made->names_ = py::tuple(names);
  made->func_ = borrow(func);
  made->report_mask_ = *mask;
  made->name_ = text_of(steal(PyObject_GetAttrString(func, "__name__")).ptr());
  return made;
}

namespace {

// Unset where it is not new.
py::object new_array(PyObject* result) {
  if (scalar_dtype(result)) return steal(PyArray_FromScalar(result, nullptr));
  if (!is_supported_array(result) || Py_REFCNT(result) > 1) return {};
  auto* array = reinterpret_cast<PyArrayObject*>(result);
  const bool is_new = PyArray_BASE(array) == nullptr && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
  return is_new ? borrow(result) : py::object();
}

}  // namespace

std::vector<py::object> RepeatedCall::new_arrays(PyObject* result) {
  const bool is_sequence = PyTuple_CheckExact(result) || PyList_CheckExact(result) ||
                           (PyTuple_Check(result) && PyObject_HasAttrString(result, "_make"));
  if (!is_sequence) {
    py::object array = new_array(result);
    return array ? std::vector{std::move(array)} : std::vector<py::object>();
  }
  std::vector<py::object> arrays;
  if (Py_REFCNT(result) > 1) return {};
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
    arrays.push_back(new_array(PySequence_Fast_GET_ITEM(result, i)));
    if (!arrays.back()) return {};
  }
  return arrays;
}

std::vector<py::object> RepeatedCall::repeat(std::span<const py::object> given) const {
  std::vector<py::object> values;
  std::vector<PyObject*> args;
  values.reserve(args_.size());
  args.reserve(args_.size());
  for (const Item& item : args_) args.push_back(values.emplace_back(item.made(given)).ptr());
  const std::size_t named = names_ ? static_cast<std::size_t>(PyTuple_GET_SIZE(names_.ptr())) : 0;
  codegen::Threads::leave_cores();
  const codegen::Timed timed([&] {
    return codegen::Slice{codegen::Slice::Kind::Interruption, name_, "A recorded call of NumPy's."};
  });
  const WatchedErrors errors(report_mask_);
  const auto result = py::reinterpret_steal<py::object>(
      PyObject_Vectorcall(func_.ptr(), args.data(), args.size() - named, names_.ptr()));
  if (!result) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
    PyErr_Clear();
    return {};
  }
  return errors.any() ? std::vector<py::object>() : new_arrays(result.ptr());
}

void init_repeated_calls() {
  const auto add = [](const py::object& place, std::string_view name) {
    py::object function = py::getattr(place, std::string(name).c_str(), py::none());
    if (PyCallable_Check(function.ptr())) functions().insert(function.release().ptr());
  };
  const py::object methods = borrow(reinterpret_cast<PyObject*>(&PyArray_Type));
  const std::string core = numpy().version.core_package();
  const py::object c_functions = py::module_::import((core + "._multiarray_umath").c_str());
  for (const numpy_shim::SurfaceRow& row : numpy_shim::surface()) {
    const bool is_native = row.form == numpy_shim::Form::Native && !row.writes.argument;
    if (!is_native && row.form != numpy_shim::Form::Repeated) continue;
    if (row.module == "ndarray") {
      add(methods, row.name);
    } else if (row.module != "numpy.ufunc") {
      add(py::module_::import(std::string(row.module).c_str()), row.name);
      add(c_functions, row.name);
    }
  }
  for (const auto& [name, object] : numpy().module.attr("__dict__").cast<py::dict>())
    if (PyObject_TypeCheck(object.ptr(), &PyUFunc_Type))
      functions().insert(borrow(object.ptr()).release().ptr());
  add(py::module_::import("operator"), "matmul");
}

}  // namespace ufuse::pyext
