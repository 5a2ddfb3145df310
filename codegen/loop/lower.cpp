#include "codegen/loop/lower.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "codegen/loop/index.h"
#include "codegen/schedule/cost.h"
#include "ir/build.h"
#include "ir/support/error.h"

namespace ufuse::codegen::loop {
namespace {

using ir::Dims;
using ir::DType;
using ir::NodeId;
using ir::Op;

// One level of the nest under construction: the variables it binds and where its statements go.
struct Scope {
  std::vector<VarId> vars;
  Body* body = nullptr;
  bool lanes = false;
  bool horizontal = false;
  bool parallel = false;
  int uid = 0;
};

class Lowerer {
 public:
  explicit Lowerer(const LowerRequest& request) : r_(request), g_(request.graph) {}

  Lowered run() {
    Body root;
    push({}, root);
    const Dims shape = g_[r_.targets[0].node].shape;
    const Dims axes = domain_axes(shape);
    Index index(shape.size());
    std::size_t unrolled = 1;
    std::vector<std::size_t> loops(axes.begin(), axes.end());
    std::optional<std::size_t> unrolled_axis;
    if (r_.unroll_inner && loops.size() > 1) {
      unrolled_axis = loops.back();
      unrolled = static_cast<std::size_t>(shape[*unrolled_axis]);
      loops.pop_back();
    }
    std::vector<Body> bodies(loops.size());
    for (std::size_t i = 0; i < loops.size(); ++i) {
      const VarId var = new_var(shape[loops[i]]);
      domain_.push_back(var);
      index[loops[i]] = Affine::of(var);
      Scope& scope = push({var}, bodies[i]);
      scope.lanes = r_.lanes && i + 1 == loops.size();
    }
    const auto lower_targets = [&] {
      std::vector<Stmt> stores;
      for (std::size_t u = 0; u < unrolled; ++u) {
        if (unrolled_axis) index[*unrolled_axis] = Affine::at(static_cast<std::int64_t>(u));
        for (const Target& target : r_.targets) {
          target_ = target.node;
          Stmt store;
          store.kind = Stmt::Kind::Store;
          store.args = {value(target.node, index)};
          store.access = access(target.place, g_[target.node].dtype, index, /*write=*/true);
          stores.push_back(std::move(store));
        }
      }
      for (Stmt& store : stores) stack_.back().body->push_back(std::move(store));
    };
    defer_ = r_.defer_roots && r_.lanes && !domain_.empty() && r_.overwritten.empty();
    lower_targets();
    Body exact;
    if (deferred_) {
      // The same once more, in full, for blocks in which a comparison was too close.
      out_.want_roots = !one_segment(bodies.back());
      defer_ = false;
      Scope again = stack_.back();
      stack_.pop_back();
      push(again.vars, exact).lanes = true;
      lower_targets();
    }
    for (std::size_t i = loops.size(); i-- > 0;) {
      Stmt loop;
      loop.kind = Stmt::Kind::Loop;
      loop.vars = stack_.back().vars;
      loop.lanes = stack_.back().lanes;
      stack_.pop_back();
      loop.body = std::move(bodies[i]);
      if (i + 1 == loops.size()) loop.exact = std::move(exact);
      stack_.back().body->push_back(std::move(loop));
    }
    out_.kernel.body = std::move(root);
    const bool few = domain_.size() == 1 &&
                     out_.kernel.vars[static_cast<std::size_t>(domain_[0])].extent.literal();
    out_.kernel.parallel = parallel_fold_ || domain_.empty() || few ? -1 : choose_parallel();
    out_.kernel.cost_ns = cost_ * cost::kNsPerOp;
    return std::move(out_);
  }

 private:
  struct Memo {
    ValueId value;
    int scope_uid;
  };
  struct Row {  // a value kept for one run of elements
    NodeId node;
    Index index;  // as filled, over `var`
    VarId var;
    int buffer;
    int scope_uid;
  };

  // ---- The domain ----

  // Axes longer than 1, largest stride first.
  Dims domain_axes(const Dims& shape) const {
    const Dims& strides = r_.targets[0].place.strides;
    Dims axes;
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != 1) axes.push_back(static_cast<std::int64_t>(i));
    std::stable_sort(axes.begin(), axes.end(), [&](std::int64_t a, std::int64_t b) {
      return std::abs(strides[static_cast<std::size_t>(a)]) >
             std::abs(strides[static_cast<std::size_t>(b)]);
    });
    return axes;
  }

  // The outermost loop, or the longest one when that is short and nothing costly stands between.
  VarId choose_parallel() const {
    const auto extent = [&](VarId v) {
      return out_.kernel.vars[static_cast<std::size_t>(v)].extent.value;
    };
    VarId best = domain_[0];
    if (extent(best) >= cost::kParallelExtent) return best;
    const Body* body = &out_.kernel.body;
    for (VarId var : domain_) {
      if (extent(var) > extent(best)) best = var;
      if (extent(best) >= cost::kParallelExtent) break;
      const Stmt* loop = nullptr;
      bool costly = false;
      for (const Stmt& stmt : *body) {
        if (stmt.kind == Stmt::Kind::Loop && stmt.vars[0] == var) loop = &stmt;
      }
      if (loop == nullptr) break;
      for (const Stmt& stmt : loop->body)
        costly |= stmt.kind == Stmt::Kind::Fold || stmt.kind == Stmt::Kind::Call ||
                  (stmt.kind == Stmt::Kind::Loop &&
                   std::find(domain_.begin(), domain_.end(), stmt.vars[0]) == domain_.end());
      if (costly) break;
      body = &loop->body;
    }
    return best;
  }

