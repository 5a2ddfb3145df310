// Block calls: where does NumPy's own inner loop run in the nest? Beside the lanes it takes a block
// of them; along a run, the run is computed into a row of scratch first.
#include <algorithm>
#include <utility>

#include "codegen/loop/lowerer.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

using ir::NodeId;

// Whether an index over `wanted` (sorted) depends on one of `vars`.
template <class It>
bool any_wanted(It first, It last, const std::vector<VarId>& wanted) {
  return std::any_of(first, last,
                     [&](VarId v) { return std::binary_search(wanted.begin(), wanted.end(), v); });
}

}  // namespace

ValueId Lowerer::call(NodeId node, const ir::Node& n, const Index& index) {
  const std::vector<VarId> wanted = vars_of(index);
  const std::vector<Scope>& scopes = nest_.scopes();
  for (std::size_t i = scopes.size(); i-- > 0;)
    if (scopes[i].horizontal) {
      if (any_wanted(scopes[i].vars.begin(), scopes[i].vars.end(), wanted))
        return through_row(node, n, index, i);
      break;
    }
  if (nest_.repetitions(nest_.place(wanted), wanted) > 1 && element_count(n.shape) > kMaxUnroll)
    return need(node, n.dtype, index);
  std::vector<ValueId> args = operands(n, index);
  const std::vector<VarId> where = nest_.vars(args);
  const ir::LoopEntry& entry = r_.loops[n.id];
  auto& calls = nest_.kernel().calls;
  const auto it = std::find(calls.begin(), calls.end(), n.id);
  const int row = static_cast<int>(it - calls.begin());
  if (it == calls.end()) calls.push_back(n.id);
  // Another output of a call that is there already.
  Body& body = nest_.body(nest_.place(where));
  const auto same = std::find_if(body.rbegin(), body.rend(), [&](const Stmt& s) {
    return s.kind == Stmt::Kind::Call && s.index == row && s.args == args;
  });
  if (same != body.rend()) {
    ValueId& slot = same->results[n.slot];
    if (slot < 0) slot = nest_.new_value(n.dtype, where);
    return slot;
  }
  note(node, entry.ufunc);
  const ValueId result = nest_.new_value(n.dtype, where);
  Stmt stmt;
  stmt.kind = Stmt::Kind::Call;
  stmt.index = row;
  stmt.args = std::move(args);
  stmt.results.assign(entry.outputs.size(), -1);
  stmt.results[n.slot] = result;
  nest_.emit(std::move(stmt), where, cost::kCall);
  return result;
}

// A block call wanted inside the run of scope `depth`: the run is computed into a row of scratch
// first, in lanes.
ValueId Lowerer::through_row(NodeId node, const ir::Node& n, const Index& index,
                             std::size_t depth) {
  const Scope& scope = nest_.scopes()[depth];
  const VarId run = scope.vars.back();
  const std::vector<VarId> wanted = vars_of(index);
  const bool needs_outer = any_wanted(scope.vars.begin(), scope.vars.end() - 1, wanted);
  if (needs_outer || scope.parallel || nest_.extent(run) > cost::kMaxRow || depth != nest_.depth())
    return need(node, n.dtype, index);
  const auto outer = nest_.scopes().begin();
  const bool in_lanes = std::any_of(outer, outer + static_cast<std::ptrdiff_t>(depth),
                                    [](const Scope& s) { return s.lanes; });
  if (in_lanes) {
    out_.want_scalar = true;
    return nest_.new_value(n.dtype, wanted);
  }
  fill_row(node, index, run, depth);
  return from_row(node, index);
}

// A loop before the run of scope `depth`, which stores the node's value for all of the run.
void Lowerer::fill_row(NodeId node, const Index& index, VarId run, std::size_t depth) {
  Row row;
  row.node = node;
  row.var = nest_.new_var(nest_.extent(run));
  nest_.var(row.var).extent = nest_.var(run).extent;
  for (const Affine& axis : index) row.index.push_back(axis.replaced(run, row.var));
  Buffer scratch;
  scratch.role = Buffer::Role::Row;
  scratch.index = static_cast<int>(rows_.size());
  scratch.dtype = g_[node].dtype;
  scratch.written = true;
  scratch.length = nest_.var(run).extent;
  auto& buffers = nest_.kernel().buffers;
  buffers.push_back(scratch);
  row.buffer = static_cast<int>(buffers.size() - 1);
  row.scope_uid = nest_.within(depth - 1, [&] {
    Stmt loop;
    loop.kind = Stmt::Kind::Loop;
    loop.vars = {row.var};
    loop.lanes = true;
    nest_.push({row.var}, loop.body).lanes = true;
    Stmt store;
    store.kind = Stmt::Kind::Store;
    store.args = {value(node, row.index)};
    store.access.buffer = row.buffer;
    store.access.terms = {{row.var, Number{1, -1}}};
    loop.body.push_back(std::move(store));
    nest_.pop();
    nest_.body(nest_.depth()).push_back(std::move(loop));
    return nest_.innermost().uid;
  });
  rows_.push_back(row);
}

// A value that a row of scratch holds, if one does.
ValueId Lowerer::from_row(NodeId node, const Index& index) {
  for (const Row& row : rows_) {
    if (row.node != node || !nest_.alive(row.scope_uid)) continue;
    for (VarId var : vars_of(index)) {
      if (nest_.extent(var) != nest_.extent(row.var)) continue;
      Index same;
      for (const Affine& axis : row.index) same.push_back(axis.replaced(row.var, var));
      if (same != index) continue;
      Stmt stmt;
      stmt.kind = Stmt::Kind::Load;
      stmt.access.buffer = row.buffer;
      stmt.access.terms = {{var, Number{1, -1}}};
      // Depends on all of the index: the row is another one for each of the outer variables.
      return nest_.define(std::move(stmt), g_[node].dtype, vars_of(index), cost::kLoad);
    }
  }
  return -1;
}

}  // namespace ufuse::codegen::loop
