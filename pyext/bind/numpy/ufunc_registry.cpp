// See ufunc_registry.h.
#include "pyext/bind/numpy/ufunc_registry.h"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

// Whether some module of NumPy or SciPy has this ufunc; those that are there for tests do not
// count.
bool is_of_library(PyUFuncObject* ufunc, const std::string& name) {
  const auto modules = py::dict(borrow(PyImport_GetModuleDict()));
  for (const auto& [key, module] : modules) {
    if (!PyUnicode_Check(key.ptr()) || !PyModule_Check(module.ptr())) continue;
    const std::string path = text_of(key.ptr());
    if (!path.starts_with("numpy.") && !path.starts_with("scipy.")) continue;
    if (path.ends_with("_tests")) continue;
    PyObject* same = PyDict_GetItemString(PyModule_GetDict(module.ptr()), name.c_str());
    if (same == reinterpret_cast<PyObject*>(ufunc)) return true;
  }
  return false;
}

std::unique_ptr<numpy_shim::Ufunc> read_ufunc(PyUFuncObject* object) {
  auto ufunc = std::make_unique<numpy_shim::Ufunc>();
  ufunc->name = object->name ? object->name : "";
  const py::object of_numpy = steal(PyObject_GetAttrString(numpy().module.ptr(), "__dict__"));
  PyObject* same = PyDict_GetItemString(of_numpy.ptr(), ufunc->name.c_str());
  ufunc->of_numpy = same == reinterpret_cast<PyObject*>(object);
  ufunc->nin = object->nin;
  ufunc->nout = object->nout;
  ufunc->elementwise = object->core_enabled == 0;
  ufunc->foreign = !ufunc->of_numpy && !is_of_library(object, ufunc->name);
  for (int i = 0; i < object->ntypes; ++i) {
    numpy_shim::UfuncLoop loop;
    for (int k = 0; k < object->nargs; ++k) {
      PyArray_Descr* descr = PyArray_DescrFromType(object->types[i * object->nargs + k]);
      loop.types += descr ? descr->type : '?';
      Py_XDECREF(descr);
    }
    loop.loop = reinterpret_cast<ir::InnerLoop>(object->functions[i]);
    loop.data = object->data ? const_cast<void*>(object->data[i]) : nullptr;
    ufunc->loops.push_back(std::move(loop));
  }
  return ufunc;
}

// Never freed: graphs and backends point into it, and Python may outlive static destruction.
auto& described() {
  static auto* known = new std::unordered_map<PyObject*, std::unique_ptr<numpy_shim::Ufunc>>;
  return *known;
}

}  // namespace

const numpy_shim::Ufunc& describe_ufunc(PyObject* ufunc) {
  auto& entry = described()[ufunc];
  if (!entry) {
    entry = read_ufunc(reinterpret_cast<PyUFuncObject*>(ufunc));
    Py_INCREF(ufunc);
  }
  return *entry;
}

PyObject* ufunc_of(const ir::LoopEntry& entry) {
  for (const auto& [object, ufunc] : described())
    if (ufunc->name == entry.ufunc)
      for (const numpy_shim::UfuncLoop& loop : ufunc->loops)
        if (loop.loop == entry.loop && loop.data == entry.data) return object;
  throw InternalError("no ufunc has the loop of " + entry.ufunc);
}

PyObject* numpy_ufunc(const char* name) {
  static auto* known = new std::unordered_map<std::string, PyObject*>;
  const auto [it, is_new] = known->try_emplace(name, nullptr);
  if (is_new) {
    it->second = PyObject_GetAttrString(numpy().module.ptr(), name);
    if (it->second != nullptr && Py_TYPE(it->second) != &PyUFunc_Type) {
      // Some have a function of the same name in front of them.
      const py::module_ umath =
          py::module_::import((numpy().version.core_package() + std::string(".umath")).c_str());
      it->second = PyObject_GetAttrString(umath.ptr(), name);
    }
    if (it->second == nullptr) PyErr_Clear();
  }
  return it->second;
}

ir::LoopTable& loop_table() {
  static auto* table = new ir::LoopTable;
  return *table;
}

}  // namespace ufuse::pyext
