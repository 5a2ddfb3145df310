// Elements whose places are values: what is read at positions, positions themselves, what is
// carried from one position to the next, and where a mask is true.
#include <algorithm>
#include <utility>

#include "codegen/schedule/cost.h"
#include "codegen/schedule/demands.h"
#include "ir/build.h"
#include "ir/support/error.h"

namespace ufuse::codegen {

using ir::NodeId;
using ir::Op;
using Home = Wanted::Home;

// The first operand stands in memory. Positions are looked at as often as they are used, so an
// element that is wanted again and again is kept.
WantedId Demands::gather(NodeId node, const ir::Node& n, const Index& index) {
  const NodeId from = n.inputs[0];
  const std::optional<Place> place = view_of(g_, r_.places, from);
  if (!place) return need(from, index);
  const Vars wanted = vars_of(index);
  if (repetitions(scopes_.place(wanted), wanted) > 1 && element_count(n.shape) > cost::kUnrolled)
    return need(node, index);
  found_.proposal.conflict |=
      place->role == loop::Buffer::Role::Input && r_.overwritten.contains(place->index);

  const std::size_t before = g_[n.inputs[1]].shape.size();  // axes of the positions
  const Index at_positions(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(before));
  Wanted element{.home = Home::Chosen, .node = node};
  for (std::size_t k = 0; k < n.ints.size(); ++k) {
    const auto axis = static_cast<std::size_t>(n.ints[k]);
    if (place->shape[axis] == 0)
      throw Unsupported(Reason::NoBackend, "positions along no elements");
    element.operands.push_back(want(n.inputs[k + 1], at_positions));
    join(element.vars, at(element.operands.back()).vars);
    element.steps.push_back(place->strides[axis]);
  }
  Index rest(place->shape.size());
  for (std::size_t axis = 0, k = before; axis < rest.size(); ++axis)
    if (std::ranges::find(n.ints, static_cast<std::int64_t>(axis)) == n.ints.end())
      rest[axis] = index[k++];
  Address address = address_of(*place, rest);
  for (const Address::Term& term : address.terms) join(element.vars, {term.var});
  element.detail = static_cast<int>(group_.addresses.size());
  group_.addresses.push_back(std::move(address));
  return add(std::move(element));
}

// As an address in an array of all positions it advances like one, where loops are to merge.
WantedId Demands::position(NodeId node, const Index& index) {
  Place all;
  all.shape = g_[node].shape;
  all.strides = {1};
  all.role = loop::Buffer::Role::Temp;
  Address address = address_of(all, index);
  Wanted number{.home = Home::Position, .node = node, .vars = vars_of(index)};
  number.detail = static_cast<int>(group_.addresses.size());
  group_.addresses.push_back(std::move(address));
  return add(std::move(number));
}

// In the innermost loop over the targets, where that runs along the axis and once for each line;
// else in memory, by a group of its own.
WantedId Demands::scan(NodeId node, const ir::Node& n, const Index& index) {
  const auto axis = static_cast<std::size_t>(n.ints[0]);
  if (n.shape[axis] == 1) return want(n.inputs[0], index);
  std::vector<Loop>& loops = group_.loops;
  const Vars wanted = vars_of(index);
  const bool fits = !loops.empty() && scopes_.depth() == loops.size() &&
                    index[axis] == Affine::of(loops.back().var) &&
                    repetitions(scopes_.depth(), wanted) <= 1;
  if (!fits) return need(node, index);
  const VarId var = loops.back().var;
  Wanted element{.home = Home::Carried, .node = node, .vars = wanted, .at = var};
  element.operands = {want(n.inputs[0], index)};
  loops.back().carries = true;
  return add(std::move(element), /*costly=*/true);
}

// ---- Scatters ----

// Whether the target is one that is not in memory yet: then the loops run over what is written, not
// over the target, in which the elements that stay are already.
bool Demands::scatters() const {
  const NodeId target = r_.targets[0].node;
  return r_.targets.size() == 1 && g_[target].op == Op::Scatter &&
         !r_.places.contains(target.value);
}

// What the loops run over, in C order.
Place Demands::scattered() const {
  const ir::Node& n = g_[r_.targets[0].node];
  Place place;
  place.shape = g_[n.inputs[1]].shape;
  const ir::Dims& shape = n.shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (std::ranges::find(n.ints, static_cast<std::int64_t>(axis)) == n.ints.end())
      place.shape.push_back(shape[axis]);
  place.strides = contiguous_strides(place.shape);
  return place;
}

Store Demands::want_scattered(const Index& index) {
  const Target& target = r_.targets[0];
  const ir::Node n = g_[target.node];
  target_ = target.node;
  found_.proposal.conflict |= !r_.overwritten.empty();
  // One after the other, calls would take an element at a time.
  const NodeId values = ir::scattered_values(n);
  for (std::size_t k = 1; k < n.inputs.size(); ++k)
    if (calls_below(n.inputs[k]).any) need(n.inputs[k], index);
  const std::size_t before = g_[n.inputs[1]].shape.size();
  const Index at_positions(index.begin(), index.begin() + static_cast<std::ptrdiff_t>(before));
  Store store{.value = values ? want(values, index) : -1, .target = 0, .address = {}};
  for (std::size_t k = 0; k < n.ints.size(); ++k) {
    const auto axis = static_cast<std::size_t>(n.ints[k]);
    if (n.shape[axis] == 0) throw Unsupported(Reason::NoBackend, "positions along no elements");
    store.positions.push_back(want(n.inputs[k + 1], at_positions));
    store.steps.push_back(target.place.strides[axis]);
  }
  Index rest(n.shape.size());
  for (std::size_t axis = 0, k = before; axis < rest.size(); ++axis)
    if (std::ranges::find(n.ints, static_cast<std::int64_t>(axis)) == n.ints.end())
      rest[axis] = index[k++];
  store.address = address_of(target.place, rest);
  return store;
}

// ---- Lists of positions ----

// A list of a mask's true elements is no loop over the target: the mask stands in memory without
// gaps, and is read as a whole. False: the target is nothing of the kind.
bool Demands::lists_truths() {
  const Target& target = r_.targets[0];
  const ir::Node n = g_[target.node];
  if (n.op != Op::Nonzero || r_.targets.size() > 1 || r_.places.contains(target.node.value))
    return false;
  NodeId mask = n.inputs[0];
  const ir::Dims shape = g_[mask].shape, flat{element_count(shape)};
  std::optional<Place> place = view_of(g_, r_.places, mask);
  if (place && reshape_strides(place->shape, place->strides, flat) != contiguous_strides(flat)) {
    mask = ir::elementwise(g_, Op::LogicalOr, {mask, mask});  // the same truths, packed
    place = view_of(g_, r_.places, mask);
  }
  if (!place) {
    found_.proposal.needs.push_back(mask);
    return true;
  }
  found_.proposal.conflict = !r_.overwritten.empty();
  const ir::Dims& steps = target.place.strides;
  group_.listing = {.mask = address_of(*place, Index(shape.size())),
                    .written = address_of(target.place, Index(2)),
                    .extents = shape,
                    .row_step = steps[0],
                    .column_step = steps[1]};
  return true;
}

}  // namespace ufuse::codegen
