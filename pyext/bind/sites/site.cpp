// What happens at a call site of traced code? `site(f, *args, **kwargs)` stands there for
// f(*args, **kwargs). Outside of traced calls it is that call. Inside, it runs what
// ufuse/tracing/callees.py names for the object f, which is asked once, and again where f has
// changed. `site` has no Python frame, so warnings, tracebacks and `stacklevel` see the same frames
// as in plain Python.
#include "pyext/bind/sites/site.h"

#include <array>
#include <span>
#include <unordered_map>

#include "pyext/bind/call/containers.h"
#include "pyext/bind/call/session.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/sites/attributes.h"
#include "pyext/bind/sites/frames.h"
#include "pyext/bind/sites/jitted.h"
#include "pyext/bind/sites/others.h"
#include "pyext/bind/sites/variables.h"
#include "pyext/bind/stack.h"

namespace ufuse::pyext {
namespace {

enum class Way : std::uint8_t {
  Itself,     // f
  StandIn,    // another callable
  CallsBack,  // f, where calls of functions among its arguments are call sites
};

struct Choice {
  Way way = Way::Itself;
  py::object stand_in;
  Py_ssize_t called = -1;  // CallsBack: the place of the argument that f calls; below zero: none
};

// The function whose code and default values say what runs for an object: itself, or that of a
// jitted one; null: there is none. Borrowed from it.
PyObject* function_behind(PyObject* f) {
  return PyFunction_Check(f) ? f : function_of_jitted(f).ptr();
}

// How many arguments of a call have names.
std::size_t count_of(PyObject* keywords) {
  return keywords ? static_cast<std::size_t>(PyTuple_GET_SIZE(keywords)) : 0;
}

// What runs for one object. Of a function it is good for its present code and default values.
struct Row {
  py::object reference;  // a weak one; the object itself where there is none
  bool weak = false;
  Choice choice;
  py::object partial_of;  // in the place of a stand-in that is a partial with f: see `without`
  py::object code, defaults, named;

  bool is_for(PyObject* f) const {
    PyObject* object = weak ? PyWeakref_GET_OBJECT(reference.ptr()) : reference.ptr();
    if (object != f) return false;
    if (!code) return true;
    auto* function = reinterpret_cast<PyFunctionObject*>(function_behind(f));
    return function != nullptr && function->func_code == code.ptr() &&
           function->func_defaults == defaults.ptr() && function->func_kwdefaults == named.ptr();
  }
};

using Rows = std::unordered_map<PyObject*, Row>;
// By address. Never freed: the objects may outlive this module's static variables.
Rows& rows() {
  static auto* known = new Rows;
  return *known;
}
// The same for calls that are not traced, of functions only.
Rows& plain_rows() {
  static auto* known = new Rows;
  return *known;
}

// For code with call sites from which traced code makes functions: the original code.
struct OwnCode {
  py::object instrumented;  // a weak reference
  py::object own;
};
// By address. Never freed: see `rows`.
std::unordered_map<PyObject*, OwnCode>& own_codes() {
  static auto* known = new std::unordered_map<PyObject*, OwnCode>;
  return *known;
}

PyObject* the_resolver = nullptr;        // callees.stand_in
PyObject* the_plain_resolver = nullptr;  // loops.of_helper
PyObject* the_frame_counters = nullptr;  // handlers.FRAME_COUNTERS
PyObject* the_site = nullptr;            // `site` as Python has it

// Objects that die with an entry may call this again, so the entry is taken out of the table first.
PyObject* forget(PyObject* address, PyObject*) {
  auto* const object = static_cast<PyObject*>(PyLong_AsVoidPtr(address));
  const auto gone = rows().extract(object), gone_as_well = plain_rows().extract(object);
  Py_RETURN_NONE;
}

PyMethodDef kForget = {"forget", forget, METH_O, nullptr};

PyObject* forget_code(PyObject* address, PyObject*) {
  const auto gone = own_codes().extract(static_cast<PyObject*>(PyLong_AsVoidPtr(address)));
  Py_RETURN_NONE;
}

PyMethodDef kForgetCode = {"forget_code", forget_code, METH_O, nullptr};

PyObject* set_own_code(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count != 2 || !PyCode_Check(args[0]) || !PyCode_Check(args[1]))
      throw py::type_error("set_own_code needs two code objects");
    const py::object address = steal(PyLong_FromVoidPtr(args[0]));
    const py::object callback = steal(PyCFunction_New(&kForgetCode, address.ptr()));
    OwnCode made{steal(PyWeakref_NewRef(args[0], callback.ptr())), borrow(args[1])};
    std::swap(own_codes()[args[0]], made);
    Py_RETURN_NONE;
  });
}

