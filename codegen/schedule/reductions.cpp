// Reductions: written out, as loops beside the lanes, along the run, or shared out over the
// threads? The order in which elements are combined is given by the node; what is chosen here
// changes speed only.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "codegen/schedule/cost.h"
#include "codegen/schedule/demands.h"
#include "codegen/schedule/reach.h"
#include "ir/build.h"

namespace ufuse::codegen {
namespace {

using ir::Dims;
using ir::NodeId;
using ir::Op;
using Form = loop::Stmt::Form;
using Home = Wanted::Home;

// Index of the reduction's operand, of rank `rank`: kept axes from `index`, reduced ones from
// `reduced(position in n.ints)`.
template <class F>
Index operand_index(const ir::Node& n, std::size_t rank, const Index& index, F&& reduced) {
  Index inner(rank);
  std::size_t kept = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const auto it = std::find(n.ints.begin(), n.ints.end(), static_cast<std::int64_t>(axis));
    inner[axis] =
        it == n.ints.end() ? index[kept++] : reduced(static_cast<std::size_t>(it - n.ints.begin()));
  }
  return inner;
}

// The e-th of the elements with these extents, in C order.
Dims unravel(std::int64_t e, const Dims& extents) {
  Dims at(extents.size());
  for (std::size_t i = extents.size(); i-- > 0;) {
    at[i] = e % extents[i];
    e /= extents[i];
  }
  return at;
}

}  // namespace

// How far a step along each of two variables goes in memory, summed over the leaves: once for each
// way in which a leaf is reached.
struct Steps {
  double along_run = 0, along_lane = 0;  // elements
  double longest_run = 0;                // bytes, of one leaf
};

namespace {

class StepCounter {
 public:
  StepCounter(const ir::Graph& g, const Places& places, VarId run, VarId lane)
      : g_(g), places_(places), run_(run), lane_(lane) {}

  Steps of(NodeId node, const Index& index) {
    const auto key = std::make_pair(node.value, index);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    return known_[key] = count(node, index);
  }

 private:
  Steps count(NodeId node, const Index& index) {
    if (const std::optional<Place> place = view_of(g_, places_, node))
      return in_memory(*place, static_cast<double>(ir::size_of(g_[node].dtype)), index);
    const ir::Node& n = g_[node];
    if (n.op == Op::Broadcast)
      return of(n.inputs[0], below_broadcast(n, g_[n.inputs[0]].shape.size(), index));
    if (n.op == Op::Transpose) return of(n.inputs[0], below_transpose(n, index));
    Steps sum;
    const Reach reach = reach_of(n.op);
    if (n.op == Op::Reshape || reach == Reach::Chosen || reach == Reach::Many) return sum;
    for (NodeId in : n.inputs) {
      const Steps steps = of(in, index);
      sum.along_run += steps.along_run;
      sum.along_lane += steps.along_lane;
      sum.longest_run = std::max(sum.longest_run, steps.longest_run);
    }
    return sum;
  }

  Steps in_memory(const Place& place, double size, const Index& index) const {
    Steps steps;
    for (std::size_t i = 0; i < index.size(); ++i)
      for (const Affine::Term& term : index[i].terms) {
        const auto stride = static_cast<double>(place.strides[i] * term.factor);
        const double step = std::min(cost::kFarStep, std::abs(stride));
        if (term.var == run_) {
          steps.along_run += step;
          steps.longest_run = std::max(steps.longest_run, std::abs(stride) * size);
        }
        if (term.var == lane_) steps.along_lane += step;
      }
    return steps;
  }

  const ir::Graph& g_;
  const Places& places_;
  const VarId run_, lane_;
  std::unordered_map<std::pair<std::uint32_t, Index>, Steps, WantedHash> known_;
};

}  // namespace

