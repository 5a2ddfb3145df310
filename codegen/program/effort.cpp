#include "codegen/program/effort.h"

#include <algorithm>
#include <array>

namespace ufuse::codegen {
namespace {

using ir::program::Step;
using ir::program::Steps;

bool computes_arrays(const Steps& list) {
  using enum Step::Kind;
  constexpr std::array kOfArrays = {Elements, LoopOver, Reduce,  CountTrue,
                                    Gather,   Scatter,  Product, Dot};
  return std::ranges::any_of(list, [&](const Step& s) {
    return std::ranges::find(kOfArrays, s.kind) != kOfArrays.end() || computes_arrays(s.body) ||
           computes_arrays(s.other);
  });
}

// Whether a loop inside computes numbers only.
bool has_loop_of_numbers(const Steps& list) {
  return std::ranges::any_of(list, [](const Step& s) {
    if (s.kind == Step::Kind::Elements) return false;
    const bool is_loop = s.kind == Step::Kind::Count || s.kind == Step::Kind::Repeat;
    return (is_loop && !computes_arrays(s.body)) || has_loop_of_numbers(s.body) ||
           has_loop_of_numbers(s.other);
  });
}

}  // namespace

Effort effort_for(const ir::program::Program& program) {
  return has_loop_of_numbers(program.body) ? Effort::Full : Effort::Little;
}

}  // namespace ufuse::codegen