// Gives a function that traced code has made its original code, so that all others see what plain
// Python would have made. Where the active call calls it, the code with call sites runs.
PyObject* with_own_code(PyObject*, PyObject* object) {
  if (!PyFunction_Check(object)) return Py_NewRef(object);
  return guard([&]() -> PyObject* {
    const py::object code = borrow(reinterpret_cast<PyFunctionObject*>(object)->func_code);
    const auto found = own_codes().find(code.ptr());
    if (found == own_codes().end()) return Py_NewRef(object);
    if (PyObject_SetAttrString(object, "__code__", found->second.own.ptr()) < 0)
      throw py::error_already_set();
    if (Call* call = Call::active()) call->add_made(object, code);
    return Py_NewRef(object);
  });
}

// A copy with call sites of a function that the call has made; unset for any other object.
py::object instrumented(const Call& call, PyObject* f) {
  if (!PyFunction_Check(f)) return {};
  PyObject* code = call.code_of_made(f);
  if (code == nullptr) return {};
  auto* function = reinterpret_cast<PyFunctionObject*>(f);
  py::object made =
      steal(PyFunction_NewWithQualName(code, function->func_globals, function->func_qualname));
  const auto set = [&](PyObject* value, int (*setter)(PyObject*, PyObject*)) {
    if (value != nullptr && setter(made.ptr(), value) < 0) throw py::error_already_set();
  };
  set(function->func_closure, PyFunction_SetClosure);
  set(function->func_defaults, PyFunction_SetDefaults);
  set(function->func_kwdefaults, PyFunction_SetKwDefaults);
  return made;
}

void identify(Row& row, PyObject* f) {
  const py::object address = steal(PyLong_FromVoidPtr(f));
  const py::object callback = steal(PyCFunction_New(&kForget, address.ptr()));
  row.reference = py::reinterpret_steal<py::object>(PyWeakref_NewRef(f, callback.ptr()));
  row.weak = static_cast<bool>(row.reference);
  if (!row.weak) {
    PyErr_Clear();
    row.reference = borrow(f);
  }
  auto* function = reinterpret_cast<PyFunctionObject*>(function_behind(f));
  if (function == nullptr) return;
  row.code = borrow(function->func_code);
  if (function->func_defaults) row.defaults = borrow(function->func_defaults);
  if (function->func_kwdefaults) row.named = borrow(function->func_kwdefaults);
}

// Whether the choice for an object is kept. Methods are made at each use, and partials can be
// changed. A ufunc has no weak references; one of np.frompyfunc is not kept, for it goes with the
// user's function.
bool is_kept(PyObject* f) {
  if (function_behind(f) || PyType_Check(f)) return true;
  if (PyObject_TypeCheck(f, &PyUFunc_Type))
    return reinterpret_cast<PyUFuncObject*>(f)->obj == nullptr;
  if (PyCFunction_Check(f)) {
    PyObject* owner = PyCFunction_GET_SELF(f);
    return owner == nullptr || PyModule_Check(owner);
  }
  return is_dispatcher(f);
}

// A method of a container of Python's own class, which runs itself whatever the container holds; a
// key of list.sort is called back. There is a new object each time that one is read.
bool is_method_of_container(PyObject* f) {
  if (!PyCFunction_Check(f)) return false;
  PyObject* self = PyCFunction_GET_SELF(f);
  if (self == nullptr) return false;
  if (PyList_CheckExact(self))
    return std::string_view(reinterpret_cast<PyCFunctionObject*>(f)->m_ml->ml_name) != "sort";
  if (PyDict_CheckExact(self) || PyAnySet_CheckExact(self) || PyTuple_CheckExact(self)) return true;
  static PyObject* others = nullptr;  // no initialiser: see operator_function
  if (others == nullptr) {
    const py::module_ collections = py::module_::import("collections");
    others = py::make_tuple(collections.attr("deque"), collections.attr("defaultdict"),
                            collections.attr("OrderedDict"))
                 .release()
                 .ptr();
  }
  auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(others); ++i)
    if (PyTuple_GET_ITEM(others, i) == type) return true;
  return false;
}