WantedId Demands::reduction(NodeId node, const ir::Node& n, const Index& index) {
  const Vars wanted = vars_of(index);
  const std::size_t depth = scopes_.place(wanted);
  const Dims shape = g_[n.inputs[0]].shape;
  std::int64_t total = 1;
  for (std::int64_t axis : n.ints) total *= shape[static_cast<std::size_t>(axis)];
  const bool small = total <= cost::kUnrolled && unrolled_ * total <= cost::kUnrollBudget;
  if (!small && repetitions(depth, wanted) > 1) return need(node, index);
  const bool alone = executions(depth) <= cost::kFewRuns;
  const bool parallel =
      alone && total >= cost::kParallelRun &&
      (n.op == Op::ArgReduce || n.order != ir::Order::Sequential) &&
      !scopes_.within(depth, [&] { return runs_are_woven(n, index, executions(depth)); });
  if (parallel && node != target_) return need(node, index);
  return scopes_.within(depth, [&] {
    if (small) return unroll(node, n, index, shape);
    const bool horizontal = parallel || runs_horizontally(n, index);
    Form form = Form::Lanes;
    if (horizontal) form = parallel ? Form::Parallel : Form::Horizontal;
    if (!horizontal || n.order != ir::Order::Pairwise || (!parallel && total <= cost::kMaxRow))
      return loops(node, n, index, shape, form, false);
    // Too long for a row of scratch: block calls run on a block of the elements at a time.
    const CallsBelow calls = calls_below(n.inputs[0]);
    if (calls.shared) return need(calls.shared, index);
    if (calls.any && std::ranges::any_of(scopes_.all(), &Scope::lanes)) {
      found_.lanes_in_vain = true;
      return stand_in(node, index);
    }
    return loops(node, n, index, shape, form, calls.any);
  });
}

// Along the run, or beside the lanes? Where the order does not say, the shorter stride does.
bool Demands::runs_horizontally(const ir::Node& n, const Index& index) const {
  if (n.op == Op::Reduce && n.order == ir::Order::Sequential) return false;
  if (n.op == Op::Reduce && n.order != ir::Order::Free) return true;
  const std::optional<Steps> steps = steps_of(n, index);
  return !steps || steps->along_run <= steps->along_lane;
}

// Whether so many runs of any order lie beside each other that reading one reads much of the
// others.
bool Demands::runs_are_woven(const ir::Node& n, const Index& index, double runs) const {
  if (n.op != Op::Reduce || n.order != ir::Order::Free || runs < cost::kWovenRuns) return false;
  const std::optional<Steps> steps = steps_of(n, index);
  return steps && steps->along_run > steps->along_lane && steps->longest_run >= cost::kWovenStep;
}

// Along the lane and along the innermost reduced axis; none without lanes.
std::optional<Steps> Demands::steps_of(const ir::Node& n, const Index& index) const {
  const Scope* lane = nullptr;
  for (const Scope& scope : scopes_.all())
    if (scope.lanes) lane = &scope;
  if (lane == nullptr) return {};
  const VarId probe = static_cast<VarId>(group_.extents.size());
  const Index inner = operand_index(n, g_[n.inputs[0]].shape.size(), index, [&](std::size_t i) {
    return i + 1 == n.ints.size() ? Affine::of(probe) : Affine{};
  });
  return StepCounter(g_, r_.places, probe, lane->vars[0]).of(n.inputs[0], inner);
}

// ---- A few elements: written out ----

// Whether positions of extreme square roots may be found by the squares, in the lanes of the
// targets.
bool Demands::can_compare_squares(const ir::Node& n) const {
  return squares_ && n.op == Op::ArgReduce && g_[n.inputs[0]].op == Op::Sqrt &&
         scopes_.innermost().lanes && is_over_targets(scopes_.depth()) &&
         !r_.places.contains(n.inputs[0].value);
}

WantedId Demands::unroll(NodeId node, const ir::Node& n, const Index& index, const Dims& shape) {
  Reduction reduction;
  std::int64_t total = 1;
  for (std::int64_t axis : n.ints) {
    reduction.extents.push_back(shape[static_cast<std::size_t>(axis)]);
    total *= reduction.extents.back();
  }
  const std::int64_t times = std::max<std::int64_t>(1, total);
  unrolled_ *= times;
  reduction.from_squares = total > 1 && can_compare_squares(n);
  const NodeId operand = reduction.from_squares ? g_[n.inputs[0]].inputs[0] : n.inputs[0];
  Wanted wanted{.home = Home::Unrolled, .node = node};
  for (std::int64_t e = 0; e < total; ++e) {
    const Dims at_e = unravel(e, reduction.extents);
    wanted.operands.push_back(want(
        operand,
        operand_index(n, shape.size(), index, [&](std::size_t i) { return Affine::at(at_e[i]); })));
    join(wanted.vars, at(wanted.operands.back()).vars);
  }
  unrolled_ /= times;
  // A sum that cannot be -0.0 needs no +0.0 to begin with.
  reduction.starts_bare = n.order == ir::Order::Pairwise && n.inputs.size() == 1 && total > 0 &&
                          is_never_minus_zero(g_, operand);
  if (n.inputs.size() > 1) wanted.initial = want(n.inputs[1], {});
  if (n.op == Op::ArgReduce && total == 1) wanted.vars.clear();  // it is 0
  wanted.detail = static_cast<int>(group_.reductions.size());
  group_.reductions.push_back(std::move(reduction));
  return add(std::move(wanted));
}

