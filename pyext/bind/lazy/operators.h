// Python's binary operators: slots of types, NumPy's ufuncs, functions of module operator.
#pragma once

#include <array>
#include <utility>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// A function of module operator (borrowed). Operators on real operands are calls of these, so
// errors have the words of Python and NumPy.
PyObject* operator_function(const char* name);

// The slots of `a + b` and `a += b`, NumPy's ufunc, the functions of module operator for both, and
// the functions of Python that apply them.
struct BinaryOperator {
  int slot, in_place_slot;
  const char *ufunc, *function, *in_place;
  binaryfunc apply, apply_in_place;
};
inline const std::array kBinary = {
    BinaryOperator{Py_nb_add, Py_nb_inplace_add, "add", "add", "iadd", PyNumber_Add,
                   PyNumber_InPlaceAdd},
    BinaryOperator{Py_nb_subtract, Py_nb_inplace_subtract, "subtract", "sub", "isub",
                   PyNumber_Subtract, PyNumber_InPlaceSubtract},
    BinaryOperator{Py_nb_multiply, Py_nb_inplace_multiply, "multiply", "mul", "imul",
                   PyNumber_Multiply, PyNumber_InPlaceMultiply},
    BinaryOperator{Py_nb_true_divide, Py_nb_inplace_true_divide, "divide", "truediv", "itruediv",
                   PyNumber_TrueDivide, PyNumber_InPlaceTrueDivide},
    BinaryOperator{Py_nb_floor_divide, Py_nb_inplace_floor_divide, "floor_divide", "floordiv",
                   "ifloordiv", PyNumber_FloorDivide, PyNumber_InPlaceFloorDivide},
    BinaryOperator{Py_nb_remainder, Py_nb_inplace_remainder, "remainder", "mod", "imod",
                   PyNumber_Remainder, PyNumber_InPlaceRemainder},
    BinaryOperator{Py_nb_lshift, Py_nb_inplace_lshift, "left_shift", "lshift", "ilshift",
                   PyNumber_Lshift, PyNumber_InPlaceLshift},
    BinaryOperator{Py_nb_rshift, Py_nb_inplace_rshift, "right_shift", "rshift", "irshift",
                   PyNumber_Rshift, PyNumber_InPlaceRshift},
    BinaryOperator{Py_nb_and, Py_nb_inplace_and, "bitwise_and", "and_", "iand", PyNumber_And,
                   PyNumber_InPlaceAnd},
    BinaryOperator{Py_nb_or, Py_nb_inplace_or, "bitwise_or", "or_", "ior", PyNumber_Or,
                   PyNumber_InPlaceOr},
    BinaryOperator{Py_nb_xor, Py_nb_inplace_xor, "bitwise_xor", "xor", "ixor", PyNumber_Xor,
                   PyNumber_InPlaceXor},
};
// Python's comparisons in the order of their numbers (Py_LT and so on): NumPy's ufuncs, functions
// of module operator.
struct Comparison {
  const char *ufunc, *function;
};
inline constexpr std::array kComparisons = {
    Comparison{"less", "lt"},    Comparison{"less_equal", "le"},
    Comparison{"equal", "eq"},   Comparison{"not_equal", "ne"},
    Comparison{"greater", "gt"}, Comparison{"greater_equal", "ge"},
};
// Calls row.operator()<I>() for each row of kBinary.
template <typename Row>
void each_operator(Row row) {
  [&]<std::size_t... I>(std::index_sequence<I...>) { (row.template operator()<I>(), ...); }
  (std::make_index_sequence<kBinary.size()>());
}
}  // namespace ufuse::pyext
