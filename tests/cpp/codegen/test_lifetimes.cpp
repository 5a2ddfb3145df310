// Which arrays may be used behind a new one, whose memory must be another then?
#include <doctest/doctest.h>

#include "codegen/program/lifetimes.h"

namespace ufuse::codegen {
namespace {

using ir::program::ArrayReg;
using ir::program::Program;
using ir::program::Step;
using ir::program::Steps;
using Kind = Step::Kind;

Step made(ArrayReg a) {
  Step s;
  s.kind = Kind::NewArray;
  s.target = a;
  return s;
}
Step used(ArrayReg a) {
  Step s;
  s.kind = Kind::Release;
  s.arrays = {a};
  return s;
}
Step view(ArrayReg to, ArrayReg of) {
  Step s;
  s.kind = Kind::Transpose;
  s.array = of;
  s.target = to;
  return s;
}
Step around(Kind kind, Steps body) {
  Step s;
  s.kind = kind;
  s.body = std::move(body);
  return s;
}

Program program(Steps body) {
  Program p;
  p.arrays.assign(4, {ir::DType::Float64, 1, {}});
  p.body = std::move(body);
  return p;
}

using Arrays = std::vector<ArrayReg>;

}  // namespace

TEST_CASE("an array is held up to its last step") {
  const Program p = program({made(0), made(1), used(0), made(2), used(1), made(3)});
  const Lifetimes lives(p);
  CHECK(lives.held(p.body[0]) == Arrays{});
  CHECK(lives.held(p.body[1]) == Arrays{0});
  CHECK(lives.held(p.body[3]) == Arrays{1});
  CHECK(lives.held(p.body[5]) == Arrays{});
}

TEST_CASE("a view is held for itself, and a variable always") {
  Program p = program({made(0), view(1, 0), made(2), used(1), made(3)});
  p.arrays[2].name = "x";
  const Lifetimes lives(p);
  CHECK(lives.held(p.body[2]) == Arrays{1, 2});
  CHECK(lives.held(p.body[4]) == Arrays{2});
}

TEST_CASE("an array from before a loop is held in all of its rounds") {
  const Program p = program({made(0), around(Kind::Repeat, {used(0), made(1), used(1), made(2)})});
  const Lifetimes lives(p);
  CHECK(lives.held(p.body[1].body[1]) == Arrays{0});
  CHECK(lives.held(p.body[1].body[3]) == Arrays{0});
}

TEST_CASE("an array of one round is held in the rounds before its use behind the loop") {
  const Program p =
      program({around(Kind::Block, {around(Kind::Repeat, {made(1), made(0), used(1)}), used(0)})});
  const Lifetimes lives(p);
  CHECK(lives.held(p.body[0].body[0].body[0]) == Arrays{0});
}

TEST_CASE("what may be left by an earlier round is always held") {
  // Made in a branch, used behind it: where this round has not come there, an earlier one has.
  Step branch = around(Kind::If, {made(0)});
  const Program p = program({around(Kind::Repeat, {made(1), branch, used(0), made(2)})});
  const Lifetimes lives(p);
  CHECK(lives.held(p.body[0].body[0]) == Arrays{0});
  CHECK(lives.held(p.body[0].body[3]) == Arrays{0});
}

TEST_CASE("what Python finds at an exit is held until there") {
  Program p = program({made(0), made(1), used(2)});
  ir::program::Where where;
  where.kind = ir::program::Where::Kind::Array;
  where.reg = 0;
  p.exits.push_back({ir::program::Exit::Kind::Leave, 0, {where}, {}, {}});
  p.body[1].exit = 0;
  const Lifetimes lives(p);
  CHECK(lives.held(p.body[1]) == Arrays{0, 2});
}

}  // namespace ufuse::codegen
