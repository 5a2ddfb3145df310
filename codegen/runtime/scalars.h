// What do Python's numbers and NumPy's scalars do, one at a time?
//
// Programs start with this text, behind prelude.h and support.h: the functions that
// ir/program/primitives.def names. A function that returns a bool is true where Python has to do
// the operation: it would raise or warn, or needs an integer beyond 64 bits. It includes nothing.
#ifndef UFUSE_CODEGEN_RUNTIME_SCALARS_H_
#define UFUSE_CODEGEN_RUNTIME_SCALARS_H_

extern "C" {
double exp(double) noexcept(true);
double exp2(double) noexcept(true);
double expm1(double) noexcept(true);
double log(double) noexcept(true);
double log2(double) noexcept(true);
double log10(double) noexcept(true);
double log1p(double) noexcept(true);
double cbrt(double) noexcept(true);
double erf(double) noexcept(true);
double erfc(double) noexcept(true);
double sin(double) noexcept(true);
double cos(double) noexcept(true);
double tan(double) noexcept(true);
double asin(double) noexcept(true);
double acos(double) noexcept(true);
double atan(double) noexcept(true);
double atan2(double, double) noexcept(true);
double asinh(double) noexcept(true);
double acosh(double) noexcept(true);
double atanh(double) noexcept(true);
double sinh(double) noexcept(true);
double cosh(double) noexcept(true);
double tanh(double) noexcept(true);
double fmod(double, double) noexcept(true);
float fmodf(float, float) noexcept(true);
double pow(double, double) noexcept(true);
float powf(float, float) noexcept(true);
double hypot(double, double) noexcept(true);
float hypotf(float, float) noexcept(true);
}

namespace rt {

// ---- Integers ----

// Integers up to here have a double of their own.
constexpr i64 kExact = i64{1} << 53;
inline bool is_exact(i64 x) { return -kExact <= x && x <= kExact; }

template <class T>
inline bool absolute_checked(T x, T& r) {
  r = x;
  return x < 0 && __builtin_sub_overflow((T)0, x, &r);
}

inline bool true_divide_checked(i64 x, i64 y, f64& r) {
  if (y == 0 || !is_exact(x) || !is_exact(y)) return true;
  r = (f64)x / (f64)y;
  return false;
}

inline bool power_checked(i64 x, i64 n, i64& r) {
  if (n < 0) return true;  // a float
  r = 1;
  while (true) {
    if ((n & 1) && __builtin_mul_overflow(r, x, &r)) return true;
    n >>= 1;
    if (n == 0) return false;
    if (__builtin_mul_overflow(x, x, &x)) return true;
  }
}

inline bool shift_left_checked(i64 x, i64 n, i64& r) {
  r = 0;
  if (n < 0) return true;
  if (x == 0) return false;
  if (n > 62) return true;
  r = x << n;
  return r >> n != x;
}
inline bool shift_right_checked(i64 x, i64 n, i64& r) {
  r = x >> (n > 63 ? 63 : n);
  return n < 0;
}

template <class T, class R>
inline bool fits(T x, R& r) {
  return __builtin_add_overflow(x, (T)0, &r);
}

inline bool exact_float(i64 x, f64& r) {
  r = (f64)x;
  return !is_exact(x);
}

// ---- Quotients and remainders, rounded down ----

// Of floats as Python and NumPy compute them: the remainder has the divisor's sign, and the
// quotient is what it leaves.
inline f64 fmod_of(f64 x, f64 y) { return ::fmod(x, y); }
inline f32 fmod_of(f32 x, f32 y) { return ::fmodf(x, y); }
template <class T>
inline T remainder_of(T x, T y) {
  T rest = fmod_of(x, y);
  if (rest != 0) {
    if ((y < 0) != (rest < 0)) rest += y;
  } else {
    rest = copysign((T)0, y);
  }
  return rest;
}
template <class T>
inline T floor_divide_of(T x, T y) {
  T rest = fmod_of(x, y);
  T quotient = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) quotient -= (T)1;
  if (quotient == 0) return copysign((T)0, x / y);
  T whole = floor(quotient);
  if (quotient - whole > (T)0.5) whole += (T)1;
  return whole;
}

template <class T>
inline bool floor_divide_checked(T x, T y, T& r) {
  if (y == 0) return true;
  if constexpr (is_float<T>) {
    r = floor_divide_of(x, y);
  } else {
    if constexpr ((T)-1 < (T)0)
      if (y == (T)-1) return __builtin_sub_overflow((T)0, x, &r);
    r = (T)(x / y);
    if (x % y != 0 && (x < 0) != (y < 0)) --r;
  }
  return false;
}
template <class T>
inline bool remainder_checked(T x, T y, T& r) {
  if (y == 0) return true;
  if constexpr (is_float<T>) {
    r = remainder_of(x, y);
  } else {
    r = 0;
    if constexpr ((T)-1 < (T)0)
      if (y == (T)-1) return false;
    r = (T)(x % y);
    if (r != 0 && (r < 0) != (y < 0)) r = (T)(r + y);
  }
  return false;
}

// ---- Floats ----

template <class T>
inline bool divide_checked(T x, T y, T& r) {
  r = x / y;
  return y == 0;
}

// The compiler must not work out with more digits what the library gives.
inline f64 scalar_power(f64 x, f64 y) { return ::pow(opaque(x), opaque(y)); }
inline f32 scalar_power(f32 x, f32 y) { return ::powf(opaque(x), opaque(y)); }

