// Which dtype does NumPy choose? The rules of NEP 50, written as rules rather than as a 16x16
// table; tests/numpy_shim compares every pair with np.promote_types and np.can_cast.
#include "numpy_shim/promote.h"

#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "ir/inner_loops.h"

namespace ufuse::numpy_shim {

using ir::Kind;
using ir::Scalar;

namespace {

Kind kind_of(DType t) { return ir::info(t).kind; }

// Position of a kind in NumPy's order b < u < i < f < c, which "same_kind" casting follows.
int rank(DType t) {
  switch (kind_of(t)) {
    case Kind::Bool:
      return 0;
    case Kind::UInt:
      return 1;
    case Kind::Int:
      return 2;
    case Kind::Float:
      return 3;
    case Kind::Complex:
      return 4;
  }
  throw InternalError("dtype of unknown kind");
}

// NEP 50's categories: a weak scalar gives its category where it is the higher one, and never a
// size.
enum class Category { Bool, Integer, Float, Complex };
Category category(DType t) {
  return ir::is_in(t, ir::kBool)      ? Category::Bool
         : ir::is_in(t, ir::kInteger) ? Category::Integer
         : ir::is_in(t, ir::kFloat)   ? Category::Float
                                      : Category::Complex;
}
Category category(const WeakScalar& weak) {
  switch (weak.kind) {
    case WeakScalar::Kind::Int:
      return Category::Integer;
    case WeakScalar::Kind::Float:
      return Category::Float;
    case WeakScalar::Kind::Complex:
      return Category::Complex;
  }
  throw InternalError("weak scalar of unknown kind");
}

// NumPy's order of the dtypes: by category, then size, then signed before unsigned.
std::tuple<Category, std::size_t, bool> type_number(DType t) {
  return {category(t), ir::size_of(t), ir::is_in(t, ir::kUInt)};
}

// What a strong dtype becomes beside a weak scalar of category `weak`.
DType lifted(DType strong, Category weak) {
  if (weak <= category(strong)) return strong;
  switch (weak) {
    case Category::Bool:
      return strong;
    case Category::Integer:
      return DType::Int64;
    case Category::Float:
      return DType::Float64;
    case Category::Complex:
      return promote(strong, ir::is_in(strong, ir::kFloat) ? DType::Complex64 : DType::Complex128);
  }
  throw InternalError("weak scalar of unknown category");
}

Scalar integer_bits(const WeakScalar& weak, DType dtype) {
  const int bits = static_cast<int>(8 * ir::size_of(dtype));
  const bool is_signed = kind_of(dtype) == Kind::Int;
  bool fits;
  if (weak.negative) {
    const auto value = static_cast<std::int64_t>(weak.magnitude);
    fits = is_signed && value >= std::numeric_limits<std::int64_t>::min() >> (64 - bits);
  } else {
    fits = weak.magnitude <= std::numeric_limits<std::uint64_t>::max() >> (64 - bits + is_signed);
  }
  if (!fits) throw Unsupported(Reason::WeakScalar, std::string(ir::info(dtype).name));
  const std::uint64_t mask = std::numeric_limits<std::uint64_t>::max() >> (64 - bits);
  return {{weak.magnitude & mask, 0}};
}

// Python's own conversion of int to float first (correctly rounded), then C's double -> float:
// NumPy's two steps.
double as_double(const WeakScalar& weak) {
  if (weak.kind != WeakScalar::Kind::Int) return weak.value.real();
  return weak.negative ? static_cast<double>(static_cast<std::int64_t>(weak.magnitude))
                       : static_cast<double>(weak.magnitude);
}

// One number, as C converts it.
template <class From>
Scalar converted(From value, DType from, DType to) {
  Scalar bits;
  char* args[] = {reinterpret_cast<char*>(&value), reinterpret_cast<char*>(bits.bits)};
  const std::int64_t one = 1, strides[] = {0, 0};
  ir::cast_loop(from, to)(args, &one, strides, nullptr);
  return ir::without_padding(bits, to);
}

Scalar float_bits(double value, DType dtype) {
  const Scalar bits = converted(value, DType::Float64, dtype);
  const auto back = std::bit_cast<double>(converted(bits, dtype, DType::Float64).bits[0]);
  if (std::isinf(back) && !std::isinf(value)) throw Unsupported(Reason::WeakScalar, "overflow");
  return bits;
}

// A long double takes an integer as it is. A complex one does so in NumPy 1; NumPy 2 makes it of
// the integer's double.
Scalar float_bits(const WeakScalar& weak, DType dtype) {
  const DType part = ir::real_part(dtype);
  if (part != DType::LongDouble || weak.kind != WeakScalar::Kind::Int)
    return float_bits(as_double(weak), part);
  const DType from = weak.negative ? DType::Int64 : DType::UInt64;
  const Scalar exact = converted(weak.magnitude, from, part);
  if (part != dtype && exact != float_bits(as_double(weak), part))
    throw Unsupported(Reason::WeakScalar, "integer beyond double to clongdouble");
  return exact;
}

}  // namespace

bool can_cast_safely(DType from, DType to) {
  if (from == to || from == DType::Bool) return true;
  const std::size_t size = ir::size_of(from), room = ir::size_of(ir::real_part(to));
  switch (kind_of(from)) {
    case Kind::Bool:
      return true;
    case Kind::UInt:
      if (kind_of(to) == Kind::UInt) return room >= size;
      if (kind_of(to) == Kind::Int) return room > size;
      return rank(to) >= 3 && (room > size || room == 8);
    case Kind::Int:
      if (kind_of(to) == Kind::Int) return room >= size;
      return rank(to) >= 3 && (room > size || room == 8);
    case Kind::Float:
      return rank(to) >= 3 && room >= size;
    case Kind::Complex:
      return kind_of(to) == Kind::Complex && room >= ir::size_of(ir::real_part(from));
  }
  throw InternalError("dtype of unknown kind");
}

bool can_cast_same_kind(DType from, DType to) {
  return can_cast_safely(from, to) || rank(from) <= rank(to);
}

bool can_cast(DType from, DType to, std::string_view casting) {
  if (casting == "unsafe") return true;
  if (casting == "same_kind") return can_cast_same_kind(from, to);
  if (casting == "safe") return can_cast_safely(from, to);
  return (casting == "no" || casting == "equiv") && from == to;
}

// The first dtype, smallest kinds and sizes first, that both can be cast to safely.
DType promote(DType a, DType b) {
  using enum DType;
  constexpr std::array kOrder = {Bool,       UInt8,     UInt16,     UInt32,     UInt64,  Int8,
                                 Int16,      Int32,     Int64,      Float16,    Float32, Float64,
                                 LongDouble, Complex64, Complex128, CLongDouble};
  static_assert(kOrder.size() == ir::kDTypeCount);
  for (DType t : kOrder)
    if (can_cast_safely(a, t) && can_cast_safely(b, t)) return t;
  throw InternalError("dtypes without a common one");
}

DType default_dtype(const WeakScalar& weak) {
  switch (weak.kind) {
    case WeakScalar::Kind::Int:
      return DType::Int64;
    case WeakScalar::Kind::Float:
      return DType::Float64;
    case WeakScalar::Kind::Complex:
      return DType::Complex128;
  }
  throw InternalError("weak scalar of unknown kind");
}

bool is_integer(const Operand& x, ir::Kinds kinds) {
  return x.weak ? x.weak->kind == WeakScalar::Kind::Int : ir::is_in(x.layout.dtype, kinds);
}

// More than two dtypes are each promoted with the highest one (PyArray_PromoteDTypeSequence): int8,
// uint16 and float32 give float32, although int8 and uint16 alone give int32, which with float32
// would give float64.
DType result_type(std::span<const Operand> operands) {
  std::optional<DType> highest;
  Category weak = Category::Bool;
  for (const Operand& x : operands) {
    if (x.weak)
      weak = std::max(weak, category(*x.weak));
    else if (!highest || type_number(x.layout.dtype) > type_number(*highest))
      highest = x.layout.dtype;
  }
  DType strong = highest.value_or(DType::Bool);
  for (const Operand& x : operands)
    if (!x.weak) strong = promote(strong, promote(*highest, x.layout.dtype));
  return lifted(strong, weak);
}

Scalar convert(const WeakScalar& weak, DType dtype) {
  if (category(dtype) < category(weak) && dtype != DType::Bool)
    throw Unsupported(Reason::UnsafeCast, "Python scalar to " + std::string(ir::info(dtype).name));
  switch (kind_of(dtype)) {
    case Kind::Bool:
      if (weak.kind == WeakScalar::Kind::Int) return {{weak.magnitude != 0, 0}};
      return {{weak.value != std::complex<double>{}, 0}};
    case Kind::Int:
    case Kind::UInt:
      return integer_bits(weak, dtype);
    case Kind::Float:
      return float_bits(weak, dtype);
    case Kind::Complex: {
      const double imag = weak.kind == WeakScalar::Kind::Int ? 0.0 : weak.value.imag();
      const DType part = ir::real_part(dtype);
      return ir::complex_of(float_bits(weak, dtype), float_bits(imag, part), part);
    }
  }
  throw InternalError("dtype of unknown kind");
}

NodeId as_dtype(Context& context, const Operand& operand, DType dtype) {
  if (operand.weak)
    return context.param(dtype, convert(*operand.weak, dtype), operand.weak->number);
  return ir::cast(context.graph(), operand.node, dtype);
}

}  // namespace ufuse::numpy_shim
