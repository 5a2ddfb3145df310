// Two nested loops as one. Which ones may be is known to the schedule; that their addresses do
// advance as one is looked at once more, for the loops would be wrong otherwise.
#include <algorithm>
#include <utility>

#include "codegen/loop/passes/passes.h"
#include "ir/support/error.h"

namespace ufuse::codegen::loop {
namespace {

// A loop and the one in its body become one loop, over the inner one's variable.
void merge(Kernel& k, Stmt& outer_loop) {
  if (outer_loop.body.size() != 1 || outer_loop.body[0].kind != Stmt::Kind::Loop)
    throw InternalError("collapse: there is more than a loop in the loop");
  Stmt inner_loop = std::move(outer_loop.body[0]);
  const VarId outer = outer_loop.vars[0], inner = inner_loop.vars[0];
  Number& extent = k.vars[static_cast<std::size_t>(inner)].extent;
  const auto drop_outer = [&](Stmt& s) {
    if (s.access.stride_along(outer).value != extent.value * s.access.stride_along(inner).value)
      throw InternalError("collapse: the loops do not advance as one");
    std::erase_if(s.access.terms, [&](const Term& t) { return t.var == outer; });
  };
  walk(inner_loop.body, drop_outer);
  walk(inner_loop.exact, drop_outer);
  for (Value& v : k.values) {
    const auto it = std::ranges::find(v.vars, outer);
    if (it == v.vars.end()) continue;
    v.vars.erase(it);
    join(v.vars, {inner});
  }
  extent.value *= k.var(outer).extent.value;
  if (extent.literal()) {
    extent.symbol = static_cast<int>(k.sizes.size());
    k.sizes.push_back(extent.value);
  } else {
    k.sizes[static_cast<std::size_t>(extent.symbol)] = extent.value;
  }
  inner_loop.parallel |= outer_loop.parallel;
  outer_loop = std::move(inner_loop);
}

// Inner loops first: what they merge into merges with the loop around it.
void collapse(Kernel& k, Body& body) {
  for (Stmt& s : body) {
    collapse(k, s.body);
    if (s.merges) merge(k, s);
  }
}

}  // namespace

void collapse(Kernel& kernel) { collapse(kernel, kernel.body); }

}  // namespace ufuse::codegen::loop
