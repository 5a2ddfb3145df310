// Reductions: written out, as loops beside the lanes, along the run, or shared out over the
// threads? The order in which elements are combined is given by the node; what is chosen here
// changes speed only.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "codegen/loop/lowerer.h"
#include "codegen/loop/unrolled.h"
#include "codegen/schedule/cost.h"
#include "ir/build.h"

namespace ufuse::codegen::loop {
namespace {

using ir::Dims;
using ir::NodeId;
using ir::Op;

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

// How far a step along each of two variables goes in memory, summed over the leaves: once for each
// way in which a leaf is reached.
struct Steps {
  double along_run = 0, along_lane = 0;
};
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
      return in_memory(*place, index);
    const ir::Node& n = g_[node];
    if (n.op == Op::Broadcast)
      return of(n.inputs[0], below_broadcast(n, g_[n.inputs[0]].shape.size(), index));
    if (n.op == Op::Transpose) return of(n.inputs[0], below_transpose(n, index));
    Steps sum;
    if (n.op == Op::Reshape || n.op == Op::Reduce || n.op == Op::ArgReduce) return sum;
    for (NodeId in : n.inputs) {
      const Steps steps = of(in, index);
      sum.along_run += steps.along_run;
      sum.along_lane += steps.along_lane;
    }
    return sum;
  }

  Steps in_memory(const Place& place, const Index& index) const {
    Steps steps;
    for (std::size_t i = 0; i < index.size(); ++i)
      for (const auto& [var, factor] : index[i].terms) {
        const double step =
            std::min(64.0, std::abs(static_cast<double>(place.strides[i] * factor)));
        if (var == run_) steps.along_run += step;
        if (var == lane_) steps.along_lane += step;
      }
    return steps;
  }

  const ir::Graph& g_;
  const Places& places_;
  const VarId run_, lane_;
  std::map<std::pair<std::uint32_t, Index>, Steps> known_;
};

// Whether computing the elements may raise a flag, which NumPy would report of all of them.
bool raises(const Kernel& kernel, const Body& body) {
  return std::ranges::any_of(body, [&](const Stmt& s) {
    switch (s.kind) {
      case Stmt::Kind::Load:
        return false;
      case Stmt::Kind::Compute: {
        const auto dtype = [&](ValueId v) {
          return kernel.values[static_cast<std::size_t>(v)].dtype;
        };
        return s.helper == Stmt::Helper::None && !s.args.empty() &&
               ir::may_raise(s.op, dtype(s.args.back()), dtype(s.result));
      }
      default:
        return true;
    }
  });
}

// Whether elements are made of one or two bytes: g++ 12 does not gather them into one vector.
bool is_narrow(const Kernel& kernel, const Body& body) {
  return std::ranges::any_of(body, [&](const Stmt& s) {
    return s.result >= 0 &&
           ir::size_of(kernel.values[static_cast<std::size_t>(s.result)].dtype) <= 2;
  });
}

}  // namespace

ValueId Lowerer::fold(NodeId node, const ir::Node& n, const Index& index) {
  const std::vector<VarId> wanted = vars_of(index);
  const std::size_t depth = nest_.place(wanted);
  const Dims shape = g_[n.inputs[0]].shape;
  std::int64_t total = 1;
  for (std::int64_t axis : n.ints) total *= shape[static_cast<std::size_t>(axis)];
  const bool is_arg = n.op == Op::ArgReduce;
  const bool small = total <= kMaxUnroll && unrolled_ * total <= cost::kUnrollBudget;
  if (!small && nest_.repetitions(depth, wanted) > 1) return need(node, n.dtype, index);
  const bool alone = nest_.executions(depth) <= cost::kFewRuns;
  const bool parallel =
      alone && total >= cost::kParallelRun && (is_arg || n.order != ir::Order::Sequential);
  if (parallel && node != target_) return need(node, n.dtype, index);
  const ValueId result = nest_.within(depth, [&] {
    if (small) return unroll(n, index, shape);
    const bool horizontal = parallel || runs_horizontally(n, index);
    Stmt::Form form = Stmt::Form::Lanes;
    if (horizontal) form = parallel ? Stmt::Form::Parallel : Stmt::Form::Horizontal;
    if (!horizontal || n.order != ir::Order::Pairwise || (!parallel && total <= cost::kMaxRow))
      return loop_fold(n, index, shape, form, false);
    // Too long for a row of scratch: block calls run on a block of the elements at a time.
    const CallsBelow calls = calls_below(n.inputs[0]);
    if (calls.shared) return need(calls.shared, n.dtype, index);
    const auto& scopes = nest_.scopes();
    if (calls.any && std::ranges::any_of(scopes, [](const Scope& s) { return s.lanes; })) {
      out_.want_scalar = true;
      return nest_.new_value(n.dtype, wanted);
    }
    return loop_fold(n, index, shape, form, calls.any);
  });
  note(node, is_arg ? (n.id == 0 ? "argmin" : "argmax")
                    : std::string(ir::reduction_info(n.reduction).name) + ".reduce");
  return result;
}

