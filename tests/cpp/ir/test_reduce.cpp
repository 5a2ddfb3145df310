// Reductions of the interpreter: every reduction on every dtype, pairwise sums against an
// implementation of the published order written in another way (a list of steps instead of a
// recursion), extremes with their `redo`, positions.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <random>

#include "ir/build.h"
#include "ir/inner_loops.h"
#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"
#include "ir/support/error.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {
namespace {

using testing::array;
using testing::bits_of;
using testing::values_of;

template <class T>
constexpr DType kDType = DType::Float64;
template <>
constexpr DType kDType<float> = DType::Float32;
template <>
constexpr DType kDType<long double> = DType::LongDouble;
template <>
constexpr DType kDType<std::complex<float>> = DType::Complex64;
template <>
constexpr DType kDType<std::complex<double>> = DType::Complex128;

template <class T>
struct IsComplex : std::false_type {};
template <class F>
struct IsComplex<std::complex<F>> : std::true_type {};

template <class T>
std::vector<T> random_values(std::size_t n) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<T> values(n);
  const auto number = [&] { return normal(random) * std::exp(3 * normal(random)); };
  for (T& v : values) {
    if constexpr (IsComplex<T>::value)
      v = T(static_cast<typename T::value_type>(number()),
            static_cast<typename T::value_type>(number()));
    else
      v = static_cast<T>(number());
  }
  return values;
}

// Pairwise order, bottom up: cut into leaves first, sum each leaf by its lanes, then add the leaves
// as the cuts say. `lanes` and `limit` are 8 and 128 real numbers, or 4 and 64 complex ones.
template <class T>
T leaf_sum(const T* a, std::size_t n, std::size_t lanes) {
  T sum = IsComplex<T>::value ? -T{} : T(-0.0);
  std::size_t done = 0;
  if (n >= lanes) {
    done = n - n % lanes;
    std::vector<T> lane(a, a + lanes);
    for (std::size_t i = lanes; i < done; ++i) lane[i % lanes] += a[i];
    for (std::size_t width = lanes; width > 1; width /= 2)
      for (std::size_t k = 0; k < width / 2; ++k) lane[k] = lane[2 * k] + lane[2 * k + 1];
    sum = lane[0];
  }
  for (std::size_t i = done; i < n; ++i) sum += a[i];
  return sum;
}
template <class T>
T pairwise_sum(const std::vector<T>& a) {
  const std::size_t lanes = IsComplex<T>::value ? 4 : 8, limit = 16 * lanes;
  struct Step {
    std::size_t begin, size;
    bool add;
  };
  std::vector<Step> steps = {{0, a.size(), false}};
  std::vector<T> sums;
  while (!steps.empty()) {
    const Step step = steps.back();
    steps.pop_back();
    if (step.add) {
      const T right = sums.back();
      sums.pop_back();
      sums.back() += right;
    } else if (step.size <= limit) {
      sums.push_back(leaf_sum(a.data() + step.begin, step.size, lanes));
    } else {
      // NumPy halves the count of real numbers and rounds down to a multiple of 8 of them.
      std::size_t half = step.size / 2;
      half -= half % lanes;
      steps.push_back({0, 0, true});
      steps.push_back({step.begin + half, step.size - half, false});
      steps.push_back({step.begin, half, false});
    }
  }
  return sums[0];
}

template <class T>
T reduce_1d(const std::vector<T>& values, Reduction r, ReduceOrder order) {
  Graph g;
  const auto n = static_cast<std::int64_t>(values.size());
  g.outputs = {reduce(g, r, input(g, 0, kDType<T>, {n}), {0}, order)};
  return values_of<T>(g, {array(kDType<T>, {n}, values)})[0];
}

template <class T>
bool same(T a, T b) {
  return testing::bits_of(a) == testing::bits_of(b);
}

}  // namespace

TEST_CASE_TEMPLATE("reduce: pairwise sums of one run", T, float, double, long double,
                   std::complex<float>, std::complex<double>) {
  for (std::size_t n : {0,  1,  2,   3,   4,   5,   7,   8,   9,   15,  16,  17,   31,   63,
                        64, 65, 100, 127, 128, 129, 130, 200, 255, 256, 257, 1000, 4097, 20001}) {
    CAPTURE(n);
    const std::vector<T> values = random_values<T>(n);
    CHECK(same(reduce_1d(values, Reduction::Sum, {Order::Pairwise, 1, 0}),
               T{} + pairwise_sum(values)));
  }
}

