// An index over loop variables, one affine expression per axis. Used by scheduling, which pushes
// indices down through nodes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/loop/ir.h"
#include "ir/graph.h"
#include "ir/support/small_vector.h"

namespace ufuse::codegen {

using loop::contains;
using loop::join;
using loop::VarId;
using loop::Vars;

// base + fixed + sum of var * factor. `fixed` comes from unrolled variables and belongs to the
// text; `base` comes from the starts of slices and is added to a pointer at run time.
struct Affine {
  struct Term {
    VarId var;
    std::int64_t factor;
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  std::int64_t base = 0;
  std::int64_t fixed = 0;
  ir::SmallVector<Term, 1> terms;  // sorted by variable, factors not 0
  friend bool operator==(const Affine&, const Affine&) = default;

  static Affine of(VarId var) { return Affine{0, 0, {{var, 1}}}; }
  static Affine at(std::int64_t value) { return Affine{0, value, {}}; }

  Affine scaled(std::int64_t factor) const {
    if (factor == 0) return {};
    Affine result{base * factor, fixed * factor, terms};
    for (Term& term : result.terms) term.factor *= factor;
    return result;
  }
  Affine plus(const Affine& other) const {
    Affine result{base + other.base, fixed + other.fixed, terms};
    for (const Term& term : other.terms) {
      const auto it = std::lower_bound(result.terms.begin(), result.terms.end(), term.var,
                                       [](const Term& t, VarId v) { return t.var < v; });
      if (it == result.terms.end() || it->var != term.var)
        result.terms.insert(it, term);
      else if ((it->factor += term.factor) == 0)
        result.terms.erase(it);
    }
    return result;
  }
  Affine replaced(VarId from, VarId to) const {
    Affine result{base, fixed, {}};
    for (const Term& term : terms)
      result = result.plus(Affine{0, 0, {{term.var == from ? to : term.var, term.factor}}});
    return result;
  }
};
using Index = std::vector<Affine>;

inline Vars vars_of(const Index& index) {
  Vars vars;
  for (const Affine& axis : index)
    for (const Affine::Term& term : axis.terms) join(vars, {term.var});
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

// A hash of "this node at this index".
struct WantedHash {
  std::size_t operator()(const std::pair<std::uint32_t, Index>& wanted) const {
    std::uint64_t h = wanted.first;
    const auto mix = [&h](std::int64_t value) {
      h = (h ^ static_cast<std::uint64_t>(value)) * 0x9e3779b97f4a7c15;
      h ^= h >> 29;
    };
    for (const Affine& axis : wanted.second) {
      mix(axis.base);
      mix(axis.fixed);
      for (const Affine::Term& term : axis.terms) {
        mix(term.var);
        mix(term.factor);
      }
    }
    return h;
  }
};

}  // namespace ufuse::codegen
