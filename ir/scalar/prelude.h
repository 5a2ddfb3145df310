// What does an operation mean for one element? Every kernel starts with this text, and the
// interpreter includes it, so that both share one scalar semantics: the `rt::` names of ir/ops.def
// and the casts, with NumPy's bits (ir/SEMANTICS.md).
//
// It includes nothing: parsing a standard header costs more than compiling a kernel. It relies on
// -ffp-contract=off, -fwrapv, -fno-trapping-math and -fno-math-errno. Everything is free of
// branches, so that loops vectorise.
#pragma once

namespace rt {

using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long;
using f32 = float;
using f64 = double;
using ld = long double;
struct f16;  // prelude_half.h, which only the kernels with halves begin with
template <class From>
f16 to_half(From x);
template <class To>
To half_to(f16 x);

// A bool in memory. NumPy's bool arrays may hold any byte (views of other arrays), which is true
// when it is not 0: hence a type of its own, that normalises when it is read.
struct b8 {
  u8 byte;
  b8() = default;
  constexpr b8(bool x) : byte(x) {}
  constexpr operator bool() const { return byte != 0; }
};

inline u32 bits_of(f32 x) { return __builtin_bit_cast(u32, x); }
inline u64 bits_of(f64 x) { return __builtin_bit_cast(u64, x); }
// A number that has no literal.
inline ld long_double(u64 low, u64 high) {
  struct Bits {
    u64 low, high;
  };
  return __builtin_bit_cast(ld, Bits{low, high});
}

template <class F>
struct complex {
  F re, im;
  friend complex operator+(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
  friend complex operator-(complex a, complex b) { return {a.re - b.re, a.im - b.im}; }
  friend complex operator-(complex a) { return {-a.re, -a.im}; }
  friend bool operator==(complex a, complex b) { return (a.re == b.re) & (a.im == b.im); }
  friend bool operator!=(complex a, complex b) { return (a.re != b.re) | (a.im != b.im); }
};
using c64 = complex<f32>;
using c128 = complex<f64>;
using cld = complex<ld>;

template <class T>
constexpr bool is_complex = false;
template <class F>
constexpr bool is_complex<complex<F>> = true;
// float32 and float64: the two that hardware computes with in vectors.
template <class T>
constexpr bool is_float = false;
template <>
inline constexpr bool is_float<f32> = true;
template <>
inline constexpr bool is_float<f64> = true;
template <class T>
constexpr bool is_half = false;
template <>
inline constexpr bool is_half<f16> = true;
template <class T>
constexpr bool is_bool = false;
template <>
inline constexpr bool is_bool<b8> = true;

template <class T>
inline bool truth(T x) {
  if constexpr (is_complex<T>)
    return (x.re != 0) | (x.im != 0);
  else if constexpr (is_half<T>)
    return (x.bits & 0x7fff) != 0;
  else
    return x != 0;
}

// A float's bits without the sign, and those of infinity: comparing them as integers tells NaN,
// infinite and finite apart.
inline i32 magnitude(f32 x) { return __builtin_bit_cast(i32, x) & 0x7fffffff; }
inline i64 magnitude(f64 x) { return __builtin_bit_cast(i64, x) & 0x7fffffffffffffff; }
inline i32 infinite(f32) { return 0x7f800000; }
inline i64 infinite(f64) { return 0x7ff0000000000000; }

inline f32 masked(f32 x, i32 mask) {
  return __builtin_bit_cast(f32, __builtin_bit_cast(i32, x) & mask);
}
inline f64 masked(f64 x, i64 mask) {
  return __builtin_bit_cast(f64, __builtin_bit_cast(i64, x) & mask);
}

// The comparison only ever sees numbers: `<` raises the invalid flag for a quiet NaN, where NumPy
// warns of nothing, and so do the vector instructions that g++ chooses for __builtin_isless. A mask
// of bits rather than a choice, which g++ would undo.
template <class T>
inline bool less(T x, T y) {
  if constexpr (is_float<T>) {
    using Bits = decltype(magnitude(x));
    const Bits numbers = -(Bits)!__builtin_isunordered(x, y);
    return masked(x, numbers) < masked(y, numbers);
  } else {
    return x < y;
  }
}
template <class T>
inline bool less_equal(T x, T y) {
  if constexpr (is_float<T>) {
    const bool unordered = __builtin_isunordered(x, y);
    using Bits = decltype(magnitude(x));
    const Bits numbers = -(Bits)!unordered;
    return (masked(x, numbers) <= masked(y, numbers)) & !unordered;
  } else {
    return x <= y;
  }
}

// A NaN wins, the first of two; of equal operands (+0 and -0) the second.
template <class T>
inline T maximum(T x, T y) {
  if constexpr (is_bool<T>) return truth(x) | truth(y);
  const T larger = less(y, x) ? x : y;
  return x != x ? x : larger;
}
template <class T>
inline T minimum(T x, T y) {
  if constexpr (is_bool<T>) return truth(x) & truth(y);
  const T smaller = less(x, y) ? x : y;
  return x != x ? x : smaller;
}

// g++ 12 fuses neighbouring a*b-c and a*b+c into one vfmaddsub even under -ffp-contract=off (those
// of a complex multiplication, for one); a product behind the barrier stays rounded.
template <class T>
inline T multiply(T x, T y) {
#if __has_builtin(__builtin_assoc_barrier) && !defined(UFUSE_FAST)
  if constexpr (is_float<T>) return __builtin_assoc_barrier(x * y);
#endif
  return (T)(x * y);
}

// Componentwise and on bytes: a choice between structs does not vectorise.
template <class T>
inline T where(b8 condition, T x, T y) {
  const bool c = condition;
  if constexpr (is_complex<T>) {
    return {where(condition, x.re, y.re), where(condition, x.im, y.im)};
  } else if constexpr (is_bool<T>) {
    const bool p = x, q = y;
    return (c & p) | (!c & q);
  } else if constexpr (is_half<T>) {
    return T::of_bits(y.bits ^ ((x.bits ^ y.bits) & -(i32)c));
  } else if constexpr (is_float<T>) {
    // Not `c ? x : y`: AVX-512 would divide only where the quotient is chosen, and NumPy's warning
    // for the others would be lost.
    const auto a = bits_of(x), b = bits_of(y);
    return __builtin_bit_cast(T, b ^ ((a ^ b) & (0 - (decltype(bits_of(x)))c)));
  } else {
    return c ? x : y;
  }
}

inline f32 sqrt(f32 x) { return __builtin_sqrtf(x); }
inline f64 sqrt(f64 x) { return __builtin_sqrt(x); }
inline ld sqrt(ld x) { return __builtin_sqrtl(x); }
inline f32 floor(f32 x) { return __builtin_floorf(x); }
inline f64 floor(f64 x) { return __builtin_floor(x); }
inline f32 ceil(f32 x) { return __builtin_ceilf(x); }
inline f64 ceil(f64 x) { return __builtin_ceil(x); }
inline f32 trunc(f32 x) { return __builtin_truncf(x); }
inline f64 trunc(f64 x) { return __builtin_trunc(x); }
inline f32 rint(f32 x) { return __builtin_rintf(x); }
inline f64 rint(f64 x) { return __builtin_rint(x); }
inline f32 copysign(f32 x, f32 y) { return __builtin_copysignf(x, y); }
inline f64 copysign(f64 x, f64 y) { return __builtin_copysign(x, y); }
inline bool signbit(f32 x) { return __builtin_bit_cast(i32, x) < 0; }
inline bool signbit(f64 x) { return __builtin_bit_cast(i64, x) < 0; }

inline f32 absolute(f32 x) { return __builtin_fabsf(x); }
inline f64 absolute(f64 x) { return __builtin_fabs(x); }
// The smallest integer has no positive counterpart and stays itself.
template <class T>
inline T absolute(T x) {
  return (T)(x < 0 ? -x : x);
}

// -0.0 gives +0.0, a NaN itself.
template <class T>
inline T sign(T x) {
  const T s = (T)(less((T)0, x) - less(x, (T)0));
  if constexpr (is_float<T>)
    return x != x ? x : s;
  else
    return s;
}

template <class T>
inline T conjugate(T x) {
  if constexpr (is_complex<T>)
    return {x.re, -x.im};
  else
    return x;
}

template <class T>
inline T invert(T x) {
  if constexpr (is_bool<T>)
    return !x;
  else
    return (T)~x;
}
// C leaves shifts by a negative count or by the width and more undefined; NumPy shifts everything
// out.
template <class T>
inline T left_shift(T x, T n) {
  constexpr u64 bits = 8 * sizeof(T);
  return (T)((u64)n < bits ? x << ((u64)n & (bits - 1)) : 0);
}
template <class T>
inline T right_shift(T x, T n) {
  constexpr u64 bits = 8 * sizeof(T);
  return (T)(x >> ((u64)n < bits ? (u64)n : bits - 1) >> ((u64)n < bits ? 0 : 1));
}

template <class T>
inline bool isnan(T x) {
  if constexpr (is_complex<T>)
    return isnan(x.re) | isnan(x.im);
  else if constexpr (is_half<T>)
    return magnitude(x) > infinite(x);
  else
    return x != x;
}
template <class T>
inline bool isinf(T x) {
  if constexpr (is_complex<T>)
    return isinf(x.re) | isinf(x.im);
  else
    return magnitude(x) == infinite(x);
}
template <class T>
inline bool isfinite(T x) {
  if constexpr (is_complex<T>)
    return isfinite(x.re) & isfinite(x.im);
  else
    return magnitude(x) < infinite(x);
}

// Zero, which the compiler does not know: another definition could take the place of this one.
__attribute__((weak)) i64 unknown_zero = 0;

// The integer part of a float. Without the zero g++ would make `(float)(int)x` a rounding of
// floats, which keeps the sign of zeros, NaNs, and what is out of the integers' range.
template <class To, class F>
inline To integer_part(F x) {
  return (To)((To)x + (To)unknown_zero);
}

// Float to integer: C leaves values out of range undefined. NumPy's casts are scalar x86 code: by
// way of int32 to what is narrower, by way of int64 to uint32, and to uint64 in two halves.
template <class To, class F>
inline To to_integer(F x) {
  if constexpr (sizeof(To) < 4)
    return (To)integer_part<i32>(x);
  else if constexpr ((To)-1 < (To)0)
    return integer_part<To>(x);
  else if constexpr (sizeof(To) == 4)
    return (To)integer_part<i64>(x);
  else {
    constexpr F half = 9223372036854775808.0;
    const bool high = less_equal(half, x);
    return (To)integer_part<i64>(high ? x - half : x) ^ (To)high << 63;
  }
}

template <class To, class From>
inline To cast(From x) {
  if constexpr (is_bool<To>)
    return truth(x);
  else if constexpr (is_complex<To> && is_complex<From>)
    return {(decltype(To::re))x.re, (decltype(To::re))x.im};
  else if constexpr (is_complex<To>)
    return {cast<decltype(To::re)>(x), 0};
  else if constexpr (is_complex<From>)
    return cast<To>(x.re);
  else if constexpr (is_half<To>)
    return to_half(x);
  else if constexpr (is_half<From>)
    return half_to<To>(x);
  else if constexpr (is_float<From> && (To)0.5 == 0)
    return to_integer<To>(x);
  else if constexpr (is_bool<From> && is_float<To>)
    // A mask, not a choice: g++ would fold 1/0 and 0/0 into choices of constants, without flags.
    return __builtin_bit_cast(To, bits_of((To)1) & (0 - (decltype(bits_of((To)1)))(bool)x));
  else if constexpr (is_bool<From> && (To)0.5 == 0)
    return x ? (To)1 : (To)0;
  else if constexpr (is_bool<From>)
    return (To)(u8)(bool)x;
  else
    return (To)x;
}

}  // namespace rt
