// An index over loop variables, one affine expression per axis. Used by lowering.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// base + fixed + sum of var * factor. `fixed` comes from unrolled variables and belongs to the
// text; `base` comes from the starts of slices and is added to a pointer at run time.
struct Affine {
  std::int64_t base = 0;
  std::int64_t fixed = 0;
  std::vector<std::pair<VarId, std::int64_t>> terms;  // sorted by variable, factors not 0
  friend auto operator<=>(const Affine&, const Affine&) = default;

  static Affine of(VarId var) { return Affine{0, 0, {{var, 1}}}; }
  static Affine at(std::int64_t value) { return Affine{0, value, {}}; }

  Affine scaled(std::int64_t factor) const {
    if (factor == 0) return {};
    Affine result{base * factor, fixed * factor, terms};
    for (auto& term : result.terms) term.second *= factor;
    return result;
  }
  Affine plus(const Affine& other) const {
    Affine result{base + other.base, fixed + other.fixed, terms};
    for (const auto& [var, factor] : other.terms) {
      auto it = std::lower_bound(result.terms.begin(), result.terms.end(), var,
                                 [](const auto& t, VarId v) { return t.first < v; });
      if (it != result.terms.end() && it->first == var) {
        it->second += factor;
        if (it->second == 0) result.terms.erase(it);
      } else {
        result.terms.insert(it, {var, factor});
      }
    }
    return result;
  }
  Affine replaced(VarId from, VarId to) const {
    Affine result{base, fixed, {}};
    for (const auto& [var, factor] : terms)
      result = result.plus(Affine{0, 0, {{var == from ? to : var, factor}}});
    return result;
  }
};
using Index = std::vector<Affine>;

inline std::vector<VarId> vars_of(const Index& index) {
  std::vector<VarId> vars;
  for (const Affine& axis : index)
    for (const auto& term : axis.terms) vars.push_back(term.first);
  std::sort(vars.begin(), vars.end());
  vars.erase(std::unique(vars.begin(), vars.end()), vars.end());
  return vars;
}

// The operand's index (`rank` axes) where a broadcast or a transpose is wanted at `index`.
inline Index below_broadcast(const ir::Node& n, std::size_t rank, const Index& index) {
  Index inner(rank);
  for (std::size_t i = 0; i < n.ints.size(); ++i)
    if (n.ints[i] >= 0) inner[static_cast<std::size_t>(n.ints[i])] = index[i];
  return inner;
}
inline Index below_transpose(const ir::Node& n, const Index& index) {
  Index inner(index.size());
  for (std::size_t i = 0; i < index.size(); ++i)
    inner[static_cast<std::size_t>(n.ints[i])] = index[i];
  return inner;
}

}  // namespace ufuse::codegen::loop
