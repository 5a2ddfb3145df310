// A node's value at an index: elementwise nodes pass the index through, index maps rewrite it, what
// has memory is loaded. Reductions and block calls stand in folds.cpp and calls.cpp.
#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "codegen/loop/lowerer.h"
#include "codegen/schedule/cost.h"
#include "ir/build.h"
#include "ir/support/error.h"
#include "ir/support/strides.h"

namespace ufuse::codegen::loop {

using ir::Dims;
using ir::NodeId;
using ir::Op;

ValueId Lowerer::value(NodeId node, const Index& index) {
  const auto key = std::make_pair(node.value, index);
  for (const Memo& memo : memo_[key])
    if (nest_.alive(memo.scope_uid)) return memo.value;
  const ValueId result = make(node, index);
  const int uid = nest_.uid_at(nest_.place(nest_.vars(result)));
  memo_[key].push_back({result, uid});
  return result;
}

ValueId Lowerer::make(NodeId node, const Index& index) {
  if (std::optional<Place> place = view_of(g_, r_.places, node)) return load(*place, node, index);
  if (ValueId kept = from_row(node, index); kept >= 0) return kept;
  const ir::Node n = g_[node];  // a copy: the graph may grow below
  switch (n.op) {
    case Op::Input:
      throw InternalError("lower: input without a place");
    case Op::Const:
      return nest_.opaque(nest_.constant(n.dtype, n.constant));
    case Op::Param:
      return param(n);
    case Op::Broadcast:
      return value(n.inputs[0], below_broadcast(n, g_[n.inputs[0]].shape.size(), index));
    case Op::Transpose:
      return value(n.inputs[0], below_transpose(n, index));
    case Op::Slice:
      return sliced(n, index);
    case Op::Reshape:
      return reshaped(node, n, index);
    case Op::Ufunc:
      return call(node, n, index);
    case Op::Reduce:
    case Op::ArgReduce:
      return fold(node, n, index);
    default: {
      std::vector<ValueId> args = operands(n, index);
      keep_warnings(n, index, args);
      note(node, std::string(ir::op_info(n.op).name));
      return nest_.compute(n.op, n.dtype, std::move(args));
    }
  }
}

ValueId Lowerer::param(const ir::Node& n) {
  auto& params = nest_.kernel().params;
  const auto it = std::find(params.begin(), params.end(), n.id);
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = Op::Param;
  stmt.index = static_cast<int>(it - params.begin());
  if (it == params.end()) params.push_back(n.id);
  return nest_.define(std::move(stmt), n.dtype, {}, 0);
}

ValueId Lowerer::sliced(const ir::Node& n, const Index& index) {
  // NumPy computes the elements that are dropped too, and warns of them.
  if (element_count(n.shape) < element_count(g_[n.inputs[0]].shape) && may_warn(n.inputs[0]))
    return need(n.inputs[0], n.dtype, index);
  Index inner(index.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    inner[i] = index[i].scaled(n.ints[index.size() + i]);
    inner[i].base += n.ints[i];
  }
  return value(n.inputs[0], inner);
}

ValueId Lowerer::reshaped(NodeId node, const ir::Node& n, const Index& index) {
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
  if (affine) return value(n.inputs[0], inner);
  if (NodeId sunk = sink_reshape(g_, r_.places, n.inputs[0], n.shape); sunk && sunk != node)
    return value(sunk, index);
  return need(node, n.dtype, index);
}

ValueId Lowerer::load(const Place& place, NodeId node, const Index& index) {
  out_.conflict |= addresses_.is_conflict(place, index, domain_);
  const ir::DType dtype = g_[node].dtype;
  Stmt stmt;
  stmt.kind = Stmt::Kind::Load;
  stmt.access = addresses_.access(place, dtype, index, /*write=*/false);
  stmt.index = static_cast<int>(ir::has_one_stride(place.shape, place.strides));
  // Two nodes may be views of one element.
  std::vector<Memo>& memos = loads_[stmt.access];
  for (const Memo& memo : memos)
    if (nest_.alive(memo.scope_uid)) return memo.value;
  std::vector<VarId> where;
  for (const Term& term : stmt.access.terms) where.push_back(term.var);
  where.erase(std::unique(where.begin(), where.end()), where.end());
  const ValueId result = nest_.define(std::move(stmt), dtype, where, cost::kLoad);
  memos.push_back({result, nest_.uid_at(nest_.place(where))});
  return result;
}

ValueId Lowerer::need(NodeId node, ir::DType dtype, const Index& index) {
  out_.needs.push_back(node);
  return nest_.new_value(dtype, vars_of(index));
}

// Operands that hold reductions first: what these keep for a row is then there for the others.
std::vector<ValueId> Lowerer::operands(const ir::Node& n, const Index& index) {
  std::vector<std::size_t> order(n.inputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return fold_depth(n.inputs[a]) > fold_depth(n.inputs[b]);
  });
  std::vector<ValueId> values(n.inputs.size());
  for (std::size_t i : order) values[i] = value(n.inputs[i], index);
  return values;
}