// ---- Many elements: loops ----

// Whether the value is made of block calls, and a part that is and that others use too, if there is
// one: that had better be kept in memory.
Demands::CallsBelow Demands::calls_below(NodeId node) const {
  const auto uses_below = [&](const std::vector<NodeId>& roots) {
    std::map<std::uint32_t, int> uses;
    std::vector<NodeId> open;
    const auto use = [&](NodeId used) {
      if (!r_.places.contains(used.value) && uses[used.value]++ == 0) open.push_back(used);
    };
    std::ranges::for_each(roots, use);
    while (!open.empty()) {
      const NodeId next = open.back();
      open.pop_back();
      std::ranges::for_each(g_[next].inputs, use);
    }
    return uses;
  };
  const auto below = uses_below({node});
  std::set<std::uint32_t> made;  // of calls
  for (const auto& [id, count] : below) {
    const ir::Node& n = g_[NodeId{id}];
    if (n.op == Op::Ufunc ||
        std::ranges::any_of(n.inputs, [&](NodeId in) { return made.contains(in.value); }))
      made.insert(id);
  }
  CallsBelow calls{!made.empty(), {}};
  if (!calls.any) return calls;
  const auto everywhere = uses_below(g_.outputs);
  for (std::uint32_t id : made) {
    const auto all = everywhere.find(id);
    if (all != everywhere.end() && all->second > below.at(id)) return {true, NodeId{id}};
  }
  return calls;
}

WantedId Demands::loops(NodeId node, ir::Node n, const Index& index, Dims shape, Form form,
                        bool calls) {
  const bool horizontal = form != Form::Lanes, parallel = form == Form::Parallel;
  if (horizontal && !merge_run(n, shape)) return stand_in(node, index);
  Reduction reduction;
  reduction.form = form;
  Wanted wanted{.home = Home::Loops, .node = node, .vars = vars_of(index)};
  if (n.op == Op::Reduce && n.inputs.size() > 1) wanted.initial = want(n.inputs[1], {});
  Scope scope;
  for (std::int64_t axis : n.ints) {
    reduction.vars.push_back(new_var(shape[static_cast<std::size_t>(axis)]));
    scope.vars.push_back(reduction.vars.back());
  }
  const Vars run = scope.vars;
  scope.horizontal = horizontal && !calls;
  scope.lanes = calls;
  scope.parallel = parallel;
  parallel_reduction_ |= parallel;
  scopes_.push(std::move(scope));
  const Index inner = operand_index(n, g_[n.inputs[0]].shape.size(), index,
                                    [&](std::size_t i) { return Affine::of(reduction.vars[i]); });
  wanted.operands = {want(n.inputs[0], inner)};
  scopes_.pop();
  const WantedId element = wanted.operands[0];
  const bool of_truths = n.op == Op::Reduce &&
                         (n.reduction == ir::Reduction::Any || n.reduction == ir::Reduction::All);
  reduction.stops = horizontal && of_truths &&
                    !any_inside(element, run, [&](const Wanted& w) { return raises(w); });
  reduction.in_blocks =
      calls || (horizontal && n.order == ir::Order::Pairwise &&
                any_inside(element, run, [&](const Wanted& w) { return is_narrow(w); }));
  wanted.detail = static_cast<int>(group_.reductions.size());
  group_.reductions.push_back(std::move(reduction));
  return add(std::move(wanted), /*costly=*/true);
}

// Whether the predicate holds for a value that is made anew for each element of a run, except
// inside of reductions within.
template <class Predicate>
bool Demands::any_inside(WantedId element, const Vars& run, const Predicate& predicate) const {
  return any_below(element, [&](const Wanted& w) {
    if (std::ranges::none_of(w.vars, [&](VarId var) { return contains(run, var); }))
      return Look::NoDeeper;
    if (predicate(w)) return Look::Found;
    return w.home == Home::Loops ? Look::NoDeeper : Look::Deeper;
  });
}

