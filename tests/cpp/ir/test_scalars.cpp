// Every row of ops.def on every dtype it accepts, and every cast, on special values: against what
// the operation means, written down here a second time with the standard library and wide integers.
#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "ir/build.h"
#include "ir/inner_loops.h"
#include "ir/print.h"
#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {
namespace {

using testing::bits_of;
using Wide = __int128;

Scalar call(InnerLoop loop, const std::vector<Scalar>& operands) {
  std::array<Scalar, 4> memory{};
  std::array<char*, 4> args{};
  const std::array<std::int64_t, 4> strides{};
  for (std::size_t k = 0; k < operands.size(); ++k) memory[k] = operands[k];
  for (std::size_t k = 0; k < 4; ++k) args[k] = reinterpret_cast<char*>(memory[k].bits);
  const std::int64_t one = 1;
  loop(args.data(), &one, strides.data(), nullptr);
  return memory[operands.size()];
}

template <class T>
T value_of(const Scalar& s) {
  T value;
  std::memcpy(&value, s.bits, sizeof value);
  return value;
}

// --- what an op means
// -------------------------------------------------------------------------------------------------------------

template <class T>
Scalar integer_meaning(Op op, T a, T b) {
  const Wide x = a, y = b, width = 8 * sizeof(T);
  const auto same = [](Wide v) { return bits_of(static_cast<T>(v)); };
  const auto truth = [](bool v) { return bits_of(v); };
  switch (op) {
    case Op::Add:
      return same(x + y);
    case Op::Subtract:
      return same(x - y);
    case Op::Multiply:
      return same(x * y);
    case Op::Square:
      return same(x * x);
    case Op::Negative:
      return same(-x);
    case Op::Copy:
    case Op::Positive:
    case Op::Conjugate:
      return same(x);
    case Op::Absolute:
      return same(x < 0 ? -x : x);
    case Op::Sign:
      return same(x == 0 ? 0 : x < 0 ? -1 : 1);
    case Op::Maximum:
      return same(std::max(x, y));
    case Op::Minimum:
      return same(std::min(x, y));
    case Op::Equal:
      return truth(x == y);
    case Op::NotEqual:
      return truth(x != y);
    case Op::Less:
      return truth(x < y);
    case Op::LessEqual:
      return truth(x <= y);
    case Op::Greater:
      return truth(x > y);
    case Op::GreaterEqual:
      return truth(x >= y);
    case Op::LogicalAnd:
      return truth(x != 0 && y != 0);
    case Op::LogicalOr:
      return truth(x != 0 || y != 0);
    case Op::LogicalXor:
      return truth((x != 0) != (y != 0));
    case Op::LogicalNot:
      return truth(x == 0);
    case Op::BitAnd:
      return same(x & y);
    case Op::BitOr:
      return same(x | y);
    case Op::BitXor:
      return same(x ^ y);
    case Op::Invert:
      return same(-x - 1);
    case Op::LeftShift:
      return same(y < 0 || y >= width ? 0 : x * (Wide{1} << y));
    case Op::RightShift:
      return same(y < 0 || y >= width ? (x < 0 ? -1 : 0) : x >> y);
    default:
      FAIL("no meaning written down for " << op_info(op).name);
      return {};
  }
}

Scalar bool_meaning(Op op, bool a, bool b) {
  switch (op) {
    case Op::Maximum:
    case Op::BitOr:
      return bits_of(a || b);
    case Op::Minimum:
    case Op::BitAnd:
      return bits_of(a && b);
    case Op::BitXor:
      return bits_of(a != b);
    case Op::Invert:
      return bits_of(!a);
    default:
      return integer_meaning<int>(op, a, b);
  }
}

template <class F>
Scalar float_meaning(Op op, F a, F b) {
  const auto truth = [](bool v) { return bits_of(v); };
  switch (op) {
    case Op::Add:
      return bits_of(a + b);
    case Op::Subtract:
      return bits_of(a - b);
    case Op::Multiply:
      return bits_of(a * b);
    case Op::Divide:
      return bits_of(a / b);
    case Op::Square:
      return bits_of(a * a);
    case Op::Reciprocal:
      return bits_of(F(1) / a);
    case Op::Sqrt:
      return bits_of(std::sqrt(a));
    case Op::Negative:
      return bits_of(std::copysign(a, std::signbit(a) ? F(1) : F(-1)));
    case Op::Copy:
    case Op::Positive:
    case Op::Conjugate:
      return bits_of(a);
    case Op::Absolute:
    case Op::Fabs:
      return bits_of(std::copysign(a, F(1)));
    case Op::Sign:
      return bits_of(std::isnan(a) ? a : a == 0 ? F(0) : std::copysign(F(1), a));
    case Op::Floor:
      return bits_of(std::floor(a));
    case Op::Ceil:
      return bits_of(std::ceil(a));
    case Op::Trunc:
      return bits_of(std::trunc(a));
    case Op::Rint:
      return bits_of(std::nearbyint(a));
    case Op::CopySign:
      return bits_of(std::copysign(a, b));
    case Op::Maximum:
      return bits_of(std::isnan(a) ? a : std::isnan(b) ? b : a > b ? a : b);
    case Op::Minimum:
      return bits_of(std::isnan(a) ? a : std::isnan(b) ? b : a < b ? a : b);
    case Op::Equal:
      return truth(a == b);
    case Op::NotEqual:
      return truth(!(a == b));
    case Op::Less:
      return truth(std::isless(a, b));
    case Op::LessEqual:
      return truth(std::islessequal(a, b));
    case Op::Greater:
      return truth(std::isgreater(a, b));
    case Op::GreaterEqual:
      return truth(std::isgreaterequal(a, b));
    case Op::LogicalAnd:
      return truth(a != 0 && b != 0);
    case Op::LogicalOr:
      return truth(a != 0 || b != 0);
    case Op::LogicalXor:
      return truth((a != 0) != (b != 0));
    case Op::LogicalNot:
      return truth(a == 0);
    case Op::IsNan:
      return truth(std::isnan(a));
    case Op::IsInf:
      return truth(std::isinf(a));
    case Op::IsFinite:
      return truth(std::isfinite(a));
    case Op::SignBit:
      return truth(std::signbit(a));
    default:
      FAIL("no meaning written down for " << op_info(op).name);
      return {};
  }
}

// float16 by its definition: 11 digits of a number below 65520, multiples of 2^-24 below 2^-14.
double number_of_half(std::uint64_t bits) {
  const double sign = (bits & 0x8000) != 0 ? -1 : 1, digits = static_cast<double>(bits & 0x3ff);
  const int exponent = static_cast<int>(bits >> 10 & 31);
  if (exponent == 31 && digits != 0)
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
  return sign * std::ldexp(exponent == 0 ? digits : digits + 1024, std::max(exponent, 1) - 25);
}
Scalar half_of(double x) {
  const std::uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  const double a = std::fabs(x);
  if (std::isnan(x)) return {{sign | 0x7e00}};
  if (a >= 65520) return {{sign | 0x7c00}};
  if (a < 0x1p-14) return {{sign | static_cast<std::uint64_t>(std::nearbyint(std::ldexp(a, 24)))}};
  int exponent;
  std::frexp(a, &exponent);
  const double digits = std::nearbyint(std::ldexp(a, 11 - exponent));
  return {{sign | ((static_cast<std::uint64_t>(exponent + 14) << 10) +
                   static_cast<std::uint64_t>(digits) - 1024)}};
}

// Arithmetic is that of floats; what only moves bits moves those of a NaN too.
Scalar half_meaning(Op op, const Scalar& a, const Scalar& b) {
  const std::uint64_t x = a.bits[0], y = b.bits[0], magnitude = x & 0x7fff;
  const float p = static_cast<float>(number_of_half(x)), q = static_cast<float>(number_of_half(y));
  switch (op) {
    case Op::Negative:
      return {{x ^ 0x8000}};
    case Op::Copy:
    case Op::Positive:
    case Op::Conjugate:
      return a;
    case Op::Absolute:
    case Op::Fabs:
      return {{magnitude}};
    case Op::CopySign:
      return {{magnitude | (y & 0x8000)}};
    case Op::Sign:
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Rint:
      if (std::isnan(p)) return a;
      break;
    case Op::Maximum:
      return std::isnan(p) || p >= q ? a : b;
    case Op::Minimum:
      return std::isnan(p) || p <= q ? a : b;
    default:
      break;
  }
  const Scalar made = float_meaning(op, p, q);
  return op_info(op).result == ResultRule::Bool ? made : half_of(value_of<float>(made));
}

template <class C>
Scalar complex_meaning(Op op, C a, C b) {
  using F = decltype(a.re);
  const auto truth = [](bool v) { return bits_of(v); };
  const auto is_true = [](C v) { return v.re != 0 || v.im != 0; };
  const auto part = [](Op part_op, F x, F y) { return value_of<F>(float_meaning(part_op, x, y)); };
  switch (op) {
    case Op::Add:
    case Op::Subtract:
      return bits_of(C{part(op, a.re, b.re), part(op, a.im, b.im)});
    case Op::Negative:
      return bits_of(C{part(op, a.re, 0), part(op, a.im, 0)});
    case Op::Copy:
    case Op::Positive:
      return bits_of(a);
    case Op::Conjugate:
      return bits_of(C{a.re, part(Op::Negative, a.im, 0)});
    case Op::RealPart:
      return bits_of(a.re);
    case Op::ImagPart:
      return bits_of(a.im);
    case Op::Equal:
      return truth(a.re == b.re && a.im == b.im);
    case Op::NotEqual:
      return truth(!(a.re == b.re && a.im == b.im));
    case Op::LogicalAnd:
      return truth(is_true(a) && is_true(b));
    case Op::LogicalOr:
      return truth(is_true(a) || is_true(b));
    case Op::LogicalXor:
      return truth(is_true(a) != is_true(b));
    case Op::LogicalNot:
      return truth(!is_true(a));
    case Op::IsNan:
      return truth(std::isnan(a.re) || std::isnan(a.im));
    case Op::IsInf:
      return truth(std::isinf(a.re) || std::isinf(a.im));
    case Op::IsFinite:
      return truth(std::isfinite(a.re) && std::isfinite(a.im));
    default:
      FAIL("no meaning written down for " << op_info(op).name);
      return {};
  }
}

Scalar meaning(Op op, DType dtype, const Scalar& a, const Scalar& b) {
  switch (dtype) {
    case DType::Bool:
      return bool_meaning(op, a.bits[0] != 0, b.bits[0] != 0);
#define INTEGER(id, type) \
  case DType::id:         \
    return integer_meaning(op, value_of<type>(a), value_of<type>(b));
      INTEGER(Int8, std::int8_t)
      INTEGER(Int16, std::int16_t)
      INTEGER(Int32, std::int32_t)
      INTEGER(Int64, std::int64_t)
      INTEGER(UInt8, std::uint8_t)
      INTEGER(UInt16, std::uint16_t)
      INTEGER(UInt32, std::uint32_t)
      INTEGER(UInt64, std::uint64_t)
#undef INTEGER
    case DType::Float32:
      return float_meaning(op, value_of<float>(a), value_of<float>(b));
    case DType::Float64:
      return float_meaning(op, value_of<double>(a), value_of<double>(b));
    case DType::Complex64:
      return complex_meaning(op, value_of<rt::c64>(a), value_of<rt::c64>(b));
    case DType::Complex128:
      return complex_meaning(op, value_of<rt::c128>(a), value_of<rt::c128>(b));
    case DType::Float16:
      return half_meaning(op, a, b);
    case DType::LongDouble:
      return float_meaning(op, value_of<long double>(a), value_of<long double>(b));
    case DType::CLongDouble:
      return complex_meaning(op, value_of<rt::cld>(a), value_of<rt::cld>(b));
  }
  return {};
}

// Two NaNs may differ in their bits where arithmetic had two to choose from (SEMANTICS.md).
bool agree(DType dtype, const Scalar& a, const Scalar& b, bool any_nan) {
  if (without_padding(a, dtype) == without_padding(b, dtype)) return true;
  if (!any_nan) return false;
  const auto both_nan = [](auto x, auto y) { return std::isnan(x) && std::isnan(y); };
  const auto same_part = [&](auto x, auto y) { return both_nan(x, y) || bits_of(x) == bits_of(y); };
  switch (dtype) {
    case DType::Float32:
      return both_nan(value_of<float>(a), value_of<float>(b));
    case DType::Float64:
      return both_nan(value_of<double>(a), value_of<double>(b));
    case DType::Complex64: {
      const auto x = value_of<rt::c64>(a), y = value_of<rt::c64>(b);
      return same_part(x.re, y.re) && same_part(x.im, y.im);
    }
    case DType::Complex128: {
      const auto x = value_of<rt::c128>(a), y = value_of<rt::c128>(b);
      return same_part(x.re, y.re) && same_part(x.im, y.im);
    }
    case DType::CLongDouble: {
      const auto x = value_of<rt::cld>(a), y = value_of<rt::cld>(b);
      return same_part(x.re, y.re) && same_part(x.im, y.im);
    }
    case DType::LongDouble:
      return both_nan(value_of<long double>(a), value_of<long double>(b));
    case DType::Float16:
      return both_nan(number_of_half(a.bits[0]), number_of_half(b.bits[0]));
    default:
      return false;
  }
}

// --- what a cast means
// ------------------------------------------------------------------------------------------------------------

// A value without its dtype: an integer, or a pair of floats. A long double holds every other.
struct Number {
  bool is_integer = true;
  Wide integer = 0;
  long double re = 0, im = 0;
};

Number number_of(DType dtype, const Scalar& s) {
  switch (dtype) {
    case DType::Float16:
      return {false, 0, number_of_half(s.bits[0]), 0};
    case DType::LongDouble:
      return {false, 0, value_of<long double>(s), 0};
    case DType::CLongDouble:
      return {false, 0, value_of<rt::cld>(s).re, value_of<rt::cld>(s).im};
    case DType::Float32:
      return {false, 0, value_of<float>(s), 0};
    case DType::Float64:
      return {false, 0, value_of<double>(s), 0};
    case DType::Complex64:
      return {false, 0, value_of<rt::c64>(s).re, value_of<rt::c64>(s).im};
    case DType::Complex128:
      return {false, 0, value_of<rt::c128>(s).re, value_of<rt::c128>(s).im};
    default:
      break;
  }
  const int unused = 64 - 8 * static_cast<int>(size_of(dtype));
  if (is_in(dtype, kInt))
    return {true, static_cast<std::int64_t>(s.bits[0] << unused) >> unused, 0, 0};
  return {true, s.bits[0], 0, 0};
}

// Nothing where C leaves a float out of range undefined.
std::optional<Scalar> cast_meaning(const Number& x, DType from, DType to) {
  const auto converted = [&](auto v) {
    switch (real_part(to)) {
      case DType::Float16:  // all but float64 by way of float32
        return half_of(real_part(from) == DType::Float64 ? static_cast<double>(v)
                                                         : static_cast<float>(v));
      case DType::Float32:
        return bits_of(static_cast<float>(v));
      case DType::Float64:
        return bits_of(static_cast<double>(v));
      default:
        return bits_of(static_cast<long double>(v));
    }
  };
  const auto part = [&](long double v, Wide integer) {
    return x.is_integer ? converted(integer) : converted(v);
  };
  const bool is_true = x.is_integer ? x.integer != 0 : x.re != 0 || x.im != 0;
  switch (info(to).kind) {
    case Kind::Bool:
      return bits_of(is_true);
    case Kind::Float:
      return part(x.re, x.integer);
    case Kind::Complex: {
      const Scalar re = part(x.re, x.integer), im = part(x.im, 0);
      return complex_of(re, im, real_part(to));
    }
    default:
      break;
  }
  Wide integer = x.integer;
  if (!x.is_integer) {
    const long double limit =
        std::ldexp(1.0L, 8 * static_cast<int>(size_of(to)) - (is_in(to, kInt) ? 1 : 0));
    if (!(x.re < limit && x.re > (is_in(to, kInt) ? -limit - 1 : -1.0))) return std::nullopt;
    integer = static_cast<Wide>(x.re);
  }
  return Scalar{{static_cast<std::uint64_t>(integer) & testing::mask_of(to), 0}};
}

std::string shown(DType dtype, const Scalar& s) { return print_scalar(dtype, s); }

}  // namespace