// A method of a text that is given texts and numbers: no array comes near it.
bool is_among_texts(PyObject* f, std::span<PyObject* const> given) {
  if (!PyCFunction_Check(f)) return false;
  PyObject* self = PyCFunction_GET_SELF(f);
  if (self == nullptr || (!PyUnicode_CheckExact(self) && !PyBytes_CheckExact(self))) return false;
  return std::ranges::all_of(given, holds_nothing);
}

PyObject* partial_type() {
  static PyObject* partial = nullptr;  // no initialiser: see operator_function
  if (partial == nullptr)
    partial = py::object(py::module_::import("functools").attr("partial")).release().ptr();
  return partial;
}

// What a partial of a function and f has besides f, `(function, *others)`: a table that kept the
// partial would keep f. Unset for anything else, and for NumPy's functions, which stay.
py::object without(PyObject* f, const py::object& stand_in) {
  if (!stand_in || is_dispatcher(f) || PyObject_IsInstance(stand_in.ptr(), partial_type()) != 1)
    return {};
  const py::tuple args = stand_in.attr("args");
  if (args.empty() || args[0].ptr() != f || !py::dict(stand_in.attr("keywords")).empty()) return {};
  return py::make_tuple(stand_in.attr("func")) + py::tuple(args[py::slice(1, {}, {})]);
}

py::object partial_with(PyObject* f, const py::object& others) {
  std::vector<PyObject*> parts = {PyTuple_GET_ITEM(others.ptr(), 0), f};
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(others.ptr()); ++i)
    parts.push_back(PyTuple_GET_ITEM(others.ptr(), i));
  return steal(PyObject_Vectorcall(partial_type(), parts.data(), parts.size(), nullptr));
}

Choice choice_among(Rows& rows, PyObject* f, PyObject* resolver) {
  const auto found = rows.find(f);
  if (found != rows.end() && found->second.is_for(f)) {
    const py::object others = found->second.partial_of;
    return others ? Choice{Way::StandIn, partial_with(f, others)} : found->second.choice;
  }
  const Unwatched resolving;
  const py::object answer = steal(PyObject_CallOneArg(resolver, f));
  if (Call* call = Call::active()) call->count_resolved();
  Choice choice;
  if (PyLong_CheckExact(answer.ptr()))
    choice = {Way::CallsBack, {}, PyLong_AsSsize_t(answer.ptr())};
  else if (!answer.is_none())
    choice = {Way::StandIn, answer};
  if (is_kept(f)) {
    Row row;
    row.partial_of = without(f, choice.stand_in);
    if (!row.partial_of) row.choice = choice;
    identify(row, f);
    std::swap(rows[f], row);
  }
  return choice;
}

Choice choice_of(PyObject* f) {
  return is_method_of_container(f) ? Choice{} : choice_among(rows(), f, the_resolver);
}

// What runs for a function where no call is traced: itself, or the same whose loops may go on
// natively.
py::object plain_choice_of(PyObject* f) {
  const Choice choice = choice_among(plain_rows(), f, the_plain_resolver);
  return choice.way == Way::StandIn ? choice.stand_in : borrow(f);
}

// Whether an argument is of a type whose objects nobody compares or looks into, so that another
// callable may take its place.
bool is_function(PyObject* argument) {
  return PyFunction_Check(argument) || PyCFunction_Check(argument) || PyMethod_Check(argument) ||
         PyObject_TypeCheck(argument, &PyUFunc_Type) || is_dispatcher(argument);
}

// Whether an argument with this name is called, whatever it is.
bool names_a_function(PyObject* keyword) {
  return PyUnicode_CompareWithASCIIString(keyword, "key") == 0 ||
         PyUnicode_CompareWithASCIIString(keyword, "func") == 0;
}

// `called`: see Choice.
PyObject* call_back(PyObject* f, Py_ssize_t called, PyObject* const* args, std::size_t count,
                    PyObject* keywords) {
  std::vector<py::object> replaced;
  const std::size_t size = count + count_of(keywords);
  std::vector<PyObject*> given;
  given.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    given.push_back(args[i]);
    const bool is_called =
        i < count
            ? static_cast<Py_ssize_t>(i) == called
            : names_a_function(PyTuple_GET_ITEM(keywords, static_cast<Py_ssize_t>(i - count)));
    if (!is_function(args[i]) && !(is_called && PyCallable_Check(args[i]))) continue;
    replaced.push_back(py::handle(partial_type())(borrow(the_site), borrow(args[i])));
    given.back() = replaced.back().ptr();
  }
  return PyObject_Vectorcall(f, given.data(), count, keywords);
}

