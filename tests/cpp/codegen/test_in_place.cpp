// Do outputs that overwrite inputs hold what NumPy's would, also where each input is wanted in the
// memory of another one?
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "codegen/compile.h"
#include "codegen/compiler.h"
#include "ir/build.h"

using namespace ufuse;
using ir::DType;
using ir::Graph;
using ir::NodeId;

TEST_CASE("in place: two arrays of different strides change places") {
  Graph g;
  const NodeId a = ir::input(g, 0, DType::Float64, {5}), b = ir::input(g, 1, DType::Float64, {5});
  g.outputs = {b, a, ir::elementwise(g, ir::Op::Add, {a, b})};
  std::vector<double> x{1, 2, 3, 4, 5}, y{10, 0, 20, 0, 30, 0, 40, 0, 50}, sum(5);
  const ir::Buffer first{x.data(), DType::Float64, {5}, {8}};
  const ir::Buffer second{y.data(), DType::Float64, {5}, {16}};
  const ir::Buffer third{sum.data(), DType::Float64, {5}, {8}};
  const std::vector<ir::Buffer> inputs{first, second}, outputs{first, second, third};
  const std::vector<int> alias{0, 1, -1};
  const ir::RunArgs args{inputs, {}, outputs, alias, {}};
  const ir::LoopTable loops;
  codegen::Compiler compiler(loops);
  CHECK_FALSE(compiler.prepare(g, args)->run(args).redo);
  CHECK(x == std::vector<double>{10, 20, 30, 40, 50});
  CHECK(y == std::vector<double>{1, 0, 2, 0, 3, 0, 4, 0, 5});
  CHECK(sum == std::vector<double>{11, 22, 33, 44, 55});
}

// Long kernels may write elsewhere first, but not where they read what they write.
TEST_CASE("in place: a kernel tells that it reads its output") {
  Graph g;
  g.outputs = {ir::scan(g, ir::Op::Add, ir::input(g, 0, DType::Int64, {10'000}), 0)};
  std::vector<std::int64_t> x(10'000), y(10'000);
  const std::vector<ir::Buffer> given{{x.data(), DType::Int64, {10'000}, {8}}},
      other{{y.data(), DType::Int64, {10'000}, {8}}};
  const std::vector<int> itself{0}, none{-1};
  const auto reads_output = [&](const ir::RunArgs& args) {
    const codegen::Compiled made = codegen::compile(g, {}, args, {});
    REQUIRE(made.kernels.size() == 1);
    for (const codegen::loop::Buffer& each : made.kernels[0].loops.buffers)
      if (each.role == codegen::loop::Buffer::Role::Output) return each.read;
    return false;
  };
  CHECK(reads_output({given, {}, given, itself, {}}));
  CHECK_FALSE(reads_output({given, {}, other, none, {}}));
}

TEST_CASE("in place: the time that is expected of a scan grows with its length") {
  const auto expected = [](std::int64_t length) {
    Graph g;
    g.outputs = {ir::scan(g, ir::Op::Add, ir::input(g, 0, DType::Int64, {length}), 0)};
    std::vector<std::int64_t> x(static_cast<std::size_t>(length));
    const std::vector<ir::Buffer> given{{x.data(), DType::Int64, {length}, {8}}};
    const std::vector<int> alias{0};
    return codegen::compile(g, {}, {given, {}, given, alias, {}}, {}).kernels[0].loops.cost_ns;
  };
  CHECK(expected(100'000) < 20 * expected(10'000));
}