  static bool one_segment(const Body& body) {
    return std::none_of(body.begin(), body.end(), [](const Stmt& s) {
      return s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Fold || s.kind == Stmt::Kind::Loop;
    });
  }

  VarId new_var(std::int64_t extent) {
    Var var;
    var.name = "i" + std::to_string(out_.kernel.vars.size());
    var.extent = extent <= kMaxUnroll ? Number{extent, -1} : symbol(extent);
    out_.kernel.vars.push_back(std::move(var));
    return static_cast<VarId>(out_.kernel.vars.size() - 1);
  }
  std::int64_t extent(VarId var) const {
    return out_.kernel.vars[static_cast<std::size_t>(var)].extent.value;
  }
  Number symbol(std::int64_t value) {
    out_.kernel.sizes.push_back(value);
    return Number{value, static_cast<int>(out_.kernel.sizes.size() - 1)};
  }

  // ---- Scopes ----

  Scope& push(std::vector<VarId> vars, Body& body) {
    Scope scope;
    scope.vars = std::move(vars);
    scope.body = &body;
    scope.uid = next_uid_++;
    stack_.push_back(std::move(scope));
    return stack_.back();
  }

  // The outermost scope in which all of `vars` are bound.
  std::size_t place(const std::vector<VarId>& vars) const {
    std::size_t found = 0, depth = 0;
    for (std::size_t i = 0; i < stack_.size() && found < vars.size(); ++i)
      for (VarId var : stack_[i].vars)
        if (std::binary_search(vars.begin(), vars.end(), var)) {
          ++found;
          depth = i;
        }
    return depth;
  }
  bool alive(int uid) const {
    return std::any_of(stack_.begin(), stack_.end(), [&](const Scope& s) { return s.uid == uid; });
  }
  // How often scope `depth` is entered for each combination of `vars`.
  double repetitions(std::size_t depth, const std::vector<VarId>& vars) const {
    double times = 1;
    for (std::size_t i = 0; i <= depth; ++i)
      for (VarId var : stack_[i].vars)
        if (!std::binary_search(vars.begin(), vars.end(), var))
          times *= static_cast<double>(std::max<std::int64_t>(1, extent(var)));
    return times;
  }
  double executions(std::size_t depth) const { return repetitions(depth, {}); }

  // Works on the stack cut down to `depth`, as if nothing deeper were open.
  template <class F>
  auto within(std::size_t depth, F&& f) {
    std::vector<Scope> deeper(stack_.begin() + static_cast<std::ptrdiff_t>(depth) + 1,
                              stack_.end());
    stack_.resize(depth + 1);
    auto result = f();
    stack_.insert(stack_.end(), deeper.begin(), deeper.end());
    return result;
  }

  // ---- Values ----

  ValueId new_value(DType dtype, std::vector<VarId> vars) {
    out_.kernel.values.push_back({dtype, std::move(vars)});
    return static_cast<ValueId>(out_.kernel.values.size() - 1);
  }
  const std::vector<VarId>& vars(ValueId v) const {
    return out_.kernel.values[static_cast<std::size_t>(v)].vars;
  }
  std::vector<VarId> vars_of_values(const std::vector<ValueId>& values) const {
    std::vector<VarId> all;
    for (ValueId v : values) all.insert(all.end(), vars(v).begin(), vars(v).end());
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }
  // Puts the statement where all its variables are bound.
  void emit(Stmt stmt, const std::vector<VarId>& vars, double work) {
    const std::size_t depth = place(vars);
    cost_ += work * executions(depth);
    stack_[depth].body->push_back(std::move(stmt));
  }
  ValueId compute(Op op, DType dtype, std::vector<ValueId> args) {
    Stmt stmt;
    stmt.kind = Stmt::Kind::Compute;
    stmt.op = op;
    std::vector<VarId> where = vars_of_values(args);
    stmt.args = std::move(args);
    stmt.result = new_value(dtype, where);
    const ValueId result = stmt.result;
    emit(std::move(stmt), where, cost::of_op(op));
    return result;
  }
  ValueId constant(DType dtype, ir::Scalar bits) {
    Stmt stmt;
    stmt.kind = Stmt::Kind::Compute;
    stmt.op = Op::Const;
    stmt.constant = bits;
    stmt.result = new_value(dtype, {});
    const ValueId result = stmt.result;
    emit(std::move(stmt), {}, 0);
    return result;
  }

  ValueId opaque(ValueId v) {
    return is_in(dtype_of(v), ir::kFloat) ? compute_helper(Stmt::Helper::Opaque, dtype_of(v), {v})
                                          : v;
  }

