// Does the verifier find what a broken pass would leave behind, and can every pass be left out by
// name?
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "codegen/loop/lower.h"
#include "codegen/loop/passes/passes.h"
#include "codegen/loop/verify.h"
#include "codegen/schedule/schedule.h"
#include "ir/build.h"
#include "ir/support/error.h"

namespace {

using namespace ufuse;
using codegen::loop::Kernel;
using codegen::loop::Stmt;
using ir::DType;
using ir::Graph;
using ir::NodeId;
using ir::Op;

// sqrt(halve(x) * y) of [1000, 20], where y varies along the second axis only.
Kernel lowered() {
  static ir::LoopTable loops;
  const std::uint32_t row =
      loops.add({"halve", {DType::Float64}, {DType::Float64}, nullptr, nullptr});
  Graph g;
  const NodeId x = ir::input(g, 0, DType::Float64, {1000, 20});
  const NodeId y = ir::broadcast_to(g, ir::input(g, 1, DType::Float64, {20}), {1000, 20});
  const NodeId half = ir::ufunc(g, loops, row, 0, {x});
  g.outputs = {ir::elementwise(g, Op::Sqrt, {ir::elementwise(g, Op::Multiply, {half, y})})};
  const std::vector<ir::Buffer> inputs{{nullptr, DType::Float64, {1000, 20}, {160, 8}},
                                       {nullptr, DType::Float64, {20}, {8}}};
  const std::vector<ir::Buffer> outputs{{nullptr, DType::Float64, {1000, 20}, {160, 8}}};
  const codegen::Schedule schedule = codegen::schedule(g, {inputs, {}, outputs, {}, {}});
  REQUIRE(schedule.groups.size() == 1);
  return codegen::loop::lower(schedule, schedule.groups[0], loops);
}

Stmt& first(Kernel& kernel, Stmt::Kind kind) {
  Stmt* found = nullptr;
  codegen::loop::walk(kernel.body, [&](Stmt& s) {
    if (found == nullptr && s.kind == kind) found = &s;
  });
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("loop verifier: names what is wrong") {
  struct Row {
    const char* complaint;
    std::function<void(Kernel&)> breaks;
  };
  const Row rows[] = {
      {"before it is made",
       [](Kernel& k) {
         first(k, Stmt::Kind::Store).args[0] = 0;
         k.body.clear();
         Stmt s;
         s.kind = Stmt::Kind::Redo;
         s.args = {0};
         k.body.push_back(s);
       }},
      {"made twice",
       [](Kernel& k) {
         first(k, Stmt::Kind::Call).results[0] = first(k, Stmt::Kind::Load).result;
       }},
      {"varies with a loop that is not open",
       [](Kernel& k) { first(k, Stmt::Kind::Load).access.terms[0].var = 7; }},
      {"not the one handed in", [](Kernel& k) { k.sizes[0] += 1; }},
      {"in no buffer", [](Kernel& k) { first(k, Stmt::Kind::Load).access.buffer = 9; }},
      {"only read is written",
       [](Kernel& k) { first(k, Stmt::Kind::Store).access = first(k, Stmt::Kind::Load).access; }},
      {"changes the dtype", [](Kernel& k) { k.buffers[0].dtype = DType::Float32; }},
      {"number of operands", [](Kernel& k) { first(k, Stmt::Kind::Compute).args.pop_back(); }},
      {"does not accept", [](Kernel& k) { first(k, Stmt::Kind::Compute).op = Op::BitAnd; }},
      {"merges with more",
       [](Kernel& k) {
         first(k, Stmt::Kind::Loop).merges = true;
         first(k, Stmt::Kind::Loop).body.emplace_back();
       }},
      {"is open already",
       [](Kernel& k) {
         Stmt& outer = first(k, Stmt::Kind::Loop);
         outer.body[0].vars = outer.vars;
       }},
      {"in no block",
       [](Kernel& k) {
         Stmt s;
         s.kind = Stmt::Kind::Segment;
         k.body.push_back(s);
       }},
      {"no such inner loop", [](Kernel& k) { first(k, Stmt::Kind::Call).index = 3; }},
      {"shared out does not exist", [](Kernel& k) { k.parallel = 5; }},
  };
  CHECK_NOTHROW(codegen::loop::verify(lowered(), "lower"));
  for (const Row& row : rows) {
    CAPTURE(row.complaint);
    Kernel kernel = lowered();
    row.breaks(kernel);
    try {
      codegen::loop::verify(kernel, "break");
      FAIL("not found");
    } catch (const InternalError& error) {
      CHECK(std::string(error.what()).find(row.complaint) != std::string::npos);
    }
  }
}

TEST_CASE("loop passes: each can be left out, and says what it did") {
  for (const auto& left_out : codegen::loop::passes()) {
    CAPTURE(left_out.name);
    std::vector<std::string> ran;
    codegen::loop::PassOptions options{.leave_out = {std::string(left_out.name)}, .verify = true};
    options.dump_after = [&](std::string_view pass, const Kernel&) { ran.emplace_back(pass); };
    CHECK_NOTHROW(codegen::loop::run_passes(lowered(), options));
    CHECK(ran.size() == codegen::loop::passes().size());  // `lower` comes first
    CHECK(std::find(ran.begin(), ran.end(), left_out.name) == ran.end());
    CHECK_FALSE(left_out.about.empty());
  }
  CHECK_THROWS_AS(codegen::loop::run_passes(lowered(), {.leave_out = {"no such pass"}}),
                  InternalError);
}