// Along the run, or beside the lanes? Where the order does not say, the shorter stride does.
bool Lowerer::runs_horizontally(const ir::Node& n, const Index& index) const {
  if (n.op == Op::Reduce && n.order == ir::Order::Sequential) return false;
  if (n.op == Op::Reduce && n.order != ir::Order::Free) return true;
  const Scope* lane = nullptr;
  for (const Scope& scope : nest_.scopes())
    if (scope.lanes) lane = &scope;
  if (lane == nullptr) return true;
  // Strides of the leaves along the lane and along the innermost reduced axis.
  const VarId probe = static_cast<VarId>(nest_.kernel().vars.size());
  const Index inner = operand_index(n, g_[n.inputs[0]].shape.size(), index, [&](std::size_t i) {
    return i + 1 == n.ints.size() ? Affine::of(probe) : Affine{};
  });
  const Steps steps = StepCounter(g_, r_.places, probe, lane->vars[0]).of(n.inputs[0], inner);
  return steps.along_run <= steps.along_lane;
}

ValueId Lowerer::initial_value(const ir::Node& n) {
  if (n.inputs.size() > 1) return value(n.inputs[1], {});
  if (ir::reduction_info(n.reduction).identity == ir::Identity::None) return -1;
  return nest_.constant(n.dtype, ir::identity_bits(n.reduction, n.dtype));
}

// ---- A few elements: written out ----

// Whether positions of extreme square roots may be found by the squares, in a block of lanes.
bool Lowerer::can_defer(const ir::Node& n) const {
  return defer_ && n.op == Op::ArgReduce && g_[n.inputs[0]].op == Op::Sqrt &&
         nest_.innermost().lanes && !r_.places.contains(n.inputs[0].value);
}

ValueId Lowerer::unroll(const ir::Node& n, const Index& index, const Dims& shape) {
  Dims extents;
  std::int64_t total = 1;
  for (std::int64_t axis : n.ints) {
    extents.push_back(shape[static_cast<std::size_t>(axis)]);
    total *= extents.back();
  }
  const std::int64_t times = std::max<std::int64_t>(1, total);
  unrolled_ *= times;
  const bool roots = total > 1 && can_defer(n);
  const NodeId operand = roots ? g_[n.inputs[0]].inputs[0] : n.inputs[0];
  std::vector<ValueId> elements;
  for (std::int64_t e = 0; e < total; ++e) {
    const Dims at = unravel(e, extents);
    elements.push_back(value(operand, operand_index(n, shape.size(), index, [&](std::size_t i) {
                               return Affine::at(at[i]);
                             })));
  }
  unrolled_ /= times;
  deferred_ |= roots;
  if (roots) return unrolled_arg_of_roots(nest_, elements, n.id == 1);
  if (n.op == Op::ArgReduce) return unrolled_arg(nest_, elements, n.id == 1);
  // A sum that cannot be -0.0 needs no +0.0 to begin with.
  const bool bare = n.order == ir::Order::Pairwise && n.inputs.size() == 1 && total > 0 &&
                    is_never_minus_zero(g_, operand);
  return unrolled_reduce(nest_, n, elements, extents, bare ? -1 : initial_value(n));
}

