// See recorded_number.h.
#include "pyext/bind/lazy/recorded_number.h"

#include <algorithm>
#include <array>
#include <new>

#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/numpy/python_number.h"

namespace ufuse::pyext {
namespace {

PyTypeObject* the_type = nullptr;

void dealloc(PyObject* self) {
  NumberObject* number = as_number(self);
  number->call.~weak_ptr();
  Py_XDECREF(number->value);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

// The call in whose history this number is; null where that call is not the active one.
Call* recording_call(PyObject* object) {
  Call* call = Call::active();
  return call && is_number(object) && as_number(object)->call.lock().get() == call ? call : nullptr;
}

NumberHistory::Term term_of(PyObject* object) {
  if (is_number(object)) return {as_number(object)->number, {}};
  return {-1, borrow(object)};
}

// Notes both values as seen. A Python error that is set stays set.
void see(PyObject* a, PyObject* b) {
  const py::error_scope kept;
  seen_number(a);
  if (b) seen_number(b);
}

// The result of an operation with numbers only: a recorded number where the code uses it as an
// operand only.
py::object recorded(Call* call, binaryfunc binary, unaryfunc unary, PyObject* a, PyObject* b) {
  PyObject *x = plain_number(a), *y = b ? plain_number(b) : nullptr;
  py::object value = py::reinterpret_steal<py::object>(unary ? unary(x) : binary(x, y));
  if (call && value && is_plain_number(value.ptr()) && call->is_number_site()) {
    const auto number = call->numbers().add_result(
        binary, unary, term_of(a), b ? term_of(b) : NumberHistory::Term{}, value.ptr());
    if (number) return make_number(*call, *number);
  }
  see(a, b);
  if (!value) throw py::error_already_set();
  return value;
}

// Applies an operator. It may be that of `a += b` only where `a` is a number: traced code gives any
// other `a` the plain `b` (others.h).
PyObject* operate(binaryfunc apply, PyObject* a, PyObject* b) {
  return guard([&] {
    if (is_lazy(a) || is_lazy(b)) return borrow(Py_NotImplemented).release().ptr();
    Call* call = recording_call(is_number(a) ? a : b);
    if (is_operand(a) && is_operand(b)) return recorded(call, apply, nullptr, a, b).release().ptr();
    return steal(apply(seen_number(a), seen_number(b))).release().ptr();
  });
}

template <std::size_t I>
PyObject* binary(PyObject* a, PyObject* b) {
  return operate(kBinary[I].apply, a, b);
}

PyObject* raise_to_power(PyObject* base, PyObject* exponent) {
  return PyNumber_Power(base, exponent, Py_None);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) return borrow(Py_NotImplemented).release().ptr();
  return operate(raise_to_power, a, b);
}

template <unaryfunc apply>
PyObject* unary(PyObject* a) {
  return guard(
      [&] { return recorded(recording_call(a), nullptr, apply, a, nullptr).release().ptr(); });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  return guard([&] {
    if (is_lazy(b)) return borrow(Py_NotImplemented).release().ptr();
    if (!is_operand(b)) return PyObject_RichCompare(seen_number(a), b, op);
    py::object outcome = py::reinterpret_steal<py::object>(
        PyObject_RichCompare(plain_number(a), plain_number(b), op));
    Call* call = recording_call(a);
    if (!outcome) {  // complex numbers have no order
      see(a, b);
    } else if (call) {
      call->numbers().saw_comparison(op, term_of(a), term_of(b), outcome.ptr() == Py_True);
    }
    return outcome.release().ptr();
  });
}

int truth(PyObject* self) {
  const int outcome = PyObject_IsTrue(as_number(self)->value);
  if (Call* call = recording_call(self))
    call->numbers().saw_truth(as_number(self)->number, outcome == 1);
  return outcome;
}

PyObject* repr(PyObject* self) {
  return guard([&] { return PyObject_Repr(seen_number(self)); });
}

// A ufunc of a recorded number and other objects, none of which is lazy, gets the plain number.
PyObject* array_ufunc(PyObject*, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    PyObject* ufunc = PyTuple_GET_ITEM(args, 0);
    const py::object inputs = steal(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
    PyObject** first = &PyTuple_GET_ITEM(inputs.ptr(), 0);
    const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(inputs.ptr()));
    const bool is_call =
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(args, 1), "__call__") == 0;
    if (is_call && std::any_of(first, first + count, is_lazy))
      return call_ufunc(ufunc, {first, count}, kwargs).release().ptr();
    if (is_call) {
      const ScalarOperator found = operator_of_scalars(ufunc, {first, count}, kwargs);
      if (found.function)
        return PyObject_CallFunctionObjArgs(found.function, found.scalar.ptr(),
                                            seen_number(first[1]), nullptr);
    }
    py::tuple real(count);
    for (std::size_t i = 0; i < count; ++i) real[i] = borrow(seen_number(first[i]));
    const py::object bound = steal(PyObject_GetAttr(ufunc, PyTuple_GET_ITEM(args, 1)));
    return PyObject_Call(bound.ptr(), real.ptr(), kwargs);
  });
}

}  // namespace

