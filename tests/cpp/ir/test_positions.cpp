// Scans, gathers, scatters and positions of what is true: what the interpreter gives, what
// inference and the verifier demand, and that their text comes back as the same nodes.
#include <doctest/doctest.h>

#include <cmath>

#include "ir/build.h"
#include "ir/print.h"
#include "ir/ranges.h"
#include "ir/support/error.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {

namespace {

using testing::array;
using testing::run;
using testing::values_of;

testing::Array doubles(Dims shape, const std::vector<double>& values) {
  return array<double>(DType::Float64, std::move(shape), values);
}
testing::Array integers(Dims shape, const std::vector<std::int64_t>& values) {
  return array<std::int64_t>(DType::Int64, std::move(shape), values);
}

const std::vector<double> kSix = {1, 2, 3, 4, 5, 6};

}  // namespace

TEST_CASE("scan: along each axis") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 3});
  g.outputs = {scan(g, Op::Add, x, 0), scan(g, Op::Subtract, x, 1)};
  verify(g, nullptr);
  const testing::Outcome outcome = run(g, {doubles({2, 3}, kSix)});
  const auto of = [&](std::size_t k) {
    std::vector<double> values;
    for (std::size_t i = 0; i < 6; ++i) values.push_back(outcome.outputs[k].at<double>(i));
    return values;
  };
  CHECK(of(0) == std::vector<double>{1, 2, 3, 5, 7, 9});
  CHECK(of(1) == std::vector<double>{1, -1, -4, 4, -1, -7});
  CHECK(parse(print(g))[g.outputs[1]] == g[g.outputs[1]]);
}

TEST_CASE("scan: lines of one element, of none, and flags of the op") {
  Graph g;
  g.outputs = {scan(g, Op::Add, input(g, 0, DType::Float64, {3}), 0)};
  const testing::Outcome outcome = run(g, {doubles({3}, {1e308, 1e308, 1})});
  CHECK(outcome.status.fp == 2);
  Graph one;
  one.outputs = {scan(one, Op::Multiply, input(one, 0, DType::Float64, {2, 1}), 1)};
  CHECK(values_of<double>(one, {doubles({2, 1}, {5, 7})}) == std::vector<double>{5, 7});
  Graph none;
  none.outputs = {scan(none, Op::Add, input(none, 0, DType::Float64, {2, 0}), 1)};
  CHECK(values_of<double>(none, {doubles({2, 0}, {})}).empty());
}

TEST_CASE("gather: positions of one axis and of several, with each kind of bounds") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 3});
  const NodeId rows = input(g, 1, DType::Int64, {3}), columns = input(g, 2, DType::Int64, {3});
  g.outputs = {gather(g, x, {columns}, {1}, Bounds::Signed),
               gather(g, x, {rows, columns}, {0, 1}, Bounds::Signed)};
  CHECK(g[g.outputs[0]].shape == Dims{3, 2});
  CHECK(g[g.outputs[1]].shape == Dims{3});
  const testing::Outcome outcome =
      run(g, {doubles({2, 3}, kSix), integers({3}, {0, -1, 1}), integers({3}, {2, 0, -3})});
  CHECK_FALSE(outcome.status.redo);
  CHECK(outcome.outputs[0].at<double>(0) == 3);  // the axes of the positions come first
  CHECK(outcome.outputs[0].at<double>(1) == 6);
  CHECK(outcome.outputs[0].at<double>(4) == 1);
  CHECK(outcome.outputs[1].at<double>(0) == 3);
  CHECK(outcome.outputs[1].at<double>(1) == 4);
  CHECK(outcome.outputs[1].at<double>(2) == 4);

  const auto taken = [](Bounds bounds, std::vector<std::int64_t> positions) {
    Graph one;
    const auto n = static_cast<std::int64_t>(positions.size());
    const NodeId at = input(one, 1, DType::Int64, {n});
    one.outputs = {gather(one, input(one, 0, DType::Float64, {6}), {at}, {0}, bounds)};
    return run(one, {doubles({6}, kSix), integers({n}, positions)});
  };
  CHECK(taken(Bounds::Signed, {0, 6}).status.redo);
  CHECK(taken(Bounds::Signed, {0, -7}).status.redo);
  CHECK_FALSE(taken(Bounds::Signed, {5, -6}).status.redo);
  CHECK(taken(Bounds::Wrap, {-1, 13}).outputs[0].at<double>(0) == 6);
  CHECK(taken(Bounds::Wrap, {-1, 13}).outputs[0].at<double>(1) == 2);
  CHECK(taken(Bounds::Clip, {-1, 13}).outputs[0].at<double>(0) == 1);
  CHECK(taken(Bounds::Clip, {-1, 13}).outputs[0].at<double>(1) == 6);
}

