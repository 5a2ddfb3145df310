// Which nodes a ufunc call becomes. Which dtypes and layouts it gives is compared with NumPy by
// tests/numpy_shim.
#include <doctest/doctest.h>

#include "numpy_shim/ufunc.h"
#include "tests/cpp/numpy_shim/shim_fixture.h"

namespace ufuse::numpy_shim {
namespace {

Ufunc ufunc(const std::string& name, int nin, int nout, std::vector<std::string> types) {
  Ufunc result;
  result.name = name;
  result.nin = nin;
  result.nout = nout;
  for (const std::string& t : types) result.loops.push_back({t, nullptr, nullptr});
  return result;
}

const Ufunc kAdd = ufunc("add", 2, 1, {"???", "lll", "fff", "ddd", "DDD"});
const Ufunc kMultiply = ufunc("multiply", 2, 1, {"???", "lll", "ddd", "DDD"});

ir::Op first_op(TestContext& context, const std::vector<Result>& results) {
  return context.graph()[results.at(0).node].op;
}

TEST_CASE("numpy_shim: casts, broadcasts and Python numbers are nodes") {
  TestContext context;
  const std::vector<Operand> operands = {context.array(DType::Int64, {3}),
                                         context.array(DType::Float64, {2, 3})};
  const Result sum = call(context, kAdd, operands)[0];
  CHECK(context.text(sum) ==
        "%0 = input 0 : int64[3]\n"
        "%1 = input 1 : float64[2, 3]\n"
        "%2 = cast %0 : float64[3]\n"
        "%3 = broadcast %2 axes=[-1, 0] : float64[2, 3]\n"
        "%4 = add %3 %1 : float64[2, 3]\n"
        "return %4\n");
  CHECK(sum.layout.strides == Dims{24, 8});
  CHECK_FALSE(sum.scalar);

  const std::vector<Operand> with_number = {context.array(DType::Float32, {4}),
                                            TestContext::number(std::int64_t{3})};
  const Result shifted = call(context, kAdd, with_number)[0];
  CHECK(shifted.layout.dtype == DType::Float32);
  CHECK(context.params.at(0).bits[0] == 0x40400000);
}

TEST_CASE("numpy_shim: a row of ops.def is used only where it does what the loop does") {
  TestContext context;
  const auto both = [&](DType t) {
    return std::vector{context.array(t, {2}), context.array(t, {2})};
  };
  CHECK(first_op(context, call(context, kAdd, both(DType::Bool))) == ir::Op::LogicalOr);
  CHECK(first_op(context, call(context, kMultiply, both(DType::Bool))) == ir::Op::LogicalAnd);
  CHECK(first_op(context, call(context, kMultiply, both(DType::Float64))) == ir::Op::Multiply);
  CHECK(first_op(context, call(context, kMultiply, both(DType::Complex128))) == ir::Op::Ufunc);
  const Ufunc fmax = ufunc("fmax", 2, 1, {"lll", "ddd"});
  CHECK(first_op(context, call(context, fmax, both(DType::Int64))) == ir::Op::Maximum);
  CHECK(first_op(context, call(context, fmax, both(DType::Float64))) == ir::Op::Ufunc);

  Ufunc foreign = kAdd;
  foreign.of_numpy = false;
  CHECK(first_op(context, call(context, foreign, both(DType::Float64))) == ir::Op::Ufunc);
}

TEST_CASE("numpy_shim: a block call has one node per output and one row") {
  TestContext context;
  const Ufunc frexp = ufunc("frexp", 1, 2, {"ffi", "ddi"});
  const std::vector<Operand> operands = {context.array(DType::Float64, {})};
  const std::vector<Result> results = call(context, frexp, operands);
  REQUIRE(results.size() == 2);
  CHECK(results[1].layout.dtype == DType::Int32);
  CHECK(results[0].scalar);
  CHECK(context.loops().size() == 1);
  CHECK(context.graph()[results[1].node].slot == 1);
}

TEST_CASE("numpy_shim: what NumPy decides while it runs is not native") {
  TestContext context;
  const Ufunc power = ufunc("power", 2, 1, {"lll", "LLL", "ddd"});
  const auto raised = [&](const Operand& exponent) {
    const std::vector<Operand> operands = {context.array(DType::Int64, {2}), exponent};
    return call(context, power, operands);
  };
  CHECK_THROWS_AS(raised(context.array(DType::Int64, {2})), Unsupported);
  CHECK_THROWS_AS(raised(TestContext::number(std::int64_t{-1})), Unsupported);
  CHECK(raised(TestContext::number(std::int64_t{2})).size() == 1);
  CHECK(raised(TestContext::number(-1.0))[0].layout.dtype == DType::Float64);
}

}  // namespace
}  // namespace ufuse::numpy_shim
