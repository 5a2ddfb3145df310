// See world.h.
#include "pyext/bind/programs/world.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "numpy_shim/program/draws.h"
#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/programs/boxes.h"
#include "pyext/bind/programs/generators.h"
#include "pyext/bind/programs/text.h"
#include "pyext/bind/sites/jitted.h"

namespace ufuse::pyext {

using numpy_shim::program::Function;
using numpy_shim::program::Given;

namespace {

constexpr int kDeepestClosure = 8;

PyFunctionObject* as_function(const py::object& function) {
  return reinterpret_cast<PyFunctionObject*>(function.ptr());
}

// The function of Python's that a call of the object calls: itself, or that of a jitted one or of a
// method; unset: there is none.
py::object plain_function(const py::object& object) {
  if (!object || PyFunction_Check(object.ptr())) return object;
  if (PyMethod_Check(object.ptr()))
    return plain_function(borrow(PyMethod_GET_FUNCTION(object.ptr())));
  return function_of_jitted(object.ptr());
}

// Whether an object has the attributes that it was given, and nobody's code answers for them.
bool has_plain_attributes(PyObject* object) {
  const PyTypeObject* type = Py_TYPE(object);
  return (type->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0 &&
         type->tp_getattro == PyObject_GenericGetAttr;
}

// An attribute of such an object; unset where code would run to get it, or where there is none.
py::object plain_attribute(PyObject* object, PyObject* name) {
  if (!has_plain_attributes(object)) return {};
  PyObject* of_class = _PyType_Lookup(Py_TYPE(object), name);
  if (of_class != nullptr && !PyFunction_Check(of_class)) {
    const PyTypeObject* type = Py_TYPE(of_class);
    const bool is_plain = type->tp_descr_get == nullptr && type->tp_descr_set == nullptr;
    const bool is_slot =
        type == &PyMemberDescr_Type || std::string_view(type->tp_name).ends_with("._tuplegetter");
    if (!is_plain && !is_slot && !plain_function(borrow(of_class))) return {};
  }
  py::object found = py::reinterpret_steal<py::object>(PyObject_GetAttr(object, name));
  if (!found) forget_exception();
  return found;
}

// What a method is bound to; unset: it is no bound method.
py::object bound_to(const py::object& method) {
  if (!method) return {};
  PyObject* self = nullptr;
  if (PyMethod_Check(method.ptr())) self = PyMethod_GET_SELF(method.ptr());
  if (PyCFunction_Check(method.ptr())) self = PyCFunction_GET_SELF(method.ptr());
  return self == nullptr ? py::object() : borrow(self);
}

// The name of a method by which programs draw random numbers; empty: it is none.
std::string method_that_draws(PyObject* object) {
  const py::object self = object == nullptr ? py::object() : bound_to(borrow(object));
  const std::string_view of = self ? generator_class(self.ptr()) : std::string_view();
  if (of.empty()) return {};
  const std::string name = text_of(borrow(object).attr("__name__").ptr());
  return numpy_shim::program::draws(of, name) ? name : std::string();
}

bool is_bound_to(const py::object& method, const py::object& object) {
  return PyMethod_GET_SELF(method.ptr()) == object.ptr();
}

// Whether it is what `__slots__` makes for a name.
bool is_slot(PyObject* of_class) {
  if (Py_TYPE(of_class) != &PyMemberDescr_Type) return false;
  const PyMemberDef* member = reinterpret_cast<PyMemberDescrObject*>(of_class)->d_member;
  return member->type == T_OBJECT_EX && member->flags == 0;
}

std::size_t size_of(PyObject* tuple) {
  return tuple == nullptr ? 0 : static_cast<std::size_t>(PyTuple_GET_SIZE(tuple));
}

// Builtins whose meaning a program knows.
constexpr std::array kBuiltins = {"abs",   "bool",     "complex",    "divmod", "enumerate", "float",
                                  "int",   "len",      "isinstance", "max",    "min",       "pow",
                                  "range", "reversed", "round",      "zip"};

// Functions of NumPy's that are no ufuncs, likewise.
constexpr std::array kOfNumPy = {
    "all",    "amax",       "amin",   "any",   "argmax",    "argmin",      "array", "asarray",
    "arange", "clip",       "cumsum", "diff",  "roll",      "concatenate", "copy",  "dot",
    "empty",  "empty_like", "flip",   "full",  "hstack",    "max",         "mean",  "min",
    "ones",   "ones_like",  "outer",  "prod",  "std",       "sum",         "tril",  "triu",
    "var",    "vstack",     "where",  "zeros", "zeros_like"};
// The same of numpy.linalg.
constexpr std::array kOfLinalg = {"norm"};

bool is_math(PyObject* object) {
  if (!PyCFunction_Check(object)) return false;
  PyObject* module = reinterpret_cast<PyCFunctionObject*>(object)->m_module;
  return module != nullptr && PyUnicode_Check(module) &&
         PyUnicode_CompareWithASCIIString(module, "math") == 0;
}

}  // namespace

ProgramWorld::ProgramWorld(py::object globals, py::object builtins, py::object names,
                           Variables variables, GivenOf given_of, py::object read_function)
    : own_{std::move(globals), std::move(builtins), py::tuple(std::move(names)), -1, py::tuple()},
      variables_(variables),
      given_of_(given_of),
      read_function_(std::move(read_function)) {
  version = numpy().version;
  combines_by_parts = PY_VERSION_HEX >= 0x030E0000;
}

const numpy_shim::Ufunc& ProgramWorld::ufunc(const std::string& name) {
  PyObject* found = numpy_ufunc(name.c_str());
  if (found == nullptr) throw InternalError("NumPy has no ufunc `" + name + "`");
  return describe_ufunc(found);
}
ir::LoopTable& ProgramWorld::loops() { return loop_table(); }

bool ProgramWorld::Place::is(const Place& other) const {
  if (kind != other.kind || of != other.of || index != other.index) return false;
  if (kind == Kind::Name && !where.is(other.where)) return false;
  return !name || PyUnicode_Compare(name.ptr(), other.name.ptr()) == 0;
}

bool ProgramWorld::Entry::is_as_before(const py::object& found, GivenOf given_of) const {
  if (value) {
    Given now = given_of(found.ptr());
    if (has_either && now.kind == Given::Kind::Number) now.box = value->box;
    return now == *value;
  }
  if (type)
    return found &&
           reinterpret_cast<PyObject*>(Py_TYPE(found.ptr())) == PyWeakref_GET_OBJECT(type.ptr()) &&
           has_plain_attributes(found.ptr());
  if (!code) return !held || found.is(held);
  const py::object function = plain_function(found);
  if (!function || (given.self != nullptr) != (PyMethod_Check(found.ptr()) != 0)) return false;
  const PyFunctionObject* f = as_function(function);
  return f->func_code == code.ptr() && f->func_globals == globals.ptr() &&
         size_of(f->func_defaults) == defaults && f->func_kwdefaults == nullptr;
}

py::object ProgramWorld::find(const Place& place, Variables variables) const {
  if (place.kind == Place::Kind::Name) {
    PyObject* found = PyDict_GetItemWithError(place.where.ptr(), place.name.ptr());
    if (found == nullptr && place.behind)
      found = PyDict_GetItemWithError(place.behind.ptr(), place.name.ptr());
    return found == nullptr ? py::object() : borrow(found);
  }
  if (place.kind == Place::Kind::Variable) return variables[static_cast<std::size_t>(place.of)];
  const py::object owner = find(entries_[static_cast<std::size_t>(place.of)].place, variables);
  if (!owner) return {};
  if (place.kind == Place::Kind::Attribute) return plain_attribute(owner.ptr(), place.name.ptr());
  if (place.kind == Place::Kind::Self) return bound_to(owner);
  const py::object function = plain_function(owner);
  if (!function) return {};
  const bool in_cell = place.kind == Place::Kind::Cell;
  PyObject* among =
      in_cell ? as_function(function)->func_closure : as_function(function)->func_defaults;
  if (place.index >= size_of(among)) return {};
  PyObject* found = PyTuple_GET_ITEM(among, static_cast<Py_ssize_t>(place.index));
  if (in_cell) found = PyCell_GET(found);
  return found == nullptr ? py::object() : borrow(found);
}

bool ProgramWorld::is_current(Variables variables, GivenOf given_of) const {
  const auto is_as_before = [&](const Entry& entry) {
    const py::object found = find(entry.place, variables);
    return entry.is_as_before(found, given_of) &&
           (!entry.is_of_owner || is_bound_to(found, value(entry.place.of, variables)));
  };
  const auto may = [&](std::size_t number) { return may_assign(number, variables); };
  return std::ranges::all_of(entries_, is_as_before) && std::ranges::all_of(assigned_, may);
}

// Whether an object has an attribute itself, nobody's code runs where it is assigned, and it is the
// attribute of no other name's object, too.
bool ProgramWorld::may_assign(std::size_t number, Variables variables) const {
  const Place& place = entries_[number].place;
  const auto owner_of = [&](const Place& p) {
    return find(entries_[static_cast<std::size_t>(p.of)].place, variables);
  };
  const py::object owner = owner_of(place);
  if (!owner || Py_TYPE(owner.ptr())->tp_setattro != PyObject_GenericSetAttr) return false;
  PyObject* of_class = _PyType_Lookup(Py_TYPE(owner.ptr()), place.name.ptr());
  if (of_class != nullptr && !is_slot(of_class)) return false;
  return std::ranges::none_of(entries_, [&](const Entry& other) {
    return other.place.kind == Place::Kind::Attribute && other.place.of != place.of &&
           PyUnicode_Compare(other.place.name.ptr(), place.name.ptr()) == 0 &&
           owner_of(other.place).is(owner);
  });
}

py::object ProgramWorld::value(int number, Variables variables) const {
  return find(entries_[static_cast<std::size_t>(number)].place, variables);
}

Given ProgramWorld::outside(const Function* function, int name) {
  const Source& source = function == nullptr ? own_ : sources_.at(function);
  Place place;
  place.name = source.names[static_cast<std::size_t>(name)];
  for (std::size_t i = 0; i < size_of(source.free_variables.ptr()); ++i) {
    if (PyUnicode_Compare(py::object(source.free_variables[i]).ptr(), place.name.ptr()) != 0)
      continue;
    place.kind = Place::Kind::Cell;
    place.of = source.entry;
    place.index = i;
    return known(place, text_of(place.name.ptr()));
  }
  place.where = source.globals;
  place.behind = source.builtins;
  return known(place, text_of(place.name.ptr()));
}

Given ProgramWorld::variable(int number) {
  Place place;
  place.kind = Place::Kind::Variable;
  place.of = number;
  return known(place, {});
}

Given ProgramWorld::attribute(const Given& object, const std::string& name) {
  Given none;
  none.kind = Given::Kind::Other;
  none.name = name;
  if (object.kind != Given::Kind::Object) return none;
  const py::object owner = value(object.object, variables_);
  if (!owner) return none;
  Place place;
  place.name = py::str(name);
  if (!PyModule_Check(owner.ptr())) {
    place.kind = Place::Kind::Attribute;
    place.of = object.object;
    return known(place, name);
  }
  // NumPy and SciPy import some of their modules when they are asked for.
  const py::object found =
      py::reinterpret_steal<py::object>(PyObject_GetAttrString(owner.ptr(), name.c_str()));
  if (!found) forget_exception();
  place.where = borrow(PyModule_GetDict(owner.ptr()));
  return known(place, name);
}

bool ProgramWorld::is_assignable(const Given& object, const std::string& name) {
  const auto number = static_cast<std::size_t>(attribute(object, name).object);
  if (number >= entries_.size() || entries_[number].place.kind != Place::Kind::Attribute)
    return false;
  if (std::ranges::find(assigned_, number) == assigned_.end()) assigned_.push_back(number);
  return may_assign(number, variables_);
}

std::pair<py::object, py::object> ProgramWorld::attribute_of(int number,
                                                             Variables variables) const {
  const Place& place = entries_[static_cast<std::size_t>(number)].place;
  return {value(place.of, variables), place.name};
}

// What is at a place, remembered.
Given ProgramWorld::known(Place place, const std::string& name) {
  for (const Entry& old : entries_)
    if (old.place.is(place)) return old.given;
  Entry entry;
  const py::object found = find(place, variables_);
  entry.given = read(found.ptr());
  entry.given.object = static_cast<int>(entries_.size());
  entry.place = std::move(place);
  std::shared_ptr<Function> function;
  if (entry.given.kind == Given::Kind::Other) function = read_function(found, entry);
  // What a program cannot use is not kept alive for it.
  using enum Given::Kind;
  const bool is_value = entry.given.kind == Number || entry.given.kind == Array ||
                        entry.given.kind == Tuple || entry.given.kind == List ||
                        entry.given.kind == Generator;
  if (is_value)
    entry.value = given_of_(found.ptr());
  else if (entry.given.kind == Object && !PyModule_Check(found.ptr()))
    entry.type =
        steal(PyWeakref_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found.ptr())), nullptr));
  else if (!function && (entry.place.kind == Place::Kind::Name || entry.given.kind != Other))
    entry.held = found;
  if (entry.given.name.empty()) entry.given.name = name;
  entries_.push_back(entry);
  Place inside;
  inside.of = entry.given.object;
  const auto know_self = [&] {
    inside.kind = Place::Kind::Self;
    inside.index = 0;
    entry.given.self = std::make_shared<Given>(known(inside, name));
    return entries_[static_cast<std::size_t>(inside.of)].given = entry.given;
  };
  if (entry.given.kind == Draw) return know_self();
  if (!function) return entry.given;
  inside.kind = Place::Kind::Default;
  for (std::size_t i = 0; i < entry.defaults; ++i) {
    inside.index = i;
    function->defaults.push_back(known(inside, name));
  }
  if (!PyMethod_Check(found.ptr())) return entry.given;
  Entry& made = entries_[static_cast<std::size_t>(inside.of)];
  made.is_of_owner = made.place.kind == Place::Kind::Attribute &&
                     is_bound_to(found, value(made.place.of, variables_));
  if (made.is_of_owner) {
    made.given.self = std::make_shared<Given>(given(made.place.of));
    return made.given;
  }
  return know_self();
}

