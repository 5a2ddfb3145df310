// A node at an index: elementwise nodes pass the index through, index maps rewrite it, what has
// memory is read from there. Block calls and reductions stand in calls.cpp and reductions.cpp.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "codegen/schedule/demands.h"
#include "codegen/schedule/reach.h"
#include "ir/support/error.h"
#include "ir/support/strides.h"

namespace ufuse::codegen {

using ir::Dims;
using ir::NodeId;
using ir::NodeKind;
using ir::Op;
using Home = Wanted::Home;

WantedId Demands::want(NodeId node, const Index& index) {
  const auto key = std::make_pair(node.value, index);
  const auto known = known_.find(key);
  const auto is_stale = [&](WantedId id) {
    return exact_ && uses_squares_[static_cast<std::size_t>(id)];
  };
  if (known != known_.end() && !is_stale(known->second)) return known->second;
  const WantedId made = make(node, index);
  known_.insert_or_assign(key, made);
  return made;
}

WantedId Demands::make(NodeId node, const Index& index) {
  if (std::optional<Place> place = view_of(g_, r_.places, node))
    return in_memory(*place, node, index);
  if (const WantedId kept = from_row(node, index); kept >= 0) return kept;
  const ir::Node n = g_[node];  // a copy: the graph may grow below
  switch (ir::kind_of(n.op)) {
    case NodeKind::Input:
      throw InternalError("schedule: input without a place");
    case NodeKind::Const:
    case NodeKind::Param:
      return add({.node = node});
    case NodeKind::Broadcast:
      return want(n.inputs[0], below_broadcast(n, g_[n.inputs[0]].shape.size(), index));
    case NodeKind::Transpose:
      return want(n.inputs[0], below_transpose(n, index));
    case NodeKind::Slice:
      return sliced(n, index);
    case NodeKind::Reshape:
      return reshaped(node, n, index);
    case NodeKind::Ufunc:
      return call(node, n, index);
    case NodeKind::Reduce:
    case NodeKind::ArgReduce:
      return reduction(node, n, index);
    case NodeKind::Cast:
    case NodeKind::Elementwise:
      return elementwise(node, n, index);
    case NodeKind::Iota:
      return position(node, index);
    case NodeKind::Gather:
      return gather(node, n, index);
    case NodeKind::Scan:
      return scan(node, n, index);
    case NodeKind::Nonzero:
    case NodeKind::Scatter:
      return need(node, index);
  }
  throw InternalError("schedule: no such kind of node");
}

WantedId Demands::add(Wanted wanted, bool costly) {
  const auto uses_squares = [&](WantedId id) {
    return id >= 0 && uses_squares_[static_cast<std::size_t>(id)];
  };
  const bool from_squares = wanted.home == Home::Unrolled &&
                            group_.reductions[static_cast<std::size_t>(wanted.detail)].from_squares;
  uses_squares_.push_back(from_squares || uses_squares(wanted.initial) ||
                          std::ranges::any_of(wanted.operands, uses_squares));
  stand(wanted.vars, costly);
  group_.values.push_back(std::move(wanted));
  return static_cast<WantedId>(group_.values.size() - 1);
}

WantedId Demands::elementwise(NodeId node, const ir::Node& n, const Index& index) {
  Wanted wanted{.node = node};
  want_operands(wanted, n, index);
  wanted.hidden = hidden_operands(n, wanted.operands);
  return add(std::move(wanted));
}

// Operands that hold reductions first: what these keep for a row is then there for the others.
void Demands::want_operands(Wanted& wanted, const ir::Node& n, const Index& index) {
  std::vector<std::uint8_t> order(n.inputs.size());
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  const auto depth = [&](std::uint8_t i) { return reduction_depth(n.inputs[i]); };
  if (!std::ranges::is_sorted(order, std::greater{}, depth)) {
    std::ranges::stable_sort(order, std::greater{}, depth);
    wanted.order = order;
  }
  wanted.operands.resize(n.inputs.size());
  for (std::size_t i : order) {
    wanted.operands[i] = want(n.inputs[i], index);
    join(wanted.vars, at(wanted.operands[i]).vars);
  }
}

int Demands::reduction_depth(NodeId node) {
  if (const auto it = reduction_depth_.find(node.value); it != reduction_depth_.end())
    return it->second;
  int depth = 0;
  if (!r_.places.contains(node.value)) {
    for (NodeId in : g_[node].inputs) depth = std::max(depth, reduction_depth(in));
    depth += reach_of(g_[node].op) == Reach::Many;
  }
  return reduction_depth_[node.value] = depth;
}

// ---- Index maps ----

WantedId Demands::sliced(const ir::Node& n, const Index& index) {
  // NumPy computes the elements that are dropped too, and warns of them.
  if (element_count(n.shape) < element_count(g_[n.inputs[0]].shape) && may_warn(n.inputs[0]))
    return need(n.inputs[0], index);
  Index inner(index.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    inner[i] = index[i].scaled(n.ints[index.size() + i]);
    inner[i].base += n.ints[i];
  }
  return want(n.inputs[0], inner);
}

WantedId Demands::reshaped(NodeId node, const ir::Node& n, const Index& index) {
  const Dims from = g_[n.inputs[0]].shape;
  // Only splits (and axes of size 1) have an affine index: one source axis, its parts in C order.
  Index inner(from.size());
  std::size_t k = 0;
  bool affine = true;
  for (std::size_t i = 0; i < from.size() && affine; ++i) {
    if (from[i] == 1) continue;
    std::int64_t n_parts = 1;
    Affine sum;
    while (n_parts < from[i] && k < n.shape.size()) {
      sum = sum.scaled(n.shape[k]).plus(index[k]);
      n_parts *= n.shape[k++];
    }
    affine = n_parts == from[i];
    inner[i] = sum;
  }
  if (affine) return want(n.inputs[0], inner);
  if (NodeId sunk = sink_reshape(g_, r_.places, n.inputs[0], n.shape); sunk && sunk != node)
    return want(sunk, index);
  return need(node, index);
}

// ---- Memory ----

WantedId Demands::in_memory(const Place& place, NodeId node, const Index& index) {
  found_.proposal.conflict |= is_conflict(place, index);
  Address address = address_of(place, index);
  const auto [known, is_new] = loads_.emplace(address, -1);
  if (!is_new) return known->second;
  Wanted wanted{.home = Home::Memory, .node = node};
  for (const Address::Term& term : address.terms) join(wanted.vars, {term.var});
  wanted.detail = static_cast<int>(group_.addresses.size());
  wanted.has_one_stride = ir::has_one_stride(place.shape, place.strides);
  group_.addresses.push_back(std::move(address));
  return known->second = add(std::move(wanted));
}

// An input that is overwritten in place is read where it is written, so that the compiler sees the
// overlap.
Address Demands::address_of(const Place& place, const Index& index) const {
  Address address{place.role, place.index, place.offset, {}, {}};
  if (place.role == loop::Buffer::Role::Input)
    if (const auto it = r_.overwritten.find(place.index); it != r_.overwritten.end()) {
      address.role = r_.targets[it->second].place.role;
      address.index = r_.targets[it->second].place.index;
    }
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::int64_t step = place.strides[i];
    address.offset += index[i].base * step;
    if (step == 0) continue;
    for (const Affine::Term& term : index[i].terms)
      address.terms.push_back({term.var, step * term.factor});
    if (index[i].fixed != 0) address.fixed.push_back({index[i].fixed, step});
  }
  std::ranges::sort(address.terms, {}, &Address::Term::var);
  return address;
}

