// Each pass does what it says, keeps the value to the bit, and leaves alone what only looks the
// same.
#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/passes/passes.h"
#include "ir/print.h"
#include "ir/support/error.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {
namespace {

using testing::bits_of;

// Text before and after one pass (and dce, so that only what is left stands there); the same text
// twice: nothing happens.
struct Rewrite {
  std::string about;
  Graph (*pass)(const Graph&);
  const char* before;
  const char* after;
};

const Rewrite kRewrites[] = {
    {"broadcast of a broadcast", index_maps,
     "%0 = input 0 : int8[3]\n"
     "%1 = broadcast %0 axes=[-1, 0] : int8[2, 3]\n"
     "%2 = broadcast %1 axes=[0, -1, 1] : int8[2, 5, 3]\n"
     "return %2\n",
     "%0 = input 0 : int8[3]\n"
     "%1 = broadcast %0 axes=[-1, -1, 0] : int8[2, 5, 3]\n"
     "return %1\n"},
    {"broadcasts that come to nothing", index_maps,
     "%0 = input 0 : int8[1, 3]\n"
     "%1 = broadcast %0 axes=[1] : int8[3]\n"
     "%2 = broadcast %1 axes=[-1, 0] : int8[1, 3]\n"
     "return %2\n",
     "%0 = input 0 : int8[1, 3]\n"
     "return %0\n"},
    {"transposes that come to nothing", index_maps,
     "%0 = input 0 : int8[2, 3]\n"
     "%1 = transpose %0 permutation=[1, 0] : int8[3, 2]\n"
     "%2 = transpose %1 permutation=[1, 0] : int8[2, 3]\n"
     "return %2\n",
     "%0 = input 0 : int8[2, 3]\n"
     "return %0\n"},
    {"transpose of a transpose", index_maps,
     "%0 = input 0 : int8[2, 3, 4]\n"
     "%1 = transpose %0 permutation=[1, 2, 0] : int8[3, 4, 2]\n"
     "%2 = transpose %1 permutation=[0, 2, 1] : int8[3, 2, 4]\n"
     "return %2\n",
     "%0 = input 0 : int8[2, 3, 4]\n"
     "%1 = transpose %0 permutation=[1, 0, 2] : int8[3, 2, 4]\n"
     "return %1\n"},
    {"transpose of a broadcast", index_maps,
     "%0 = input 0 : int8[3]\n"
     "%1 = broadcast %0 axes=[-1, 0] : int8[2, 3]\n"
     "%2 = transpose %1 permutation=[1, 0] : int8[3, 2]\n"
     "return %2\n",
     "%0 = input 0 : int8[3]\n"
     "%1 = broadcast %0 axes=[0, -1] : int8[3, 2]\n"
     "return %1\n"},
    {"slice of a slice", index_maps,
     "%0 = input 0 : int8[20]\n"
     "%1 = slice %0 start=[18] step=[-2] : int8[9]\n"
     "%2 = slice %1 start=[1] step=[3] : int8[3]\n"
     "return %2\n",
     "%0 = input 0 : int8[20]\n"
     "%1 = slice %0 start=[16] step=[-6] : int8[3]\n"
     "return %1\n"},
    {"x[::-1][::-1]", index_maps,
     "%0 = input 0 : int8[20]\n"
     "%1 = slice %0 start=[19] step=[-1] : int8[20]\n"
     "%2 = slice %1 start=[19] step=[-1] : int8[20]\n"
     "return %2\n",
     "%0 = input 0 : int8[20]\n"
     "return %0\n"},
    {"one element and none have one form", index_maps,
     "%0 = input 0 : int8[20, 5]\n"
     "%1 = slice %0 start=[7, 3] step=[4, 2] : int8[1, 0]\n"
     "return %1\n",
     "%0 = input 0 : int8[20, 5]\n"
     "%1 = slice %0 start=[7, 0] step=[1, 1] : int8[1, 0]\n"
     "return %1\n"},
    {"reshapes that come to nothing, and a cast to the same dtype", index_maps,
     "%0 = input 0 : int8[2, 3]\n"
     "%1 = reshape %0 : int8[6]\n"
     "%2 = cast %1 : int8[6]\n"
     "%3 = reshape %2 : int8[2, 3]\n"
     "return %3\n",
     "%0 = input 0 : int8[2, 3]\n"
     "return %0\n"},
    {"constants, also when broadcast", fold,
     "%0 = const 0x1.8p+1 : float64[]\n"
     "%1 = const 2 : int32[]\n"
     "%2 = cast %1 : float64[]\n"
     "%3 = broadcast %0 axes=[-1] : float64[4]\n"
     "%4 = broadcast %2 axes=[-1] : float64[4]\n"
     "%5 = multiply %3 %4 : float64[4]\n"
     "return %5\n",
     "%0 = const 0x1.8p+2 : float64[]\n"
     "%1 = broadcast %0 axes=[-1] : float64[4]\n"
     "return %1\n"},
    {"maps of constants", fold,
     "%0 = const -0x0p+0 : float64[]\n"
     "%1 = broadcast %0 axes=[-1, -1] : float64[4, 6]\n"
     "%2 = reshape %1 : float64[24]\n"
     "%3 = slice %2 start=[0] step=[2] : float64[12]\n"
     "return %3\n",
     "%0 = const -0x0p+0 : float64[]\n"
     "%1 = broadcast %0 axes=[-1] : float64[12]\n"
     "return %1\n"},
    {"integers wrap without a flag", fold,
     "%0 = const 127 : int8[]\n"
     "%1 = const 1 : int8[]\n"
     "%2 = add %0 %1 : int8[]\n"
     "return %2\n",
     "%0 = const -128 : int8[]\n"
     "return %0\n"},
    {"a cast of complex from real has a known imaginary part", simplify,
     "%0 = input 0 : int32[3]\n"
     "%1 = cast %0 : complex128[3]\n"
     "%2 = real %1 : float64[3]\n"
     "%3 = imag %1 : float64[3]\n"
     "return %2 %3\n",
     "%0 = input 0 : int32[3]\n"
     "%1 = cast %0 : float64[3]\n"
     "%2 = const 0x0p+0 : float64[]\n"
     "%3 = broadcast %2 axes=[-1] : float64[3]\n"
     "return %1 %3\n"},
    {"what changes nothing, or nothing twice", simplify,
     "%0 = input 0 : float64[3]\n"
     "%1 = input 1 : complex64[3]\n"
     "%2 = input 2 : int8[3]\n"
     "%3 = positive %0 : float64[3]\n"
     "%4 = conjugate %3 : float64[3]\n"
     "%5 = negative %4 : float64[3]\n"
     "%6 = negative %5 : float64[3]\n"
     "%7 = conjugate %1 : complex64[3]\n"
     "%8 = conjugate %7 : complex64[3]\n"
     "%9 = invert %2 : int8[3]\n"
     "%10 = invert %9 : int8[3]\n"
     "%11 = bitwise_or %10 %2 : int8[3]\n"
     "%12 = maximum %6 %0 : float64[3]\n"
     "return %12 %8 %11\n",
     "%0 = input 0 : float64[3]\n"
     "%1 = input 1 : complex64[3]\n"
     "%2 = input 2 : int8[3]\n"
     "return %0 %1 %2\n"},
    {"absolute values", simplify,
     "%0 = input 0 : float64[3]\n"
     "%1 = input 1 : uint8[3]\n"
     "%2 = negative %0 : float64[3]\n"
     "%3 = fabs %2 : float64[3]\n"
     "%4 = absolute %3 : float64[3]\n"
     "%5 = absolute %1 : uint8[3]\n"
     "return %4 %5\n",
     "%0 = input 0 : float64[3]\n"
     "%1 = input 1 : uint8[3]\n"
     "%2 = absolute %0 : float64[3]\n"
     "return %2 %1\n"},
    {"where without a choice", simplify,
     "%0 = input 0 : bool[3]\n"
     "%1 = input 1 : float64[3]\n"
     "%2 = input 2 : float64[3]\n"
     "%3 = const false : bool[]\n"
     "%4 = broadcast %3 axes=[-1] : bool[3]\n"
     "%5 = where %0 %1 %1 : float64[3]\n"
     "%6 = where %4 %5 %2 : float64[3]\n"
     "return %5 %6\n",
     "%0 = input 1 : float64[3]\n"
     "%1 = input 2 : float64[3]\n"
     "return %0 %1\n"},
    {"dead code", dce,
     "%0 = input 0 : float64[3]\n"
     "%1 = input 1 : float64[3]\n"
     "%2 = floor %0 : float64[3]\n"
     "%3 = floor %1 : float64[3]\n"
     "return %3 %3\n",
     "%0 = input 1 : float64[3]\n"
     "%1 = floor %0 : float64[3]\n"
     "return %1 %1\n"},
};

// Graphs that must stay as they are: the rewrite would be false for NaN, -0.0, a warning, or the
// bytes of a bool.
const char* const kStay[] = {
    // x * 0, x + 0, x - x, x / x
    "%0 = input 0 : float64[]\n%1 = const 0x0p+0 : float64[]\n%2 = multiply %0 %1 : float64[]\n%3 "
    "= add %0 %1 : float64[]\n"
    "%4 = subtract %0 %0 : float64[]\n%5 = divide %0 %0 : float64[]\nreturn %2 %3 %4 %5\n",
    // (-x) * (-x): the sign of a NaN
    "%0 = input 0 : float64[]\n%1 = negative %0 : float64[]\n%2 = square %1 : float64[]\nreturn "
    "%2\n",
    // x == x
    "%0 = input 0 : float64[]\n%1 = equal %0 %0 : bool[]\nreturn %1\n",
    // x * x is not square(x): NumPy's warning names the ufunc
    "%0 = input 0 : float64[]\n%1 = multiply %0 %0 : float64[]\nreturn %1\n",
    // the byte of a bool
    "%0 = input 0 : bool[]\n%1 = invert %0 : bool[]\n%2 = invert %1 : bool[]\n%3 = bitwise_and %0 "
    "%0 : bool[]\nreturn %2 %3\n",
    // the imaginary part of a cast that may overflow
    "%0 = input 0 : float64[]\n%1 = cast %0 : complex64[]\n%2 = imag %1 : float32[]\nreturn %2\n",
    // float32 and back loses digits
    "%0 = input 0 : float64[]\n%1 = cast %0 : float32[]\n%2 = cast %1 : float64[]\nreturn %2\n",
    // flags: divide by zero, invalid, overflow, underflow, invalid cast
    "%0 = const 0x0p+0 : float64[]\n%1 = const 0x1p+0 : float64[]\n%2 = divide %1 %0 : "
    "float64[]\nreturn %2\n",
    "%0 = const -0x1p+0 : float64[]\n%1 = sqrt %0 : float64[]\nreturn %1\n",
    "%0 = const 0x1p+1023 : float64[]\n%1 = add %0 %0 : float64[]\nreturn %1\n",
    "%0 = const 0x1p-1022 : float64[]\n%1 = const 0x1.8p-1 : float64[]\n%2 = multiply %0 %0 : "
    "float64[]\n"
    "%3 = multiply %1 %2 : float64[]\nreturn %3\n",
    "%0 = const inf : float64[]\n%1 = cast %0 : int32[]\nreturn %1\n",
};

}  // namespace

