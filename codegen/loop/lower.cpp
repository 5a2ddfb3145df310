#include "codegen/loop/lower.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "codegen/loop/lowerer.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

using ir::Dims;

// Axes longer than 1, largest stride first.
std::vector<std::size_t> domain_axes(const Dims& shape, const Dims& strides) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(i);
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(strides[a]) > std::abs(strides[b]);
  });
  return axes;
}

// A call, a reduction or an inner loop that is none of the domain's.
bool is_costly(const Stmt& stmt, const std::vector<VarId>& domain) {
  return stmt.kind == Stmt::Kind::Fold || stmt.kind == Stmt::Kind::Call ||
         (stmt.kind == Stmt::Kind::Loop &&
          std::find(domain.begin(), domain.end(), stmt.vars[0]) == domain.end());
}

// The outermost loop, or the longest one when that is short and nothing costly stands between.
VarId choose_parallel(const Kernel& kernel, const std::vector<VarId>& domain) {
  const auto extent = [&](VarId v) {
    return kernel.vars[static_cast<std::size_t>(v)].extent.value;
  };
  VarId best = domain[0];
  if (extent(best) >= cost::kParallelExtent) return best;
  const Body* body = &kernel.body;
  for (VarId var : domain) {
    if (extent(var) > extent(best)) best = var;
    if (extent(best) >= cost::kParallelExtent) break;
    const Stmt* loop = nullptr;
    for (const Stmt& stmt : *body)
      if (stmt.kind == Stmt::Kind::Loop && stmt.vars[0] == var) loop = &stmt;
    if (loop == nullptr) break;
    if (std::any_of(loop->body.begin(), loop->body.end(),
                    [&](const Stmt& stmt) { return is_costly(stmt, domain); }))
      break;
    body = &loop->body;
  }
  return best;
}

bool one_segment(const Body& body) {
  return std::none_of(body.begin(), body.end(), [](const Stmt& s) {
    return s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Fold || s.kind == Stmt::Kind::Loop;
  });
}

}  // namespace

Lowered lower(const LowerRequest& request) { return Lowerer(request).run(); }

Lowered Lowerer::run() {
  Body root;
  nest_.push({}, root);
  const Dims shape = g_[r_.targets[0].node].shape;
  std::vector<std::size_t> loops = domain_axes(shape, r_.targets[0].place.strides);
  std::optional<std::size_t> unrolled_axis;
  if (r_.unroll_inner && loops.size() > 1) {
    unrolled_axis = loops.back();
    loops.pop_back();
  }
  Index index(shape.size());
  std::vector<Body> bodies(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const VarId var = nest_.new_var(shape[loops[i]]);
    domain_.push_back(var);
    index[loops[i]] = Affine::of(var);
    nest_.push({var}, bodies[i]).lanes = r_.lanes && i + 1 == loops.size();
  }
  defer_ = r_.defer_roots && r_.lanes && !domain_.empty() && r_.overwritten.empty();
  store_targets(index, unrolled_axis);
  Body exact;
  if (deferred_) {
    out_.want_roots = !one_segment(bodies.back());
    exact = store_targets_exactly(index, unrolled_axis);
  }
  close_loops(std::move(bodies), std::move(exact));

  Kernel& kernel = nest_.kernel();
  kernel.body = std::move(root);
  const bool few = domain_.size() == 1 && nest_.var(domain_[0]).extent.literal();
  const bool serial = parallel_fold_ || domain_.empty() || few;
  kernel.parallel = serial ? -1 : choose_parallel(kernel, domain_);
  kernel.cost_ns = nest_.cost() * cost::kNsPerOp;
  out_.kernel = std::move(kernel);
  return std::move(out_);
}

// All targets at `index`, and for each position along the unrolled axis. The stores stand behind
// all loads.
void Lowerer::store_targets(Index index, std::optional<std::size_t> unrolled_axis) {
  const std::int64_t times =
      unrolled_axis ? g_[r_.targets[0].node].shape[*unrolled_axis] : std::int64_t{1};
  std::vector<Stmt> stores;
  for (std::int64_t u = 0; u < times; ++u) {
    if (unrolled_axis) index[*unrolled_axis] = Affine::at(u);
    for (const Target& target : r_.targets) {
      target_ = target.node;
      Stmt store;
      store.kind = Stmt::Kind::Store;
      store.args = {value(target.node, index)};
      store.access = addresses_.access(target.place, g_[target.node].dtype, index, /*write=*/true);
      stores.push_back(std::move(store));
    }
  }
  Body& body = nest_.body(nest_.depth());
  for (Stmt& store : stores) body.push_back(std::move(store));
}

// The same once more, in full, for blocks in which a comparison was too close.
Body Lowerer::store_targets_exactly(const Index& index, std::optional<std::size_t> unrolled_axis) {
  defer_ = false;
  Body exact;
  return nest_.within(nest_.depth() - 1, [&] {
    nest_.push({domain_.back()}, exact).lanes = true;
    store_targets(index, unrolled_axis);
    nest_.pop();
    return std::move(exact);
  });
}

// Innermost first, each loop into the one around it.
void Lowerer::close_loops(std::vector<Body> bodies, Body exact) {
  for (std::size_t i = bodies.size(); i-- > 0;) {
    Stmt loop;
    loop.kind = Stmt::Kind::Loop;
    loop.vars = nest_.innermost().vars;
    loop.lanes = nest_.innermost().lanes;
    nest_.pop();
    loop.body = std::move(bodies[i]);
    if (i + 1 == bodies.size()) loop.exact = std::move(exact);
    nest_.body(nest_.depth()).push_back(std::move(loop));
  }
}

}  // namespace ufuse::codegen::loop
