// Block calls: where does NumPy's own inner loop run in the nest? Beside the lanes it takes a block
// of them; along a run, the run is computed into a row of scratch first.
#include <algorithm>
#include <functional>
#include <utility>

#include "codegen/schedule/cost.h"
#include "codegen/schedule/demands.h"

namespace ufuse::codegen {

using ir::NodeId;
using Home = Wanted::Home;

WantedId Demands::call(NodeId node, const ir::Node& n, const Index& index) {
  const Vars wanted = vars_of(index);
  const auto varies_with = [&](VarId var) { return contains(wanted, var); };
  for (std::size_t depth = scopes_.depth() + 1; depth-- > 0;)
    if (scopes_[depth].horizontal) {
      if (std::ranges::any_of(scopes_[depth].vars, varies_with))
        return through_row(node, index, depth);
      break;
    }
  if (repetitions(scopes_.place(wanted), wanted) > 1 && element_count(n.shape) > cost::kUnrolled)
    return need(node, index);
  Wanted call{.home = Home::Call, .node = node};
  want_operands(call, n, index);
  return add(std::move(call), /*costly=*/true);
}

// A block call wanted inside the run of scope `depth`: the run is computed into a row of scratch
// first, in lanes.
WantedId Demands::through_row(NodeId node, const Index& index, std::size_t depth) {
  const Scope& scope = scopes_[depth];
  const VarId run = scope.vars.back();
  const Vars wanted = vars_of(index);
  const bool varies_outside = std::any_of(scope.vars.begin(), scope.vars.end() - 1,
                                          [&](VarId var) { return contains(wanted, var); });
  if (varies_outside || scope.parallel || extent(run) > cost::kMaxRow || depth != scopes_.depth())
    return need(node, index);
  const auto outer = scopes_.all().begin();
  if (std::any_of(outer, outer + static_cast<std::ptrdiff_t>(depth), std::mem_fn(&Scope::lanes))) {
    found_.lanes_in_vain = true;
    return stand_in(node, index);
  }
  Row row{new_var(extent(run)), run, -1};
  Kept kept{node, {}, 0};
  for (const Affine& axis : index) kept.index.push_back(axis.replaced(run, row.var));
  kept.scope_uid = scopes_.within(depth - 1, [&] {
    stand(scopes_.innermost().vars, /*costly=*/true);
    Scope lanes;
    lanes.vars = {row.var};
    lanes.lanes = true;
    scopes_.push(std::move(lanes));
    row.filled = want(node, kept.index);
    scopes_.pop();
    return scopes_.innermost().uid;
  });
  group_.rows.push_back(std::move(row));
  kept_.push_back(std::move(kept));
  return from_row(node, index);
}

// A value that a row of scratch holds, if one does.
WantedId Demands::from_row(NodeId node, const Index& index) {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const Kept& kept = kept_[i];
    if (kept.node != node || !scopes_.is_open(kept.scope_uid)) continue;
    const VarId own = group_.rows[i].var;
    for (VarId var : vars_of(index)) {
      if (extent(var) != extent(own)) continue;
      Index same;
      for (const Affine& axis : kept.index) same.push_back(axis.replaced(own, var));
      if (same != index) continue;
      // Varies with all of the index: the row is another one for each of the outer variables.
      return add({.home = Home::Row,
                  .node = node,
                  .vars = vars_of(index),
                  .detail = static_cast<int>(i),
                  .at = var});
    }
  }
  return -1;
}

}  // namespace ufuse::codegen
