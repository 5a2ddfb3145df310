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
  nest_.kernel().vars[static_cast<std::size_t>(var)] = {
      "i" + std::to_string(var),
      extent <= cost::kUnrolled ? Number{extent, -1} : nest_.symbol(extent)};
}

// The stores stand behind all loads.
void Lowerer::store_all(const std::vector<Store>& wanted) {
  std::vector<Stmt> stores;
  for (const Store& store : wanted) {
    const Target& target = group_.targets[store.target];
    Stmt stmt;
    stmt.kind = Stmt::Kind::Store;
    stmt.args = {value(store.value)};
    stmt.access = access(store.address, g_[target.node].dtype, /*write=*/true, target.streaming);
    stores.push_back(std::move(stmt));
  }
  Body& body = nest_.body(nest_.scopes().depth());
  for (Stmt& store : stores) body.push_back(std::move(store));
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
