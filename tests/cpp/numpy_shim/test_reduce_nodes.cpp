// Which nodes a reduction becomes. Dtypes, layouts and the order of sums are compared with NumPy by
// tests/numpy_shim.
#include <doctest/doctest.h>

#include "numpy_shim/reduce.h"
#include "tests/cpp/numpy_shim/shim_fixture.h"

namespace ufuse::numpy_shim {
namespace {

ir::Node reduce_node(TestContext& context, const Result& result) {
  const ir::Node* node = &context.graph()[result.node];
  while (node->op != ir::Op::Reduce) node = &context.graph()[node->inputs[0]];
  return *node;
}

TEST_CASE("numpy_shim: a row sum is one pairwise run, a column sum goes in order") {
  TestContext context;
  const Operand x = context.array(DType::Float64, {100, 30});
  ReduceOptions rows, columns;
  rows.axes = Dims{1};
  columns.axes = Dims{0};
  const ir::Node row = reduce_node(context, reduce(context, "add", x, rows));
  CHECK(row.order == ir::Order::Pairwise);
  CHECK(row.run_axes == 1);
  CHECK(row.chunk == 0);
  const Result column = reduce(context, "add", x, columns);
  CHECK(reduce_node(context, column).order == ir::Order::Sequential);
  CHECK(column.layout.strides == Dims{8});
}

TEST_CASE("numpy_shim: long runs are cut by NumPy <= 2.2 and where the operand is cast") {
  TestContext context;
  context.version = {2, 2};
  CHECK(reduce_node(context, reduce(context, "add", context.array(DType::Float64, {10000}), {}))
            .chunk == 8192);
  context.version = {};
  CHECK(reduce_node(context, reduce(context, "add", context.array(DType::Float64, {10000}), {}))
            .chunk == 0);
  ReduceOptions as_double;
  as_double.dtype = DType::Float64;
  CHECK(
      reduce_node(context, reduce(context, "add", context.array(DType::Int32, {10000}), as_double))
          .chunk == 8192);
}

TEST_CASE("numpy_shim: where= puts a neutral element that changes no bit") {
  TestContext context;
  ReduceOptions options;
  options.axes = Dims{0};
  options.where = context.array(DType::Bool, {3});
  const Operand x = context.array(DType::Float64, {4, 3});
  CHECK(context.text(reduce(context, "add", x, options)) ==
        "%0 = input 0 : bool[3]\n"
        "%1 = input 1 : float64[4, 3]\n"
        "%2 = const -0x0p+0 : float64[]\n"
        "%3 = broadcast %0 axes=[-1, 0] : bool[4, 3]\n"
        "%4 = broadcast %2 axes=[-1, -1] : float64[4, 3]\n"
        "%5 = where %3 %1 %4 : float64[4, 3]\n"
        "%6 = reduce add %5 axes=[0] order=sequential : float64[3]\n"
        "return %6\n");
  options.axes = Dims{1};
  CHECK_THROWS_AS(reduce(context, "add", x, options), Unsupported);
  CHECK_THROWS_AS(reduce(context, "maximum", x, options), Unsupported);
  options.initial = TestContext::number(0.0);
  CHECK(reduce_node(context, reduce(context, "maximum", x, options)).order == ir::Order::Extremum);
}

TEST_CASE("numpy_shim: no axes is a reduction of one element") {
  TestContext context;
  ReduceOptions none;
  none.axes = Dims{};
  const Result result = reduce(context, "add", context.array(DType::Float64, {2, 3}), none);
  CHECK(result.layout.shape == Dims{2, 3});
  CHECK(reduce_node(context, result).ints == Dims{2});
}

TEST_CASE("numpy_shim: flattened and kept axes of argmin") {
  TestContext context;
  const Operand x = context.array(DType::Float64, {2, 3});
  const Result flat = arg_reduce(context, false, x, std::nullopt, true);
  CHECK(flat.layout == Layout{DType::Int64, {1, 1}, {8, 8}});
  CHECK(arg_reduce(context, false, x, std::nullopt, false).scalar);
  CHECK_THROWS_AS(arg_reduce(context, true, context.array(DType::Complex128, {2}), 0, false),
                  Unsupported);
}

}  // namespace
}  // namespace ufuse::numpy_shim