// Whether it is a function whose text a program can take in; then the entry knows it.
std::shared_ptr<Function> ProgramWorld::read_function(const py::object& object, Entry& entry) {
  const py::object called = plain_function(object);
  if (!called || depth_of(entry.place) > kDeepestClosure) return nullptr;
  const PyFunctionObject* f = as_function(called);
  if (f->func_kwdefaults != nullptr) return nullptr;
  const py::object text = read_function_(called);
  if (text.is_none()) return nullptr;
  const auto parts = text.cast<py::tuple>();
  auto function = std::make_shared<Function>();
  function->variables = read_names(parts[0]);
  function->parameters = parts[1].cast<std::size_t>();
  function->unnamed = parts[2].cast<std::size_t>();
  function->outside = read_names(parts[3]);
  function->body = read_statements(parts[4]);
  function->code = f->func_code;
  entry.code = borrow(f->func_code);
  entry.globals = borrow(f->func_globals);
  entry.defaults = size_of(f->func_defaults);
  entry.given.kind = Given::Kind::Function;
  entry.given.function = function;
  sources_.emplace(function.get(),
                   Source{borrow(f->func_globals), borrow(f->func_builtins), py::tuple(parts[3]),
                          entry.given.object, py::tuple(parts[5])});
  return function;
}

