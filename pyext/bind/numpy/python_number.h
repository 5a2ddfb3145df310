// Python's own int, float and complex: are two of them equal to the bit, and what are they as
// operands beside arrays?
#pragma once

#include <optional>

#include "numpy_shim/operand.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Exactly Python's int, float or complex: numbers without anybody's code behind them.
bool is_plain_number(PyObject* object);
// Same type and same bits.
bool same_number(PyObject* a, PyObject* b);
// The number as NumPy takes it in an operation with arrays; throws Unsupported for integers beyond
// 64 bits.
numpy_shim::WeakScalar weak_scalar(PyObject* number);
// What a loop of this dtype is handed for the number; unset where NumPy would raise.
std::optional<ir::Scalar> number_bits(PyObject* number, ir::DType dtype);

}  // namespace ufuse::pyext
