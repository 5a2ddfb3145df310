#include "codegen/loop/passes.h"

#include <algorithm>
#include <utility>

namespace ufuse::codegen::loop {
namespace {

std::int64_t stride_of(const Access& a, VarId var) {
  std::int64_t stride = 0;
  for (const Term& t : a.terms)
    if (t.var == var) stride += t.stride.value;
  return stride;
}

// Can `outer` be dropped in favour of a longer `inner`?
bool mergeable(Kernel& k, Stmt& inner_loop, VarId outer, VarId inner) {
  const std::int64_t n = k.vars[static_cast<std::size_t>(inner)].extent.value;
  bool fits = true;
  const auto check = [&](Stmt& s) {
    if (s.kind == Stmt::Kind::Load || s.kind == Stmt::Kind::Store)
      fits &= stride_of(s.access, outer) == n * stride_of(s.access, inner);
  };
  walk(inner_loop.body, check);
  walk(inner_loop.exact, check);
  return fits;
}

void merge(Kernel& k, Stmt& outer_loop) {
  const VarId outer = outer_loop.vars[0];
  Stmt inner_loop = std::move(outer_loop.body[0]);
  const VarId inner = inner_loop.vars[0];
  const auto forget_outer = [&](Stmt& s) {
    std::erase_if(s.access.terms, [&](const Term& t) { return t.var == outer; });
  };
  walk(inner_loop.body, forget_outer);
  walk(inner_loop.exact, forget_outer);
  for (Value& v : k.values) {
    auto it = std::find(v.vars.begin(), v.vars.end(), outer);
    if (it == v.vars.end()) continue;
    v.vars.erase(it);
    if (!std::binary_search(v.vars.begin(), v.vars.end(), inner))
      v.vars.insert(std::lower_bound(v.vars.begin(), v.vars.end(), inner), inner);
  }
  Number& extent = k.vars[static_cast<std::size_t>(inner)].extent;
  extent.value *= k.vars[static_cast<std::size_t>(outer)].extent.value;
  if (extent.literal()) {
    extent.symbol = static_cast<int>(k.sizes.size());
    k.sizes.push_back(extent.value);
  } else {
    k.sizes[static_cast<std::size_t>(extent.symbol)] = extent.value;
  }
  if (k.parallel == outer) k.parallel = inner;
  outer_loop = std::move(inner_loop);
}

bool has_unit_stride(const Access& a, VarId var) {
  return std::ranges::count_if(a.terms, [&](const Term& t) { return t.var == var; }) == 1 &&
         std::ranges::any_of(a.terms, [&](const Term& t) {
           return t.var == var && t.stride.literal() && t.stride.value == 1;
         });
}

bool is_perfect(const Stmt& s) {
  return s.kind == Stmt::Kind::Loop && s.body.size() == 1 && s.body[0].kind == Stmt::Kind::Loop;
}

void collapse(Kernel& k, Body& body) {
  for (Stmt& s : body) {
    collapse(k, s.body);
    while (is_perfect(s) && mergeable(k, s.body[0], s.vars[0], s.body[0].vars[0])) merge(k, s);
  }
}

std::int64_t lane_extent(const Kernel& k, const Body& body) {
  for (const Stmt& s : body) {
    if (s.kind != Stmt::Kind::Loop) continue;
    if (s.lanes) return k.vars[static_cast<std::size_t>(s.vars[0])].extent.value;
    if (std::int64_t n = lane_extent(k, s.body)) return n;
  }
  return 0;
}

}  // namespace

void stream(Kernel& kernel, int buffer, bool large) {
  constexpr std::int64_t kLongLanes = 1024;
  int loops = 0;
  bool fits = true, long_lanes = true, nested = false;
  const auto look = [&](const auto& self, const Body& body, const Stmt* lanes) -> void {
    int stores = 0;
    for (const Stmt& s : body) {
      const bool here = s.access.buffer == buffer;
      stores += s.kind == Stmt::Kind::Store && here;
      fits &= s.kind != Stmt::Kind::Load || !here;
      fits &= s.kind != Stmt::Kind::Store || !here ||
              (lanes != nullptr && has_unit_stride(s.access, lanes->vars[0]));
      // Accumulators beside the lanes want wide blocks.
      fits &= lanes == nullptr || s.kind != Stmt::Kind::Fold || s.form != Stmt::Form::Lanes;
      const bool opens_lanes = s.kind == Stmt::Kind::Loop && s.lanes;
      self(self, s.body, opens_lanes ? &s : nullptr);
      self(self, s.exact, opens_lanes ? &s : nullptr);
    }
    fits &= stores <= 1;
    if (stores == 0 || lanes == nullptr) return;
    ++loops;
    const Number extent = kernel.vars[static_cast<std::size_t>(lanes->vars[0])].extent;
    fits &= !extent.literal();
    long_lanes &= extent.value >= kLongLanes;
    nested |= lanes->vars[0] != kernel.parallel;
  };
  look(look, kernel.body, nullptr);
  const bool streams = large && long_lanes;
  if (!fits || loops == 0 || (nested && !streams)) return;
  kernel.buffers[static_cast<std::size_t>(buffer)].streamable = true;
  kernel.streams |= streams;
}

void collapse(Kernel& kernel) { collapse(kernel, kernel.body); }

std::int64_t lane_extent(const Kernel& kernel) { return lane_extent(kernel, kernel.body); }

}  // namespace ufuse::codegen::loop
