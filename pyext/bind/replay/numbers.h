// What a traced call did with the Python numbers that it was given: what it worked out of them, and
// which of their values it looked at. A plan whose loops take such numbers is good for other values
// of the same types, as long as everything that was looked at comes out as it did.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "numpy_shim/operand.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Exactly Python's int, float or complex: numbers without anybody's code behind them.
bool is_plain_number(PyObject* object);
// The number as NumPy takes it in an operation with arrays; throws Unsupported for integers beyond
// 64 bits.
numpy_shim::WeakScalar weak_scalar(PyObject* number);
// Same type and same bits.
bool same_number(PyObject* a, PyObject* b);

// base ** exponent, as the operator.
PyObject* raise_to_power(PyObject* base, PyObject* exponent);

// Places in byte code, (code object, offset of the instruction), where the result of an operation
// with numbers goes nowhere but into further operations.
using NumberSites = std::set<std::pair<PyObject*, int>>;

// What a loop of this dtype is handed for the number; unset where NumPy would raise.
std::optional<ir::Scalar> number_bits(PyObject* number, ir::DType dtype);

class Numbers {
 public:
  // A number of the call, or a constant of the program.
  struct Term {
    int number = -1;
    py::object constant;
  };

  // The numbers that the call was given come first.
  int add_argument(PyObject* value);
  // Whether these very objects are the numbers that the call was given.
  bool are(std::span<PyObject* const> given) const;
  PyObject* value(int number) const { return values_[static_cast<std::size_t>(number)].ptr(); }

  // function(a, b), or function(a) where `unary` is set, gave `value`. Unset: there are too many.
  std::optional<int> add_result(binaryfunc binary, unaryfunc unary, Term a, Term b,
                                PyObject* value);
  // What the program saw of a number: its value, whether it is true, how it compares.
  void saw_value(int number);
  void saw_truth(int number, bool outcome);
  void saw_comparison(int op, Term a, Term b, bool outcome);
  // Which of its special cases NumPy's power may take for this exponent.
  void saw_exponent(int number);
  // All the arguments' values.
  void saw_everything();

  // Whether other numbers lead the same way; `values` are then those of the call's numbers, the
  // given ones first. Runs no code but that of plain numbers.
  bool repeat(std::span<PyObject* const> given, std::vector<py::object>& values) const;

 private:
  struct Step {
    enum class Kind : std::uint8_t { Binary, Unary, Value, Truth, Comparison } kind = Kind::Value;
    binaryfunc binary = nullptr;
    unaryfunc unary = nullptr;
    int op = 0;  // of a comparison
    Term a, b;
    PyTypeObject* type = nullptr;  // of the result
    bool outcome = false;
  };
  bool repeat(const Step& step, std::vector<py::object>& values) const;

  std::vector<py::object> values_;
  std::size_t arguments_ = 0;
  std::vector<Step> steps_;
  std::vector<int> exponents_;  // that have been seen
};

}  // namespace ufuse::pyext