TEST_CASE("reduce: halves are added as floats, and each run is rounded") {
  for (std::size_t n : {0, 1, 7, 8, 129, 1000, 20001}) {
    CAPTURE(n);
    std::vector<float> values = random_values<float>(n);
    std::vector<rt::f16> halves;
    for (float& v : values) {
      halves.emplace_back(v / 64);
      v = static_cast<float>(halves.back());
    }
    Graph g;
    const Dims shape{static_cast<std::int64_t>(n)};
    g.outputs = {reduce(g, Reduction::Sum, input(g, 0, DType::Float16, shape), {0},
                        {Order::Pairwise, 1, 512})};
    rt::f16 wanted(0.0F);
    for (std::size_t i = 0; i < n; i += 512)
      wanted = rt::f16(static_cast<float>(wanted) +
                       pairwise_sum(std::vector<float>(
                           values.begin() + static_cast<std::ptrdiff_t>(i),
                           values.begin() + static_cast<std::ptrdiff_t>(std::min(i + 512, n)))));
    const auto sums = values_of<rt::f16>(g, {array(DType::Float16, shape, halves)});
    CHECK(sums[0].bits == wanted.bits);
  }
}

TEST_CASE("reduce: the order is a matter of bits") {
  // A test that cannot fail is worse than none: on these values, the orders differ.
  const std::vector<float> values = random_values<float>(20001);
  const float pairwise = reduce_1d(values, Reduction::Sum, {Order::Pairwise, 1, 0});
  const float cut = reduce_1d(values, Reduction::Sum, {Order::Pairwise, 1, 8192});
  const float serial = reduce_1d(values, Reduction::Sum, {Order::Sequential});
  CHECK(pairwise != cut);
  CHECK(pairwise != serial);
  float wanted = 0;
  for (float v : values) wanted += v;
  CHECK(serial == wanted);
  wanted = 0;
  for (std::size_t i = 0; i < values.size(); i += 8192)
    wanted += pairwise_sum(std::vector<float>(
        values.begin() + static_cast<std::ptrdiff_t>(i),
        values.begin() + static_cast<std::ptrdiff_t>(std::min(i + 8192, values.size()))));
  CHECK(cut == wanted);
}

TEST_CASE("reduce: runs of the last axes in the order of the axes, accumulated") {
  const std::vector<double> values = random_values<double>(5 * 40 * 30);
  const auto run_of = [&](std::size_t k) {  // x[:, k, :] of shape (5, 40, 30), axis 0 innermost
    std::vector<double> run;
    for (std::size_t i = 0; i < 30; ++i)
      for (std::size_t j = 0; j < 5; ++j) run.push_back(values[(j * 40 + k) * 30 + i]);
    return run;
  };
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {5, 40, 30});
  g.outputs = {reduce(g, Reduction::Sum, x, {1, 2, 0}, {Order::Pairwise, 2, 0})};
  double wanted = 0;
  for (std::size_t k = 0; k < 40; ++k) wanted += pairwise_sum(run_of(k));
  CHECK(values_of<double>(g, {array(DType::Float64, {5, 40, 30}, values)})[0] == wanted);
  g.outputs = {reduce(g, Reduction::Sum, x, {2, 0}, {Order::Pairwise, 2, 64})};
  const std::vector<double> sums =
      values_of<double>(g, {array(DType::Float64, {5, 40, 30}, values)});
  REQUIRE(sums.size() == 40);
  for (std::size_t k = 0; k < 40; ++k) {
    const std::vector<double> run = run_of(k);
    wanted = 0;
    for (std::size_t i = 0; i < 150; i += 64)
      wanted += pairwise_sum(std::vector<double>(
          run.begin() + static_cast<std::ptrdiff_t>(i),
          run.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(i + 64, 150))));
    CHECK(sums[k] == wanted);
  }
}

TEST_CASE("reduce: sums start at +0.0, or at the initial value") {
  const std::vector<double> zeros(9, -0.0);
  CHECK(same(reduce_1d(zeros, Reduction::Sum, {Order::Pairwise, 1, 0}), 0.0));
  CHECK(same(reduce_1d(zeros, Reduction::Sum, {Order::Sequential}), 0.0));
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {9}), start = param(g, 0, DType::Float64);
  g.outputs = {reduce(g, Reduction::Sum, x, {0}, {Order::Pairwise, 1, 0}, start)};
  CHECK(same(values_of<double>(g, {array(DType::Float64, {9}, zeros)}, {bits_of(-0.0)})[0], -0.0));
  CHECK(values_of<double>(g, {array(DType::Float64, {9}, zeros)}, {bits_of(2.5)})[0] == 2.5);
}

