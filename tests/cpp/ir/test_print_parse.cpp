// Printing is exact and parsing is its inverse, for every op, dtype and special value.
#include <doctest/doctest.h>

#include "ir/build.h"
#include "ir/print.h"
#include "ir/support/error.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {

namespace {

void check_round_trip(const Graph& g) {
  const std::string text = print(g);
  CAPTURE(text);
  const Graph again = parse(text);
  CHECK(print(again) == text);
  REQUIRE(again.size() == g.size());
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(again[again.at(i)] == g[g.at(i)]);
  CHECK(again.outputs == g.outputs);
}

}  // namespace

TEST_CASE("print: a graph as its golden text") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {1000, 2});
  const NodeId c = constant(g, DType::Float64, testing::bits_of(3.0));
  const NodeId difference = elementwise(g, Op::Subtract, {x, broadcast_to(g, c, {1000, 2})});
  const NodeId sum = reduce(g, Reduction::Sum, difference, {1}, {Order::Pairwise, 1, 8192});
  const NodeId start = slice(g, sum, {999}, {-2}, {500});
  g.outputs = {sum, arg_reduce(g, true, start, 0), start};
  CHECK(print(g) ==
        "%0 = input 0 : float64[1000, 2]\n"
        "%1 = const 0x1.8p+1 : float64[]\n"
        "%2 = broadcast %1 axes=[-1, -1] : float64[1000, 2]\n"
        "%3 = subtract %0 %2 : float64[1000, 2]\n"
        "%4 = reduce add %3 axes=[1] order=pairwise run_axes=1 chunk=8192 : float64[1000]\n"
        "%5 = slice %4 start=[999] step=[-2] : float64[500]\n"
        "%6 = arg_reduce argmax %5 axes=[0] : int64[]\n"
        "return %4 %6 %5\n");
  check_round_trip(g);
}

TEST_CASE("print and parse: constants of every dtype and special value") {
  for (DType dtype : testing::all_dtypes()) {
    Graph g;
    for (const Scalar& value : testing::special_values(dtype)) constant(g, dtype, value);
    check_round_trip(g);
  }
  CHECK(print_scalar(DType::Int8, {{0x80, 0}}) == "-128");
  CHECK(print_scalar(DType::UInt8, {{0x80, 0}}) == "128");
  CHECK(print_scalar(DType::Float64, testing::bits_of(-0.0)) == "-0x0p+0");
  CHECK(print_scalar(DType::Float32, {{0xffc01234, 0}}) == "nan(0xffc01234)");
  CHECK(print_scalar(DType::Float16, {{0x3c01, 0}}) == "0x1.004p+0");
  CHECK(print_scalar(DType::Float16, {{0xfe12, 0}}) == "nan(0xfe12)");
  CHECK(print_scalar(DType::LongDouble, {{0xc000000000000012, 0x7fff}}) ==
        "nan(0x7fff, 0xc000000000000012)");
  CHECK(print_scalar(DType::Complex128, {{0x3ff0000000000000, 0xfff0000000000000}}) ==
        "(0x1p+0, -inf)");
}

TEST_CASE("print and parse: every elementwise row, cast, map, reduction and order") {
  Graph g;
  std::uint32_t next = 0;
  for (Op op : testing::all_rows())
    for (DType dtype : testing::all_dtypes()) {
      if (!is_accepted(dtype, op_info(op).accepts)) continue;
      NodeIds operands;
      for (int k = 0; k < op_info(op).arity; ++k)
        operands.push_back(
            input(g, next++, op == Op::Where && k == 0 ? DType::Bool : dtype, {3, 1}));
      g.outputs.push_back(elementwise(g, op, operands));
    }
  for (DType from : testing::all_dtypes())
    for (DType to : testing::all_dtypes()) cast(g, input(g, next++, from, {}), to);
  for (Reduction r : testing::all_reductions())
    for (Order order : {Order::Free, Order::Sequential}) {
      const DType dtype =
          is_in(DType::Int32, reduction_info(r).accepts) ? DType::Int32 : DType::Bool;
      const NodeId x = input(g, next++, dtype, {2, 3});
      reduce(g, r, x, {1, 0}, {order});
      reduce(g, r, x, {0}, {order}, param(g, next++, dtype));
    }
  const NodeId y = input(g, next++, DType::Float32, {2, 3, 4});
  reduce(g, Reduction::Min, y, {2}, {Order::Extremum});
  reduce(g, Reduction::Sum, y, {0, 2}, {Order::Pairwise, 2, 0});
  reshape(g, transpose(g, y, {2, 0, 1}), {24});
  broadcast(g, y, {4, 5, 2, 3}, {2, -1, 0, 1});
  check_round_trip(g);
}

TEST_CASE("print: block calls name their ufunc when the loops are at hand") {
  LoopTable loops;
  loops.add({"modf", {DType::Float64}, {DType::Float64, DType::Float64}, nullptr, nullptr});
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {4});
  g.outputs = {ufunc(g, loops, 0, 1, {x})};
  CHECK(print_node(g, g.at(1), &loops) == "%1 = ufunc 0.1 %0 name=modf : float64[4]");
  CHECK(parse(print(g, &loops), &loops)[NodeId{1}] == g[NodeId{1}]);
  check_round_trip(g);
}

TEST_CASE("parse: skips comments, rejects malformed text naming the line") {
  CHECK(parse("# golden\n\n%0 = param 3 : int8[]\nreturn %0 %0\n").outputs.size() == 2);
  for (const char* text :
       {"%0 = param 3 : int8[]\n", "%1 = param 3 : int8[]\nreturn\n",
        "%0 = nonsense %0 : int8[]\nreturn\n", "%0 = param 3 : int7[]\nreturn\n",
        "%0 = param 3 : int8[] x\nreturn\n", "%0 = param x : int8[]\nreturn\n",
        "%0 = const 1.5 : float64[]\nreturn\n", "%0 = const 300 : uint8[]\nreturn\n",
        "return\n%0 = param 3 : int8[]\n", "%0 = param 0 : int8[]\n%1 = param 0 : int8[]\nreturn\n",
        "%0 = param 0 : int8[]\nreturn %1\n",
        "%0 = param 0 : bool[]\n%1 = add %0 %0 : bool[]\nreturn\n",
        "%0 = param 0 : int8[]\n%1 = add %0 %0 : int16[]\nreturn\n",
        "%0 = add %0 %0 : int8[]\nreturn\n",
        "%0 = input 0 : float64[3]\n%1 = reduce add %0 axes=[0] order=best : "
        "float64[]\nreturn\n"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse(text), InternalError);
  }
}

}  // namespace ufuse::ir
