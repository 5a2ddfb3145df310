// What do Python's operators do in NumPy that calls of the same ufuncs do not? Between NumPy's
// scalars they are routines of their own, `**` has shortcuts, and large temporaries are written
// over. pyext asks before it records an operator.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

// For an operator between NumPy scalars and Python numbers; throws Unsupported where the routine of
// NumPy's scalar types may warn, raise or round differently than the ufunc's loop.
void check_scalar_operator(std::string_view ufunc, std::span<const Operand> operands);

// The exponent of `x ** y` where that is one real number.
struct Exponent {
  double value = 0;
  bool is_float = false;
  bool is_python = false;  // exactly Python's int or float: no subclass, no NumPy scalar
};
// Values for which `**` or the loops of `power` may do something else than for other exponents; so
// they may for negative ones.
inline constexpr std::array kSpecialExponents = {-1.0, 0.0, 0.5, 1.0, 2.0};
// The ufunc that the operator `**` calls in the place of `power` for an array of this dtype; null:
// there is none; kPowerByNumpy: what it does there is no call of a public ufunc.
inline constexpr std::string_view kPowerByNumpy = "";
const char* power_shortcut(const NumpyVersion& version, DType base, const Exponent& exponent);

// The operand whose memory a binary operator reuses: an array nobody else refers to, which owns at
// least 256 KiB, where the other operand fits in. `is_temporary`: a reference count of one and
// memory of its own.
std::optional<std::size_t> elided_operand(std::string_view ufunc, std::span<const Operand> operands,
                                          std::array<bool, 2> is_temporary);

}  // namespace ufuse::numpy_shim