TEST_CASE(
    "scatter: the last one counts, or all are combined in order, in the dtype of the values") {
  const auto scattered = [](std::optional<Op> combine, bool unary = false) {
    Graph g;
    const NodeId x = input(g, 0, DType::Float64, {3, 2}), at = input(g, 1, DType::Int64, {3});
    const NodeId values = unary ? NodeId{} : input(g, 2, DType::Float64, {3, 2});
    g.outputs = {scatter(g, x, {at}, values, {0}, Bounds::Signed, combine)};
    verify(g, nullptr);
    const NodeId again = parse(print(g)).outputs[0];
    CHECK(parse(print(g))[again] == g[g.outputs[0]]);
    return values_of<double>(g, {doubles({3, 2}, kSix), integers({3}, {2, 0, -1}),
                                 doubles({3, 2}, {10, 20, 30, 40, 50, 60})});
  };
  CHECK(scattered(std::nullopt) == std::vector<double>{30, 40, 3, 4, 50, 60});
  CHECK(scattered(Op::Add) == std::vector<double>{31, 42, 3, 4, 65, 86});
  CHECK(scattered(Op::Negative, true) == std::vector<double>{-1, -2, 3, 4, 5, 6});

  Graph g;  // float32 += float64
  const NodeId x = input(g, 0, DType::Float32, {1}), at = input(g, 1, DType::Int64, {2});
  g.outputs = {
      scatter(g, x, {at}, input(g, 2, DType::Float64, {2}), {0}, Bounds::Unsigned, Op::Add)};
  const float sum = static_cast<float>(static_cast<double>(static_cast<float>(1.0 + 0.1)) + 0.2);
  CHECK(values_of<float>(g, {array<float>(DType::Float32, {1}, {1}), integers({2}, {0, 0}),
                             doubles({2}, {0.1, 0.2})}) == std::vector<float>{sum});
  CHECK(may_raise(g, g[g.outputs[0]]));
}

TEST_CASE("nonzero: rows of positions, and a wrong count is no answer; iota counts") {
  const auto found = [](std::int64_t count) {
    Graph g;
    g.outputs = {nonzero(g, input(g, 0, DType::Bool, {2, 3}), count), iota(g, 3)};
    verify(g, nullptr);
    CHECK(print(parse(print(g))) == print(g));
    return run(g, {array<char>(DType::Bool, {2, 3}, {0, 1, 0, 1, 0, 7})});
  };
  const testing::Outcome outcome = found(3);
  CHECK_FALSE(outcome.status.redo);
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < 6; ++i) rows.push_back(outcome.outputs[0].at<std::int64_t>(i));
  CHECK(rows == std::vector<std::int64_t>{0, 1, 1, 0, 1, 2});
  CHECK(outcome.outputs[1].at<std::int64_t>(2) == 2);
  CHECK(found(2).status.redo);
  CHECK(found(4).status.redo);
}