bool wants_array(PyObject* const* args, std::size_t count, PyObject* keywords) {
  if (keywords == nullptr) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(keywords); ++i)
    if (args[count + static_cast<std::size_t>(i)] == Py_Ellipsis &&
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, i), "out") == 0)
      return true;
  return false;
}

// `np.float32(x)` of a lazy scalar is a cast, for which the value is not needed. NumPy's own means
// and variances end with one.
py::object cast_of(PyObject* f, PyObject* argument) {
  if (!as_lazy(argument)->array.scalar) return {};
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(f), &PyGenericArrType_Type)) return {};
  const py::object dtype = py::handle(argument).attr("dtype");
  if (py::object(dtype.attr("type")).is(py::handle(f)))
    return make_lazy(as_lazy(argument)->array.another());
  const auto* from = reinterpret_cast<PyArray_Descr*>(dtype.ptr());
  const py::object to = py::reinterpret_steal<py::object>(
      reinterpret_cast<PyObject*>(PyArray_DescrFromTypeObject(f)));
  if (!to) {
    PyErr_Clear();
    return {};
  }
  const bool floats = PyTypeNum_ISFLOAT(from->type_num) &&
                      PyTypeNum_ISFLOAT(reinterpret_cast<PyArray_Descr*>(to.ptr())->type_num);
  if (!floats) return {};
  return py::handle(argument).attr("astype")(to);
}

// The result of calling a class with a lazy array where it is known without the array's value:
// `type`, and casts. Unset: the class is called like any other callable.
py::object result_of_class(PyObject* f, PyObject* argument) {
  if (!is_lazy(argument)) return {};
  if (f == reinterpret_cast<PyObject*>(&PyType_Type)) return py::handle(argument).attr("__class__");
  return cast_of(f, argument);
}

// The arguments of a call. Traced code may have got a real array or one of the caller's lists
// unnoticed, out of a container or by the name of a global. Here it is replaced by the lazy array
// on the same memory, or the copy that traced code uses. `all`: so are real arrays that the call
// has not met yet.
class KnownArguments {
 public:
  KnownArguments(Call& call, bool all, PyObject* const* args, std::size_t count, PyObject* keywords)
      : args_(args) {
    const std::size_t named = count_of(keywords);
    for (std::size_t i = 0; i < count + named; ++i) {
      if (!Call::may_know(args[i])) continue;
      py::object lazy =
          all && is_supported_array(args[i]) ? call.find(args[i], false) : call.known(args[i]);
      if (!lazy) continue;
      if (changed_.empty()) changed_.assign(args, args + count + named);
      changed_[i] = lazy.ptr();
      held_.push_back(std::move(lazy));
    }
  }
  PyObject* const* args() const { return changed_.empty() ? args_ : changed_.data(); }

 private:
  PyObject* const* args_;
  std::vector<PyObject*> changed_;
  std::vector<py::object> held_;
};

// Notes that a container may hold lazy arrays after a call of a method of it, such as
// `x.append(y)`.
void note_kept(PyObject* f, PyObject* const* args, std::size_t count, PyObject* keywords) {
  PyObject* owner = PyCFunction_Check(f) ? PyCFunction_GET_SELF(f) : nullptr;
  if (Py_TYPE(f) == &PyMethodDescr_Type && count > 0) owner = *args++, --count;
  if (owner == nullptr || PyTuple_CheckExact(owner) || !Holders::may_hold(owner)) return;
  const std::size_t named = count_of(keywords);
  const std::span given{args, count + named};
  if (std::ranges::all_of(given, holds_nothing)) return;
  for (PyObject* each : given) Call::active()->before_put(each);
  Call::active()->holders().add(owner);
}

// Whether a function is NumPy's or SciPy's own: reading attributes there is not noticed.
bool is_of_library(PyObject* function) {
  PyObject* name = PyDict_GetItemString(PyFunction_GET_GLOBALS(function), "__name__");
  if (name == nullptr || !PyUnicode_Check(name)) return false;
  return is_library(text_of(name));
}

