// What if an operator or an index of traced code is applied to an object of another package?
//
// What `matrix @ x`, `frame["a"] = x` and `series < x` do is decided by the class of the left
// object, which may be compiled code that needs NumPy's own arrays. So traced code has
// `operand(matrix) @ x`: for an object of another package (`is_other` in ufuse/tracing/callees.py)
// this is a stand-in, which applies the operator to real arrays; any other object is itself. The
// object may refer to memory of arrays that the call knows, so what is pending is computed first.
//
// Real arrays have stand-ins in two cases: where one is on memory that the call knows, but of a
// dtype that is never lazy; and where it is indexed, because NumPy would take a lazy index for a
// list. Objects of the user's classes have one because their operators are Python code without call
// sites, which is given real arrays and plain numbers.
#include "pyext/bind/sites/others.h"

#include <algorithm>
#include <array>
#include <optional>

#include "pyext/bind/call/containers.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/sites/attributes.h"

namespace ufuse::pyext {
namespace {

PyTypeObject* the_type = nullptr;
PyTypeObject* users_type = nullptr;  // for objects of the user's classes
PyTypeObject* long_type = nullptr;   // for containers that nobody has looked through yet
PyObject* the_judge = nullptr;       // callees.is_other

enum class Owner : std::uint8_t { Python, User, Other };

// Calls a function of module operator with the object behind a stand-in, and these values.
PyObject* apply(const char* name, PyObject* self, std::initializer_list<PyObject*> values,
                bool writes = false) {
  return guard([&] {
    py::tuple args(1 + values.size());
    args[0] = borrow(object_of(self));
    std::size_t count = 0;
    for (PyObject* value : values) args[++count] = borrow(seen_number(value));
    if (Py_TYPE(self) == users_type && !any_inside(args.ptr(), Into::All, is_lazy))
      return steal(PyObject_CallObject(operator_function(name), args.ptr())).release().ptr();
    const bool pure = !writes && PyArray_CheckExact(object_of(self));
    return numpy_call(operator_function(name), args.ptr(), nullptr, Reason::UserCall, pure)
        .release()
        .ptr();
  });
}

// Stand-ins are at the left side only, so `a` is one.
template <std::size_t I>
PyObject* binary(PyObject* a, PyObject* b) {
  return apply(kBinary[I].function, a, {b});
}
PyObject* matrix_product(PyObject* a, PyObject* b) { return apply("matmul", a, {b}); }
PyObject* power(PyObject* a, PyObject* b, PyObject*) { return apply("pow", a, {b}); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  constexpr std::array kNames = {"lt", "le", "eq", "ne", "gt", "ge"};
  return apply(kNames[static_cast<std::size_t>(op)], a, {b});
}

// An item of an array of objects stays the object that it is.
PyObject* get_item(PyObject* self, PyObject* index) {
  PyObject* object = object_of(self);
  const bool holds_objects = PyArray_CheckExact(object) &&
                             PyArray_TYPE(reinterpret_cast<PyArrayObject*>(object)) == NPY_OBJECT;
  if (!holds_objects)
    return guard([&] {
      // Elements of a real array at positions that are lazy.
      const bool gathers = is_supported_array(object) && has_arrays(index) &&
                           any_inside(index, Into::Sequences, is_lazy);
      return native_or(
                 gathers ? Call::active() : nullptr,
                 [&](Call& call) {
                   call.enter();
                   return gather(call, call.capture(reinterpret_cast<PyArrayObject*>(object)),
                                 index);
                 },
                 [&](Reason) { return steal(apply("getitem", self, {index})); })
          .release()
          .ptr();
    });
  return guard([&] { return PyObject_GetItem(object, unwrap(seen_number(index)).ptr()); });
}

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  const py::object done = py::reinterpret_steal<py::object>(
      value ? apply("setitem", self, {index, value}, true) : apply("delitem", self, {index}, true));
  return done ? 0 : -1;
}

int contains(PyObject* self, PyObject* value) {
  const py::object found = py::reinterpret_steal<py::object>(apply("contains", self, {value}));
  return found ? PyObject_IsTrue(found.ptr()) : -1;
}

// Whether an object's type is one of those of most operands, none of which is another package's.
bool is_plain(PyObject* object) {
  return is_lazy(object) || is_number(object) || PyFloat_CheckExact(object) ||
         PyLong_CheckExact(object) || PyBool_Check(object) || PyList_CheckExact(object) ||
         PyTuple_CheckExact(object) || PyDict_CheckExact(object) || PyUnicode_CheckExact(object) ||
         PyComplex_CheckExact(object) || PyArray_IsScalar(object, Generic) || object == Py_None ||
         PyType_CheckExact(object) || PyAnySet_CheckExact(object) || PyRange_Check(object);
}

// Whether an object, such as a memoryview, may lead to the memory of arrays.
bool has_memory(PyObject* object) {
  return PyObject_CheckBuffer(object) && !PyBytes_CheckExact(object) && !PyArray_Check(object);
}

// Whose class an object is of.
Owner owner_of(PyObject* object) {
  if (is_plain(object) || PyArray_CheckExact(object)) return Owner::Python;
  if (has_memory(object)) return Owner::Other;
  const Unwatched judging;
  const py::object answer =
      steal(PyObject_CallOneArg(the_judge, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  if (answer.is_none()) return Owner::Python;
  return answer.ptr() == Py_True ? Owner::Other : Owner::User;
}

// Whether one of some objects, or of those in containers among them, is what `judge` looks for.
// Judging runs Python code, which could change a container that is being looked into.
template <class Judge>
bool any_judged(std::span<PyObject* const> objects, Into into, const Judge& judge) {
  std::vector<py::object> found;
  for (PyObject* each : objects) {
    ContainerWalk walk(each, into);
    while (PyObject* object = walk.next())
      if (!is_plain(object)) found.push_back(borrow(object));
  }
  return std::ranges::any_of(found, [&](const py::object& each) { return judge(each.ptr()); });
}

// Whether an object of another package's class or of the user's is among some, or in lists and
// tuples among them.
bool any_has_operators(std::span<PyObject* const> objects) {
  return any_judged(objects, Into::Sequences,
                    [](PyObject* each) { return owner_of(each) != Owner::Python; });
}

// Whether what an object shows may be memory of arrays that the active call knows.
bool leads_to_memory(PyObject* object) {
  if (is_plain(object)) return false;
  const Call* call = Call::active();
  if (PyArray_CheckExact(object))
    return call != nullptr && is_shared_array(*call, object) && !is_supported_array(object);
  return gives_memory(object) && owner_of(object) == Owner::Other;
}

// A function that applies an operator to its arguments, such as those of module operator. No
// reference is added to an argument: what NumPy does with it depends on how many there are.
PyObject* call_operator(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  return guard([&]() -> PyObject* {
    if (count < 1) throw py::type_error("call_operator needs a function");
    PyObject* function = args[0];
    const auto named = names ? static_cast<std::size_t>(PyTuple_GET_SIZE(names)) : 0;
    const auto positional = static_cast<std::size_t>(count - 1);
    const std::span<PyObject* const> given(args + 1, positional + named);
    note_lookers(given);
    Call* call = Call::active();
    const bool has_lazies = call && std::ranges::any_of(given, [](PyObject* each) {
                              return any_inside(each, Into::All, is_lazy);
                            });
    if (has_lazies && any_has_operators(given))
      return on_real_arrays(function, given.data(), positional, names).release().ptr();
    if (call != nullptr && positional > 0 &&
        (PyList_CheckExact(given[0]) || PyDict_CheckExact(given[0])) &&
        std::ranges::any_of(given, needs_unwrapping))
      call->holders().add(given[0]);  // operator.setitem
    PyObject* result = PyObject_Vectorcall(function, given.data(), positional, names);
    if (result == nullptr || !PyArray_CheckExact(result)) return result;
    return traced_from_here(result, Py_REFCNT(result) == 1);
  });
}

// Lists, tuples and dicts with more items are not looked through before it is known what for.
constexpr Py_ssize_t kFewItems = 16;

bool is_long(PyObject* object) {
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object))
    return PySequence_Fast_GET_SIZE(object) > kFewItems;
  return PyDict_CheckExact(object) && PyDict_GET_SIZE(object) > kFewItems;
}

bool is_namespace(PyObject* object) {
  static PyObject* type = nullptr;  // no initialiser: see operator_function
  if (type == nullptr)
    type = py::object(py::module_::import("types").attr("SimpleNamespace")).release().ptr();
  return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

// Python compares containers item by item, and real arrays in them would meet lazy ones.
PyObject* looked_through(PyObject* object) {
  const bool asks_others = any_inside(object, Into::All, [](PyObject* each) {
    return PyArray_CheckExact(each) || is_namespace(each);
  });
  return asks_others && !PyArray_CheckExact(object) ? stand_in(the_type, object)
                                                    : operand_of(object);
}

// Traced code asks for an operand. Where tracing ends at that because it is slow, there is no call
// any more, and the lazy arrays that there were are kept alive.
struct Asking {
  Call* call = Call::active();
  std::optional<std::vector<py::object>> ended = call ? call->stop_at_slow_operand() : std::nullopt;
  bool is_traced() const { return call != nullptr && !ended; }
};

PyObject* operand(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    const Asking asking;
    if (count == 1) return operand_of(args[0]);
    if (count != 2) throw py::type_error("operand needs one object or two");
    return value_beside(args[0], args[1]).release().ptr();
  });
}

