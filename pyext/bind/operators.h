// Python's binary operators and what they are in NumPy.
#pragma once

#include <array>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// A function of module operator (borrowed): what is called with real operands, so that Python and
// NumPy word the errors.
PyObject* operator_function(const char* name);

// Slot, slot of the in-place form, NumPy's ufunc, functions of module operator.
struct BinaryOperator {
  int slot, in_place_slot;
  const char *ufunc, *function, *in_place;
};
inline constexpr std::array kBinary = {
    BinaryOperator{Py_nb_add, Py_nb_inplace_add, "add", "add", "iadd"},
    BinaryOperator{Py_nb_subtract, Py_nb_inplace_subtract, "subtract", "sub", "isub"},
    BinaryOperator{Py_nb_multiply, Py_nb_inplace_multiply, "multiply", "mul", "imul"},
    BinaryOperator{Py_nb_true_divide, Py_nb_inplace_true_divide, "divide", "truediv", "itruediv"},
    BinaryOperator{Py_nb_floor_divide, Py_nb_inplace_floor_divide, "floor_divide", "floordiv",
                   "ifloordiv"},
    BinaryOperator{Py_nb_remainder, Py_nb_inplace_remainder, "remainder", "mod", "imod"},
    BinaryOperator{Py_nb_lshift, Py_nb_inplace_lshift, "left_shift", "lshift", "ilshift"},
    BinaryOperator{Py_nb_rshift, Py_nb_inplace_rshift, "right_shift", "rshift", "irshift"},
    BinaryOperator{Py_nb_and, Py_nb_inplace_and, "bitwise_and", "and_", "iand"},
    BinaryOperator{Py_nb_or, Py_nb_inplace_or, "bitwise_or", "or_", "ior"},
    BinaryOperator{Py_nb_xor, Py_nb_inplace_xor, "bitwise_xor", "xor", "ixor"},
};
}  // namespace ufuse::pyext
