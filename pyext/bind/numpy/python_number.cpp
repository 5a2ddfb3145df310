// See python_number.h.
#include "pyext/bind/numpy/python_number.h"

#include <cstring>

#include "numpy_shim/promote.h"
#include "numpy_shim/value_promotion.h"
#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

using numpy_shim::WeakScalar;

WeakScalar weak_integer(PyObject* object) {
  WeakScalar weak;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  weak.negative = overflow == 0 && value < 0;  // `value` is -1 where it overflows
  weak.magnitude = static_cast<std::uint64_t>(value);
  if (overflow > 0) {
    weak.magnitude = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) overflow = -1;
  }
  if (overflow < 0) {
    PyErr_Clear();
    throw Unsupported(Reason::WeakScalar);
  }
  numpy_shim::check_integer(numpy().version, weak);
  return weak;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

bool is_plain_number(PyObject* object) {
  return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyComplex_CheckExact(object);
}

WeakScalar weak_scalar(PyObject* number) {
  if (PyLong_CheckExact(number)) return weak_integer(number);
  WeakScalar weak;
  if (PyFloat_CheckExact(number)) {
    weak.kind = WeakScalar::Kind::Float;
    weak.value = PyFloat_AS_DOUBLE(number);
  } else {
    const Py_complex value = PyComplex_AsCComplex(number);
    weak.kind = WeakScalar::Kind::Complex;
    weak.value = {value.real, value.imag};
  }
  return weak;
}

bool same_number(PyObject* a, PyObject* b) {
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) return same_bits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyLong_CheckExact(a)) return PyObject_RichCompareBool(a, b, Py_EQ) == 1;
  const Py_complex x = PyComplex_AsCComplex(a), y = PyComplex_AsCComplex(b);
  return same_bits(x.real, y.real) && same_bits(x.imag, y.imag);
}

std::optional<ir::Scalar> number_bits(PyObject* number, ir::DType dtype) {
  try {
    return numpy_shim::convert(weak_scalar(number), dtype);
  } catch (const Unsupported&) {
    return std::nullopt;
  }
}

}  // namespace ufuse::pyext
