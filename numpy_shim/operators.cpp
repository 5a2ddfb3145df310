// See operators.h. NumPy's sources of these rules: scalarmath.c.src for its scalars, number.c
// (fast_scalar_power) for `**`, temp_elide.c for temporaries.
#include "numpy_shim/operators.h"

#include <algorithm>

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim {

namespace {

// Smaller temporaries are left alone.
constexpr std::size_t kMinimumBytes = 256 * 1024;

bool takes_result(const Layout& temporary, const Operand& other) {
  if (bytes_of(temporary) < kMinimumBytes) return false;
  const DType from = other.weak ? default_dtype(*other.weak) : other.layout.dtype;
  const bool fits =
      other.weak || other.layout.shape.empty() || other.layout.shape == temporary.shape;
  return fits && can_cast_safely(from, temporary.dtype);
}

// Only Python's own 2, -1 and 0.5 are special, whatever equals them otherwise.
const char* shortcut_by_type(bool inexact, const Exponent& exponent) {
  if (!exponent.is_python) return nullptr;
  if (exponent.is_float) return exponent.value == 0.5 && inexact ? "sqrt" : nullptr;
  if (exponent.value == 2.0) return "square";
  return exponent.value == -1.0 && inexact ? "reciprocal" : nullptr;
}

const char* shortcut_by_value(DType base, bool inexact, const Exponent& exponent) {
  if (!inexact) {
    if (exponent.value != 2.0) return nullptr;
    // bool is no integer here: its square is an int8 also for 2.0. Of integers, a copy as doubles,
    // in C or Fortran order, is squared.
    return !exponent.is_float || base == DType::Bool ? "square" : kPowerByNumpy.data();
  }
  if (exponent.value == 1.0) return "positive";
  if (exponent.value == -1.0) return "reciprocal";
  if (exponent.value == 0.0) return kPowerByNumpy.data();  // _ones_like
  if (exponent.value == 0.5) return "sqrt";
  return exponent.value == 2.0 ? "square" : nullptr;
}

}  // namespace

void check_scalar_operator(std::string_view ufunc, std::span<const Operand> operands) {
  if (ufunc == "power") throw Unsupported(Reason::ScalarPower);
  constexpr std::array<std::string_view, 9> kChecksOverflow = {
      "add",    "subtract", "multiply", "floor_divide", "remainder",
      "divmod", "negative", "absolute", "positive"};
  const bool complex = std::ranges::any_of(operands, [](const Operand& x) {
    return !x.weak && ir::is_in(x.layout.dtype, ir::kComplex);
  });
  // Beside a real scalar Python's complex numbers answer themselves (1j * np.float64), or the
  // ufunc.
  if (!complex && std::ranges::any_of(operands, [](const Operand& x) {
        return x.weak && x.weak->kind == WeakScalar::Kind::Complex;
      }))
    throw Unsupported(Reason::ScalarOperator);
  // A product of complex scalars is rounded twice, where the loops may fuse one product with the
  // sum. A comparison of scalars never warns, but that of the loops for complex numbers does.
  if (complex && ufunc != "add" && ufunc != "subtract" && ufunc != "divide")
    throw Unsupported(Reason::ScalarOperator);
  // Halves: inf // -0.0 raises "invalid" between scalars only.
  const bool half = std::ranges::any_of(
      operands, [](const Operand& x) { return !x.weak && x.layout.dtype == DType::Float16; });
  if (half && (ufunc == "floor_divide" || ufunc == "divmod"))
    throw Unsupported(Reason::ScalarOperator);
  const bool integers = std::ranges::all_of(
      operands, [](const Operand& x) { return is_integer(x, ir::kInteger | ir::kBool); });
  if (integers && std::ranges::count(kChecksOverflow, ufunc))
    throw Unsupported(Reason::IntegerScalar);
}

const char* power_shortcut(const NumpyVersion& version, DType base, const Exponent& exponent) {
  const bool inexact = ir::is_in(base, ir::kInexact);
  return version.powers_by_value() ? shortcut_by_value(base, inexact, exponent)
                                   : shortcut_by_type(inexact, exponent);
}

std::optional<std::size_t> elided_operand(std::string_view ufunc, std::span<const Operand> operands,
                                          std::array<bool, 2> is_temporary) {
  if (!is_temporary[0] && !is_temporary[1]) return std::nullopt;  // as for most calls
  constexpr std::array<std::string_view, 5> kCommutative = {"add", "multiply", "bitwise_and",
                                                            "bitwise_or", "bitwise_xor"};
  constexpr std::array<std::string_view, 5> kLeftOnly = {"subtract", "divide", "floor_divide",
                                                         "left_shift", "right_shift"};
  const bool commutative = std::ranges::count(kCommutative, ufunc) != 0;
  if (operands.size() != 2 || (!commutative && !std::ranges::count(kLeftOnly, ufunc)))
    return std::nullopt;
  const auto elides = [&](std::size_t i) {
    const Operand& x = operands[i];
    return is_temporary[i] && !x.weak && takes_result(x.layout, operands[1 - i]) &&
           (ufunc != "divide" || ir::is_in(x.layout.dtype, ir::kInexact));
  };
  if (elides(0)) return 0;
  if (commutative && elides(1)) return 1;
  return std::nullopt;
}

}  // namespace ufuse::numpy_shim
