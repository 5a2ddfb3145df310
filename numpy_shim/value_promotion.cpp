// See value_promotion.h. Follows PyArray_CheckLegacyResultType and min_scalar_type_num of NumPy's
// convert_datatype.c; tests/numpy_shim compares with np.result_type of a NumPy 1.
#include "numpy_shim/value_promotion.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "ir/inner_loops.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim {

namespace {

// Any element of a dtype, exactly.
using Number = std::complex<long double>;

bool is_0d(const Operand& x) { return x.weak || x.layout.shape.empty(); }
DType dtype_of(const Operand& x) { return x.weak ? default_dtype(*x.weak) : x.layout.dtype; }

Number number_of(ir::Scalar bits, DType dtype) {
  ir::Scalar wide;
  char* args[] = {reinterpret_cast<char*>(bits.bits), reinterpret_cast<char*>(wide.bits)};
  const std::int64_t one = 1, strides[] = {0, 0};
  ir::cast_loop(dtype, DType::CLongDouble)(args, &one, strides, nullptr);
  long double parts[2];
  static_assert(sizeof parts <= sizeof wide.bits);
  std::memcpy(parts, wide.bits, sizeof parts);
  return {parts[0], parts[1]};
}

// NumPy's order of kinds in which arrays have the say over numbers.
int rank(DType dtype) {
  return ir::is_in(dtype, ir::kInexact) ? 2 : ir::is_in(dtype, ir::kInteger) ? 1 : 0;
}

// The smallest dtype that holds a value, or the dtype of an array.
struct Smallest {
  DType dtype;
  bool small_unsigned = false;  // the signed dtype of the same size holds the value, too
};

Smallest smallest_integer(long double value) {
  using enum DType;
  constexpr std::array kUnsigned = {UInt8, UInt16, UInt32, UInt64};
  constexpr std::array kSigned = {Int8, Int16, Int32, Int64};
  for (std::size_t i = 0; i < kUnsigned.size(); ++i) {
    const long double half = std::exp2(8.0L * static_cast<long double>(1u << i) - 1);
    if (value < 0 && value >= -half) return {kSigned[i]};
    if (value >= 0 && value < 2 * half) return {kUnsigned[i], value < half};
  }
  throw InternalError("an integer of more than 64 bits");
}

Smallest smallest(DType dtype, const Number& value) {
  if (ir::is_in(dtype, ir::kInteger)) return smallest_integer(value.real());
  if (!ir::is_in(dtype, ir::kInexact)) return {dtype};
  const auto is_within = [&](long double limit) {
    return std::abs(value.real()) < limit && std::abs(value.imag()) < limit;
  };
  const bool complex = ir::is_in(dtype, ir::kComplex);
  const std::size_t size = ir::size_of(ir::real_part(dtype));
  // The limits are NumPy's. No complex number becomes a real one.
  if (!complex && (is_within(65000) || !std::isfinite(value.real()))) return {DType::Float16};
  if (size > 4 && is_within(3.4e38)) return {complex ? DType::Complex64 : DType::Float32};
  if (size > 8 && is_within(1.7e308)) return {complex ? DType::Complex128 : DType::Float64};
  return {dtype};
}

DType signed_of(DType dtype) {
  switch (ir::size_of(dtype)) {
    case 1:
      return DType::Int8;
    case 2:
      return DType::Int16;
    case 4:
      return DType::Int32;
    default:
      return DType::Int64;
  }
}

Smallest promoted(const Smallest& a, const Smallest& b) {
  const auto has_sign = [](DType t) { return !ir::is_in(t, ir::kBool | ir::kUInt); };
  const DType x = a.small_unsigned && has_sign(b.dtype) ? signed_of(a.dtype) : a.dtype;
  const DType y = b.small_unsigned && has_sign(a.dtype) ? signed_of(b.dtype) : b.dtype;
  return {promote(x, y), a.small_unsigned && b.small_unsigned};
}

// np.result_type of NumPy 1; `values`: of the operands without axes.
DType result_type_by_value(std::span<const Operand> operands, std::span<const Number> values) {
  int scalars = -1, arrays = -1;  // highest ranks
  for (const Operand& x : operands) {
    int& highest = is_0d(x) ? scalars : arrays;
    highest = std::max(highest, rank(dtype_of(x)));
  }
  if (scalars < 0 || arrays < scalars) {  // values do not matter
    std::vector<Operand> strong(operands.begin(), operands.end());
    for (Operand& x : strong) {
      x.layout.dtype = dtype_of(x);
      x.weak.reset();
    }
    return result_type(strong);
  }
  std::optional<Smallest> result;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DType dtype = dtype_of(operands[i]);
    const Smallest next = is_0d(operands[i]) ? smallest(dtype, values[i]) : Smallest{dtype};
    result = result ? promoted(next, *result) : next;
  }
  return result->dtype;
}

// Numbers of a dtype between which the smallest dtype that holds them varies.
std::vector<Number> extremes_of(DType dtype) {
  if (ir::is_in(dtype, ir::kBool)) return {0};
  if (ir::is_in(dtype, ir::kInteger)) {
    const bool is_signed = ir::is_in(dtype, ir::kInt);
    const auto bits = static_cast<long double>(8 * ir::size_of(dtype)) - (is_signed ? 1 : 0);
    const long double end = std::exp2(bits);
    return {0, end - 1, is_signed ? -end : 0};
  }
  switch (ir::real_part(dtype)) {
    case DType::Float16:
      return {0};
    case DType::Float32:
      return {0, std::numeric_limits<float>::max()};
    case DType::Float64:
      return {0, std::numeric_limits<double>::max()};
    default:
      return {0, std::numeric_limits<long double>::max()};
  }
}

}  // namespace

std::optional<bool> promotes_alike(std::span<const Operand> operands,
                                   std::span<const std::optional<ir::Scalar>> values) {
  std::vector<std::vector<Number>> choices;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DType dtype = dtype_of(operands[i]);
    if (!is_0d(operands[i]))
      choices.push_back({0});
    else if (values[i])
      choices.push_back({number_of(*values[i], dtype)});
    else
      choices.push_back(extremes_of(dtype));
  }
  const DType wanted = result_type(operands);
  std::optional<bool> alike;
  std::vector<std::size_t> at(operands.size());  // every combination of choices
  std::vector<Number> numbers(operands.size());
  while (true) {
    for (std::size_t i = 0; i < at.size(); ++i) numbers[i] = choices[i][at[i]];
    const bool same = result_type_by_value(operands, numbers) == wanted;
    if (alike && *alike != same) return std::nullopt;
    alike = same;
    std::size_t i = 0;
    while (i < at.size() && ++at[i] == choices[i].size()) at[i++] = 0;
    if (i == at.size()) return alike;
  }
}

void check_search(const NumpyVersion& version, std::span<const Operand> operands,
                  const Resolved& resolved) {
  if (!version.promotes_by_value()) return;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const auto& weak = operands[i].weak;
    if (!weak || weak->kind != WeakScalar::Kind::Int || resolved.inputs[i] != DType::Float16)
      continue;
    // Only integers of one byte fit float16.
    const auto value = static_cast<std::int64_t>(weak->magnitude);
    if (value < -128 || value > 255) throw Unsupported(Reason::Promotion);
  }
}

void check_integer(const NumpyVersion& version, const WeakScalar& integer) {
  const bool fits =
      integer.negative || integer.magnitude <= std::numeric_limits<std::int64_t>::max();
  if (version.promotes_by_value() && !fits) throw Unsupported(Reason::WeakScalar);
}

}  // namespace ufuse::numpy_shim
