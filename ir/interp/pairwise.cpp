// Below 8 numbers serial from -0.0; up to 128 eight accumulators; above, halves at a multiple of 8.
// A complex number counts as two: its eight accumulators are four complex ones, and the bounds mean
// real numbers.
#include "ir/interp/pairwise.h"

#include <vector>

#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"
#include "ir/support/error.h"

namespace ufuse::ir::interp {
namespace {

constexpr std::int64_t kBlock = 128;  // NumPy's PW_BLOCKSIZE

template <class F>
F pairwise(const F* a, std::int64_t n, const Pulse& pulse) {
  if (n < 8) {
    F sum = -F{0};
    for (std::int64_t i = 0; i < n; ++i) sum += a[i];
    return sum;
  }
  if (n <= kBlock) {
    F r[8];
    for (int k = 0; k < 8; ++k) r[k] = a[k];
    std::int64_t i = 8;
    for (; i < n - n % 8; i += 8)
      for (int k = 0; k < 8; ++k) r[k] += a[i + k];
    F sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) sum += a[i];
    return sum;
  }
  std::int64_t half = n / 2;
  half -= half % 8;
  if (n > Pulse::kElements) pulse.beat();
  return pairwise(a, half, pulse) + pairwise(a + half, n - half, pulse);
}

// n counts real numbers.
template <class F>
rt::complex<F> pairwise_complex(const F* a, std::int64_t n, const Pulse& pulse) {
  using C = rt::complex<F>;
  if (n < 8) {
    C sum = {-F{0}, -F{0}};
    for (std::int64_t i = 0; i < n; i += 2) sum = sum + C{a[i], a[i + 1]};
    return sum;
  }
  if (n <= kBlock) {
    C r[4];
    for (int k = 0; k < 4; ++k) r[k] = {a[2 * k], a[2 * k + 1]};
    std::int64_t i = 8;
    for (; i < n - n % 8; i += 8)
      for (int k = 0; k < 4; ++k) r[k] = r[k] + C{a[i + 2 * k], a[i + 2 * k + 1]};
    C sum = (r[0] + r[1]) + (r[2] + r[3]);
    for (; i < n; i += 2) sum = sum + C{a[i], a[i + 1]};
    return sum;
  }
  std::int64_t half = n / 2;
  half -= half % 8;
  if (n > Pulse::kElements) pulse.beat();
  return pairwise_complex(a, half, pulse) + pairwise_complex(a + half, n - half, pulse);
}

template <class F>
void add_real(char* acc, const char* run, std::int64_t n, const Pulse& pulse) {
  F* total = reinterpret_cast<F*>(acc);
  *total = *total + pairwise(reinterpret_cast<const F*>(run), n, pulse);
}

// The terms are float32, and only what an inner call of NumPy gives is rounded.
void add_half(char* acc, const char* run, std::int64_t n, const Pulse& pulse) {
  const auto* halves = reinterpret_cast<const rt::f16*>(run);
  std::vector<float> terms(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < terms.size(); ++i) terms[i] = static_cast<float>(halves[i]);
  auto* total = reinterpret_cast<rt::f16*>(acc);
  *total = rt::f16(static_cast<float>(*total) + pairwise(terms.data(), n, pulse));
}

template <class F>
void add_complex(char* acc, const char* run, std::int64_t n, const Pulse& pulse) {
  F* total = reinterpret_cast<F*>(acc);
  const rt::complex<F> sum = pairwise_complex(reinterpret_cast<const F*>(run), 2 * n, pulse);
  total[0] = total[0] + sum.re;
  total[1] = total[1] + sum.im;
}

}  // namespace

void add_pairwise(DType dtype, char* acc, const char* run, std::int64_t n, const Pulse& pulse) {
  switch (dtype) {
    case DType::Float16:
      return add_half(acc, run, n, pulse);
    case DType::LongDouble:
      return add_real<rt::ld>(acc, run, n, pulse);
    case DType::CLongDouble:
      return add_complex<rt::ld>(acc, run, n, pulse);
    case DType::Float32:
      return add_real<rt::f32>(acc, run, n, pulse);
    case DType::Float64:
      return add_real<rt::f64>(acc, run, n, pulse);
    case DType::Complex64:
      return add_complex<rt::f32>(acc, run, n, pulse);
    case DType::Complex128:
      return add_complex<rt::f64>(acc, run, n, pulse);
    default:
      throw InternalError("add_pairwise: not an inexact dtype");
  }
}

}  // namespace ufuse::ir::interp