// Whether it is noticed what a callable does with the objects of the call's signature.
bool is_told_all(PyObject* f) {
  static PyObject* harmless = nullptr;  // no initialiser: see operator_function
  if (harmless == nullptr) {
    const py::module_ builtins = py::module_::import("builtins");
    harmless = py::make_tuple(builtins.attr("isinstance"), builtins.attr("type")).release().ptr();
  }
  if (PyFunction_Check(f)) return !is_of_library(f);
  return f == PyTuple_GET_ITEM(harmless, 0) || f == PyTuple_GET_ITEM(harmless, 1);
}

// While a call is recorded: a function that it calls has to be the same in a replay. Anything else
// that it calls must not get at objects whose attributes are part of the signature, or the call is
// not recorded.
void note_called(Call& call, PyObject* f, PyObject* runs, PyObject* const* args,
                 std::size_t count) {
  if (!Call::is_recording()) return;
  if (PyFunction_Check(runs)) call.objects().called(f);
  if (!call.objects().any() || is_told_all(runs)) return;
  const auto is_object = [&](PyObject* each) { return call.objects().index_of(each) >= 0; };
  bool reaches = std::any_of(args, args + count, [&](PyObject* argument) {
    return any_inside(argument, Into::All, is_object);
  });
  if (!PyType_Check(f) && !reaches)
    if (const py::object self =
            py::reinterpret_steal<py::object>(PyObject_GetAttrString(f, "__self__")))
      reaches = is_object(self.ptr());
  forget_exception();
  if (reaches) call.session().mark_impure();
}

// The arguments of a call, behind others.
std::vector<PyObject*> behind(std::vector<PyObject*> first, PyObject* const* args,
                              std::size_t count, PyObject* keywords) {
  const std::size_t named = count_of(keywords);
  first.insert(first.end(), args, args + count + named);
  return first;
}

PyObject* call_method(PyObject* method, PyObject* const* args, std::size_t count,
                      PyObject* keywords) {
  PyObject* self = PyMethod_GET_SELF(method);
  PyObject* function = PyMethod_GET_FUNCTION(method);
  if (is_lazy(self)) return PyObject_Vectorcall(method, args, count, keywords);
  if (!PyFunction_Check(function)) {
    const Choice choice = choice_of(method);
    if (Call::is_recording()) Call::active()->objects().called(function);
    PyObject* chosen = choice.way == Way::StandIn ? choice.stand_in.ptr() : method;
    return PyObject_Vectorcall(chosen, args, count, keywords);
  }
  const std::vector<PyObject*> given = behind({function, self}, args, count, keywords);
  return site(given.data(), count + 2, keywords);
}

// f(*args, **keywords) where no call is traced.
PyObject* call_plain(PyObject* f, PyObject* const* args, std::size_t count, PyObject* keywords) {
  if (PyFunction_Check(f))
    return PyObject_Vectorcall(plain_choice_of(f).ptr(), args, count, keywords);
  if (!PyMethod_Check(f) || !PyFunction_Check(PyMethod_GET_FUNCTION(f)))
    return PyObject_Vectorcall(f, args, count, keywords);
  const py::object runs = plain_choice_of(PyMethod_GET_FUNCTION(f));
  if (runs.is(borrow(PyMethod_GET_FUNCTION(f))))
    return PyObject_Vectorcall(f, args, count, keywords);
  const std::vector<PyObject*> given = behind({PyMethod_GET_SELF(f)}, args, count, keywords);
  return PyObject_Vectorcall(runs.ptr(), given.data(), count + 1, keywords);
}

// Each of these calls takes some of the thread's stack, which calls of Python's own do not. So deep
// recursion goes on in the function as it is, which has no call sites.
PyObject* plain_site(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  constexpr int kDeepest = 200;
  static thread_local int depth = 0;
  struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  };
  return guard([&]() -> PyObject* {
    if (count < 1) throw py::type_error("plain_site needs a callable");
    const Deeper deeper;
    const auto rest = static_cast<std::size_t>(count - 1);
    return Call::active() || depth > kDeepest
               ? PyObject_Vectorcall(args[0], args + 1, rest, keywords)
               : call_plain(args[0], args + 1, rest, keywords);
  });
}

PyObject* site_function(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guard([&]() -> PyObject* {
    if (count < 1) throw py::type_error("site needs a callable");
    return site(args, static_cast<std::size_t>(count), keywords);
  });
}

