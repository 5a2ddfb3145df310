// Graph storage: equal nodes are one node, and equality and hash forget no field. The tables behind
// op_info and reduction_info.
#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ir/build.h"
#include "ir/support/error.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {

TEST_CASE("graph: nodes that differ in one field only are two nodes, with two hashes") {
  Node base{};
  base.op = Op::Reduce;
  base.dtype = DType::Float64;
  base.shape = {2};
  base.inputs = {NodeId{0}};
  base.ints = {1};
  std::vector<Node> nodes(17, base);
  nodes[1].op = Op::Add;
  nodes[2].dtype = DType::Float32;
  nodes[3].shape = {3};
  nodes[4].inputs = {NodeId{1}};
  nodes[5].ints = {0};
  nodes[6].id = 1;
  nodes[7].slot = 1;
  nodes[8].constant = {{1, 0}};
  nodes[9].constant = {{0, 1}};
  nodes[10].reduction = Reduction::Prod;
  nodes[11].order = Order::Pairwise;
  nodes[12].run_axes = 1;
  nodes[13].chunk = 1;
  nodes[14].shape = {2, 1};
  nodes[15].combine = Op::Add;
  nodes[16].bounds = Bounds::Unsigned;
  Graph g;
  std::set<std::uint64_t> hashes;
  for (const Node& node : nodes) {
    g.add(node);
    hashes.insert(hash_value(node));
  }
  CHECK(g.size() == nodes.size());
  CHECK(hashes.size() == nodes.size());
  // A field added to Node must be added to the list above (and to hash_value).
  CHECK(sizeof(Node) == 200);
}

TEST_CASE("graph: an equal node is the existing node; -0.0 is not 0.0, a NaN equals itself") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {3});
  const NodeId a = elementwise(g, Op::Sqrt, {x}), b = elementwise(g, Op::Sqrt, {x});
  CHECK(a == b);
  CHECK(elementwise(g, Op::Floor, {x}) != a);
  CHECK(g.size() == 3);
  const auto number = [&g](double v) { return constant(g, DType::Float64, testing::bits_of(v)); };
  CHECK(number(0.0) != number(-0.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(number(nan) == number(nan));
  CHECK(number(nan) != number(-nan));
}

TEST_CASE("tables: op_info has the rows of ops.def, its expressions with holes") {
  CHECK(op_info(Op::Add).expression == "{0} + {1}");
  CHECK(op_info(Op::Maximum).expression == "rt::maximum({0}, {1})");
  CHECK(op_info(Op::Reciprocal).expression == "({T})1 / {0}");
  CHECK(op_info(Op::Where).expression == "rt::where({0}, {1}, {2})");
  for (Op op : testing::all_rows()) {
    const OpInfo& row = op_info(op);
    CAPTURE(row.name);
    CHECK(row.expression.find("{0}") != std::string_view::npos);
    CHECK((row.expression.find("{1}") != std::string_view::npos) == (row.arity > 1));
    CHECK((row.expression.find("{2}") != std::string_view::npos) == (row.arity > 2));
  }
}

TEST_CASE("tables: kinds come before the rows of ops.def, and each name is one op's") {
  CHECK(kind_of(Op::Input) == NodeKind::Input);
  CHECK(kind_of(Op::ArgReduce) == NodeKind::ArgReduce);
  CHECK(kind_of(Op::Add) == NodeKind::Elementwise);
  CHECK(kind_of(Op::Where) == NodeKind::Elementwise);
  std::set<std::string_view> names;
  for (Op op : testing::all_ops()) {
    const OpInfo& row = op_info(op);
    CHECK_MESSAGE(names.insert(row.name).second, row.name);
    CHECK(op_named(row.name) == op);
    CHECK(is_elementwise_row(op) == !row.expression.empty());
    CHECK(is_leaf(op) == (row.arity == 0));
  }
  CHECK(is_index_map(Op::Slice));
  CHECK_FALSE(is_index_map(Op::Cast));
  CHECK_FALSE(op_named("no such op").has_value());
  CHECK_THROWS_AS(op_info(static_cast<Op>(names.size())), InternalError);
}

TEST_CASE("tables: identities of reductions") {
  CHECK(identity_bits(Reduction::Sum, DType::Float64) == Scalar{});
  CHECK(identity_bits(Reduction::Prod, DType::Float64) == testing::bits_of(1.0));
  CHECK(identity_bits(Reduction::Prod, DType::Float32) == testing::bits_of(1.0F));
  CHECK(identity_bits(Reduction::Prod, DType::Float16) == Scalar{{0x3c00}});
  CHECK(identity_bits(Reduction::Prod, DType::LongDouble) == testing::bits_of(1.0L));
  CHECK(identity_bits(Reduction::Prod, DType::Int8) == Scalar{{1, 0}});
  CHECK(identity_bits(Reduction::BitwiseAnd, DType::Int16) == Scalar{{0xffff, 0}});
  CHECK(identity_bits(Reduction::BitwiseAnd, DType::UInt64) == Scalar{{~std::uint64_t{0}, 0}});
  CHECK(identity_bits(Reduction::BitwiseAnd, DType::Bool) == Scalar{{1, 0}});
  CHECK_THROWS_AS(identity_bits(Reduction::Max, DType::Float64), InternalError);
}

TEST_CASE("loop table: equal loops share a row, and rows never move") {
  LoopTable table;
  const InnerLoop loop = [](char**, const std::int64_t*, const std::int64_t*, void*) {};
  int data = 0;
  const LoopEntry entry{"exp", {DType::Float64}, {DType::Float64}, loop, &data};
  CHECK(table.add(entry) == 0);
  const LoopEntry* address = &table[0];
  CHECK(table.add(entry) == 0);
  LoopEntry other = entry;
  other.ufunc = "log";
  CHECK(table.add(other) == 1);
  other.data = nullptr;
  CHECK(table.add(other) == 2);
  other.outputs = {DType::Float32};
  CHECK(table.add(other) == 3);
  for (int i = 0; i < 1000; ++i) {
    other.ufunc = std::to_string(i);
    table.add(other);
  }
  CHECK(&table[0] == address);
  CHECK(table.size() == 1004);
  for (std::uint32_t i = 0; i < 1000; ++i) CHECK(table[i + 4].ufunc == std::to_string(i));
  CHECK_THROWS_AS(table[1004], std::out_of_range);
}

TEST_CASE("loop table: threads read while another one adds") {
  LoopTable table;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 3; ++reader)
    readers.emplace_back([&] {
      while (!stop)
        for (std::size_t row = 0, size = table.size(); row < size; ++row)
          wrong += table[static_cast<std::uint32_t>(row)].ufunc != std::to_string(row);
    });
  for (int i = 0; i < 2000; ++i) table.add({std::to_string(i), {}, {}, nullptr, nullptr});
  stop = true;
  readers.clear();
  CHECK(wrong == 0);
  CHECK(table.size() == 2000);
}

}  // namespace ufuse::ir