  // The node's value at `index`, computed once per scope.
  ValueId value(NodeId node, const Index& index) {
    const auto key = std::make_pair(node.value, index);
    std::vector<Memo>& memos = memo_[key];
    for (const Memo& memo : memos)
      if (alive(memo.scope_uid)) return memo.value;
    const ValueId result = make(node, index);
    const int uid = stack_[place(vars(result))].uid;
    memo_[key].push_back({result, uid});
    return result;
  }

  ValueId make(NodeId node, const Index& index) {
    if (std::optional<Place> place = view_of(g_, r_.places, node)) return load(*place, node, index);
    if (ValueId kept = from_row(node, index); kept >= 0) return kept;
    const ir::Node n = g_[node];  // a copy: the graph may grow below
    switch (n.op) {
      case Op::Input:
        throw InternalError("lower: input without a place");
      case Op::Const:
        return opaque(constant(n.dtype, n.constant));
      case Op::Param: {
        Stmt stmt;
        stmt.kind = Stmt::Kind::Compute;
        stmt.op = Op::Param;
        auto& params = out_.kernel.params;
        auto it = std::find(params.begin(), params.end(), n.id);
        stmt.index = static_cast<int>(it - params.begin());
        if (it == params.end()) params.push_back(n.id);
        stmt.result = new_value(n.dtype, {});
        const ValueId result = stmt.result;
        emit(std::move(stmt), {}, 0);
        return result;
      }
      case Op::Broadcast: {
        Index inner(g_[n.inputs[0]].shape.size());
        for (std::size_t i = 0; i < n.ints.size(); ++i)
          if (n.ints[i] >= 0) inner[static_cast<std::size_t>(n.ints[i])] = index[i];
        return value(n.inputs[0], inner);
      }
      case Op::Transpose: {
        Index inner(index.size());
        for (std::size_t i = 0; i < index.size(); ++i)
          inner[static_cast<std::size_t>(n.ints[i])] = index[i];
        return value(n.inputs[0], inner);
      }
      case Op::Slice: {
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
      case Op::Reshape:
        return reshaped(node, n, index);
      case Op::Ufunc:
        return call(node, n, index);
      case Op::Reduce:
      case Op::ArgReduce:
        return fold(node, n, index);
      default: {
        std::vector<ValueId> args = operands(n, index);
        note(node, std::string(ir::op_name(n.op)));
        return compute(n.op, n.dtype, std::move(args));
      }
    }
  }

  // Operands that hold reductions first: what these keep for a row is then there for the others.
  std::vector<ValueId> operands(const ir::Node& n, const Index& index) {
    std::vector<std::size_t> order(n.inputs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return fold_depth(n.inputs[a]) > fold_depth(n.inputs[b]);
    });
    std::vector<ValueId> values(n.inputs.size());
    for (std::size_t i : order) values[i] = value(n.inputs[i], index);
    return values;
  }
  bool may_warn(NodeId node) {
    if (r_.places.contains(node.value)) return false;
    const ir::Node& n = g_[node];
    if (raises_flags(n)) return true;
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](NodeId in) { return may_warn(in); });
  }
  int fold_depth(NodeId node) {
    if (auto it = fold_depth_.find(node.value); it != fold_depth_.end()) return it->second;
    int depth = 0;
    if (!r_.places.contains(node.value)) {
      for (NodeId in : g_[node].inputs) depth = std::max(depth, fold_depth(in));
      const Op op = g_[node].op;
      depth += op == Op::Reduce || op == Op::ArgReduce;
    }
    return fold_depth_[node.value] = depth;
  }

  ValueId reshaped(NodeId node, const ir::Node& n, const Index& index) {
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

  // The value is asked for in memory; what is returned only keeps the lowering going.
  ValueId need(NodeId node, DType dtype, const Index& index) {
    out_.needs.push_back(node);
    return new_value(dtype, vars_of(index));
  }

  // ---- Memory ----

  Number stride_number(loop::Buffer::Role role, int index, std::int64_t stride) {
    if (std::abs(stride) <= kMaxUnroll) return Number{stride, -1};
    const auto key = std::make_tuple(static_cast<int>(role), index, stride);
    auto it = strides_.find(key);
    if (it == strides_.end()) it = strides_.emplace(key, symbol(stride)).first;
    return it->second;
  }

  Access access(const Place& place, DType dtype, const Index& index, bool write) {
    Access result;
    std::int64_t offset = place.offset;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const std::int64_t stride = place.strides[i];
      offset += index[i].base * stride;
      if (stride == 0) continue;
      for (const auto& [var, factor] : index[i].terms)
        result.terms.push_back({var, stride_number(place.role, place.index, stride * factor)});
      if (index[i].fixed != 0)
        result.fixed.emplace_back(index[i].fixed, stride_number(place.role, place.index, stride));
    }
    std::sort(result.terms.begin(), result.terms.end(),
              [](const Term& a, const Term& b) { return a.var < b.var; });
    result.buffer = buffer(place.role, place.index, offset, dtype, write);
    return result;
  }

  int buffer(Buffer::Role role, int index, std::int64_t offset, DType dtype, bool write) {
    if (role == Buffer::Role::Input) {
      // In place: one pointer reads and writes, so that the compiler sees the overlap.
      if (auto it = r_.overwritten.find(index); it != r_.overwritten.end()) {
        const Place& target = r_.targets[it->second].place;
        role = target.role;
        index = target.index;
      }
    }
    auto& buffers = out_.kernel.buffers;
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (buffers[i].role == role && buffers[i].index == index && buffers[i].offset == offset) {
        buffers[i].written |= write;
        return static_cast<int>(i);
      }
    Buffer b;
    b.role = role;
    b.index = index;
    b.offset = offset;
    b.dtype = dtype;
    b.written = write;
    buffers.push_back(std::move(b));
    return static_cast<int>(buffers.size() - 1);
  }

  ValueId load(const Place& place, NodeId node, const Index& index) {
    if (place.role == Buffer::Role::Input) {
      if (auto it = r_.overwritten.find(place.index); it != r_.overwritten.end())
        out_.conflict |= !same_element(place, r_.targets[it->second].place, index);
    }
    Stmt stmt;
    stmt.kind = Stmt::Kind::Load;
    stmt.access = access(place, g_[node].dtype, index, /*write=*/false);
    stmt.index = static_cast<int>(has_one_stride(place));
    // Two nodes may be views of one element.
    std::vector<Memo>& memos = loads_[stmt.access];
    for (const Memo& memo : memos)
      if (alive(memo.scope_uid)) return memo.value;
    std::vector<VarId> where;
    for (const Term& term : stmt.access.terms) where.push_back(term.var);
    where.erase(std::unique(where.begin(), where.end()), where.end());
    stmt.result = new_value(g_[node].dtype, where);
    const ValueId result = stmt.result;
    memos.push_back({result, stack_[this->place(where)].uid});
    emit(std::move(stmt), where, cost::kLoad);
    return result;
  }

  // An overwritten input is read exactly where the target is written in the same iteration.
  bool same_element(const Place& read, const Place& written, const Index& index) const {
    if (read.shape != written.shape || read.strides != written.strides || read.offset != 0)
      return false;
    std::vector<VarId> all;
    for (std::size_t i = 0; i < index.size(); ++i) {
      if (read.shape[i] == 1) continue;
      const Affine& a = index[i];
      if (a.base != 0) return false;
      if (a.terms.empty()) continue;  // an unrolled axis; the stores stand after all loads
      if (a.fixed != 0 || a.terms.size() != 1 || a.terms[0].second != 1) return false;
      all.push_back(a.terms[0].first);
    }
    return std::all_of(all.begin(), all.end(), [&](VarId v) {
      return std::find(domain_.begin(), domain_.end(), v) != domain_.end();
    });
  }

  // ---- Block calls ----

  ValueId call(NodeId node, const ir::Node& n, const Index& index) {
    const std::vector<VarId> wanted = vars_of(index);
    for (std::size_t i = stack_.size(); i-- > 0;)
      if (stack_[i].horizontal) {
        if (std::any_of(stack_[i].vars.begin(), stack_[i].vars.end(), [&](VarId v) {
              return std::binary_search(wanted.begin(), wanted.end(), v);
            }))
          return through_row(node, n, index, i);
        break;
      }
    if (repetitions(place(wanted), wanted) > 1 && element_count(n.shape) > kMaxUnroll)
      return need(node, n.dtype, index);
    std::vector<ValueId> args = operands(n, index);
    const std::vector<VarId> where = vars_of_values(args);
    const ir::LoopEntry& entry = r_.loops[n.id];
    auto& calls = out_.kernel.calls;
    auto it = std::find(calls.begin(), calls.end(), n.id);
    const int row = static_cast<int>(it - calls.begin());
    if (it == calls.end()) calls.push_back(n.id);
    Body& body = *stack_[place(where)].body;
    auto same = std::find_if(body.rbegin(), body.rend(), [&](const Stmt& s) {
      return s.kind == Stmt::Kind::Call && s.index == row && s.args == args;
    });
    if (same != body.rend()) {
      ValueId& slot = same->results[n.slot];
      if (slot < 0) slot = new_value(n.dtype, where);
      return slot;
    }
    note(node, entry.ufunc);
    Stmt stmt;
    stmt.kind = Stmt::Kind::Call;
    stmt.index = row;
    stmt.args = std::move(args);
    stmt.results.assign(entry.outputs.size(), -1);
    stmt.results[n.slot] = new_value(n.dtype, where);
    const ValueId result = stmt.results[n.slot];
    emit(std::move(stmt), where, cost::kCall);
    return result;
  }

  // A block call wanted inside a run: the run is computed into a row of scratch first, in lanes.
  ValueId through_row(NodeId node, const ir::Node& n, const Index& index, std::size_t h) {
    const VarId run = stack_[h].vars.back();
    const std::vector<VarId> wanted = vars_of(index);
    const bool needs_outer =
        std::any_of(stack_[h].vars.begin(), stack_[h].vars.end() - 1,
                    [&](VarId v) { return std::binary_search(wanted.begin(), wanted.end(), v); });
    const bool in_lanes =
        std::any_of(stack_.begin(), stack_.begin() + static_cast<std::ptrdiff_t>(h),
                    [](const Scope& s) { return s.lanes; });
    if (needs_outer || stack_[h].parallel || extent(run) > cost::kMaxRow || h + 1 != stack_.size())
      return need(node, n.dtype, index);
    if (in_lanes) {
      out_.want_scalar = true;
      return new_value(n.dtype, wanted);
    }
    Row row;
    row.node = node;
    const VarId var = new_var(extent(run));
    out_.kernel.vars[static_cast<std::size_t>(var)].extent =
        out_.kernel.vars[static_cast<std::size_t>(run)].extent;
    row.var = var;
    for (const Affine& axis : index) row.index.push_back(axis.replaced(run, var));
    Buffer scratch;
    scratch.role = Buffer::Role::Row;
    scratch.index = static_cast<int>(rows_.size());
    scratch.dtype = n.dtype;
    scratch.written = true;
    scratch.length = out_.kernel.vars[static_cast<std::size_t>(run)].extent;
    out_.kernel.buffers.push_back(scratch);
    row.buffer = static_cast<int>(out_.kernel.buffers.size() - 1);
    within(h - 1, [&] {
      row.scope_uid = stack_.back().uid;
      Stmt loop;
      loop.kind = Stmt::Kind::Loop;
      loop.vars = {var};
      loop.lanes = true;
      push({var}, loop.body).lanes = true;
      Stmt store;
      store.kind = Stmt::Kind::Store;
      store.args = {value(node, row.index)};
      store.access.buffer = row.buffer;
      store.access.terms = {{var, Number{1, -1}}};
      loop.body.push_back(std::move(store));
      stack_.pop_back();
      stack_.back().body->push_back(std::move(loop));
      return 0;
    });
    rows_.push_back(row);
    return from_row(node, index);
  }

  // A value that a row of scratch holds, if one does.
  ValueId from_row(NodeId node, const Index& index) {
    for (const Row& row : rows_) {
      if (row.node != node || !alive(row.scope_uid)) continue;
      for (VarId var : vars_of(index)) {
        if (extent(var) != extent(row.var)) continue;
        Index same;
        for (const Affine& axis : row.index) same.push_back(axis.replaced(row.var, var));
        if (same != index) continue;
        Stmt stmt;
        stmt.kind = Stmt::Kind::Load;
        stmt.access.buffer = row.buffer;
        stmt.access.terms = {{var, Number{1, -1}}};
        // Depends on all of the index: the row is another one for each of the outer variables.
        stmt.result = new_value(g_[node].dtype, vars_of(index));
        const ValueId result = stmt.result;
        emit(std::move(stmt), vars_of(index), cost::kLoad);
        return result;
      }
    }
    return -1;
  }

  // ---- Reductions ----

  ValueId fold(NodeId node, const ir::Node& n, const Index& index) {
    const std::vector<VarId> wanted = vars_of(index);
    const std::size_t depth = place(wanted);
    const Dims shape = g_[n.inputs[0]].shape;
    std::int64_t total = 1;
    for (std::int64_t axis : n.ints) total *= shape[static_cast<std::size_t>(axis)];
    const bool is_arg = n.op == Op::ArgReduce;
    const bool small = total <= kMaxUnroll && unrolled_ * total <= cost::kUnrollBudget;
    if (!small && repetitions(depth, wanted) > 1) return need(node, n.dtype, index);
    const bool alone = executions(depth) <= cost::kFewRuns;
    bool parallel =
        alone && total >= cost::kParallelRun && (is_arg || n.order != ir::Order::Sequential);
    if (parallel && node != target_) return need(node, n.dtype, index);
    const ValueId result = within(depth, [&] {
      if (small) return unroll(n, index, shape);
      const bool horizontal = parallel || runs_horizontally(n, index);
      return loop_fold(n, index, shape, horizontal, parallel);
    });
    note(node, is_arg ? (n.id == 0 ? "argmin" : "argmax")
                      : std::string(ir::reduction_info(n.reduction).name) + ".reduce");
    return result;
  }

  // Along the run, or beside the lanes? Where the order does not say, the shorter stride does.
  bool runs_horizontally(const ir::Node& n, const Index& index) {
    if (n.op == Op::Reduce && n.order == ir::Order::Sequential) return false;
    if (n.op == Op::Reduce && n.order != ir::Order::Free) return true;
    const Scope* lane = nullptr;
    for (const Scope& scope : stack_)
      if (scope.lanes) lane = &scope;
    if (lane == nullptr) return true;
    // Probe: strides of the leaves along the lane and along the innermost reduced axis.
    const VarId probe = static_cast<VarId>(out_.kernel.vars.size());
    Index inner = operand_index(
        n, index, [&](std::size_t) { return Affine::of(probe); }, true);
    double along_run = 0, along_lane = 0;
    probe_strides(n.inputs[0], inner, probe, lane->vars[0], along_run, along_lane);
    return along_run <= along_lane;
  }
  void probe_strides(NodeId node, const Index& index, VarId run, VarId lane, double& along_run,
                     double& along_lane) {
    if (std::optional<Place> place = view_of(g_, r_.places, node)) {
      for (std::size_t i = 0; i < index.size(); ++i)
        for (const auto& [var, factor] : index[i].terms) {
          const double step =
              std::min(64.0, std::abs(static_cast<double>(place->strides[i] * factor)));
          if (var == run) along_run += step;
          if (var == lane) along_lane += step;
        }
      return;
    }
    const ir::Node& n = g_[node];
    if (n.op == Op::Broadcast) {
      Index inner(g_[n.inputs[0]].shape.size());
      for (std::size_t i = 0; i < n.ints.size(); ++i)
        if (n.ints[i] >= 0) inner[static_cast<std::size_t>(n.ints[i])] = index[i];
      return probe_strides(n.inputs[0], inner, run, lane, along_run, along_lane);
    }
    if (n.op == Op::Transpose) {
      Index inner(index.size());
      for (std::size_t i = 0; i < index.size(); ++i)
        inner[static_cast<std::size_t>(n.ints[i])] = index[i];
      return probe_strides(n.inputs[0], inner, run, lane, along_run, along_lane);
    }
    if (n.op == Op::Reshape || n.op == Op::Reduce || n.op == Op::ArgReduce) return;
    for (NodeId in : n.inputs) probe_strides(in, index, run, lane, along_run, along_lane);
  }

  // Index of the operand: kept axes from `index`, reduced ones from `reduced(position in n.ints)`.
  template <class F>
  Index operand_index(const ir::Node& n, const Index& index, F&& reduced, bool last_only = false) {
    Index inner(g_[n.inputs[0]].shape.size());
    std::size_t kept = 0;
    for (std::size_t axis = 0; axis < inner.size(); ++axis) {
      auto it = std::find(n.ints.begin(), n.ints.end(), static_cast<std::int64_t>(axis));
      if (it == n.ints.end())
        inner[axis] = index[kept++];
      else if (!last_only || it + 1 == n.ints.end())
        inner[axis] = reduced(static_cast<std::size_t>(it - n.ints.begin()));
    }
    return inner;
  }

  // Positions of extreme square roots are mostly those of the extreme squares, and roots are slow.
  // Where two squares are so close that their roots may be equal, or one has none, the block is
  // computed again with roots.
  bool can_defer(const ir::Node& n) {
    const ir::Node& x = g_[n.inputs[0]];
    return defer_ && n.op == Op::ArgReduce && x.op == Op::Sqrt && stack_.back().lanes &&
           !r_.places.contains(n.inputs[0].value);
  }
  ValueId compute_helper(Stmt::Helper helper, DType dtype, std::vector<ValueId> args) {
    Stmt stmt;
    stmt.kind = Stmt::Kind::Compute;
    stmt.op = Op::Cast;
    stmt.helper = helper;
    const std::vector<VarId> where = vars_of_values(args);
    stmt.args = std::move(args);
    stmt.result = new_value(dtype, where);
    const ValueId result = stmt.result;
    emit(std::move(stmt), where, 1);
    return result;
  }
  void doubt(ValueId a, ValueId b) {
    Stmt stmt;
    stmt.kind = Stmt::Kind::Doubt;
    stmt.args = {compute_helper(Stmt::Helper::RootDoubt, DType::Int64, {a, b})};
    stack_.back().body->push_back(std::move(stmt));
    deferred_ = true;
  }
  ValueId unrolled_arg_of_roots(const std::vector<ValueId>& squares, bool largest) {
    const DType dtype = out_.kernel.values[static_cast<std::size_t>(squares[0])].dtype;
    ValueId best = squares[0], at = constant(DType::Int64, {});
    doubt(best, best);
    for (std::size_t i = 1; i < squares.size(); ++i) {
      doubt(squares[i], best);
      const std::vector<ValueId> pair =
          largest ? std::vector{best, squares[i]} : std::vector{squares[i], best};
      const ValueId take = compute_helper(Stmt::Helper::RootLess, DType::Bool, pair);
      at = compute(Op::Where, DType::Int64, {take, constant(DType::Int64, {{i, 0}}), at});
      if (i + 1 < squares.size()) best = compute(Op::Where, dtype, {take, squares[i], best});
    }
    return at;
  }

  // -- A few elements: written out, in the exact order. --
  ValueId unroll(const ir::Node& n, const Index& index, const Dims& shape) {
    Dims extents;
    std::int64_t total = 1;
    for (std::int64_t axis : n.ints) {
      extents.push_back(shape[static_cast<std::size_t>(axis)]);
      total *= extents.back();
    }
    unrolled_ *= std::max<std::int64_t>(1, total);
    const bool roots = total > 1 && can_defer(n);
    const NodeId operand = roots ? g_[n.inputs[0]].inputs[0] : n.inputs[0];
    std::vector<ValueId> elements;
    for (std::int64_t e = 0; e < total; ++e) {
      Dims at(extents.size());
      std::int64_t rest = e;
      for (std::size_t i = extents.size(); i-- > 0;) {
        at[i] = rest % extents[i];
        rest /= extents[i];
      }
      elements.push_back(value(
          operand, operand_index(n, index, [&](std::size_t i) { return Affine::at(at[i]); })));
    }
    unrolled_ /= std::max<std::int64_t>(1, total);
    if (roots) return unrolled_arg_of_roots(elements, n.id == 1);
    if (n.op == Op::ArgReduce) return unrolled_arg(elements, n.id == 1);
    return unrolled_reduce(n, elements, extents);
  }

  ValueId unrolled_arg(const std::vector<ValueId>& x, bool largest) {
    ValueId best = arg_key(x[0], largest), at = constant(DType::Int64, {});
    for (std::size_t i = 1; i < x.size(); ++i) {
      const ValueId key = arg_key(x[i], largest);
      const ValueId take = compute(largest ? Op::Greater : Op::Less, DType::Bool, {key, best});
      at = compute(Op::Where, DType::Int64, {take, constant(DType::Int64, {{i, 0}}), at});
      if (i + 1 < x.size()) best = compute(Op::Where, dtype_of(best), {take, key, best});
    }
    return at;
  }
  DType dtype_of(ValueId v) const { return out_.kernel.values[static_cast<std::size_t>(v)].dtype; }
  // Floats as integers, so that a plain comparison prefers the first NaN and takes both zeros for
  // equal.
  ValueId arg_key(ValueId x, bool largest) {
    const DType dtype = dtype_of(x);
    if (!is_in(dtype, ir::kFloat)) return x;
    return compute_helper(largest ? Stmt::Helper::ArgMaxKey : Stmt::Helper::ArgMinKey,
                          dtype == DType::Float32 ? DType::Int32 : DType::Int64, {x});
  }

  ValueId initial_value(const ir::Node& n) {
    if (n.inputs.size() > 1) return value(n.inputs[1], {});
    if (ir::reduction_info(n.reduction).identity == ir::Identity::None) return -1;
    return constant(n.dtype, ir::identity_bits(n.reduction, n.dtype));
  }

  ValueId unrolled_reduce(const ir::Node& n, const std::vector<ValueId>& x, const Dims& extents) {
    const Op op = ir::reduction_info(n.reduction).combine;
    ValueId acc = initial_value(n);
    const auto add = [&](ValueId a, ValueId b) { return compute(op, n.dtype, {a, b}); };
    if (n.order == ir::Order::Pairwise && !x.empty()) {
      std::size_t run = 1;
      for (std::size_t i = extents.size() - n.run_axes; i < extents.size(); ++i)
        run *= static_cast<std::size_t>(extents[i]);
      const std::size_t chunk = n.chunk > 0 ? static_cast<std::size_t>(n.chunk) : run;
      for (std::size_t lo = 0; lo < x.size(); lo += run)
        for (std::size_t c = lo; c < lo + run; c += chunk)
          acc = add(acc, pairwise(x, c, std::min(chunk, lo + run - c), n.dtype));
      return acc;
    }
    if (x.empty()) return opaque(acc);
    std::size_t i = 0;
    if (acc < 0) acc = x[i++];
    for (; i < x.size(); ++i) acc = add(acc, x[i]);
    if (n.order == ir::Order::Extremum) doubt_extremum(acc, x, n.dtype);
    return acc;
  }

  // NumPy's pairwise sum of at most kMaxUnroll elements.
  ValueId pairwise(const std::vector<ValueId>& x, std::size_t lo, std::size_t count, DType dtype) {
    const auto add = [&](ValueId a, ValueId b) { return compute(Op::Add, dtype, {a, b}); };
    const std::size_t lanes = is_in(dtype, ir::kComplex) ? 4 : 8;
    if (count < lanes) {
      ValueId sum = x[lo];  // -0.0 + x is x
      for (std::size_t i = 1; i < count; ++i) sum = add(sum, x[lo + i]);
      return sum;
    }
    std::vector<ValueId> r(x.begin() + static_cast<std::ptrdiff_t>(lo),
                           x.begin() + static_cast<std::ptrdiff_t>(lo + lanes));
    std::size_t i = lanes;
    for (; i + lanes <= count; i += lanes)
      for (std::size_t k = 0; k < lanes; ++k) r[k] = add(r[k], x[lo + i + k]);
    while (r.size() > 1) {
      for (std::size_t k = 0; k < r.size() / 2; ++k) r[k] = add(r[2 * k], r[2 * k + 1]);
      r.resize(r.size() / 2);
    }
    for (; i < count; ++i) r[0] = add(r[0], x[lo + i]);
    return r[0];
  }

  // NumPy's vector order decides which of two zeros or NaNs comes out; that is its own business.
  void doubt_extremum(ValueId result, const std::vector<ValueId>& x, DType dtype) {
    if (!is_in(dtype, ir::kFloat) || x.size() < 2) return;
    ValueId minus_zero = -1;
    const ValueId zero = constant(dtype, {});
    for (ValueId e : x) {
      const ValueId is_zero = compute(Op::Equal, DType::Bool, {e, zero});
      const ValueId negative = compute(Op::SignBit, DType::Bool, {e});
      const ValueId both = compute(Op::LogicalAnd, DType::Bool, {is_zero, negative});
      minus_zero = minus_zero < 0 ? both : compute(Op::LogicalOr, DType::Bool, {minus_zero, both});
    }
    const ValueId at_zero = compute(Op::Equal, DType::Bool, {result, zero});
    const ValueId tie = compute(Op::LogicalAnd, DType::Bool, {at_zero, minus_zero});
    const ValueId nan = compute(Op::IsNan, DType::Bool, {result});
    Stmt stmt;
    stmt.kind = Stmt::Kind::Redo;
    stmt.args = {compute(Op::LogicalOr, DType::Bool, {tie, nan})};
    const std::vector<VarId> where = vars(stmt.args[0]);
    emit(std::move(stmt), where, 1);
  }

  // -- Many elements: loops. --
  ValueId loop_fold(ir::Node n, const Index& index, Dims shape, bool horizontal, bool parallel) {
    if (horizontal && !merge_run(n, shape)) return new_value(n.dtype, vars_of(index));
    Stmt fold;
    fold.kind = Stmt::Kind::Fold;
    fold.form = parallel     ? Stmt::Form::Parallel
                : horizontal ? Stmt::Form::Horizontal
                             : Stmt::Form::Lanes;
    fold.order = n.order;
    fold.chunk = n.chunk;
    fold.reduction = n.reduction;
    if (n.op == Op::ArgReduce)
      fold.arg = static_cast<int>(n.id);
    else
      fold.initial = initial_value(n);
    for (std::int64_t axis : n.ints)
      fold.vars.push_back(new_var(shape[static_cast<std::size_t>(axis)]));
    Scope& scope = push(fold.vars, fold.body);
    scope.horizontal = horizontal;
    scope.parallel = parallel;
    parallel_fold_ |= parallel;
    fold.element =
        value(n.inputs[0],
              operand_index(n, index, [&](std::size_t i) { return Affine::of(fold.vars[i]); }));
    if (fold.arg >= 0 && !horizontal) fold.element = arg_key(fold.element, fold.arg == 1);
    cost_ += cost::kLoad * executions(stack_.size() - 1);
    stack_.pop_back();
    fold.result = new_value(n.dtype, vars_of(index));
    const ValueId result = fold.result;
    stack_[place(vars(result))].body->push_back(std::move(fold));
    return result;
  }

  // Makes the run one axis. False: the operand has to be put into memory where it is one.
  bool merge_run(ir::Node& n, Dims& shape) {
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
      x = turned ? sink_transpose(n.inputs[0], order) : n.inputs[0];
      x = sink_reshape(g_, r_.places, x, merged);
    }
    if (!x) {
      if (!pairwise) return true;  // any order will do: loops over the axes as they are
      out_.needs.push_back(whole);
      return false;
    }
    n.inputs[0] = x;
    n.ints.clear();
    for (std::size_t i = kept; i < merged.size(); ++i)
      n.ints.push_back(static_cast<std::int64_t>(i));
    n.run_axes = 1;
    shape = merged;
    return true;
  }

  // A transpose pushed down through elementwise nodes to where it is a view (or to what is no
  // elementwise node).
  NodeId sink_transpose(NodeId x, const Dims& order) {
    const ir::Node n = g_[x];
    const bool elementwise = n.op == Op::Cast || n.op == Op::Ufunc || ir::is_elementwise_row(n.op);
    if (r_.places.contains(x.value) || !elementwise) return ir::transpose(g_, x, order);
    ir::Node moved = n;
    for (std::size_t i = 0; i < order.size(); ++i)
      moved.shape[i] = n.shape[static_cast<std::size_t>(order[i])];
    for (NodeId& operand : moved.inputs) operand = sink_transpose(operand, order);
    return g_.add(std::move(moved));
  }

  // For people: each node once, operands first.
  void note(NodeId node, std::string op) {
    if (noted_.insert(node.value).second) out_.kernel.ops.push_back(std::move(op));
  }

  const LowerRequest& r_;
  ir::Graph& g_;
  Lowered out_;
  std::vector<Scope> stack_;
  std::vector<VarId> domain_;
  std::map<std::pair<std::uint32_t, Index>, std::vector<Memo>> memo_;
  std::map<Access, std::vector<Memo>> loads_;
  std::unordered_map<std::uint32_t, int> fold_depth_;
  std::map<std::tuple<int, int, std::int64_t>, Number> strides_;
  std::vector<Row> rows_;
  std::unordered_set<std::uint32_t> noted_;
  NodeId target_;
  int next_uid_ = 0;
  std::int64_t unrolled_ = 1;
  bool parallel_fold_ = false;
  bool defer_ = false, deferred_ = false;
  double cost_ = 0;
};

}  // namespace

Lowered lower(const LowerRequest& request) { return Lowerer(request).run(); }

}  // namespace ufuse::codegen::loop
