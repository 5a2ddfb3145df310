// See world.h.
#include "pyext/bind/programs/world.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/programs/boxes.h"
#include "pyext/bind/programs/text.h"

namespace ufuse::pyext {

using numpy_shim::program::Function;
using numpy_shim::program::Given;

namespace {

PyFunctionObject* as_function(const py::object& function) {
  return reinterpret_cast<PyFunctionObject*>(function.ptr());
}

// Builtins whose meaning a program knows.
constexpr std::array kBuiltins = {"abs", "bool", "complex", "float", "int",
                                  "len", "max",  "min",     "range"};

// Functions of NumPy's that are no ufuncs, likewise.
constexpr std::array kOfNumPy = {
    "amax",   "amin", "concatenate", "dot",  "empty",  "empty_like", "flip",
    "hstack", "max",  "mean",        "min",  "ones",   "ones_like",  "outer",
    "prod",   "sum",  "tril",        "triu", "vstack", "zeros",      "zeros_like"};

bool is_math(PyObject* object) {
  if (!PyCFunction_Check(object)) return false;
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(object)->m_module;
  return module != nullptr && PyUnicode_Check(module) &&
         PyUnicode_CompareWithASCIIString(module, "math") == 0;
}

}  // namespace

ProgramWorld::ProgramWorld(py::object globals, py::object builtins, py::object names,
                           py::object read_function)
    : own_{std::move(globals), std::move(builtins), py::tuple(std::move(names))},
      read_function_(std::move(read_function)) {
  version = numpy().version;
}

const numpy_shim::Ufunc& ProgramWorld::ufunc(const std::string& name) {
  PyObject* found = numpy_ufunc(name.c_str());
  if (found == nullptr) throw InternalError("NumPy has no ufunc `" + name + "`");
  return describe_ufunc(found);
}
ir::LoopTable& ProgramWorld::loops() { return loop_table(); }

py::object ProgramWorld::Entry::find() const {
  PyObject* found = PyDict_GetItemWithError(where.ptr(), name.ptr());
  if (found == nullptr && behind) found = PyDict_GetItemWithError(behind.ptr(), name.ptr());
  return found == nullptr ? py::object() : borrow(found);
}

bool ProgramWorld::is_current() const {
  return std::ranges::all_of(entries_,
                             [](const Entry& e) { return !e.held || e.find().is(e.held); }) &&
         std::ranges::all_of(codes_, [](const auto& row) {
           return as_function(row.first)->func_code == row.second.ptr();
         });
}

py::object ProgramWorld::value(int number) const {
  return entries_[static_cast<std::size_t>(number)].find();
}

Given ProgramWorld::outside(const Function* function, int name) {
  const Source& source = function == nullptr ? own_ : sources_.at(function);
  Entry entry;
  entry.where = source.globals;
  entry.behind = source.builtins;
  entry.name = source.names[static_cast<std::size_t>(name)];
  return known(std::move(entry));
}

Given ProgramWorld::attribute(const Given& object, const std::string& name) {
  Given none;
  none.kind = Given::Kind::Other;
  none.name = name;
  if (object.kind != Given::Kind::Object) return none;
  const py::object module = value(object.object);
  if (!module || !PyModule_Check(module.ptr())) return none;
  // NumPy and SciPy import some of their modules when they are asked for.
  const py::object found =
      py::reinterpret_steal<py::object>(PyObject_GetAttrString(module.ptr(), name.c_str()));
  if (!found) forget_exception();
  Entry entry;
  entry.where = borrow(PyModule_GetDict(module.ptr()));
  entry.name = py::str(name);
  return known(std::move(entry));
}

// What a name stands for, remembered.
Given ProgramWorld::known(Entry entry) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& old = entries_[i];
    if (old.where.is(entry.where) && PyUnicode_Compare(old.name.ptr(), entry.name.ptr()) == 0)
      return old.given;
  }
  const py::object found = entry.find();
  entry.given = read(found.ptr());
  entry.given.object = static_cast<int>(entries_.size());
  if (entry.given.name.empty()) entry.given.name = text_of(entry.name.ptr());
  const bool by_type = entry.given.kind == Given::Kind::Number ||
                       entry.given.kind == Given::Kind::Array ||
                       entry.given.kind == Given::Kind::Tuple;
  if (!by_type) entry.held = found;
  entries_.push_back(entry);
  return entry.given;
}

Given ProgramWorld::read(PyObject* object) {
  Given given = given_of(object);
  if (given.kind != Given::Kind::Other) return given;
  if (PyModule_Check(object)) {
    given.kind = Given::Kind::Object;
    return given;
  }
  PyObject* builtins = PyEval_GetBuiltins();
  for (const char* name : kBuiltins)
    if (PyDict_GetItemString(builtins, name) == object) {
      given.kind = Given::Kind::Builtin;
      given.name = name;
      return given;
    }
  if (is_math(object)) {
    given.kind = Given::Kind::Math;
    given.name = reinterpret_cast<PyCFunctionObject*>(object)->m_ml->ml_name;
    return given;
  }
  if (Py_TYPE(object) == &PyUFunc_Type) {
    const numpy_shim::Ufunc& ufunc = describe_ufunc(object);
    if (!ufunc.of_numpy || !ufunc.elementwise) return given;
    given.kind = Given::Kind::Ufunc;
    given.ufunc = &ufunc;
    given.name = ufunc.name;
    return given;
  }
  for (const char* name : kOfNumPy)
    if (numpy().module.attr(name).ptr() == object) {
      given.kind = Given::Kind::NumPy;
      given.name = name;
      return given;
    }
  for (std::size_t i = 0; i < ir::kDTypeCount; ++i)
    if (scalar_type(static_cast<ir::DType>(i)) == object) {
      given.kind = Given::Kind::DType;
      given.dtype = static_cast<ir::DType>(i);
      return given;
    }
  if (!PyFunction_Check(object)) return given;
  const auto known = functions_.find(object);
  if (known == functions_.end()) {
    const py::object text = read_function_(borrow(object));
    if (text.is_none()) return given;
    const auto parts = text.cast<py::tuple>();
    auto* f = reinterpret_cast<PyFunctionObject*>(object);
    auto function = std::make_shared<Function>();
    function->variables = read_names(parts[0]);
    function->parameters = parts[1].cast<std::size_t>();
    function->outside = read_names(parts[2]);
    function->body = read_statements(parts[3]);
    sources_.emplace(function.get(), Source{borrow(f->func_globals), borrow(f->func_builtins),
                                            py::tuple(parts[2])});
    codes_.emplace_back(borrow(object), borrow(PyFunction_GET_CODE(object)));
    functions_.emplace(object, std::move(function));
  }
  given.kind = Given::Kind::Function;
  given.function = functions_.at(object);
  return given;
}

}  // namespace ufuse::pyext
