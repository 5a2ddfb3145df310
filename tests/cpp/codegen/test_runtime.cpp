// Do the parts that every kernel stands on do their work: ranges, floating-point flags, pairwise
// sums, threads, scratch memory?
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cfenv>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>

#include "codegen/runtime/memory.h"
#include "codegen/runtime/share.h"
#include "codegen/runtime/threads.h"
#include "ir/dtype.h"
#include "tests/cpp/codegen/jit_tools.h"

namespace ufuse::codegen {
namespace {

using namespace testing;

// Kernels of this file share one Jit, and so one cache of compiled code.
std::shared_ptr<const Kernel> compiled(const std::string& body) {
  static const TemporaryFolder folder;
  static Jit jit(config(folder / "cache"));
  return jit.get("extern \"C\" unsigned ufuse_kernel(const rt::Args* args) {\n" + body + "\n}\n")
      .kernel;
}

struct Call {
  std::vector<void*> buffers;
  std::vector<rt::Index> sizes;
  std::vector<rt::Loop> loops;
  int threads = 1;
  rt::Watch* watch = nullptr;
  unsigned run(const Kernel& kernel) const {
    return kernel({buffers.data(), sizes.data(), nullptr, loops.data(), team_of(threads, watch)});
  }
};

// Has a loop run in pieces of seven, and gives it up after so many questions of the caller's.
struct Watcher : rt::Watch {
  explicit Watcher(int questions) : Watch{next, 3, false}, left(questions) {}
  static rt::Index next(rt::Watch* watch, bool caller, rt::Index, rt::Index*) {
    auto& self = static_cast<Watcher&>(*watch);
    std::atomic_ref<bool> given_up(watch->given_up);
    if (caller && --self.left < 0) given_up = true;
    return given_up ? 0 : 7;
  }
  int left;
};
constexpr int kNever = 1 << 30;

TEST_CASE("runtime: each element is in one range") {
  const auto kernel = compiled(
      "  int* count = (int*)args->buffers[0];\n"
      "  const rt::Index grain = args->sizes[1];\n"
      "  return rt::parallel(args->threads, args->sizes[0], grain,\n"
      "                      [=](rt::Index lo, rt::Index hi, rt::Flags& flags) {\n"
      "    if (lo % grain) flags.redo();\n"
      "    for (rt::Index i = lo; i < hi; ++i) ++count[i];\n"
      "  });");
  for (const rt::Index n : {0, 1, 2, 7, 100, 1000, 1023})
    for (const rt::Index grain : {1, 3, 64, 5000})
      for (const int threads : {1, 2, 3, 5}) {
        CAPTURE(n);
        CAPTURE(grain);
        std::vector<int> count(static_cast<std::size_t>(n) + 1, 0);
        CHECK(Call{{count.data()}, {n, grain}, {}, threads}.run(*kernel) == 0);
        Watcher watcher(kNever);
        CHECK(Call{{count.data()}, {n, grain}, {}, threads, &watcher}.run(*kernel) == 0);
        CHECK(!watcher.given_up);
        count.pop_back();
        for (const int times : count) CHECK(times == 2);
      }
  for (const int threads : {1, 3}) {
    std::vector<int> count(100'000, 0);
    Watcher watcher(10);
    CHECK(Call{{count.data()}, {100'000, 1}, {}, threads, &watcher}.run(*kernel) == 0);
    CHECK(watcher.given_up);
    CHECK(std::ranges::count(count, 1) >= 70);
    CHECK(std::ranges::count(count, 0) > 0);
    CHECK(std::ranges::max(count) == 1);
  }
}

// x[i] = x[i] / y[i]; the loop between is a block call.
const char* const kDivide =
    "  double* x = (double*)args->buffers[0];\n"
    "  const double* y = (const double*)args->buffers[1];\n"
    "  const rt::Loop* loops = args->loops;\n"
    "  return rt::parallel(args->threads, args->sizes[0], 1,\n"
    "                      [=](rt::Index lo, rt::Index hi, rt::Flags& flags) {\n"
    "    for (rt::Index i = lo; i < hi; ++i) x[i] = x[i] / y[i];\n"
    "    if (loops) { flags.collect(); loops->call(nullptr, nullptr, nullptr, loops->data); }\n"
    "  });";

unsigned divide(double x, double y, int threads, std::vector<rt::Loop> loops = {}) {
  // The element of interest stands where the last thread works.
  std::vector<double> xs(100, 1), ys(100, 1);
  xs[99] = x;
  ys[99] = y;
  return Call{{xs.data(), ys.data()}, {100}, std::move(loops), threads}.run(*compiled(kDivide));
}

// Without inexact, which the C++ library raises now and then.
constexpr int kWatched = FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID;

TEST_CASE("runtime: flags of all threads come back, the caller's stay") {
  for (const int threads : {1, 3}) {
    CHECK(divide(1, 2, threads) == 0);
    CHECK(divide(1, 3, threads) == 0);  // inexact is nobody's business
    CHECK(divide(1, 0, threads) == rt::kDivideByZero);
    CHECK(divide(0, 0, threads) == rt::kInvalid);
    CHECK(divide(1e308, 1e-10, threads) == rt::kOverflow);
    CHECK(divide(1e-308, 1e10, threads) == rt::kUnderflow);
    std::feclearexcept(FE_ALL_EXCEPT);
    divide(1, 0, threads);
    CHECK(std::fetestexcept(kWatched) == 0);
    std::feraiseexcept(FE_INVALID);
    CHECK(divide(1, 0, threads) == rt::kDivideByZero);
    CHECK(std::fetestexcept(kWatched) == FE_INVALID);
    std::feclearexcept(FE_ALL_EXCEPT);
  }
}

TEST_CASE("runtime: flags around a block call") {
  const rt::Loop clears{
      [](char**, const rt::Index*, const rt::Index*, void*) { std::feclearexcept(FE_ALL_EXCEPT); },
      nullptr};
  const rt::Loop overflows{[](char**, const rt::Index*, const rt::Index*, void*) {
                             std::feraiseexcept(FE_OVERFLOW);  // in the x87 unit on x86-64
                           },
                           nullptr};
  for (const int threads : {1, 3}) {
    CHECK(divide(1, 0, threads, {clears}) == rt::kDivideByZero);
    CHECK(divide(1, 0, threads, {overflows}) == (rt::kDivideByZero | rt::kOverflow));
    CHECK(divide(1, 1, threads) == 0);  // and it does not stick
  }
}

// ---- Pairwise sums against a direct transcription of NumPy's recursion ----

template <class T>
T reference_pairwise(const T* x, std::int64_t n) {
  if (n < 8) {
    T sum = T(-0.0);
    for (std::int64_t i = 0; i < n; ++i) sum = sum + x[i];
    return sum;
  }
  if (n <= 128) {
    std::array<T, 8> r;
    std::int64_t i;
    for (i = 0; i < 8; ++i) r[static_cast<std::size_t>(i)] = x[i];
    for (; i < n - n % 8; ++i) r[static_cast<std::size_t>(i % 8)] += x[i];
    T sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) sum = sum + x[i];
    return sum;
  }
  const std::int64_t half = n / 2 - n / 2 % 8;
  return reference_pairwise(x, half) + reference_pairwise(x + half, n - half);
}

// As NumPy's, n counts reals.
template <class T>
std::complex<T> reference_pairwise(const std::complex<T>* x, std::int64_t n) {
  const T* a = reinterpret_cast<const T*>(x);
  if (n < 8) {
    T re = T(-0.0), im = T(-0.0);
    for (std::int64_t i = 0; i < n; i += 2) {
      re = re + a[i];
      im = im + a[i + 1];
    }
    return {re, im};
  }
  if (n <= 128) {
    std::array<T, 8> r;
    std::int64_t i;
    for (i = 0; i < 8; ++i) r[static_cast<std::size_t>(i)] = a[i];
    for (; i < n - n % 8; ++i) r[static_cast<std::size_t>(i % 8)] += a[i];
    T re = (r[0] + r[2]) + (r[4] + r[6]), im = (r[1] + r[3]) + (r[5] + r[7]);
    for (; i < n; i += 2) {
      re = re + a[i];
      im = im + a[i + 1];
    }
    return {re, im};
  }
  const std::int64_t half = n / 2 - n / 2 % 8;
  return reference_pairwise(x, half) + reference_pairwise(x + half / 2, n - half);
}

template <class T>
struct Element;
template <>
struct Element<float> {
  static constexpr const char* name = "rt::f32";
  static constexpr int reals = 1;
};
template <>
struct Element<double> {
  static constexpr const char* name = "rt::f64";
  static constexpr int reals = 1;
};
template <>
struct Element<long double> {
  static constexpr const char* name = "rt::ld";
  static constexpr int reals = 1;
};
template <>
struct Element<std::complex<float>> {
  static constexpr const char* name = "rt::c64";
  static constexpr int reals = 2;
};
template <>
struct Element<std::complex<double>> {
  static constexpr const char* name = "rt::c128";
  static constexpr int reals = 2;
};

template <class T>
std::vector<T> numbers(std::int64_t n) {
  std::mt19937_64 random(static_cast<std::uint64_t>(n));
  std::normal_distribution<double> normal;
  std::vector<T> x(static_cast<std::size_t>(n));
  const auto draw = [&] { return normal(random) * std::exp(3 * normal(random)); };
  for (T& value : x) {
    if constexpr (Element<T>::reals == 2)
      value = {static_cast<typename T::value_type>(draw()),
               static_cast<typename T::value_type>(draw())};
    else
      value = static_cast<T>(draw());
  }
  return x;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  const bool is_long = std::is_same_v<T, long double>;
  return std::memcmp(&a, &b, is_long ? ir::value_bytes(ir::DType::LongDouble) : sizeof a) == 0;
}

TEST_CASE_TEMPLATE("runtime: pairwise sums have NumPy's bits", T, float, double, long double,
                   std::complex<float>, std::complex<double>) {
  const std::string type = Element<T>::name;
  const std::string element = "  using T = " + type +
                              ";\n"
                              "  const T* x = (const T*)args->buffers[0];\n"
                              "  T* out = (T*)args->buffers[1];\n"
                              "  const rt::Index n = args->sizes[0], chunk = args->sizes[1];\n"
                              "  const auto f = [=](rt::Index i) { return x[i]; };\n";
  const auto serial = compiled(element + "  *out = rt::sum<T>(*out, n, chunk, f);\n  return 0;");
  const auto parallel = compiled(
      element +
      "  const auto node = [=](rt::Index lo, rt::Index m, rt::Flags&) {\n"
      "    return rt::pairwise<T>(lo, m, f);\n  };\n"
      "  return rt::parallel_pairwise<T>(args->threads, *out, n, chunk, args->sizes[2], node);");

  std::vector<std::int64_t> lengths;
  for (std::int64_t n = 0; n < 300; ++n) lengths.push_back(n);
  for (const int n : {511, 512, 513, 1000, 1031, 4095, 8192, 8193, 20'001, 123'457})
    lengths.push_back(n);
  for (const std::int64_t n : lengths) {
    std::vector<T> x = numbers<T>(n);
    for (const std::int64_t chunk : {0, 200, 8192}) {
      if (n < 300 && chunk > 200) continue;
      CAPTURE(n);
      CAPTURE(chunk);
      T want = T(0);
      const std::int64_t step = chunk ? chunk : n;
      for (std::int64_t i = 0; i < n; i += step)
        want = want + reference_pairwise(x.data() + i, Element<T>::reals * std::min(step, n - i));
      T got = T(0);
      CHECK(Call{{x.data(), &got}, {n, chunk}, {}, 1}.run(*serial) == 0);
      CHECK(same_bits(got, want));
      for (const int threads : {1, 2, 7})
        for (const rt::Index limit : {128, 512}) {
          got = T(0);
          CHECK(Call{{x.data(), &got}, {n, chunk, limit}, {}, threads}.run(*parallel) == 0);
          CHECK(same_bits(got, want));
          got = T(0);
          Watcher watcher(kNever);
          CHECK(Call{{x.data(), &got}, {n, chunk, limit}, {}, threads, &watcher}.run(*parallel) ==
                0);
          CHECK(same_bits(got, want));
        }
    }
  }
}

TEST_CASE("runtime: a sum reports its own overflow") {
  const auto kernel = compiled(
      "  const double* x = (const double*)args->buffers[0];\n"
      "  double* out = (double*)args->buffers[1];\n"
      "  return rt::parallel_pairwise<double>(args->threads, *out, args->sizes[0], 8192, 128,\n"
      "      [=](rt::Index lo, rt::Index m, rt::Flags&) {\n"
      "    return rt::pairwise_leaf<double>(lo, m, [=](rt::Index i) { return x[i]; });\n  });");
  std::vector<double> x(20'000, 0);
  double sum = 0;
  const Call call{{x.data(), &sum}, {20'000}, {}, 2};
  CHECK(call.run(*kernel) == 0);
  x[0] = x[19'999] = 1e308;  // meet only in the last addition
  x[10'000] = 1e308;
  CHECK(call.run(*kernel) == rt::kOverflow);
  CHECK(std::isinf(sum));
}

std::int64_t threads_time = 1'000'000'000;

TEST_CASE("threads: enough work gets all of them") {
  int taken = 0;
  const Contention none;
  Threads threads([&] { return taken; }, [] { return threads_time; }, none);
  const int by_default = threads.limit();
  CHECK(by_default >= 1);
  threads.set_limit(3);
  CHECK(threads.limit() == 3);
  CHECK(threads.choose(1e3) == 1);
  CHECK(threads.choose(100e3) == 1);  // the team sleeps
  CHECK(threads.choose(1e9) == 3);
  CHECK(threads.choose(100e3) == 3);  // it has just worked
  threads_time += 2'000'000;
  CHECK(threads.choose(100e3) == 3);
  threads_time += 30'000'000;
  CHECK(threads.choose(100e3) == 1);  // it sleeps again
  Threads::leave_cores();
  CHECK(threads.choose(1e9) == 3);
  threads_time += 2'000'000;
  CHECK(threads.choose(100e3) == 1);  // it sleeps sooner
  threads_time += 2'000'000'000;
  CHECK(threads.choose(1e9) == 3);
  threads_time += 2'000'000;
  CHECK(threads.choose(100e3) == 3);
  taken = 1;
  CHECK(threads.choose(1e6) == 2);
  taken = 2;
  CHECK(threads.choose(1e6) == 1);
  CHECK(threads.choose(1e9) == 3);
  taken = 0;
  CHECK(threads.choose(1e3) == 1);
  threads.set_limit(1);
  CHECK(threads.choose(1e9) == 1);
  threads.set_limit(0);
  CHECK(threads.limit() == by_default);
}

TEST_CASE("threads: teams rest where other processes take the cores") {
  constexpr std::int64_t kMs = 1'000'000;
  Contention contention;
  std::int64_t now = 5'000 * kMs;
  const auto ran = [&](std::int64_t taken, std::int64_t parts) {
    contention.ran(taken, parts, now);
    return contention.rests(now);
  };
  CHECK_FALSE(ran(kMs, 2 * kMs));
  CHECK_FALSE(ran(2 * kMs, kMs));
  for (std::int64_t rest = 16 * kMs; rest < 1'000 * kMs; rest *= 2) {
    CHECK(ran(4 * kMs, kMs));
    CHECK(contention.rests(now + rest - 1));
    CHECK_FALSE(contention.rests(now += rest));
  }
  for (int i = 0; i < 10; ++i) CHECK_FALSE(ran(kMs, 2 * kMs));
  CHECK_FALSE(ran(4 * kMs, kMs));  // that happens
  CHECK(ran(4 * kMs, kMs));
  CHECK_FALSE(contention.rests(now + 16 * kMs));
}

TEST_CASE("threads: short loops run on one while teams rest") {
  Contention contention;
  Threads threads([] { return 0; }, [] { return threads_time; }, contention);
  threads.set_limit(3);
  CHECK(threads.choose(1e9) == 3);  // the team sleeps before
  CHECK(threads.choose(1e6) == 3);
  contention.ran(10'000'000, 1'000'000, threads_time);
  CHECK(threads.choose(1e6) == 1);
  CHECK(threads.choose(1e9) == 3);  // everybody gets a core often enough
  threads_time += 1'000'000'000;
  CHECK(threads.choose(1e6) == 3);
}

TEST_CASE("threads: none inside a region of the caller's") {
  Threads threads([] { return 0; });
  threads.set_limit(4);
  int inside = 0;
#pragma omp parallel num_threads(2)
#pragma omp critical
  inside = std::max(inside, threads.choose(1e9));
  CHECK(inside == 1);
}

TEST_CASE("memory: scratch is aligned, kept and bounded") {
  ScratchPool pool(10 << 20);
  void* first;
  {
    const Scratch a = pool.take(100'000), b = pool.take(100'000);
    CHECK(a.data() != b.data());
    CHECK(a.capacity() >= 100'000);
    CHECK(a.capacity() < 130'000);
    CHECK(std::bit_cast<std::uintptr_t>(a.data()) % 64 == 0);
    std::memset(a.data(), 1, a.capacity());
    first = a.data();
    CHECK(pool.idle_bytes() == 0);
  }
  CHECK(pool.idle_bytes() >= 200'000);
  CHECK(pool.take(99'000).data() == first);
  {
    const Scratch large = pool.take(8 << 20), larger = pool.take(9 << 20);
    CHECK(std::bit_cast<std::uintptr_t>(large.data()) % (2 << 20) == 0);
  }
  CHECK(pool.idle_bytes() <= 10 << 20);
  pool.clear();
  CHECK(pool.idle_bytes() == 0);
  CHECK_THROWS_AS(pool.take(SIZE_MAX), std::bad_alloc);
  Scratch moved = pool.take(10);
  Scratch target;
  target = std::move(moved);
  CHECK(target.data() != nullptr);
}

TEST_CASE("memory: what is idle for long is left to the kernel") {
  constexpr std::size_t kLarge = 8 << 20;
  ScratchPool pool(4 * kLarge, 2 * kLarge);
  std::vector<void*> used;
  {
    std::vector<Scratch> scratch;
    for (int i = 0; i < 4; ++i) {
      scratch.push_back(pool.take(kLarge));
      used.push_back(scratch.back().data());
    }
    CHECK(pool.hot_bytes() == 0);
  }
  CHECK(pool.idle_bytes() == 4 * kLarge);
  CHECK(pool.hot_bytes() == 2 * kLarge);
  std::vector<Scratch> again;
  for (int i = 0; i < 4; ++i) {
    again.push_back(pool.take(kLarge));
    CHECK(std::find(used.begin(), used.end(), again.back().data()) != used.end());
    std::memset(again.back().data(), i + 1, kLarge);
  }
  for (int i = 0; i < 4; ++i)
    CHECK(static_cast<char*>(again[static_cast<std::size_t>(i)].data())[kLarge - 1] == i + 1);
  CHECK(pool.idle_bytes() == 0);
  CHECK(pool.hot_bytes() == 0);
  void* const own = again.back().release();
  again.clear();
  CHECK(pool.idle_bytes() == 3 * kLarge);
  pool.give_back(own, kLarge);
  CHECK(pool.idle_bytes() == 4 * kLarge);
}

TEST_CASE("memory: of many idle buffers the newest are kept") {
  ScratchPool pool(1 << 30);
  {
    std::vector<Scratch> many;
    for (int i = 0; i < 3000; ++i) many.push_back(pool.take(4096));
  }
  CHECK(pool.idle_bytes() == 1024 * 4096);
}

TEST_CASE("memory: scratch from many threads") {
  ScratchPool pool(1 << 20);
  std::vector<std::jthread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        const Scratch scratch = pool.take(1 + i * 37 % 100'000);
        auto* bytes = static_cast<unsigned char*>(scratch.data());
        bytes[0] = static_cast<unsigned char>(t);
        bytes[scratch.capacity() - 1] = static_cast<unsigned char>(t);
        std::this_thread::yield();
        wrong += bytes[0] != t || bytes[scratch.capacity() - 1] != t;
      }
    });
  threads.clear();
  CHECK(wrong == 0);
  CHECK(pool.idle_bytes() <= 1 << 20);
}

}  // namespace
}  // namespace ufuse::codegen