TEST_CASE("scalars: every row, every dtype, every pair of special values") {
  for (Op op : testing::all_rows()) {
    if (op == Op::Where) continue;
    const OpInfo& row = op_info(op);
    for (DType dtype : testing::all_dtypes()) {
      const InnerLoop loop = elementwise_loop(op, dtype);
      CHECK((loop != nullptr) == is_accepted(dtype, row.accepts));
      if (loop == nullptr) continue;
      const DType result = row.result == ResultRule::Same   ? dtype
                           : row.result == ResultRule::Bool ? DType::Bool
                                                            : real_part(dtype);
      std::vector<Scalar> values = testing::special_values(dtype);
      // Pairs of all complex specials would be a million: every seventh stands for them.
      const std::size_t step = is_in(dtype, kComplex) && row.arity == 2 ? 7 : 1;
      for (std::size_t i = 0; i < values.size(); i += step)
        for (std::size_t j = 0; j < (row.arity == 2 ? values.size() : 1); j += step) {
          const Scalar &a = values[i], &b = values[j];
          const Scalar got = row.arity == 2 ? call(loop, {a, b}) : call(loop, {a});
          const Scalar wanted = meaning(op, dtype, a, b);
          if (!agree(result, got, wanted, row.flags == Flags::Fp))
            FAIL_CHECK(row.name << " of " << shown(dtype, a) << " and " << shown(dtype, b) << " : "
                                << info(dtype).name << " gave " << shown(result, got) << ", not "
                                << shown(result, wanted));
        }
    }
  }
}