// Makes an object of a class of the user's as Python does, where the call of `__init__` is a call
// site.
PyObject* construct(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    if (PyTuple_GET_SIZE(args) < 1 || !PyType_Check(PyTuple_GET_ITEM(args, 0)))
      throw py::type_error("construct needs a class");
    auto* type = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(args, 0));
    const py::object rest = steal(PyTuple_GetSlice(args, 1, PyTuple_GET_SIZE(args)));
    const py::object made = steal(type->tp_new(type, rest.ptr(), kwargs));
    const py::object initialise = py::handle(reinterpret_cast<PyObject*>(type)).attr("__init__");
    const py::tuple first = py::make_tuple(initialise, made);
    const py::object given = steal(PySequence_Concat(first.ptr(), rest.ptr()));
    const py::object nothing = steal(PyObject_Call(the_site, given.ptr(), kwargs));
    if (!nothing.is_none()) {
      PyErr_Format(PyExc_TypeError, "__init__() should return None, not '%.200s'",
                   Py_TYPE(nothing.ptr())->tp_name);
      throw py::error_already_set();
    }
    return py::object(made).release().ptr();
  });
}

// Calls a function without any warnings, for example to compile a text of which the user was warned
// when it was imported. Filters, and which warnings count as shown, stay as they are.
PyObject* quietly(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count < 1) throw py::type_error("quietly needs a callable");
    const py::module_ warnings = py::module_::import("warnings");
    const py::object filters = warnings.attr("filters");
    py::list silent;
    silent.append(py::make_tuple("ignore", py::none(), borrow(PyExc_Warning), py::none(), 0));
    warnings.attr("filters") = silent;
    PyObject* result =
        PyObject_Vectorcall(args[0], args + 1, static_cast<std::size_t>(count - 1), nullptr);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    warnings.attr("filters") = filters;
    PyErr_Restore(type, value, trace);
    return result;
  });
}

// Calls a C function that no Python code may interrupt. A collection of garbage would run
// finalizers and handlers of signals; up to Python 3.11.7 `compile` fails where one of these
// compiles as well.
PyObject* without_collections(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count < 1) throw py::type_error("without_collections needs a callable");
    const bool was_enabled = PyGC_Disable() != 0;
    PyObject* result =
        PyObject_Vectorcall(args[0], args + 1, static_cast<std::size_t>(count - 1), nullptr);
    if (was_enabled) PyGC_Enable();
    return result;
  });
}

// A real object of the same type, of which `isinstance` and `hasattr` say the same.
py::object like(PyObject* lazy) {
  if (as_lazy(lazy)->real != nullptr) return borrow(as_lazy(lazy)->real);
  if (as_lazy(lazy)->array.scalar) return py::object(py::handle(lazy).attr("__class__"))();
  static PyObject* array = nullptr;  // no initialiser: see operator_function
  if (array == nullptr) array = steal(PyArray_ZEROS(0, nullptr, NPY_DOUBLE, 0)).release().ptr();
  return borrow(array);
}

// Calls isinstance, hasattr and the like with a real object of the same type as a lazy array.
PyObject* call_on_like(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guard([&]() -> PyObject* {
    if (count < 1) throw py::type_error("call_on_like needs a callable");
    if (count < 2 || !is_lazy(args[1]))
      return PyObject_Vectorcall(args[0], args + 1, static_cast<std::size_t>(count - 1), keywords);
    std::vector<PyObject*> given(args + 1, args + count);
    const py::object first = like(args[1]);
    given.front() = first.ptr();
    return PyObject_Vectorcall(args[0], given.data(), given.size(), keywords);
  });
}

// `a is b`, where a lazy array counts as the real one that it stands for, and a copy of a list as
// the list. A lazy truth is computed: there is only one np.True_ and one np.False_.
PyObject* is_same(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "is_same needs two objects");
    return nullptr;
  }
  const auto known = [](PyObject* object) {
    if (is_lazy(object)) {
      const LazyObject* lazy = as_lazy(object);
      if (lazy->array.scalar && lazy->array.layout.dtype == DType::Bool)
        return force_outcome(object, Reason::Bool, true);
      return borrow(lazy->real ? lazy->real : object);
    }
    const Call* call = Call::active();
    return borrow(call ? call->copies().original_of(object) : object);
  };
  return guard([&] { return PyBool_FromLong(known(args[0]).is(known(args[1]))); });
}