PyObject* compared(PyObject*, PyObject* object) {
  return guard([&] {
    if (const Asking asking; !asking.is_traced()) return Py_NewRef(object);
    return is_long(object) ? stand_in(long_type, object) : looked_through(object);
  });
}

// Lists and dicts of different sizes are not equal, whatever is in them.
PyObject* compare_long(PyObject* self, PyObject* other, int op) {
  return guard([&]() -> PyObject* {
    const py::object mine = steal(operand_of(object_of(self)));
    const bool is_equality = op == Py_EQ || op == Py_NE;
    const bool both_lists = PyList_CheckExact(mine.ptr()) && PyList_CheckExact(other);
    const bool both_dicts = PyDict_CheckExact(mine.ptr()) && PyDict_CheckExact(other);
    if (is_equality && (both_lists || both_dicts) &&
        PyObject_Size(mine.ptr()) != PyObject_Size(other))
      return PyBool_FromLong(op == Py_NE);
    const py::object left = steal(looked_through(object_of(self)));
    return PyObject_RichCompare(left.ptr(), other, op);
  });
}

// Whether an object is a number or a text of Python's own, which compares without code of others.
bool is_pythons_value(PyObject* object) {
  return object == Py_None || PyLong_CheckExact(object) || PyFloat_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyBool_Check(object) || PyComplex_CheckExact(object);
}

