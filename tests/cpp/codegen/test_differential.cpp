// Do compiled loops give the interpreter's bits? Random graphs, one thread and two, and with each
// pass over loops left out. The seed is printed when something differs; UFUSE_TEST_SEED=n runs one
// seed, UFUSE_TEST_ROUNDS=n more of them.
#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/loop/lower.h"
#include "codegen/loop/passes/passes.h"
#include "codegen/schedule/schedule.h"
#include "ir/interp/interpreter.h"
#include "ir/print.h"
#include "tests/cpp/codegen/random_program.h"

namespace {

using namespace ufuse;
using codegen::testing::Program;

std::string texts(const codegen::Compiler& compiler, const Program& program) {
  std::string all;
  for (const auto& group : compiler.describe(program.graph, program.args()).groups)
    all += *group.source;
  return all;
}

void check(unsigned seed, Program& program, codegen::Compiler& compiler,
           const std::vector<std::vector<char>>& expected) {
  for (int threads : {1, 2}) {
    compiler.threads().set_limit(threads);
    ir::RunStatus status;
    const auto got = program.run(compiler, status);
    if (status.redo || expected == got) continue;  // `redo` asks for NumPy's own answer
    std::string report = ir::print(program.graph, &program.loops);
    for (int a : program.alias) report += "alias " + std::to_string(a) + "\n";
    FAIL("seed " << seed << ", " << threads << " threads\n" << report << texts(compiler, program));
  }
}

// With each of these passes left out, where that makes a difference.
void check(unsigned seed, const std::vector<std::string>& left_out) {
  Program program(seed);
  ir::Interpreter interpreter(&program.loops);
  ir::RunStatus status;
  const auto expected = program.run(interpreter, status);
  if (status.redo) return;
  codegen::Compiler compiler(program.loops);
  if (left_out.empty()) return check(seed, program, compiler, expected);
  for (const std::string& pass : left_out) {
    CAPTURE(pass);
    codegen::Compiler other(program.loops, codegen::Numerics::Exact,
                            codegen::Compiler::default_jit(), {.leave_out = {pass}});
    if (texts(other, program) != texts(compiler, program)) check(seed, program, other, expected);
  }
}

void check_seeds(unsigned rounds, const std::vector<std::string>& left_out) {
  if (const char* one = std::getenv("UFUSE_TEST_SEED"))
    return check(static_cast<unsigned>(std::stoul(one)), left_out);
  if (const char* more = std::getenv("UFUSE_TEST_ROUNDS"))
    rounds = static_cast<unsigned>(std::stoul(more));
  for (unsigned seed = 1; seed <= rounds; ++seed) {
    CAPTURE(seed);
    check(seed, left_out);
  }
  CHECK(rounds > 0);
}

}  // namespace

TEST_CASE("random graphs: compiled loops give the interpreter's bits") { check_seeds(60, {}); }

TEST_CASE("random graphs: without any one of the passes the bits are the same") {
  std::vector<std::string> names;
  for (const codegen::loop::Pass& pass : codegen::loop::passes()) names.emplace_back(pass.name);
  check_seeds(12, names);
}

TEST_CASE("random graphs: kernels are well formed after each pass") {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const Program program(seed);
    const codegen::Schedule schedule = codegen::schedule(program.graph, program.args());
    for (const codegen::Group& group : schedule.groups)
      CHECK_NOTHROW(codegen::loop::run_passes(codegen::loop::lower(schedule, group, program.loops),
                                              {.verify = true}));
  }
}