bool Lowerer::may_warn(NodeId node) {
  if (r_.places.contains(node.value)) return false;
  if (const auto it = may_warn_.find(node.value); it != may_warn_.end()) return it->second;
  const ir::Node& n = g_[node];
  const bool warns = ir::may_raise(g_, n) ||
                     std::ranges::any_of(n.inputs, [&](NodeId in) { return may_warn(in); });
  return may_warn_[node.value] = warns;
}

// Whether a compiler may find out that a truth or integer is the same for all elements: `x < x`,
// `sqrt(x) < abs(y)`. Not so of what lies in memory, comes from a call or is handed in at run time;
// nor where two such values are compared, or anything with a number that is handed in.
bool Lowerer::may_be_constant(NodeId node, const Index& index) {
  const auto below_maps = [&](NodeId id) {
    while (!r_.places.contains(id.value) && is_index_map(g_[id].op)) id = g_[id].inputs[0];
    return id;
  };
  const auto is_param = [&](NodeId id) { return g_[below_maps(id)].op == Op::Param; };
  const auto is_given = [&](NodeId id) {
    id = below_maps(id);
    return r_.places.contains(id.value) || g_[id].op == Op::Param || g_[id].op == Op::Ufunc;
  };
  if (is_given(node)) return false;
  const ir::Node n = g_[node];
  if (!ir::is_elementwise_row(n.op) || ir::op_info(n.op).result != ir::ResultRule::Bool)
    return true;
  const NodeId x = n.inputs[0];
  if (n.op == Op::LogicalNot) return may_be_constant(x, index);
  if (n.inputs.size() == 1) return !is_given(x);
  const NodeId y = n.inputs[1];
  // `p & (x < x)` is known although p is not.
  const bool compares = n.op != Op::LogicalAnd && n.op != Op::LogicalOr && n.op != Op::LogicalXor;
  const bool are_given = (is_given(x) && is_given(y)) || (compares && (is_param(x) || is_param(y)));
  return !are_given || value(x, index) == value(y, index);
}

// An operand that decides alone (`where(False, x, y)`, `False & x`, `0 * x`) stays unknown to the
// compiler, where what it may make needless warns.
void Lowerer::keep_warnings(const ir::Node& n, const Index& index, std::vector<ValueId>& args) {
  const bool decides = n.op == Op::Where || n.op == Op::LogicalAnd || n.op == Op::LogicalOr ||
                       n.op == Op::BitAnd || n.op == Op::BitOr ||
                       (n.op == Op::Multiply && is_in(n.dtype, ir::kInteger));
  if (!decides) return;
  for (std::size_t i = 0; i < (n.op == Op::Where ? 1 : args.size()); ++i) {
    bool others_warn = false;
    for (std::size_t k = 0; k < args.size(); ++k) others_warn |= k != i && may_warn(n.inputs[k]);
    if (others_warn && may_be_constant(n.inputs[i], index)) args[i] = nest_.unknown(args[i]);
  }
}

int Lowerer::fold_depth(NodeId node) {
  if (auto it = fold_depth_.find(node.value); it != fold_depth_.end()) return it->second;
  int depth = 0;
  if (!r_.places.contains(node.value)) {
    for (NodeId in : g_[node].inputs) depth = std::max(depth, fold_depth(in));
    const Op op = g_[node].op;
    depth += op == Op::Reduce || op == Op::ArgReduce;
  }
  return fold_depth_[node.value] = depth;
}

void Lowerer::note(NodeId node, std::string op) {
  if (noted_.insert(node.value).second) nest_.kernel().ops.push_back(std::move(op));
}

}  // namespace ufuse::codegen::loop