// Whether computing the value may raise a flag, which NumPy would report of all elements.
bool Demands::raises(const Wanted& w) const {
  const ir::Node& n = g_[w.node];
  switch (w.home) {
    case Home::Memory:
    case Home::Position:
    case Home::Row:
      return false;
    case Home::Chosen:
      return ir::may_fail(n);
    case Home::Call:
    case Home::Loops:
    case Home::Carried:
      return true;
    case Home::Unrolled:
      return n.order == ir::Order::Extremum || ir::may_raise(g_, n);
    case Home::Inline:
      return ir::may_raise(g_, n);
  }
  return true;
}

// Whether it is made of one or two bytes: g++ 12 does not gather those into one vector.
bool Demands::is_narrow(const Wanted& w) const {
  const ir::Node& n = g_[w.node];
  const bool of_truths =
      w.home == Home::Unrolled && (n.op == Op::ArgReduce || n.order == ir::Order::Extremum);
  return of_truths || ir::size_of(n.dtype) <= 2;
}

// Makes the run one axis. False: the operand has to be put into memory where it is one.
bool Demands::merge_run(ir::Node& n, Dims& shape) {
  const bool pairwise = n.op == Op::Reduce && n.order == ir::Order::Pairwise;
  const std::size_t run = pairwise ? n.run_axes : n.ints.size();
  if (run <= 1) return true;
  const std::size_t rank = shape.size(), outer = n.ints.size() - run;
  Dims order;
  for (std::size_t axis = 0; axis < rank; ++axis)
    if (std::find(n.ints.begin(), n.ints.end(), static_cast<std::int64_t>(axis)) == n.ints.end())
      order.push_back(static_cast<std::int64_t>(axis));
  const std::size_t kept = order.size();
  order.insert(order.end(), n.ints.begin(), n.ints.end());
  Dims merged;
  for (std::size_t i = 0; i < kept + outer; ++i)
    merged.push_back(shape[static_cast<std::size_t>(order[i])]);
  std::int64_t length = 1;
  for (std::size_t i = kept + outer; i < rank; ++i)
    length *= shape[static_cast<std::size_t>(order[i])];
  merged.push_back(length);
  Dims identity(rank);
  std::iota(identity.begin(), identity.end(), std::int64_t{0});
  const bool turned = order != identity;
  const NodeId whole =
      ir::reshape(g_, turned ? ir::transpose(g_, n.inputs[0], order) : n.inputs[0], merged);
  NodeId x = whole;
  if (!view_of(g_, r_.places, whole)) {
    std::unordered_map<std::uint32_t, NodeId> sunk;
    x = turned ? sink_transpose(n.inputs[0], order, sunk) : n.inputs[0];
    x = sink_reshape(g_, r_.places, x, merged);
  }
  if (!x) {
    if (!pairwise) return true;  // any order will do: loops over the axes as they are
    found_.proposal.needs.push_back(whole);
    return false;
  }
  n.inputs[0] = x;
  n.ints.clear();
  for (std::size_t i = kept; i < merged.size(); ++i) n.ints.push_back(static_cast<std::int64_t>(i));
  n.run_axes = 1;
  shape = merged;
  return true;
}

// A transpose pushed down through elementwise nodes to where it is a view (or to what is no
// elementwise node). `sunk`: the nodes through which it has been.
NodeId Demands::sink_transpose(NodeId x, const Dims& order,
                               std::unordered_map<std::uint32_t, NodeId>& sunk) {
  if (const auto it = sunk.find(x.value); it != sunk.end()) return it->second;
  const ir::Node n = g_[x];
  if (r_.places.contains(x.value) || reach_of(n.op) != Reach::Same)
    return ir::transpose(g_, x, order);
  ir::Node moved = n;
  for (std::size_t i = 0; i < order.size(); ++i)
    moved.shape[i] = n.shape[static_cast<std::size_t>(order[i])];
  for (NodeId& operand : moved.inputs) operand = sink_transpose(operand, order, sunk);
  return sunk[x.value] = g_.add(std::move(moved));
}

}  // namespace ufuse::codegen