PyMethodDef kFunctions[] = {
    {"is_same", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_same)), METH_FASTCALL,
     "is_same(a, b): `a is b`, where a lazy array is the array that it stands for."},
    {"set_own_code", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_own_code)),
     METH_FASTCALL,
     "set_own_code(instrumented, own): functions that traced code makes with the first code get "
     "the second one."},
    {"with_own_code", with_own_code, METH_O,
     "with_own_code(f): the function f, which traced code has made, with its original code."},
    {"call_on_like", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_on_like)),
     METH_FASTCALL | METH_KEYWORDS,
     "call_on_like(f, /, *args): f(*args) with an array of the same type in the place of a lazy "
     "one that comes first."},
    {"site", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(site_function)),
     METH_FASTCALL | METH_KEYWORDS,
     "site(f, /, *args, **kwargs): f(*args, **kwargs) at a call site of traced code."},
    {"plain_site", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plain_site)),
     METH_FASTCALL | METH_KEYWORDS,
     "plain_site(f, /, *args, **kwargs): f(*args, **kwargs) outside of traced calls, where f's "
     "loops may go on natively."},
    {"construct", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(construct)),
     METH_VARARGS | METH_KEYWORDS,
     "construct(cls, /, *args, **kwargs): cls(*args, **kwargs) whose __init__ is a call site."},
    {"quietly", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(quietly)), METH_FASTCALL,
     "quietly(f, /, *args): f(*args) during which nobody is warned."},
    {"without_collections",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(without_collections)),
     METH_FASTCALL,
     "without_collections(f, /, *args): f(*args) during which no garbage is collected."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

// Whether a function counts Python's frames, of which this package's own must not be counted.
static bool counts_frames(PyObject* f) {
  return PyCFunction_Check(f) && PySequence_Contains(the_frame_counters, f) == 1;
}

// Whether what f makes may read its arguments later: objects of classes, among them iterators.
static bool keeps_arguments(PyObject* f) {
  static PyObject* iter = nullptr;  // no initialiser: see operator_function
  if (iter == nullptr)
    iter = py::object(py::module_::import("builtins").attr("iter")).release().ptr();
  return PyType_Check(f) || f == iter;
}

// Whether a callable looks at nothing but the type of its arguments.
static bool looks_at_types(PyObject* f) {
  static PyObject* all = nullptr;  // no initialiser: see operator_function
  if (all == nullptr) {
    const py::module_ builtins = py::module_::import("builtins");
    all = py::make_tuple(builtins.attr("len"), builtins.attr("type"), builtins.attr("callable"),
                         builtins.attr("isinstance"), builtins.attr("issubclass"))
              .release()
              .ptr();
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(all); ++i)
    if (PyTuple_GET_ITEM(all, i) == f) return true;
  return false;
}

static PyTypeObject* method_wrapper_type() {
  // Python has no name for it that all versions share. No initialiser: see operator_function.
  static PyTypeObject* type = nullptr;
  if (type == nullptr) type = Py_TYPE(steal(PyObject_GetAttrString(Py_None, "__repr__")).ptr());
  return type;
}

// Code without call sites may look at memory by what it is given, or by the object whose method it
// is.
static void note_untraced(PyObject* f, PyObject* const* args, std::size_t count) {
  const bool is_known = PyFunction_Check(f)
                            ? is_traced(PyFunction_GET_CODE(f))
                            : !PyObject_TypeCheck(f, &PyUFunc_Type) && looks_at_types(f);
  if (is_known) return;
  note_lookers({args, count});
  if (PyCFunction_Check(f)) {
    PyObject* self = PyCFunction_GET_SELF(f);
    if (self != nullptr) note_lookers({&self, 1});
  } else if (Py_TYPE(f) == method_wrapper_type()) {  // x.__len__
    const py::object self = py::handle(f).attr("__self__");
    PyObject* const owner = self.ptr();
    note_lookers({&owner, 1});
  }
}