TEST_CASE("passes: each rewrite") {
  for (const Rewrite& r : kRewrites) {
    CAPTURE(r.about);
    const Graph after = dce(r.pass(parse(r.before)));
    CHECK_NOTHROW(verify(after, nullptr));
    CHECK(print(after) == print(parse(r.after)));
  }
}

TEST_CASE("passes: what only looks the same stays") {
  for (const char* text : kStay) {
    const Graph g = parse(text);
    CHECK(print(run_all(g, {.verify = true})) == print(g));
  }
}

TEST_CASE("passes: rewritten graphs give the same bits") {
  for (const Rewrite& r : kRewrites) {
    CAPTURE(r.about);
    const Graph before = parse(r.before), after = run_all(before, {});
    std::vector<testing::Array> inputs;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Node& node = before[before.at(i)];
      if (node.op != Op::Input) continue;
      testing::Array a = testing::empty(node.dtype, node.shape);
      const std::vector<Scalar> values = testing::special_values(node.dtype);
      const std::size_t size = size_of(node.dtype);
      for (std::size_t k = 0; k * size < a.memory.size(); ++k)
        std::memcpy(a.memory.data() + k * size, values[(5 * k + i) % values.size()].bits, size);
      inputs.push_back(std::move(a));
    }
    const testing::Outcome x = testing::run(before, inputs), y = testing::run(after, inputs);
    CHECK(x.status.fp == y.status.fp);
    for (std::size_t k = 0; k < x.outputs.size(); ++k)
      CHECK(x.outputs[k].memory == y.outputs[k].memory);
  }
}

TEST_CASE("run_all: order, dump-after, disable, verify") {
  const Graph g = parse(kRewrites[0].before);
  std::vector<std::string> seen;
  PassOptions options;
  options.verify = true;
  options.dump_after = [&seen](std::string_view name, const Graph&) { seen.emplace_back(name); };
  run_all(g, options);
  std::vector<std::string> names;
  for (const Pass& pass : passes())
    if (pass.accuracy == Accuracy::Exact) names.emplace_back(pass.name);
  CHECK(seen == names);
  options.disable = {"index_maps"};
  CHECK(print(run_all(g, options)) == print(g));
  options.disable = {"no such pass"};
  CHECK_THROWS_AS(run_all(g, options), InternalError);
}

}  // namespace ufuse::ir