// ---- Many elements: loops ----

// Whether the value is made of block calls, and a part that is and that others use too, if there is
// one: that had better be kept in memory.
Lowerer::CallsBelow Lowerer::calls_below(NodeId node) const {
  const auto uses_below = [&](const std::vector<NodeId>& roots) {
    std::map<std::uint32_t, int> uses;
    std::vector<NodeId> open;
    const auto use = [&](NodeId used) {
      if (!r_.places.contains(used.value) && uses[used.value]++ == 0) open.push_back(used);
    };
    std::ranges::for_each(roots, use);
    while (!open.empty()) {
      const NodeId at = open.back();
      open.pop_back();
      std::ranges::for_each(g_[at].inputs, use);
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

ValueId Lowerer::loop_fold(ir::Node n, const Index& index, Dims shape, Stmt::Form form,
                           bool calls) {
  const bool horizontal = form != Stmt::Form::Lanes, parallel = form == Stmt::Form::Parallel;
  if (horizontal && !merge_run(n, shape)) return nest_.new_value(n.dtype, vars_of(index));
  Stmt fold;
  fold.kind = Stmt::Kind::Fold;
  fold.form = form;
  fold.order = n.order;
  fold.chunk = n.chunk;
  fold.reduction = n.reduction;
  if (n.op == Op::ArgReduce)
    fold.arg = static_cast<int>(n.id);
  else
    fold.initial = initial_value(n);
  for (std::int64_t axis : n.ints)
    fold.vars.push_back(nest_.new_var(shape[static_cast<std::size_t>(axis)]));
  Scope& scope = nest_.push(fold.vars, fold.body);
  scope.horizontal = horizontal && !calls;
  scope.lanes = calls;
  scope.parallel = parallel;
  parallel_fold_ |= parallel;
  const Index inner = operand_index(n, g_[n.inputs[0]].shape.size(), index,
                                    [&](std::size_t i) { return Affine::of(fold.vars[i]); });
  fold.element = value(n.inputs[0], inner);
  if (fold.arg >= 0 && !horizontal) fold.element = arg_key(nest_, fold.element, fold.arg == 1);
  nest_.add_cost(cost::kLoad * nest_.executions(nest_.depth()));
  const bool of_truths = n.op == Op::Reduce &&
                         (n.reduction == ir::Reduction::Any || n.reduction == ir::Reduction::All);
  fold.stops = horizontal && of_truths && !raises(nest_.kernel(), fold.body);
  nest_.pop();
  fold.calls = calls;
  fold.blocks = calls || (horizontal && n.order == ir::Order::Pairwise &&
                          is_narrow(nest_.kernel(), fold.body));
  const ValueId result = nest_.new_value(n.dtype, vars_of(index));
  fold.result = result;
  nest_.body(nest_.place(nest_.vars(result))).push_back(std::move(fold));
  return result;
}

// Makes the run one axis. False: the operand has to be put into memory where it is one.
bool Lowerer::merge_run(ir::Node& n, Dims& shape) {
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
    out_.needs.push_back(whole);
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
NodeId Lowerer::sink_transpose(NodeId x, const Dims& order,
                               std::unordered_map<std::uint32_t, NodeId>& sunk) {
  if (const auto it = sunk.find(x.value); it != sunk.end()) return it->second;
  const ir::Node n = g_[x];
  const bool elementwise = n.op == Op::Cast || n.op == Op::Ufunc || ir::is_elementwise_row(n.op);
  if (r_.places.contains(x.value) || !elementwise) return ir::transpose(g_, x, order);
  ir::Node moved = n;
  for (std::size_t i = 0; i < order.size(); ++i)
    moved.shape[i] = n.shape[static_cast<std::size_t>(order[i])];
  for (NodeId& operand : moved.inputs) operand = sink_transpose(operand, order, sunk);
  return sunk[x.value] = g_.add(std::move(moved));
}

}  // namespace ufuse::codegen::loop