int ProgramWorld::depth_of(const Place& place) const {
  if (place.kind == Place::Kind::Name || place.kind == Place::Kind::Variable) return 0;
  return 1 + depth_of(entries_[static_cast<std::size_t>(place.of)].place);
}

Given ProgramWorld::read(PyObject* object) {
  Given given = given_of_(object);
  if (given.kind != Given::Kind::Other) return given;
  if (std::string method = method_that_draws(object); !method.empty()) {
    given.kind = Given::Kind::Draw;
    given.name = std::move(method);
    return given;
  }
  if (PyModule_Check(object) ||
      (!plain_function(borrow(object)) && !PyType_Check(object) && has_plain_attributes(object))) {
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
  const auto is_of = [&](py::handle module, const char* name) {
    if (module.attr(name).ptr() != object) return false;
    given.kind = Given::Kind::NumPy;
    given.name = name;
    return true;
  };
  for (const char* name : kOfNumPy)
    if (is_of(numpy().module, name)) return given;
  for (const char* name : kOfLinalg)
    if (is_of(numpy().module.attr("linalg"), name)) return given;
  for (std::size_t i = 0; i < ir::kDTypeCount; ++i)
    if (scalar_type(static_cast<ir::DType>(i)) == object) {
      given.kind = Given::Kind::DType;
      given.dtype = static_cast<ir::DType>(i);
      return given;
    }
  return given;
}

std::uintptr_t identity_of(PyObject* object) {
  const py::object function = plain_function(borrow(object));
  const bool is_known = PyModule_Check(object) || PyType_Check(object) ||
                        PyCFunction_Check(object) || Py_TYPE(object) == &PyUFunc_Type ||
                        is_dispatcher(object);
  if (function) return reinterpret_cast<std::uintptr_t>(as_function(function)->func_code);
  if (is_known) return reinterpret_cast<std::uintptr_t>(object);
  if (has_plain_attributes(object)) return reinterpret_cast<std::uintptr_t>(Py_TYPE(object));
  return 0;
}

}  // namespace ufuse::pyext
