// See numbers.h.
#include "pyext/bind/replay/numbers.h"

#include <algorithm>
#include <cstring>

#include "numpy_shim/promote.h"
#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

using numpy_shim::WeakScalar;

// A loop that works on numbers alone: its calls are traced.
constexpr std::size_t kMaxSteps = 200;

WeakScalar weak_integer(PyObject* object) {
  WeakScalar weak;
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  weak.negative = overflow == 0 && value < 0;  // `value` is -1 where it overflows
  weak.magnitude = static_cast<std::uint64_t>(value);
  // Before NEP 50 it is of a type that we do not have (unsigned long long).
  if (overflow > 0 && numpy().version.promotes_by_value()) throw Unsupported(Reason::WeakScalar);
  if (overflow > 0) {
    weak.magnitude = PyLong_AsUnsignedLongLong(object);
    if (PyErr_Occurred()) overflow = -1;
  }
  if (overflow < 0) {
    PyErr_Clear();
    throw Unsupported(Reason::WeakScalar);
  }
  return weak;
}

bool same_bits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

PyObject* term_value(const Numbers::Term& term, const std::vector<py::object>& values) {
  return term.number >= 0 ? values[static_cast<std::size_t>(term.number)].ptr()
                          : term.constant.ptr();
}

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

PyObject* raise_to_power(PyObject* base, PyObject* exponent) {
  return PyNumber_Power(base, exponent, Py_None);
}

int Numbers::add_argument(PyObject* value) {
  values_.push_back(borrow(value));
  return static_cast<int>(arguments_++);
}

bool Numbers::are(std::span<PyObject* const> given) const {
  return std::ranges::equal(given, std::span(values_).first(arguments_), {}, {},
                            [](const py::object& value) { return value.ptr(); });
}

std::optional<int> Numbers::add_result(binaryfunc binary, unaryfunc unary, Term a, Term b,
                                       PyObject* value) {
  if (steps_.size() >= kMaxSteps) return std::nullopt;
  const auto kind = unary ? Step::Kind::Unary : Step::Kind::Binary;
  steps_.push_back({kind, binary, unary, 0, std::move(a), std::move(b), Py_TYPE(value), false});
  values_.push_back(borrow(value));
  return static_cast<int>(values_.size() - 1);
}

void Numbers::saw_value(int number) {
  const Term seen{-1, values_[static_cast<std::size_t>(number)]};
  steps_.push_back({Step::Kind::Value, nullptr, nullptr, 0, {number, {}}, seen, nullptr, true});
}

void Numbers::saw_truth(int number, bool outcome) {
  steps_.push_back({Step::Kind::Truth, nullptr, nullptr, 0, {number, {}}, {}, nullptr, outcome});
}

void Numbers::saw_comparison(int op, Term a, Term b, bool outcome) {
  steps_.push_back(
      {Step::Kind::Comparison, nullptr, nullptr, op, std::move(a), std::move(b), nullptr, outcome});
}

void Numbers::saw_exponent(int number) {
  if (std::ranges::find(exponents_, number) != exponents_.end()) return;
  exponents_.push_back(number);
  PyObject* exponent = value(number);
  if (PyComplex_CheckExact(exponent)) return saw_value(number);
  const auto see = [&](int op, double special) {
    const py::float_ other(special);
    const int outcome = PyObject_RichCompareBool(exponent, other.ptr(), op);
    if (outcome < 0) throw py::error_already_set();
    saw_comparison(op, {number, {}}, {-1, other}, outcome == 1);
  };
  for (double special : {-1.0, 0.0, 0.5, 1.0, 2.0}) see(Py_EQ, special);
  see(Py_LT, 0.0);
}

void Numbers::saw_everything() {
  for (std::size_t i = 0; i < arguments_; ++i) saw_value(static_cast<int>(i));
}

bool Numbers::repeat(const Step& step, std::vector<py::object>& values) const {
  PyObject *a = term_value(step.a, values), *b = term_value(step.b, values);
  switch (step.kind) {
    case Step::Kind::Value:
      return same_number(a, b);
    case Step::Kind::Truth:
      return PyObject_IsTrue(a) == static_cast<int>(step.outcome);
    case Step::Kind::Comparison:
      return PyObject_RichCompareBool(a, b, step.op) == static_cast<int>(step.outcome);
    case Step::Kind::Binary:
    case Step::Kind::Unary: {
      py::object made = py::reinterpret_steal<py::object>(
          step.kind == Step::Kind::Unary ? step.unary(a) : step.binary(a, b));
      if (!made || Py_TYPE(made.ptr()) != step.type) return false;
      values.push_back(std::move(made));
      return true;
    }
  }
  return false;
}

bool Numbers::repeat(std::span<PyObject* const> given, std::vector<py::object>& values) const {
  values.clear();
  for (PyObject* number : given) values.push_back(borrow(number));
  for (const Step& step : steps_)
    if (!repeat(step, values)) {
      PyErr_Clear();  // division by zero: the traced call raises it at its line
      return false;
    }
  return true;
}

}  // namespace ufuse::pyext
