// The loops over the targets and what is stored in them.
#include "codegen/loop/lower.h"

#include <utility>

#include "codegen/loop/lowerer.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {

Kernel lower(const Schedule& schedule, const Group& group, const ir::LoopTable& loops) {
  return Lowerer(schedule, group, loops).run();
}

Kernel Lowerer::run() {
  nest_.kernel().vars.resize(group_.extents.size());
  Body root;
  nest_.push({}, root);
  std::vector<Body> bodies(group_.loops.size());
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    open_var(group_.loops[i].var);
    nest_.push({group_.loops[i].var}, bodies[i]);
  }
  if (group_.listing) root.push_back(list(*group_.listing));
  store_all(group_.stores);
  Body exact;
  if (!group_.exact.empty()) {
    nest_.pop();
    nest_.push({group_.loops.back().var}, exact);
    store_all(group_.exact);
  }
  Body body = close_loops(std::move(bodies), std::move(exact));
  for (Stmt& stmt : body) root.push_back(std::move(stmt));
  nest_.kernel().body = std::move(root);
  return std::move(nest_.kernel());
}

void Lowerer::open_var(VarId var) {
  const std::int64_t extent = group_.extents[static_cast<std::size_t>(var)];
  nest_.kernel().vars[static_cast<std::size_t>(var)] = {"i" + std::to_string(var), number(extent)};
}

// The stores stand behind all loads.
void Lowerer::store_all(const std::vector<Store>& wanted) {
  std::vector<Stmt> stores;
  for (const Store& store : wanted) {
    const Target& target = group_.targets[store.target];
    Stmt stmt;
    stmt.kind = Stmt::Kind::Store;
    stmt.args = {store.value >= 0 ? value(store.value) : -1};
    stmt.access = access(store.address, g_[target.node].dtype, /*write=*/true, target.streaming);
    if (!store.positions.empty()) scatter(store, stmt);
    stores.push_back(std::move(stmt));
  }
  Body& body = nest_.body(nest_.scopes().depth());
  for (Stmt& store : stores) body.push_back(std::move(store));
}

// What is stored at positions, the statement's operand if there is one, combined with what is there
// where the node says so.
void Lowerer::scatter(const Store& store, Stmt& stmt) {
  const ir::Node& n = g_[group_.targets[store.target].node];
  std::vector<ValueId> positions;
  for (WantedId id : store.positions) positions.push_back(value(id));
  for (std::size_t k = 0; k < positions.size(); ++k)
    stmt.along.push_back({number(n.shape[static_cast<std::size_t>(n.ints[k])]),
                          stride(store.address, store.steps[k]), n.bounds});
  ValueId& written = stmt.args[0];
  if (n.combine) {
    const ir::DType dtype = ir::combined_dtype(g_, n);
    const auto as = [&](ValueId v, ir::DType to) {
      return nest_.dtype(v) == to ? v : nest_.compute(ir::Op::Cast, to, {v});
    };
    Stmt old;
    old.kind = Stmt::Kind::Load;
    old.access = stmt.access;
    old.along = stmt.along;
    old.args = positions;
    Vars everywhere;
    for (const Loop& loop : group_.loops) join(everywhere, {loop.var});
    std::vector<ValueId> operands{as(nest_.define(std::move(old), n.dtype, everywhere), dtype)};
    if (written >= 0) operands.push_back(written);
    note(group_.targets[store.target].node, std::string(ir::op_info(*n.combine).name) + ".at");
    written = as(nest_.compute(*n.combine, dtype, std::move(operands)), n.dtype);
  } else {
    note(group_.targets[store.target].node, std::string(ir::op_info(n.op).name));
  }
  stmt.args.insert(stmt.args.end(), positions.begin(), positions.end());
}

Stmt Lowerer::list(const Listing& listing) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::List;
  stmt.mask = access(listing.mask, ir::DType::Bool, /*write=*/false, Streaming::No);
  stmt.access = access(listing.written, ir::DType::Int64, /*write=*/true, Streaming::No);
  const ir::NodeId node = group_.targets[0].node;
  stmt.along.push_back({nest_.symbol(g_[node].shape[0]), number(listing.row_step)});
  for (std::size_t k = 0; k < listing.extents.size(); ++k)
    stmt.along.push_back(
        {number(listing.extents[k]), number(static_cast<std::int64_t>(k) * listing.column_step)});
  note(node, std::string(ir::op_info(ir::Op::Nonzero).name));
  return stmt;
}

// Innermost first, each loop into the one around it.
Body Lowerer::close_loops(std::vector<Body> bodies, Body exact) {
  Body inner;
  for (std::size_t i = bodies.size(); i-- > 0;) {
    Stmt loop;
    loop.kind = Stmt::Kind::Loop;
    loop.vars = {group_.loops[i].var};
    loop.parallel = group_.loops[i].parallel;
    loop.merges = group_.loops[i].merges;
    loop.body = std::move(bodies[i]);
    for (Stmt& stmt : inner) loop.body.push_back(std::move(stmt));
    inner.clear();
    if (i + 1 == bodies.size()) {
      loop.lanes = group_.lanes;
      loop.exact = std::move(exact);
    }
    inner.push_back(std::move(loop));
  }
  return inner;
}

}  // namespace ufuse::codegen::loop
