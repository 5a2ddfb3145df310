// What did a traced call do with the Python numbers that it was given? Its history has the numbers
// that were calculated from them, and what the program saw of any of them: values, truths,
// comparisons. A recording is good for other numbers of the same types with which everything that
// was seen comes out the same.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Places in byte code, (code object, offset of the instruction), at which the result of an
// operation with numbers is used in further operations and for nothing else.
using NumberSites = std::set<std::pair<PyObject*, int>>;

class NumberHistory {
 public:
  // A number of the history, or a constant of the program.
  struct Term {
    int number = -1;
    py::object constant;
  };

  // The numbers that the call was given; they come before all results.
  int add_argument(PyObject* value);
  // Whether these very objects are the numbers that the call was given.
  bool are(std::span<PyObject* const> given) const;
  PyObject* value(int number) const { return values_[static_cast<std::size_t>(number)].ptr(); }

  // binary(a, b), or unary(a) where that is set, gave `value`: the number of the result, one for
  // all operations that are the same; unset where there are too many.
  std::optional<int> add_result(binaryfunc binary, unaryfunc unary, Term a, Term b,
                                PyObject* value);
  // The program saw a number's value, whether it is true, or how it compares.
  void saw_value(int number);
  void saw_truth(int number, bool outcome);
  void saw_comparison(int op, Term a, Term b, bool outcome);
  // NumPy saw an exponent, for some of which `**` has special cases.
  void saw_exponent(int number);
  // The program saw the values of all that it was given.
  void saw_everything();

  // Whether the same would be seen with these numbers in the place of the given ones; `values` are
  // then those of all numbers of the history. Runs no code but that of plain numbers.
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