TEST_CASE("scalars: where chooses, with the bits of what is chosen") {
  for (DType dtype : testing::all_dtypes()) {
    const InnerLoop loop = elementwise_loop(Op::Where, dtype);
    const std::vector<Scalar> values = testing::special_values(dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Scalar &a = values[i], &b = values[values.size() - 1 - i];
      const auto chosen = [&](const Scalar& condition) {
        return without_padding(call(loop, {condition, a, b}), dtype);
      };
      CHECK(chosen(bits_of(true)) == a);
      CHECK(chosen(bits_of(false)) == b);
      CHECK(chosen(Scalar{{2, 0}}) == a);  // a bool of another array may be any byte
    }
  }
}

TEST_CASE("scalars: bools of any byte come out as 0 or 1") {
  const Scalar two{{2, 0}}, none{{0, 0}};
  for (Op op : testing::all_rows()) {
    const InnerLoop loop = elementwise_loop(op, DType::Bool);
    if (loop == nullptr || op == Op::Where) continue;
    CAPTURE(op_info(op).name);
    for (const auto& [a, b] : {std::pair{two, two}, {two, none}, {none, two}}) {
      const Scalar got = op_info(op).arity == 2 ? call(loop, {a, b}) : call(loop, {a});
      CHECK(got == meaning(op, DType::Bool, a, b));
    }
  }
  for (DType to : testing::all_dtypes())
    CHECK(call(cast_loop(DType::Bool, to), {two}) ==
          call(cast_loop(DType::Bool, to), {bits_of(true)}));
}

