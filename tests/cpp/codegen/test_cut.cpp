// Where is a long graph cut, and what stays in memory there?
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/schedule/cost.h"
#include "codegen/schedule/cut.h"
#include "ir/build.h"

namespace {

using namespace ufuse;
using codegen::Part;
using ir::DType;
using ir::Graph;
using ir::NodeId;
using ir::Op;

NodeId vector_input(Graph& g, std::uint32_t id, std::int64_t n = 1000) {
  return ir::input(g, id, DType::Float64, {n});
}

// x, x + x * x, ... : two nodes a step.
NodeId chain(Graph& g, NodeId x, int steps) {
  NodeId y = x;
  for (int i = 0; i < steps; ++i)
    y = ir::elementwise(g, Op::Add, {ir::elementwise(g, Op::Multiply, {y, y}), x});
  return y;
}

std::vector<Part> cut(const Graph& g) {
  return codegen::cut(g, std::vector<bool>(g.outputs.size()));
}

// The nodes that a part has to compute when what earlier ones keep or write is in memory.
std::size_t largest_part(const Graph& g, const std::vector<Part>& parts) {
  std::set<std::uint32_t> made;
  std::size_t largest = 0;
  for (const Part& part : parts) {
    std::vector<NodeId> open = part.kept;
    for (std::size_t k : part.written) open.push_back(g.outputs[k]);
    const std::vector<NodeId> targets = open;
    std::set<std::uint32_t> seen;
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      if (made.contains(id.value) || g[id].inputs.empty() || !seen.insert(id.value).second)
        continue;
      open.insert(open.end(), g[id].inputs.begin(), g[id].inputs.end());
    }
    largest = std::max(largest, seen.size());
    for (NodeId id : targets) made.insert(id.value);
  }
  return largest;
}

}  // namespace

TEST_CASE("cut: a short graph stays whole") {
  Graph g;
  const NodeId x = vector_input(g, 0);
  g.outputs = {chain(g, x, 90), ir::elementwise(g, Op::Negative, {x})};
  const auto parts = cut(g);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].kept.empty());
  CHECK(parts[0].written == std::vector<std::size_t>{0, 1});
}

TEST_CASE("cut: a chain keeps one value at each cut") {
  Graph g;
  g.outputs = {chain(g, vector_input(g, 0), 2000)};
  const auto parts = cut(g);
  CHECK(parts.size() >= 4000 / codegen::cost::kMostNodes);
  CHECK(parts.size() <= 4000 / codegen::cost::kFewestNodes);
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    CHECK(parts[i].kept.size() == 1);
    CHECK(parts[i].written.empty());
  }
  CHECK(parts.back().written == std::vector<std::size_t>{0});
  CHECK(largest_part(g, parts) <= codegen::cost::kMostNodes);
}

TEST_CASE("cut: values made early and used late are made where they are used") {
  Graph g;
  const NodeId x = vector_input(g, 0);
  std::vector<NodeId> values;
  for (int k = 0; k < 500; ++k)
    values.push_back(
        ir::elementwise(g, Op::Add, {x, vector_input(g, static_cast<std::uint32_t>(1 + k))}));
  NodeId sum = x;
  for (NodeId value : values) sum = ir::elementwise(g, Op::Maximum, {sum, value});
  g.outputs = {sum};
  for (const Part& part : cut(g)) CHECK(part.kept.size() <= 1);
}

TEST_CASE("cut: outputs are written on the way, those of last at the end") {
  Graph g;
  const NodeId x = vector_input(g, 0);
  const NodeId early = chain(g, x, 120), late = chain(g, early, 400);
  const NodeId seen = ir::reshape(g, early, {10, 100});
  g.outputs = {late, early, seen, early};
  const auto parts = codegen::cut(g, {false, false, false, true});
  std::vector<std::size_t> all;
  for (const Part& part : parts) all.insert(all.end(), part.written.begin(), part.written.end());
  std::ranges::sort(all);
  CHECK(all == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(std::ranges::find(parts.back().written, 3u) != parts.back().written.end());
  CHECK(std::ranges::find(parts.back().written, 1u) == parts.back().written.end());
  CHECK(largest_part(g, parts) <= codegen::cost::kMostNodes + 1);
}

TEST_CASE("cut: equal parts have equal texts, and temporaries share memory") {
  Graph g;
  g.outputs = {chain(g, vector_input(g, 0), 3000)};
  const ir::LoopTable loops;
  codegen::Compiler compiler(loops);
  std::vector<double> in(1000), out(1000);
  const std::vector<ir::Buffer> inputs{{in.data(), DType::Float64, {1000}, {8}}};
  const std::vector<ir::Buffer> outputs{{out.data(), DType::Float64, {1000}, {8}}};
  const ir::Report report = compiler.describe(g, {inputs, {}, outputs, {}});
  std::set<std::string> texts;
  for (const ir::GroupReport& group : report.groups) texts.insert(*group.source);
  CHECK(report.groups.size() >= 30);
  CHECK(texts.size() <= 4);
}