inline bool python_power(f64 x, f64 y, f64& r) {
  if (!isfinite(x) || !isfinite(y)) return true;
  if (y == 0) {
    r = 1;
    return false;
  }
  if (x == 0 && y < 0) return true;
  bool negative = false;
  if (x < 0) {
    if (y != floor(y)) return true;  // a complex number
    negative = fmod(absolute(y), 2.0) == 1.0;
    x = -x;
  }
  r = x == 1 ? 1 : scalar_power(x, y);
  if (negative) r = -r;
  return !isfinite(r);
}

inline bool to_int(f64 x, i64& r) {
  if (!(x >= -9223372036854775808.0 && x < 9223372036854775808.0)) return true;
  r = integer_part<i64>(x);
  return false;
}
// An element of an array of integers.
template <class F, class R>
inline bool truncate_to(F x, R& r) {
  constexpr bool is_signed = (R)-1 < (R)0;
  constexpr f64 top = (f64)(u64{1} << (8 * sizeof(R) - 1)) * (is_signed ? 1 : 2);
  const f64 whole = trunc((f64)x);
  if (!(whole >= (is_signed ? -top : 0.0) && whole < top)) return true;
  r = to_integer<R>(whole);
  return false;
}

// Whether an operation on these numbers has raised a flag that NumPy reports by default: its result
// is a NaN and none of them is, or an infinity and none of them is.
template <class R, class... X>
inline bool raised(R r, X... x) {
  if (__builtin_expect(isfinite(r), 1)) return false;
  if constexpr (is_complex<R>)
    return true;
  else
    return isnan(r) ? !(false | ... | isnan(x)) : !(false | ... | isinf(x));
}

// What the functions of Python's module math give; they raise where NumPy warns.
inline bool math_result(f64 result, f64 x, f64& r) {
  r = result;
  return raised(result, x);
}
// Of two numbers: they have rules of their own where one is not finite.
inline bool math_result(f64 result, f64 x, f64 y, f64& r) {
  r = result;
  return !isfinite(x) || !isfinite(y) || !isfinite(result);
}
inline bool math_logarithm(f64 result, f64 x, f64& r) {
  r = result;
  return x <= 0;
}
inline bool math_gcd(i64 x, i64 y, i64& r) {
  if (absolute_checked(x, x) || absolute_checked(y, y)) return true;
  while (y != 0) {
    const i64 rest = x % y;
    x = y;
    y = rest;
  }
  r = x;
  return false;
}
inline bool math_isqrt(i64 x, i64& r) {
  if (x < 0) return true;
  r = integer_part<i64>(__builtin_sqrt((f64)x));
  while (r > 3037000499 || r * r > x) --r;
  while (r < 3037000499 && (r + 1) * (r + 1) <= x) ++r;
  return false;
}

inline c128 complex_of(f64 re, f64 im) { return {re, im}; }
template <class F>
inline complex<F> multiply_complex(complex<F> x, complex<F> y) {
  return {multiply(x.re, y.re) - multiply(x.im, y.im), multiply(x.re, y.im) + multiply(x.im, y.re)};
}
inline bool absolute_complex(c128 x, f64& r) {
  r = ::hypot(x.re, x.im);
  return !isfinite(r);
}
inline bool absolute_complex(c64 x, f32& r) {
  r = ::hypotf(x.re, x.im);
  return !isfinite(r);
}

// ---- Indices ----

inline bool index(i64 i, i64 length, i64& r) {
  r = i < 0 ? i + length : i;
  return (u64)r >= (u64)length;
}
inline bool index_from_start(i64 i, i64 length, i64& r) {
  r = i;
  return i >= length;
}
// A bound of a slice, within the axis, or just before or behind it.
inline i64 slice_bound(i64 i, i64 length, i64 step) {
  if (i < 0) i += length;
  if (i < 0) return step < 0 ? -1 : 0;
  return i < length ? i : step < 0 ? length - 1 : length;
}
// The same for a step upwards, of a bound that is counted from the start, or from the end.
inline i64 bound_from_start(i64 i, i64 length) { return i < length ? i : length; }
inline i64 bound_from_end(i64 i, i64 length) { return i + length > 0 ? i + length : 0; }
// How many elements there are from one place to another.
inline i64 between(i64 start, i64 stop) { return start < stop ? stop - start : 0; }
// Of a range.
inline i64 rounds(i64 start, i64 stop, i64 step) {
  if (step > 0) return start < stop ? (i64)(((u64)stop - (u64)start - 1) / (u64)step) + 1 : 0;
  return stop < start ? (i64)(((u64)start - (u64)stop - 1) / (0 - (u64)step)) + 1 : 0;
}

// ---- NumPy's inner loops ----

// What one statement raises, of the flags that NumPy reports by default. The processor waits for
// all arithmetic before it tells or changes them, so they are changed only where one is raised
// before, by arithmetic of Python's. Around the program they are as they were (Flags).
class Raised {
 public:
  Raised() {
    if (__builtin_expect(Flags::any_reported(), 0)) Flags::clear();
  }
  bool any() const { return Flags::any_reported(); }
};

// Whether a flag has been raised that NumPy reports by default.
inline bool loop_over(const Loop& loop, char** operands, Index size, const Index* strides) {
  const Raised flags;
  loop.call(operands, &size, strides, loop.data);
  return flags.any();
}

// The same of one element, whose strides are zero to NumPy: some loops take another way then.
template <class R, class... X>
inline bool call_loop(const Loop& loop, R& r, X... x) {
  char* operands[] = {(char*)&x..., (char*)&r};
  const Index strides[sizeof...(X) + 1] = {};
  return loop_over(loop, operands, 1, strides);
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_SCALARS_H_
