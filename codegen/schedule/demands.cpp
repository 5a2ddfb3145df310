// The loops over the targets: their order, which of them merge, which one is shared out; and which
// of several ways to arrange a group is taken.
#include "codegen/schedule/demands.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "codegen/schedule/cost.h"

namespace ufuse::codegen {
namespace {

using ir::Dims;

// Axes longer than 1, largest stride first.
std::vector<std::size_t> loop_axes(const Dims& shape, const Dims& strides) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(i);
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(strides[a]) > std::abs(strides[b]);
  });
  return axes;
}

}  // namespace

Proposal propose(const GroupRequest& request) {
  Choices choices;
  const auto explore = [&] {
    Findings found = Demands(request, choices).run();
    if (!found.squares_in_vain) return found;
    choices.squares = false;
    return Demands(request, choices).run();
  };
  Findings found = explore();
  if (found.lanes_in_vain) {
    choices.lanes = false;
    found = explore();
  }
  const bool few_lanes =
      found.lanes > 0 && found.lanes <= cost::kFewLanes && found.proposal.group.loops.size() > 1;
  if (!found.proposal.needs.empty() || !few_lanes) return std::move(found.proposal);
  choices.unroll_inner = true;
  Findings unrolled = explore();
  const Proposal& other = unrolled.proposal;
  const bool fits = other.needs.empty() && !other.conflict && !unrolled.lanes_in_vain &&
                    unrolled.lanes > found.lanes;
  return std::move(fits ? unrolled.proposal : found.proposal);
}

Findings Demands::run() {
  scopes_.push({});
  group_.targets = r_.targets;
  if (lists_truths()) {
    found_.proposal.group = std::move(group_);
    return std::move(found_);
  }
  const Place place = scatters() ? scattered() : r_.targets[0].place;
  std::vector<std::size_t> axes = loop_axes(place.shape, place.strides);
  // A scan runs along its axis in the innermost loop.
  if (const ir::Node& n = g_[r_.targets[0].node]; n.op == ir::Op::Scan) {
    const auto along = std::ranges::find(axes, static_cast<std::size_t>(n.ints[0]));
    if (along != axes.end()) std::rotate(along, along + 1, axes.end());
  }
  if (choices_.unroll_inner && axes.size() > 1 && !scatters()) {
    group_.unrolled_axis = static_cast<int>(axes.back());
    axes.pop_back();
  }
  Index index(place.shape.size());
  for (std::size_t axis : axes) {
    const VarId var = new_var(place.shape[axis]);
    group_.loops.push_back({var, axis});
    index[axis] = Affine::of(var);
    Scope scope;
    scope.vars = {var};
    scope.lanes = choices_.lanes && group_.loops.size() == axes.size();
    scopes_.push(std::move(scope));
  }
  group_.lanes = choices_.lanes && !axes.empty();
  occupied_.assign(axes.size() + 1, false);
  costly_.assign(axes.size() + 1, false);
  squares_ = choices_.squares && group_.lanes && r_.overwritten.empty();
  group_.stores = want_targets(index);
  if (std::find(uses_squares_.begin(), uses_squares_.end(), true) != uses_squares_.end()) {
    // Lanes in doubt run once more; what is costly must not.
    found_.squares_in_vain = costly_.back();
    squares_ = false;
    exact_ = true;
    group_.exact = want_targets(index);
  }
  merge_loops();
  choose_parallel();
  found_.proposal.group = std::move(group_);
  return std::move(found_);
}

// All targets at `index`, and for each position along the unrolled axis.
std::vector<Store> Demands::want_targets(Index index) {
  if (scatters()) return {want_scattered(index)};
  const bool unrolled = group_.unrolled_axis >= 0;
  const auto axis = static_cast<std::size_t>(group_.unrolled_axis);
  const std::int64_t times = unrolled ? r_.targets[0].place.shape[axis] : std::int64_t{1};
  std::vector<Store> stores;
  for (std::int64_t u = 0; u < times; ++u) {
    if (unrolled) index[axis] = Affine::at(u);
    for (std::size_t i = 0; i < r_.targets.size(); ++i) {
      const Target& target = r_.targets[i];
      target_ = target.node;
      const WantedId value = want(target.node, index);
      stores.push_back({value, i, address_of(target.place, index)});
    }
  }
  return stores;
}

// Two nested loops may be one where nothing stands between them and every address advances as if
// they were one: contiguous arrays of any rank need one loop.
void Demands::merge_loops() {
  std::vector<Loop>& loops = group_.loops;
  if (loops.empty()) return;
  VarId inner = loops.back().var;  // the innermost one of those that merge
  std::int64_t length = extent(inner);
  bool are_lanes = group_.lanes;
  if (are_lanes) found_.lanes = length;
  for (std::size_t i = loops.size() - 1; i-- > 0;) {
    const VarId outer = loops[i].var;
    const auto is_one = [&](const Address& a) {
      return a.stride(outer) == length * a.stride(inner);
    };
    loops[i].merges = !occupied_[i + 1] && !loops[i + 1].carries &&
                      std::ranges::all_of(group_.addresses, is_one) &&
                      std::ranges::all_of(group_.stores, is_one, &Store::address);
    are_lanes &= loops[i].merges;
    if (!loops[i].merges) inner = outer;
    length = loops[i].merges ? length * extent(outer) : extent(outer);
    if (are_lanes) found_.lanes = length;
  }
}

// The outermost loop, or the longest one when that is short and nothing costly stands between.
void Demands::choose_parallel() {
  std::vector<Loop>& loops = group_.loops;
  const bool few = loops.size() == 1 && extent(loops[0].var) <= cost::kUnrolled;
  if (scatters()) return;  // of equal positions the last one counts
  const std::size_t free = std::ranges::find(loops, true, &Loop::carries) - loops.begin();
  if (parallel_reduction_ || free == 0 || few) return;
  std::size_t best = 0;
  for (std::size_t i = 0; i < free; ++i) {
    if (extent(loops[i].var) > extent(loops[best].var)) best = i;
    if (extent(loops[best].var) >= cost::kParallelExtent || costly_[i + 1]) break;
  }
  loops[best].parallel = true;
}

// ---- Variables and scopes ----

VarId Demands::new_var(std::int64_t extent) {
  group_.extents.push_back(extent);
  return static_cast<VarId>(group_.extents.size() - 1);
}

double Demands::repetitions(std::size_t depth, const Vars& vars) const {
  double times = 1;
  for (std::size_t i = 0; i <= depth; ++i)
    for (VarId var : scopes_[i].vars)
      if (!contains(vars, var))
        times *= static_cast<double>(std::max<std::int64_t>(1, extent(var)));
  return times;
}

bool Demands::is_over_targets(std::size_t depth) const {
  return depth == 0 ||
         (depth <= group_.loops.size() && scopes_[depth].vars[0] == group_.loops[depth - 1].var);
}

void Demands::stand(const Vars& vars, bool costly) {
  const std::size_t depth = scopes_.place(vars);
  if (!is_over_targets(depth)) return;
  occupied_[depth] = true;
  if (costly) costly_[depth] = true;
}

}  // namespace ufuse::codegen