PyTypeObject* number_type() { return the_type; }

bool is_operand(PyObject* object) {
  return is_number(object) || is_plain_number(object) || PyBool_Check(object);
}

py::object make_number(Call& call, int number) {
  NumberObject* made = PyObject_New(NumberObject, the_type);
  if (made == nullptr) throw py::error_already_set();
  made->value = call.numbers().value(number);
  Py_INCREF(made->value);
  made->number = number;
  new (&made->call) std::weak_ptr<Call>(call.weak_from_this());
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(made));
}

py::object number_in_attribute(Call& call, int number) {
  if (call.is_number_site()) return make_number(call, number);
  call.numbers().saw_value(number);
  return borrow(call.numbers().value(number));
}

py::object wrap_number(PyObject* object) {
  Call* call = Call::active();
  if (!call || !call->records_numbers() || !is_plain_number(object)) return borrow(object);
  const int number = call->next_argument_number();
  if (call->numbers().value(number) != object)
    throw InternalError("the numbers of a call are not those of its signature");
  return make_number(*call, number);
}

PyObject* seen_number(PyObject* object) {
  if (!is_number(object)) return object;
  if (Call* call = recording_call(object)) call->numbers().saw_value(as_number(object)->number);
  return as_number(object)->value;
}

void bind_number(py::module_& m) {
  static PyMethodDef methods[] = {
      {"__array_ufunc__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(array_ufunc)),
       METH_VARARGS | METH_KEYWORDS, "NumPy's ufuncs come here."},
      {nullptr, nullptr, 0, nullptr}};
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
      {Py_tp_hash, reinterpret_cast<void*>(PyObject_HashNotImplemented)},
      {Py_tp_methods, methods},
      {Py_nb_power, reinterpret_cast<void*>(power)},
      {Py_nb_negative, reinterpret_cast<void*>(unary<PyNumber_Negative>)},
      {Py_nb_positive, reinterpret_cast<void*>(unary<PyNumber_Positive>)},
      {Py_nb_invert, reinterpret_cast<void*>(unary<PyNumber_Invert>)},
      {Py_nb_bool, reinterpret_cast<void*>(truth)},
      {Py_tp_doc, const_cast<char*>("A Python number of a call that is being recorded.")},
  };
  each_operator([&]<std::size_t I>() {
    slots.push_back({kBinary[I].slot, reinterpret_cast<void*>(binary<I>)});
  });
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"ufuse.number", sizeof(NumberObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots.data()};
  the_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (the_type == nullptr) throw py::error_already_set();
  m.attr("number") = borrow(reinterpret_cast<PyObject*>(the_type));
}

}  // namespace ufuse::pyext
