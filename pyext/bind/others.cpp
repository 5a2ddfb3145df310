// What if an operator or an index of traced code meets an object of another package?
//
// Of `matrix @ x`, `frame["a"] = x` and `series < x` Python asks the left object what they mean,
// and its class may be compiled code, which takes NumPy's own arrays alone. So traced code says
// `operand(matrix) @ x`. For an object of another package an `Operand` stands there while the
// operator runs, and hands it real arrays; anything else is itself. Which classes those are says
// ufuse/callees.py (`is_other`). NumPy's own arrays, too, are given real arrays as an index: it
// takes any other object for a list, whose numbers it looks at in another way.
#include "pyext/bind/others.h"

#include <array>

#include "pyext/bind/containers.h"
#include "pyext/bind/lazy_number.h"
#include "pyext/bind/lazy_ops.h"
#include "pyext/bind/operators.h"

namespace ufuse::pyext {
namespace {

struct Operand {
  PyObject_HEAD PyObject* object;
};

PyTypeObject* the_type = nullptr;
PyObject* the_judge = nullptr;  // callees.is_other

PyObject* object_of(PyObject* operand) { return reinterpret_cast<Operand*>(operand)->object; }

void dealloc(PyObject* self) {
  Py_DECREF(object_of(self));
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

bool holds_lazy(PyObject* value) {
  ContainerWalk walk(value, Into::All);
  while (PyObject* object = walk.next())
    if (is_lazy(object)) return true;
  return false;
}

// function(object, values...), a function of module operator.
PyObject* apply(const char* name, PyObject* self, std::initializer_list<PyObject*> values) {
  return guard([&] {
    PyObject* function = operator_function(name);
    std::array<PyObject*, 3> given{object_of(self)};
    std::size_t count = 1;
    bool lazy = false;
    for (PyObject* value : values) {
      given[count++] = seen_number(value);
      lazy |= holds_lazy(value);
    }
    if (!lazy) return PyObject_Vectorcall(function, given.data(), count, nullptr);
    py::tuple args(count);
    for (std::size_t i = 0; i < count; ++i) args[i] = borrow(given[i]);
    return numpy_call(function, args.ptr(), nullptr, "user_call", false).release().ptr();
  });
}

// The left side is asked first, and an operand stands nowhere else.
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

PyObject* get_item(PyObject* self, PyObject* index) { return apply("getitem", self, {index}); }

int set_item(PyObject* self, PyObject* index, PyObject* value) {
  const py::object done = py::reinterpret_steal<py::object>(
      value ? apply("setitem", self, {index, value}) : apply("delitem", self, {index}));
  return done ? 0 : -1;
}

int contains(PyObject* self, PyObject* value) {
  const py::object found = py::reinterpret_steal<py::object>(apply("contains", self, {value}));
  return found ? PyObject_IsTrue(found.ptr()) : -1;
}

// Objects of the types that stand in most places.
bool is_plain(PyObject* object) {
  return is_lazy(object) || is_number(object) || PyArray_CheckExact(object) ||
         PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object) ||
         PyList_CheckExact(object) || PyTuple_CheckExact(object) || PyDict_CheckExact(object) ||
         PyUnicode_CheckExact(object) || PyComplex_CheckExact(object) ||
         PyArray_IsScalar(object, Generic) || object == Py_None || PyType_Check(object);
}

bool is_other(PyObject* object) {
  if (is_plain(object)) return false;
  const py::object answer =
      steal(PyObject_CallOneArg(the_judge, reinterpret_cast<PyObject*>(Py_TYPE(object))));
  return answer.ptr() == Py_True;
}

PyObject* made_for(PyObject* object) {
  auto* made = PyObject_New(Operand, the_type);
  if (made == nullptr) throw py::error_already_set();
  made->object = Py_NewRef(object);
  return reinterpret_cast<PyObject*>(made);
}

PyObject* operand(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count != 1 && count != 2) throw py::type_error("operand needs one object or two");
    PyObject* value = args[count - 1];
    if (Call::active() == nullptr || !is_other(args[0])) return Py_NewRef(value);
    if (count == 2) {
      if (!holds_lazy(value)) return Py_NewRef(seen_number(value));
      Call& call = *Call::active();
      call.record(tracer::Event::Kind::NumpyCall, "user_call", Py_TYPE(args[0])->tp_name);
      call.session().flush();
      return unwrap(value).release().ptr();
    }
    return made_for(args[0]);
  });
}

PyObject* indexed(PyObject*, PyObject* object) {
  return guard([&] {
    const bool asks = Call::active() && (PyArray_CheckExact(object) || is_other(object));
    return asks ? made_for(object) : Py_NewRef(object);
  });
}

PyMethodDef kFunctions[] = {
    {"operand", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(operand)), METH_FASTCALL,
     "operand(x): what stands for x at the left of an operator of traced code. "
     "operand(x, y): what stands for y in `x += y`."},
    {"indexed", indexed, METH_O, "indexed(x): what stands for x in `x[i]` of traced code."},
    {nullptr, nullptr, 0, nullptr}};

template <std::size_t... I>
void add_binary_slots(std::vector<PyType_Slot>& slots, std::index_sequence<I...>) {
  (slots.push_back({kBinary[I].slot, reinterpret_cast<void*>(binary<I>)}), ...);
}

}  // namespace

void bind_others(py::module_& m) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
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
  add_binary_slots(slots, std::make_index_sequence<kBinary.size()>());
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"ufuse._core.operand", sizeof(Operand), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  the_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (the_type == nullptr || PyModule_AddFunctions(m.ptr(), kFunctions) < 0)
    throw py::error_already_set();
  m.def(
      "set_others",
      [](py::object judge) {
        Py_XDECREF(the_judge);
        the_judge = judge.release().ptr();
      },
      py::arg("is_other"), "is_other(class) says whether `operand` stands for its objects.");
}

}  // namespace ufuse::pyext