// Whether reading `place` at `index` would find an overwritten input already written, or may do so:
// it does not where each element is read just where it is written.
bool Demands::is_conflict(const Place& place, const Index& index) const {
  if (place.role != loop::Buffer::Role::Input) return false;
  const auto it = r_.overwritten.find(place.index);
  if (it == r_.overwritten.end()) return false;
  const Place& written = r_.targets[it->second].place;
  if (place.shape != written.shape || place.strides != written.strides || place.offset != 0)
    return true;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (place.shape[i] == 1) continue;
    const Affine& a = index[i];
    if (a.base != 0) return true;
    if (a.terms.empty()) continue;  // an unrolled axis; the stores stand behind all loads
    if (a.fixed != 0 || a.terms.size() != 1 || a.terms[0].factor != 1) return true;
    if (std::ranges::find(group_.loops, a.terms[0].var, &Loop::var) == group_.loops.end())
      return true;
  }
  return false;
}

WantedId Demands::need(NodeId node, const Index& index) {
  found_.proposal.needs.push_back(node);
  return stand_in(node, index);
}

WantedId Demands::stand_in(NodeId node, const Index& index) {
  return add({.node = node, .vars = vars_of(index)});
}

// ---- What must stay hidden from the compiler ----

bool Demands::may_warn(NodeId node) {
  if (r_.places.contains(node.value)) return false;
  if (const auto it = may_warn_.find(node.value); it != may_warn_.end()) return it->second;
  const ir::Node& n = g_[node];
  const bool warns = ir::may_raise(g_, n) || ir::may_fail(n) ||
                     std::ranges::any_of(n.inputs, [&](NodeId in) { return may_warn(in); });
  return may_warn_[node.value] = warns;
}

// Not of the compiler's making: it lies in memory, comes from a call or is handed in at run time.
bool Demands::is_given(const Wanted& w) const {
  return w.home == Home::Memory || w.home == Home::Chosen || w.home == Home::Call ||
         w.home == Home::Row || w.home == Home::Carried || g_[w.node].op == Op::Param;
}

