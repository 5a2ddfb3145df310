#include "codegen/program/lives.h"

#include <limits>

namespace ufuse::codegen {

using ir::program::ArrayReg;
using ir::program::Step;

ArrayLives::ArrayLives(const ir::program::Program& program, const FrameLayout& frame)
    : lives_(program.arrays.size()) {
  walk(program.body);
  for (std::size_t a = 0; a < lives_.size(); ++a)
    if (frame.arrays[a] != 0 || !program.arrays[a].name.empty())
      lives_[a] = {-1, std::numeric_limits<int>::max()};
}

void ArrayLives::mention(ArrayReg a) {
  if (a == ir::program::kNone) return;
  Life& life = lives_[static_cast<std::size_t>(a)];
  if (life.first < 0) life.first = place_;
  life.last = std::max(life.last, place_);
}

void ArrayLives::walk(const ir::program::Steps& list) {
  for (const Step& s : list) {
    ++place_;
    if (s.kind == Step::Kind::NewArray) places_[&s] = place_;
    mention(s.array);
    mention(s.target);
    for (ArrayReg a : s.arrays) mention(a);
    if (s.kind == Step::Kind::Elements) continue;
    const int begin = place_;
    walk(s.body);
    walk(s.other);
    if (s.kind != Step::Kind::Count && s.kind != Step::Kind::Repeat) continue;
    // The next round mentions again what this one does.
    for (Life& life : lives_)
      if (life.first >= 0 && life.first < begin && life.last > begin) life.last = place_ + 1;
    ++place_;
  }
}

std::vector<ArrayReg> ArrayLives::beside(const Step& step) const {
  const int here = places_.at(&step);
  std::vector<ArrayReg> found;
  for (std::size_t a = 0; a < lives_.size(); ++a)
    if (lives_[a].first < here && lives_[a].last > here) found.push_back(static_cast<ArrayReg>(a));
  return found;
}

}  // namespace ufuse::codegen
