// What does an operation mean for a float16? The rest of the scalar semantics of prelude.h, after
// which this text stands in the kernels that have halves; it includes nothing and does not branch
// either.
#pragma once

namespace rt {

// How the bits of a float16 lie in those of a wider float: NumPy converts by integer arithmetic, so
// that NaNs keep their payload and raise nothing.
template <class F>
struct Widened {
  static constexpr bool kDouble = sizeof(F) == 8;
  using U = decltype(bits_of(F{}));
  static constexpr int kDigits = kDouble ? 52 : 23, kDropped = kDigits - 10;
  static constexpr U kSign = (U)1 << (8 * sizeof(U) - 1);
  static constexpr U kRebias = (U)(kDouble ? 1023 - 15 : 127 - 15) << kDigits;
  static constexpr U kNormal = kRebias + ((U)1 << kDigits);  // 2^-14, the least normal number
  static constexpr U kInfinity = (U)(kDouble ? 0x7ff : 0xff) << kDigits;
  static constexpr F kOneUlp = kDouble ? 0x1p28 : 0.5f;  // whose last digit is 2^-24
};

template <class U>
inline U mask(bool condition) {
  return 0 - (U)condition;
}
template <class U>
inline U choose(bool condition, U x, U y) {
  return y ^ ((x ^ y) & mask<U>(condition));
}

// NumPy's float16: a storage format. Arithmetic is float32's, each result rounded back.
struct f16 {
  u16 bits;

  f16() = default;
  explicit f16(f32 x) : bits(rounded(x)) {}
  explicit f16(f64 x) : bits(rounded(x)) {}
  explicit f16(i32 x) : f16((f32)x) {}
  explicit operator f32() const { return widened<f32>(); }

  template <class F>
  F widened() const {
    using W = Widened<F>;
    using U = typename W::U;
    const i32 magnitude = bits & 0x7fff;
    const U normal =
        ((U)magnitude << W::kDropped) + W::kRebias + (mask<U>(magnitude >= 0x7c00) & W::kRebias);
    const U subnormal = bits_of((F)magnitude * (F)0x1p-24);
    const U sign = (U)(bits >> 15) << (8 * sizeof(U) - 1);
    return __builtin_bit_cast(F, sign | choose(magnitude < 0x0400, subnormal, normal));
  }

  // Half to even. Overflow and underflow are raised where NumPy raises them: by a square that is
  // infinity or 0, which nobody knows beforehand.
  template <class F>
  static u16 rounded(F x) {
    using W = Widened<F>;
    using U = typename W::U;
    const U magnitude = bits_of(x) & ~W::kSign;
    const bool tiny = magnitude < W::kNormal, number = magnitude < W::kInfinity;
    const F least = __builtin_bit_cast(F, magnitude & mask<U>(tiny)), sum = least + W::kOneUlp;
    const U subnormal = bits_of(sum) - bits_of(W::kOneUlp);
    const U whole = (magnitude - W::kRebias + ((U)1 << (W::kDropped - 1)) - 1 +
                     (magnitude >> W::kDropped & 1)) >>
                    W::kDropped;
    const U payload = (magnitude & (((U)1 << W::kDigits) - 1)) >> W::kDropped;
    const U nan = 0x7c00 + payload + (payload == 0);
    const bool large = whole >= 0x7c00;
    const U normal = choose<U>(magnitude > W::kInfinity, nan, choose<U>(large, 0x7c00, whole));
    const u32 overflow = mask<u32>(!tiny & number & large) & 0x7f000000;
    const u32 underflow = mask<u32>(sum - W::kOneUlp != least) & 0x00800000;
    const f32 root = __builtin_bit_cast(f32, overflow | underflow);
    const u32 raised = bits_of(root * root) >> 13 & 0x7c00;
    const u32 sign = (u32)(bits_of(x) >> (8 * sizeof(U) - 16)) & 0x8000;
    return (u16)(sign | raised | (u32)choose(tiny, subnormal, normal));
  }

  friend f16 operator+(f16 a, f16 b) { return f16((f32)a + (f32)b); }
  friend f16 operator-(f16 a, f16 b) { return f16((f32)a - (f32)b); }
  friend f16 operator*(f16 a, f16 b) { return f16((f32)a * (f32)b); }
  friend f16 operator/(f16 a, f16 b) { return f16((f32)a / (f32)b); }
  friend f16 operator-(f16 a) { return of_bits(a.bits ^ 0x8000); }
  friend bool operator==(f16 a, f16 b) { return (f32)a == (f32)b; }
  friend bool operator!=(f16 a, f16 b) { return (f32)a != (f32)b; }

  static f16 of_bits(i32 bits) {
    f16 x;
    x.bits = (u16)bits;
    return x;
  }
};

inline i32 magnitude(f16 x) { return x.bits & 0x7fff; }
inline i32 infinite(f16) { return 0x7c00; }

inline f16 absolute(f16 x) { return f16::of_bits(x.bits & 0x7fff); }
inline f16 sqrt(f16 x) { return f16(sqrt((f32)x)); }
inline f16 floor(f16 x) { return f16(floor((f32)x)); }
inline f16 ceil(f16 x) { return f16(ceil((f32)x)); }
inline f16 trunc(f16 x) { return f16(trunc((f32)x)); }
inline f16 rint(f16 x) { return f16(rint((f32)x)); }
inline f16 copysign(f16 x, f16 y) { return f16::of_bits((x.bits & 0x7fff) | (y.bits & 0x8000)); }
inline bool signbit(f16 x) { return (x.bits & 0x8000) != 0; }

inline bool less(f16 x, f16 y) { return less((f32)x, (f32)y); }
inline bool less_equal(f16 x, f16 y) { return less_equal((f32)x, (f32)y); }

// Of equal halves the first.
inline f16 maximum(f16 x, f16 y) {
  return f16::of_bits(choose<i32>(less_equal(y, x) | (x != x), x.bits, y.bits));
}
inline f16 minimum(f16 x, f16 y) {
  return f16::of_bits(choose<i32>(less_equal(x, y) | (x != x), x.bits, y.bits));
}

// -0.0 gives +0.0, a NaN itself.
inline f16 sign(f16 x) {
  const i32 one = magnitude(x) == 0 ? 0 : 0x3c00 | (x.bits & 0x8000);
  return f16::of_bits(choose<i32>(magnitude(x) > infinite(x), x.bits, one));
}

// As NumPy's casts: all but float64 by way of float32.
template <class From>
inline f16 to_half(From x) {
  if constexpr (is_half<From>)
    return x;
  else if constexpr (is_bool<From>)
    return f16((f32)(u8)(bool)x);
  else if constexpr (sizeof(From) == 8 && is_float<From>)
    return f16(x);
  else
    return f16((f32)x);
}
template <class To>
inline To half_to(f16 x) {
  if constexpr (is_float<To>)
    return x.widened<To>();
  else if constexpr ((To)0.5 == 0)
    return to_integer<To>((f32)x);
  else
    return (To)(f32)x;
}

// See support.h.
inline f16 unknown(f16 x, u8 zero) {
  x.bits ^= zero;
  return x;
}

}  // namespace rt