// The node whose memory is read.
NodeId Demands::read_by(const Wanted& w) const {
  NodeId node = w.node;
  while (ir::is_index_map(g_[node].op)) node = g_[node].inputs[0];
  return node;
}

// Whether the compiler cannot know how a value compares with one that is given: a floating-point
// number that is not made of that. (Of integers it knows that none is below the least.)
bool Demands::is_apart_from(WantedId value, WantedId given) const {
  if (!is_given(at(given)) || !is_in(g_[at(value).node].dtype, ir::kFloat)) return false;
  const NodeId read = read_by(at(given));
  return !any_below(value, [&](const Wanted& w) {
    if (!is_given(w)) return Look::Deeper;
    return read_by(w) == read ? Look::Found : Look::NoDeeper;
  });
}

// Whether a compiler may find out that a truth or integer is the same for all elements: `x < x`,
// `sqrt(x) < abs(y)`. Not so of what is given; nor where two such values are compared, or one with
// a value that is not made of it, or anything with a number that is handed in.
bool Demands::may_be_constant(WantedId id) const {
  const Wanted& w = at(id);
  if (is_given(w)) return false;
  const ir::Node& n = g_[w.node];
  if (w.home != Home::Inline || !ir::is_elementwise_row(n.op) ||
      ir::op_info(n.op).result != ir::ResultRule::Bool)
    return true;
  const Wanted& x = at(w.operands[0]);
  if (n.op == Op::LogicalNot) return may_be_constant(w.operands[0]);
  if (w.operands.size() == 1) return !is_given(x);
  const Wanted& y = at(w.operands[1]);
  const auto is_param = [&](const Wanted& operand) { return g_[operand.node].op == Op::Param; };
  // `p & (x < x)` is known although p is not.
  const bool compares = n.op != Op::LogicalAnd && n.op != Op::LogicalOr && n.op != Op::LogicalXor;
  const bool are_given = (is_given(x) && is_given(y)) || (compares && (is_param(x) || is_param(y)));
  const bool are_apart = compares && (is_apart_from(w.operands[0], w.operands[1]) ||
                                      is_apart_from(w.operands[1], w.operands[0]));
  return !(are_given || are_apart) || w.operands[0] == w.operands[1];
}

// The values of np.where that may raise a flag. The compiler would compute them only for the
// elements for which they are chosen (g++ 14 has such instructions). Where a maximum is chosen by
// the values themselves, it needs all of them.
std::uint32_t Demands::values_to_choose_from(const ir::Node& n,
                                             const std::vector<WantedId>& operands) {
  std::uint32_t values = 0;
  if (n.op != Op::Where || !is_in(n.dtype, ir::kInexact)) return values;
  for (std::size_t i = 1; i < operands.size(); ++i)
    if (at(operands[i]).home == Home::Inline && ir::may_raise(g_, g_[at(operands[i]).node]))
      values |= 1U << i;
  return values;
}

// Whether one of the values of np.where depends on an inner np.where that chooses among values that
// may raise a flag. Were the compiler to see that both have the same condition (g++ 14 does), it
// would leave out the value that is chosen within and never outside.
bool Demands::chooses_below(const std::vector<WantedId>& operands) const {
  return std::any_of(operands.begin() + 1, operands.end(), [&](WantedId operand) {
    return any_below(operand, [&](const Wanted& w) {
      if (w.home != Home::Inline) return Look::NoDeeper;
      const bool chooses = g_[w.node].op == Op::Where && (w.hidden & ~1U) != 0;
      return chooses ? Look::Found : Look::Deeper;
    });
  });
}

// An operand that decides alone (`where(False, x, y)`, `False & x`, `0 * x`) stays unknown to the
// compiler, where what it may make needless warns.
std::uint32_t Demands::hidden_operands(const ir::Node& n, const std::vector<WantedId>& operands) {
  const bool decides = n.op == Op::Where || n.op == Op::LogicalAnd || n.op == Op::LogicalOr ||
                       n.op == Op::BitAnd || n.op == Op::BitOr ||
                       (n.op == Op::Multiply && is_in(n.dtype, ir::kInteger));
  std::uint32_t hidden = values_to_choose_from(n, operands);
  if (!decides) return hidden;
  if (n.op == Op::Where && chooses_below(operands)) hidden |= 1U;
  for (std::size_t i = 0; i < (n.op == Op::Where ? 1 : operands.size()); ++i) {
    bool others_warn = false;
    for (std::size_t k = 0; k < operands.size(); ++k)
      others_warn |= k != i && may_warn(n.inputs[k]);
    if (others_warn && may_be_constant(operands[i])) hidden |= 1U << i;
  }
  return hidden;
}

}  // namespace ufuse::codegen
