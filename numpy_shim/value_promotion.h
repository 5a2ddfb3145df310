// Does NumPy 1 choose the dtype that NEP 50 does? It promotes by values: beside arrays of the same
// or a higher kind, an operand without axes counts as the smallest dtype that holds its value.
// Where that gives another dtype than NEP 50's, NumPy answers (Unsupported).
#pragma once

#include <optional>
#include <span>

#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim {

// Whether NumPy 1 promotes operands to NEP 50's dtype (result_type); unset where that depends on
// values that are unset. `values`: of the operands without axes, as bits of their dtype or of a
// Python number's default dtype.
std::optional<bool> promotes_alike(std::span<const Operand> operands,
                                   std::span<const std::optional<ir::Scalar>> values);

// NumPy 1 also searches a ufunc's loop by the sizes of Python's integers.
void check_search(const NumpyVersion& version, std::span<const Operand> operands,
                  const Resolved& resolved);

// A Python integer as an operand: beyond int64 it has a dtype in NumPy 1 that is none of ours
// (unsigned long long).
void check_integer(const NumpyVersion& version, const WeakScalar& integer);

}  // namespace ufuse::numpy_shim