TEST_CASE("scalars: rows marked Quiet raise no flag, not for NaN either") {
  for (Op op : testing::all_rows()) {
    const OpInfo& row = op_info(op);
    if (row.flags != Flags::Quiet || op == Op::Where) continue;
    for (DType dtype : testing::all_dtypes()) {
      const InnerLoop loop = elementwise_loop(op, dtype);
      if (loop == nullptr || !is_in(dtype, kFloat)) continue;
      CAPTURE(row.name);
      for (const Scalar& a : testing::special_values(dtype))
        for (const Scalar& b : testing::special_values(dtype)) {
          clear_fp_flags();
          row.arity == 2 ? call(loop, {a, b}) : call(loop, {a});
          if (read_fp_flags() != 0) FAIL_CHECK(shown(dtype, a) << ' ' << shown(dtype, b));
        }
    }
  }
}

TEST_CASE("scalars: every cast of every special value") {
  for (DType from : testing::all_dtypes())
    for (DType to : testing::all_dtypes()) {
      const InnerLoop loop = cast_loop(from, to);
      for (const Scalar& a : testing::special_values(from)) {
        const std::optional<Scalar> wanted = cast_meaning(number_of(from, a), from, to);
        if (!wanted) continue;
        const Scalar got = call(loop, {a});
        if (!agree(to, got, *wanted, true))
          FAIL_CHECK(info(from).name << " " << shown(from, a) << " to " << info(to).name << " gave "
                                     << shown(to, got) << ", not " << shown(to, *wanted));
      }
    }
}