TEST_CASE("reduce: every reduction on every dtype folds its row of ops.def from the left") {
  for (Reduction r : testing::all_reductions())
    for (DType dtype : testing::all_dtypes()) {
      const ReductionInfo& row = reduction_info(r);
      if (!is_accepted(dtype, row.accepts)) continue;
      CAPTURE(row.name);
      CAPTURE(info(dtype).name);
      const std::vector<Scalar> specials = testing::special_values(dtype);
      const std::size_t n = std::min<std::size_t>(specials.size(), 12), size = size_of(dtype);
      testing::Array x = testing::empty(dtype, {static_cast<std::int64_t>(n)});
      Scalar wanted = row.identity == Identity::None ? specials[0] : identity_bits(r, dtype);
      for (std::size_t i = 0; i < n; ++i) {
        std::memcpy(x.memory.data() + i * size, specials[i].bits, size);
        Scalar element = specials[i];
        char* args[] = {reinterpret_cast<char*>(wanted.bits), reinterpret_cast<char*>(element.bits),
                        reinterpret_cast<char*>(wanted.bits)};
        const std::int64_t one = 1, strides[] = {0, 0, 0};
        elementwise_loop(row.combine, dtype)(args, &one, strides, nullptr);
      }
      Graph g;
      g.outputs = {reduce(g, r, input(g, 0, dtype, x.shape), {0}, {Order::Sequential})};
      const testing::Outcome outcome = testing::run(g, {x});
      CHECK(testing::scalar_at(outcome.outputs[0]) == without_padding(wanted, dtype));

      Graph e;
      const bool has_identity = row.identity != Identity::None;
      const NodeId nothing = input(e, 0, dtype, {0}), start = param(e, 0, dtype);
      e.outputs = {reduce(e, r, nothing, {0}, {Order::Free}, has_identity ? NodeId{} : start)};
      const Scalar identity = has_identity ? identity_bits(r, dtype) : specials[1];
      const testing::Outcome empty = testing::run(e, {testing::empty(dtype, {0})}, {specials[1]});
      CHECK(testing::scalar_at(empty.outputs[0]) == identity);
    }
}

TEST_CASE(
    "reduce: extremes ask to be redone where NumPy's vector order decides, and then write "
    "nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    std::vector<double> values;
    bool redo;
    double largest;
  };
  for (const Case& c :
       {Case{{1, 3, 2}, false, 3}, Case{{-0.0, -1, -0.0}, false, -0.0}, Case{{0.0, -0.0}, true, 0},
        Case{{0.0, -0.0, 1}, false, 1}, Case{{1, nan, 2, nan}, false, nan},
        Case{{nan, -nan}, true, nan}, Case{{-5, -3}, false, -3}}) {
    Graph g;
    const auto n = static_cast<std::int64_t>(c.values.size());
    const NodeId x = input(g, 0, DType::Float64, {n});
    const NodeId top = reduce(g, Reduction::Max, x, {0}, {Order::Extremum});
    g.outputs = {top, broadcast_to(g, top, {n})};
    std::vector<double> in_place = c.values;
    double result = 77;
    std::vector<Buffer> in = {{in_place.data(), DType::Float64, {n}, {8}}};
    std::vector<Buffer> out = {{&result, DType::Float64, {}, {}}, in[0]};
    const std::vector<int> alias = {-1, 0};
    const RunArgs args{in, {}, out, alias, {}};
    CHECK(Interpreter().prepare(g, args)->run(args).redo == c.redo);
    if (c.redo)
      CHECK(std::memcmp(in_place.data(), c.values.data(), c.values.size() * 8) == 0);
    else
      CHECK((same(result, c.largest) && same(in_place[0], c.largest)));
  }
}

TEST_CASE("arg_reduce: the first extreme; the first NaN wins") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto position = [](bool largest, DType dtype, auto values) {
    Graph g;
    const auto n = static_cast<std::int64_t>(values.size());
    g.outputs = {arg_reduce(g, largest, input(g, 0, dtype, {n}), 0)};
    return values_of<std::int64_t>(g, {array(dtype, {n}, values)})[0];
  };
  CHECK(position(true, DType::Float64, std::vector<double>{1, 3, 3, 2}) == 1);
  CHECK(position(false, DType::Float64, std::vector<double>{1, -3, 3, -3}) == 1);
  CHECK(position(true, DType::Float64, std::vector<double>{1, nan, 9, nan}) == 1);
  CHECK(position(false, DType::Float64, std::vector<double>{nan, -9}) == 0);
  CHECK(position(false, DType::Float64, std::vector<double>{0.0, -0.0}) == 0);
  CHECK(position(true, DType::UInt8, std::vector<std::uint8_t>{1, 200, 100}) == 1);
  CHECK(position(true, DType::Int8, std::vector<std::int8_t>{1, -56, 100}) == 2);
  CHECK(position(true, DType::Bool, std::vector<std::uint8_t>{0, 1, 1}) == 1);
  CHECK(position(false, DType::Bool, std::vector<std::uint8_t>{1, 1, 0}) == 2);
  Graph g;
  g.outputs = {arg_reduce(g, false, input(g, 0, DType::Int64, {3, 2}), 0)};
  CHECK(
      values_of<std::int64_t>(g, {array<std::int64_t>(DType::Int64, {3, 2}, {5, 1, 4, 2, 4, 0})}) ==
      std::vector<std::int64_t>{1, 2});
}

}  // namespace ufuse::ir