// The call of `f` after tracing has stopped. On Python's stack there may be lazy arrays still: `x`
// in `f(x, g(y))` and `f([x, g(y)])`, where it stopped in g; and copies of the caller's containers,
// where it stopped at this call.
static PyObject* call_with_real(const Copies& copies, PyObject* f, PyObject* const* args,
                                std::size_t count, PyObject* keywords) {
  const std::span given{args, count + count_of(keywords)};
  if (any_on_stack()) {
    py::list holders;
    for (PyObject* each : given)
      if (Holders::may_hold(each) &&
          (!is_plain_container(each) || any_inside(each, Into::All, is_lazy)))
        holders.append(borrow(each));
    if (!holders.empty()) make_real_inside(holders, copies);
  }
  if (std::ranges::none_of(
          given, [&](PyObject* each) { return is_lazy(each) || copies.original_of(each) != each; }))
    return call_plain(f, args, count, keywords);
  std::vector<py::object> real;
  for (PyObject* each : given) real.push_back(copies.real(each));
  std::vector<PyObject*> pointers;
  for (const py::object& each : real) pointers.push_back(each.ptr());
  return call_plain(f, pointers.data(), count, keywords);
}

PyObject* site(PyObject* const* args, std::size_t count, PyObject* keywords) {
  if (stack_is_full()) return nullptr;
  PyObject* f = args[0];
  ++args, --count;
  Call* call = Call::active();
  const std::size_t given = count + count_of(keywords);
  const auto stopped = call ? call->stop_at_slow_site({args, given}) : std::nullopt;
  if (stopped) call = nullptr;
  if (call == nullptr) {
    const Call* const ended = Call::stopped();
    if (ended == nullptr) return PyObject_Vectorcall(f, args, count, keywords);
    const Choice choice = counts_frames(f) ? choice_of(f) : Choice{};
    PyObject* runs = choice.way == Way::StandIn ? choice.stand_in.ptr() : f;
    return call_with_real(ended->copies(), runs, args, count, keywords);
  }
  const KnownArguments known(*call, keeps_arguments(f), args, count, keywords);
  args = known.args();
  if (PyMethod_Check(f)) return call_method(f, args, count, keywords);
  if (PyType_Check(f) && keywords == nullptr && count == 1)
    if (py::object result = result_of_class(f, args[0])) return result.release().ptr();
  if (const py::object made = instrumented(*call, f)) {
    const Passed passed(args, given);
    return PyObject_Vectorcall(made.ptr(), args, count, keywords);
  }
  if (is_among_texts(f, {args, given})) return PyObject_Vectorcall(f, args, count, keywords);
  const Choice choice = choice_of(f);
  PyObject* runs = choice.way == Way::StandIn ? choice.stand_in.ptr() : f;
  note_called(*call, f, runs, args, given);
  if (choice.way == Way::StandIn) {
    const Passed passed(args, PyFunction_Check(runs) ? given : 0);
    return PyObject_Vectorcall(runs, args, count, keywords);
  }
  note_untraced(f, args, given);
  if (choice.way == Way::CallsBack) return call_back(f, choice.called, args, count, keywords);
  if (PyObject_TypeCheck(f, &PyUFunc_Type) && are_others_asked({args, count}))
    return on_real_arrays(f, args, count, keywords).release().ptr();
  note_kept(f, args, count, keywords);
  PyObject* result = nullptr;
  {
    const NamedUfunc named(f);
    result = PyObject_Vectorcall(f, args, count, keywords);
  }
  if (result == nullptr) return nullptr;
  if (PyArray_CheckExact(result)) return traced_from_here(result, Py_REFCNT(result) == 1);
  if (!wants_array(args, count, keywords) || !is_of_ufunc(f)) return result;
  return into_array(steal(result)).release().ptr();
}

void bind_site(py::module_& m) {
  if (PyModule_AddFunctions(m.ptr(), kFunctions) < 0) throw py::error_already_set();
  the_site = py::object(m.attr("site")).release().ptr();
  m.def(
      "set_callees",
      [](py::object resolver) {
        Rows gone, gone_as_well;  // see `forget`
        gone.swap(rows());
        gone_as_well.swap(plain_rows());
        Py_XDECREF(the_resolver);
        the_resolver = resolver.release().ptr();
      },
      py::arg("resolver"),
      "resolver(f) gives what runs at call sites of f: another callable, None for f itself, a "
      "number "
      "for f itself with call sites for the callables among its arguments (see stand_in).");
  bind_hand_over(m, "set_plain_callees", "resolver", the_plain_resolver,
                 "resolver(f) gives what runs where a function f is called outside of traced "
                 "calls: another function, or None for f itself.");
  bind_hand_over(m, "set_frame_counters", "functions", the_frame_counters,
                 "Functions that count Python's frames, as `warnings.warn` does for `stacklevel`: "
                 "what runs in "
                 "their place is called also where tracing has stopped.");
}

}  // namespace ufuse::pyext