TEST_CASE("scalars: casts raise flags only where cast_may_raise says so, and do so there") {
  for (DType from : testing::all_dtypes())
    for (DType to : testing::all_dtypes()) {
      const InnerLoop loop = cast_loop(from, to);
      std::uint32_t raised = 0;
      for (const Scalar& a : testing::special_values(from)) {
        clear_fp_flags();
        call(loop, {a});
        raised |= read_fp_flags();
      }
      CAPTURE(info(from).name);
      CAPTURE(info(to).name);
      // Only a signalling NaN, which is no special value here, tells these from quiet ones.
      const bool keeps_all = is_in(from, kInexact) && is_in(to, kInexact) &&
                             size_of(real_part(from)) <= size_of(real_part(to));
      CHECK((raised != 0) == (cast_may_raise(from, to) && !keeps_all));
    }
}

TEST_CASE("scalars: every float16 there and back, and halfway between neighbours") {
  const auto cast = [](DType from, DType to, const Scalar& x) {
    return without_padding(call(cast_loop(from, to), {x}), to);
  };
  for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
    const Scalar half{{bits}};
    const double x = number_of_half(bits);
    const Scalar single = cast(DType::Float16, DType::Float32, half);
    const Scalar wide = cast(DType::Float16, DType::Float64, half);
    bool good = cast(DType::Float32, DType::Float16, single) == half &&
                cast(DType::Float64, DType::Float16, wide) == half;
    if (std::isnan(x))
      good &= single.bits[0] == ((bits & 0x8000) << 16 | 0x7f800000 | (bits & 0x3ff) << 13);
    else
      good &= single == bits_of(static_cast<float>(x)) && wide == bits_of(x);
    if (std::isfinite(x) && bits != 0x7bff && bits != 0xfbff) {
      const double step = std::fabs(number_of_half(bits + 1) - x), sign = std::signbit(x) ? -1 : 1;
      for (double part : {0.25, 0.5, 0.5 - 0x1p-20, 0.5 + 0x1p-20, 0.75}) {
        const double between = x + sign * part * step;
        good &= cast(DType::Float64, DType::Float16, bits_of(between)) == half_of(between);
        const auto rounded = static_cast<float>(between);
        good &= cast(DType::Float32, DType::Float16, bits_of(rounded)) == half_of(rounded);
      }
    }
    if (!good) FAIL_CHECK(bits);
  }
}