TEST_CASE("known_range: what is known of positions before anything is computed") {
  Graph g;
  const auto check = [&g](NodeId node, std::optional<Range> wanted) {
    const std::optional<Range> range = known_range(g, node);
    CAPTURE(print_node(g, node));
    REQUIRE(range.has_value() == wanted.has_value());
    if (!range) return;
    CHECK(range->low == wanted->low);
    CHECK(range->high == wanted->high);
  };
  const auto number = [&g](std::int64_t value, Dims shape) {
    return broadcast_to(g, constant(g, DType::Int64, {{static_cast<std::uint64_t>(value)}}), shape);
  };
  const NodeId any = input(g, 0, DType::Int64, {4}), small = input(g, 1, DType::Int8, {4});
  const NodeId counted = iota(g, 4), mask = input(g, 2, DType::Bool, {5, 7});
  const NodeId rows = nonzero(g, mask, 9);
  check(any, {});
  check(small, Range{-128, 127});
  check(cast(g, small, DType::Int64), Range{-128, 127});
  check(cast(g, small, DType::UInt8), Range{0, 255});
  check(cast(g, mask, DType::Int64), Range{0, 1});
  check(counted, Range{0, 3});
  check(elementwise(g, Op::Add, {counted, number(3, {4})}), Range{3, 6});
  check(elementwise(g, Op::Subtract, {counted, number(4, {4})}), Range{-4, -1});
  check(elementwise(g, Op::Multiply, {counted, number(-2, {4})}), Range{-6, 0});
  check(elementwise(g, Op::Multiply, {counted, number(INT64_MAX, {4})}), {});
  check(elementwise(g, Op::Minimum, {any, number(9, {4})}), Range{INT64_MIN, 9});
  check(elementwise(g, Op::Maximum,
                    {elementwise(g, Op::Minimum, {any, number(9, {4})}), number(0, {4})}),
        Range{0, 9});
  check(elementwise(g, Op::BitAnd, {any, number(15, {4})}), Range{0, 15});
  check(arg_reduce(g, true, input(g, 3, DType::Float32, {3, 8}), 1), Range{0, 7});
  check(rows, Range{0, 6});
  check(slice(g, rows, {0, 0}, {1, 1}, {9, 1}), Range{0, 4});
  check(slice(g, rows, {0, 1}, {1, 1}, {9, 1}), Range{0, 6});
  check(slice(g, rows, {2, 0}, {1, 1}, {3, 2}), Range{0, 6});
  check(gather(g, counted, {any}, {0}, Bounds::Signed), Range{0, 3});
}

TEST_CASE("infer: what does not fit") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 3}), at = input(g, 1, DType::Int64, {4});
  const NodeId small = input(g, 2, DType::Int32, {4}), values = input(g, 3, DType::Float64, {4, 3});
  CHECK_THROWS_AS(scan(g, Op::Add, x, 2), InternalError);
  CHECK_THROWS_AS(scan(g, Op::Less, x, 0), InternalError);
  CHECK_THROWS_AS(scan(g, Op::Sqrt, x, 0), InternalError);
  CHECK_THROWS_AS(scan(g, Op::Where, x, 0), InternalError);
  CHECK_THROWS_AS(scan(g, Op::Ufunc, x, 0), InternalError);
  CHECK_THROWS_AS(gather(g, x, {small}, {0}, Bounds::Signed), InternalError);
  CHECK_THROWS_AS(gather(g, x, {at}, {2}, Bounds::Signed), InternalError);
  CHECK_THROWS_AS(gather(g, x, {at, at}, {0}, Bounds::Signed), InternalError);
  CHECK_THROWS_AS(gather(g, x, {at, at}, {0, 0}, Bounds::Signed), InternalError);
  CHECK_NOTHROW(scatter(g, x, {at}, values, {0}, Bounds::Signed));
  CHECK_THROWS_AS(scatter(g, x, {at}, values, {1}, Bounds::Signed), InternalError);
  CHECK_THROWS_AS(scatter(g, x, {at}, {}, {0}, Bounds::Signed), InternalError);
  CHECK_THROWS_AS(scatter(g, x, {at}, values, {0}, Bounds::Signed, Op::BitAnd), InternalError);
  CHECK_THROWS_AS(scatter(g, x, {at}, {}, {0}, Bounds::Signed, Op::Add), InternalError);
  CHECK_THROWS_AS(nonzero(g, x, 1), InternalError);
  CHECK_THROWS_AS(nonzero(g, input(g, 4, DType::Bool, {2}), 3), InternalError);
}

}  // namespace ufuse::ir