// Of a dict only the keys are compared. A sequence is looked through as far as Python does it,
// where there are numbers and texts in it.
int contains_long(PyObject* self, PyObject* value) {
  return guard(
      [&] {
        const py::object mine = steal(operand_of(object_of(self)));
        PyObject* container = mine.ptr();
        if (PyDict_CheckExact(container)) return PySequence_Contains(container, value);
        if (is_pythons_value(value)) {
          Py_ssize_t at = 0;
          for (; at < PySequence_Fast_GET_SIZE(container); ++at) {
            PyObject* item = PySequence_Fast_GET_ITEM(container, at);
            if (!is_pythons_value(item)) break;
            if (const int same = PyObject_RichCompareBool(item, value, Py_EQ); same != 0)
              return same;
          }
          if (at == PySequence_Fast_GET_SIZE(container)) return 0;
        }
        const py::object right = steal(looked_through(object_of(self)));
        return PySequence_Contains(right.ptr(), value);
      },
      -1);
}

PyObject* indexed(PyObject*, PyObject* object) {
  return guard([&]() -> PyObject* {
    const Asking asking;
    Call* call = Call::active();
    if (call == nullptr || !PyArray_CheckExact(object)) return operand_of(object);
    py::object lazy = call->known(object);
    return lazy ? lazy.release().ptr() : stand_in(the_type, object);
  });
}

// Proxies of other packages say `__class__` is the class of what they stand for, which `isinstance`
// believes, and may compute something for that answer.
PyObject* is_a(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count != 2) throw py::type_error("is_a needs an object and its possible classes");
    const bool many = PyTuple_Check(args[1]);
    const Py_ssize_t size = many ? PyTuple_GET_SIZE(args[1]) : 1;
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* kind = many ? PyTuple_GET_ITEM(args[1], i) : args[1];
      if (!PyType_Check(kind)) throw py::type_error("is_a needs classes");
      if (PyObject_TypeCheck(args[0], reinterpret_cast<PyTypeObject*>(kind))) Py_RETURN_TRUE;
    }
    Py_RETURN_FALSE;
  });
}