TEST_CASE("scalars: float16 overflows from 65520 on, and underflows where digits are lost") {
  const auto raised = [](double x, DType from) {
    const Scalar value = from == DType::Float64 ? bits_of(x) : bits_of(static_cast<float>(x));
    clear_fp_flags();
    call(cast_loop(from, DType::Float16), {value});
    return read_fp_flags();
  };
  for (DType from : {DType::Float32, DType::Float64})
    for (double sign : {1.0, -1.0}) {
      CHECK(raised(sign * 65504, from) == 0);
      CHECK(raised(sign * 65519.9, from) == 0);
      CHECK(raised(sign * 65520, from) == 2);
      CHECK(raised(sign * 1e30, from) == 2);
      CHECK(raised(sign * std::numeric_limits<double>::infinity(), from) == 0);
      CHECK(raised(sign * std::numeric_limits<double>::quiet_NaN(), from) == 0);
      CHECK(raised(sign * 0x1p-14, from) == 0);
      CHECK(raised(sign * 0x1.001p-14, from) == 0);
      CHECK(raised(sign * 0x1p-24, from) == 0);
      CHECK(raised(sign * 0x3p-24, from) == 0);
      CHECK(raised(sign * 0x3.8p-24, from) == 4);
      CHECK(raised(sign * 0x1.fffp-15, from) == 4);
      CHECK(raised(sign * 0x1p-30, from) == 4);
      CHECK(raised(sign * 0, from) == 0);
    }
  CHECK(raised(1e300, DType::Float64) == 2);
  CHECK(raised(1e-300, DType::Float64) == 4);
}

TEST_CASE("scalars: floats out of range cast as NumPy's scalar x86 code does") {
  const auto cast_f64 = [](double x, DType to) {
    return call(cast_loop(DType::Float64, to), {bits_of(x)}).bits[0];
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(cast_f64(300, DType::UInt8) == 44);
  CHECK(cast_f64(-1, DType::UInt8) == 255);
  CHECK(cast_f64(-2, DType::UInt32) == 0xfffffffe);
  CHECK(cast_f64(-2, DType::UInt64) == 0xfffffffffffffffe);
  CHECK(cast_f64(nan, DType::Int32) == 0x80000000);
  CHECK(cast_f64(nan, DType::Int64) == 0x8000000000000000);
  CHECK(cast_f64(nan, DType::UInt64) == 0x8000000000000000);
  CHECK(cast_f64(1.8e19, DType::UInt64) == 18000000000000000000U);
  clear_fp_flags();
  cast_f64(nan, DType::Int32);
  CHECK(read_fp_flags() == 8);
}

}  // namespace ufuse::ir
