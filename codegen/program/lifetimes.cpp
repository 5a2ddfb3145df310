// See lifetimes.h. Steps have numbers in the order of the text. The life of an array is an interval
// of these where its first step defines it, and all others stand in the same list of steps or in
// lists inside that one: then no round of a loop finds what an earlier one has left. All other
// arrays live always.
#include "codegen/program/lifetimes.h"

#include <algorithm>

namespace ufuse::codegen {

using ir::program::ArrayReg;
using ir::program::kNone;
using ir::program::Over;
using ir::program::Program;
using ir::program::Rounds;
using ir::program::Step;
using ir::program::Steps;
using ir::program::Where;

Lifetimes::Lifetimes(const Program& program) : lives_(program.arrays.size()) {
  for (std::size_t a = 0; a < lives_.size(); ++a)
    lives_[a].always = !program.arrays[a].name.empty();
  for (const ir::program::Input& input : program.inputs) keep(input.value);
  steps(program, program.body, false);
  // What lives before or behind a loop as well is not changed by any of its rounds but the one that
  // defines it. From the outermost loop inwards: the interval only grows.
  for (const Block& block : blocks_) {
    if (!block.is_loop) continue;
    for (Life& life : lives_) {
      const bool touches = life.first <= block.last && block.first <= life.last;
      const bool contained = block.first <= life.first && life.last <= block.last;
      if (!touches || contained) continue;
      life.first = std::min(life.first, block.first);
      life.last = std::max(life.last, block.last);
    }
  }
}

std::vector<ArrayReg> Lifetimes::held(const Step& step) const {
  const std::size_t at = new_arrays_.at(&step);
  std::vector<ArrayReg> all;
  for (std::size_t a = 0; a < lives_.size(); ++a) {
    const Life& life = lives_[a];
    if (life.always || (life.is_seen && life.first < at && at <= life.last))
      all.push_back(static_cast<ArrayReg>(a));
  }
  return all;
}

void Lifetimes::steps(const Program& program, const Steps& list, bool is_loop) {
  const std::size_t around = block_, own = blocks_.size();
  blocks_.push_back({around, position_, position_, is_loop});
  block_ = own;
  for (const Step& s : list) step(program, s);
  blocks_[own].last = position_;
  block_ = around;
}

void Lifetimes::step(const Program& program, const Step& s) {
  ++position_;
  using enum Step::Kind;
  if (s.kind == NewArray) new_arrays_.emplace(&s, position_);
  use(s.array, false);
  for (ArrayReg a : s.arrays) use(a, false);
  if (s.exit != kNone) {
    const ir::program::Exit& exit = program.exits[static_cast<std::size_t>(s.exit)];
    for (const Where& where : exit.variables) use(where);
    use(exit.value);
    for (const Rounds& rounds : exit.loops) use(rounds.over);
  }
  use(s.target, s.kind == View || s.kind == Transpose || s.kind == SameArray || s.kind == NewArray);
  if (s.kind == Elements) return;
  if (!s.body.empty()) steps(program, s.body, s.kind == Count || s.kind == Repeat);
  if (!s.other.empty()) steps(program, s.other, false);
}

void Lifetimes::use(ArrayReg a, bool defines) {
  if (a == kNone) return;
  Life& life = lives_[static_cast<std::size_t>(a)];
  if (!life.is_seen) {
    life.is_seen = true;
    life.always |= !defines;
    life.first = position_;
    life.block = block_;
  }
  life.last = position_;
  life.always |= !is_inside(block_, life.block);
}

void Lifetimes::use(const Where& where) {
  if (where.kind == Where::Kind::Array) use(where.reg, false);
  for (const Where& part : where.parts) use(part);
}

void Lifetimes::use(const Over& over) {
  use(over.array, false);
  for (const Where& item : over.items) use(item);
  for (const Over& part : over.parts) use(part);
}

void Lifetimes::keep(const Where& where) {
  if (where.kind == Where::Kind::Array) lives_[static_cast<std::size_t>(where.reg)].always = true;
  for (const Where& part : where.parts) keep(part);
}

// Whether a list of steps is this one, or stands inside it.
bool Lifetimes::is_inside(std::size_t block, std::size_t other) const {
  while (block > other) block = blocks_[block].around;
  return block == other;
}

}  // namespace ufuse::codegen
