// See number_history.h.
#include "pyext/bind/replay/number_history.h"

#include <algorithm>

#include "numpy_shim/operators.h"
#include "pyext/bind/numpy/python_number.h"

namespace ufuse::pyext {
namespace {

// Calls with more results, mostly of a loop that calculates with numbers, are not replayed with
// other numbers.
constexpr std::size_t kMaxSteps = 200;

PyObject* term_value(const NumberHistory::Term& term, const std::vector<py::object>& values) {
  return term.number >= 0 ? values[static_cast<std::size_t>(term.number)].ptr()
                          : term.constant.ptr();
}

bool is_same(const NumberHistory::Term& a, const NumberHistory::Term& b) {
  if (a.number >= 0 || b.number >= 0 || !a.constant || !b.constant) return a.number == b.number;
  return same_number(a.constant.ptr(), b.constant.ptr());
}

}  // namespace

int NumberHistory::add_argument(PyObject* value) {
  values_.push_back(borrow(value));
  return static_cast<int>(arguments_++);
}

bool NumberHistory::are(std::span<PyObject* const> given) const {
  return std::ranges::equal(given, std::span(values_).first(arguments_), {}, {},
                            [](const py::object& value) { return value.ptr(); });
}

std::optional<int> NumberHistory::add_result(binaryfunc binary, unaryfunc unary, Term a, Term b,
                                             PyObject* value) {
  const auto kind = unary ? Step::Kind::Unary : Step::Kind::Binary;
  auto made = static_cast<int>(arguments_);
  for (const Step& step : steps_) {
    if (step.type == nullptr) continue;  // it has no result
    if (step.kind == kind && step.binary == binary && step.unary == unary &&
        step.type == Py_TYPE(value) && is_same(step.a, a) && is_same(step.b, b))
      return made;
    ++made;
  }
  if (steps_.size() >= kMaxSteps) return std::nullopt;
  steps_.push_back({kind, binary, unary, 0, std::move(a), std::move(b), Py_TYPE(value), false});
  values_.push_back(borrow(value));
  return static_cast<int>(values_.size() - 1);
}

void NumberHistory::saw_value(int number) {
  const Term seen{-1, values_[static_cast<std::size_t>(number)]};
  steps_.push_back({Step::Kind::Value, nullptr, nullptr, 0, {number, {}}, seen, nullptr, true});
}

void NumberHistory::saw_truth(int number, bool outcome) {
  steps_.push_back({Step::Kind::Truth, nullptr, nullptr, 0, {number, {}}, {}, nullptr, outcome});
}

void NumberHistory::saw_comparison(int op, Term a, Term b, bool outcome) {
  steps_.push_back(
      {Step::Kind::Comparison, nullptr, nullptr, op, std::move(a), std::move(b), nullptr, outcome});
}

void NumberHistory::saw_exponent(int number) {
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
  for (double special : numpy_shim::kSpecialExponents) see(Py_EQ, special);
  see(Py_LT, 0.0);
}

void NumberHistory::saw_everything() {
  for (std::size_t i = 0; i < arguments_; ++i) saw_value(static_cast<int>(i));
}

bool NumberHistory::repeat(const Step& step, std::vector<py::object>& values) const {
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

bool NumberHistory::repeat(std::span<PyObject* const> given,
                           std::vector<py::object>& values) const {
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