PyMethodDef kFunctions[] = {
    {"is_a", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(is_a)), METH_FASTCALL,
     "is_a(x, kinds): whether the type of x is the class `kinds`, or one in this tuple of classes, "
     "or derived from it. `isinstance` would ask x for its `__class__` as well."},
    {"operand", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operand)), METH_FASTCALL,
     "operand(x): what stands for x at the left of an operator of traced code. "
     "operand(x, y): what stands for y in `x += y`."},
    {"call_operator", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_operator)),
     METH_FASTCALL | METH_KEYWORDS,
     "call_operator(f, /, *args): f(*args), where f applies an operator; on real arrays where an "
     "argument's class may have its own."},
    {"compared", compared, METH_O,
     "compared(x): what stands for x where traced code compares it, or looks for something in it."},
    {"indexed", indexed, METH_O, "indexed(x): what stands for x in `x[i]` of traced code."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

bool is_array_or_number(PyObject* object) {
  return is_lazy(object) || is_operand(object) || PyArray_CheckExact(object) ||
         PyArray_IsScalar(object, Generic);
}

PyObject* stand_in(PyTypeObject* type, PyObject* object) {
  auto* made = PyObject_New(StandIn, type);
  if (made == nullptr) return nullptr;
  made->object = Py_NewRef(object);
  return reinterpret_cast<PyObject*>(made);
}

void dealloc_stand_in(PyObject* self) {
  Py_DECREF(object_of(self));
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

bool is_other(PyObject* object) { return owner_of(object) == Owner::Other; }

PyObject* operand_of(PyObject* object) {
  return guard([&]() -> PyObject* {
    Call* call = Call::active();
    if (call == nullptr) return Py_NewRef(object);
    call->count_operand();
    if (Call::may_know(object))
      if (py::object mine = call->known(object)) return mine.release().ptr();
    if (PyArray_CheckExact(object)) {
      return is_shared_array(*call, object) ? stand_in(the_type, object) : Py_NewRef(object);
    }
    const Owner owner = owner_of(object);
    if (owner == Owner::Other) return stand_in(the_type, object);
    return owner == Owner::User || (call->records_numbers() && !is_plain(object))
               ? stand_in(users_type, object)
               : Py_NewRef(object);
  });
}

py::object on_real_arrays(PyObject* f, PyObject* const* args, std::size_t count,
                          PyObject* keywords) {
  py::tuple given(count);
  for (std::size_t i = 0; i < count; ++i) given[i] = borrow(args[i]);
  py::dict named;
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i)
    named[py::handle(PyTuple_GET_ITEM(keywords, i))] =
        borrow(args[count + static_cast<std::size_t>(i)]);
  return numpy_call(f, given.ptr(), named.ptr(), Reason::UserCall, false);
}

bool shows_memory(PyObject* object, PyObject* keywords) {
  PyObject* const both[] = {object, keywords};
  return any_judged({both, keywords != nullptr ? 2u : 1u}, Into::All, leads_to_memory);
}

void note_lookers(std::span<PyObject* const> objects) {
  if (std::ranges::all_of(objects, is_plain)) return;
  Call* call = Call::active();
  if (call == nullptr || call->is_busy() || !std::ranges::any_of(objects, leads_to_memory)) return;
  call->session().mark_impure();
  call->session().write_at_once();
}

bool are_others_asked(std::span<PyObject* const> args) {
  const auto has_operators = [](PyObject* each) { return owner_of(each) != Owner::Python; };
  return std::ranges::any_of(args, is_lazy) && std::ranges::any_of(args, has_operators);
}

py::object value_beside(PyObject* object, PyObject* value) {
  Call* call = Call::active();
  if (call == nullptr) return borrow(value);
  if (Holders::may_hold(object) && !holds_nothing(value)) {
    call->before_put(value);
    call->holders().add(object);
  }
  // A real array, which traced code got unnoticed, is written to at once. So may the value be one,
  // whose own writes are pending.
  const bool is_given_lazies = any_inside(value, Into::All, [&](PyObject* each) {
    return is_lazy(each) || is_shared_array(*call, each);
  });
  const Owner owner = owner_of(object);
  const bool is_written = PyArray_CheckExact(object)
                              ? is_given_lazies || is_shared_array(*call, object)
                              : owner == Owner::Other || (owner == Owner::User && is_given_lazies);
  if (!is_written) return borrow(is_array_or_number(object) ? value : seen_number(value));
  call->record(tracer::Event::Kind::NumpyCall, Reason::UserCall, Py_TYPE(object)->tp_name);
  call->holders().add_if_lazy(value);
  call->flush_and_share();
  return unwrap(seen_number(value));
}

void bind_others(py::module_& m) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_stand_in)},
      {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
      {Py_nb_power, reinterpret_cast<void*>(power)},
      {Py_nb_matrix_multiply, reinterpret_cast<void*>(matrix_product)},
      {Py_mp_subscript, reinterpret_cast<void*>(get_item)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
      {Py_sq_contains, reinterpret_cast<void*>(contains)},
      {Py_tp_doc,
       const_cast<char*>(
           "An object of another package, or an array, beside an operator or an index.")},
  };
  each_operator([&]<std::size_t I>() {
    slots.push_back({kBinary[I].slot, reinterpret_cast<void*>(binary<I>)});
  });
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"ufuse._core.operand", sizeof(StandIn), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  the_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  spec.name = "ufuse._core.users_operand";
  users_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  PyType_Slot of_long[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_stand_in)},
                           {Py_tp_richcompare, reinterpret_cast<void*>(compare_long)},
                           {Py_sq_contains, reinterpret_cast<void*>(contains_long)},
                           {0, nullptr}};
  PyType_Spec long_spec = {"ufuse._core.long_container", sizeof(StandIn), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, of_long};
  long_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&long_spec));
  if (the_type == nullptr || users_type == nullptr || long_type == nullptr ||
      PyModule_AddFunctions(m.ptr(), kFunctions) < 0)
    throw py::error_already_set();
  bind_hand_over(
      m, "set_others", "is_other", the_judge,
      "is_other(class) says whether a class is another package's, or the user's (False); "
      "None for Python's own.");
}

}  // namespace ufuse::pyext
