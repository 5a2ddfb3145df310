#include "codegen/loop/nest.h"

#include <algorithm>
#include <string>

#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {

// ---- Variables ----

VarId Nest::new_var(std::int64_t extent) {
  Var var;
  var.name = "i" + std::to_string(kernel_.vars.size());
  var.extent = extent <= kMaxUnroll ? Number{extent, -1} : symbol(extent);
  kernel_.vars.push_back(std::move(var));
  return static_cast<VarId>(kernel_.vars.size() - 1);
}

Number Nest::symbol(std::int64_t value) {
  kernel_.sizes.push_back(value);
  return Number{value, static_cast<int>(kernel_.sizes.size() - 1)};
}

// ---- Scopes ----

Scope& Nest::push(std::vector<VarId> vars, Body& body) {
  Scope scope;
  scope.vars = std::move(vars);
  scope.body = &body;
  scope.uid = next_uid_++;
  stack_.push_back(std::move(scope));
  return stack_.back();
}

std::size_t Nest::place(const std::vector<VarId>& vars) const {
  std::size_t found = 0, depth = 0;
  for (std::size_t i = 0; i < stack_.size() && found < vars.size(); ++i)
    for (VarId var : stack_[i].vars)
      if (std::binary_search(vars.begin(), vars.end(), var)) {
        ++found;
        depth = i;
      }
  return depth;
}

bool Nest::alive(int uid) const {
  return std::any_of(stack_.begin(), stack_.end(), [&](const Scope& s) { return s.uid == uid; });
}

double Nest::repetitions(std::size_t depth, const std::vector<VarId>& vars) const {
  double times = 1;
  for (std::size_t i = 0; i <= depth; ++i)
    for (VarId var : stack_[i].vars)
      if (!std::binary_search(vars.begin(), vars.end(), var))
        times *= static_cast<double>(std::max<std::int64_t>(1, extent(var)));
  return times;
}

// ---- Values ----

ValueId Nest::new_value(ir::DType dtype, std::vector<VarId> vars) {
  kernel_.values.push_back({dtype, std::move(vars)});
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

std::vector<VarId> Nest::vars(const std::vector<ValueId>& values) const {
  std::vector<VarId> all;
  for (ValueId v : values) all.insert(all.end(), vars(v).begin(), vars(v).end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// ---- Statements ----

void Nest::emit(Stmt stmt, const std::vector<VarId>& vars, double work) {
  const std::size_t depth = place(vars);
  cost_ += work * executions(depth);
  body(depth).push_back(std::move(stmt));
}

ValueId Nest::define(Stmt stmt, ir::DType dtype, const std::vector<VarId>& vars, double work) {
  const ValueId result = new_value(dtype, vars);
  stmt.result = result;
  emit(std::move(stmt), vars, work);
  return result;
}

ValueId Nest::compute(ir::Op op, ir::DType dtype, std::vector<ValueId> args) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = op;
  const std::vector<VarId> where = vars(args);
  stmt.args = std::move(args);
  return define(std::move(stmt), dtype, where, cost::of_op(op));
}

ValueId Nest::compute(Stmt::Helper helper, ir::DType dtype, std::vector<ValueId> args) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = ir::Op::Cast;
  stmt.helper = helper;
  const std::vector<VarId> where = vars(args);
  stmt.args = std::move(args);
  return define(std::move(stmt), dtype, where, 1);
}

ValueId Nest::constant(ir::DType dtype, ir::Scalar bits) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = ir::Op::Const;
  stmt.constant = bits;
  return define(std::move(stmt), dtype, {}, 0);
}

ValueId Nest::opaque(ValueId v) {
  return is_in(dtype(v), ir::kFloat) ? compute(Stmt::Helper::Opaque, dtype(v), {v}) : v;
}

ValueId Nest::unknown(ValueId v) {
  const bool exact = is_in(dtype(v), ir::kBool | ir::kInteger);
  return exact ? compute(Stmt::Helper::Unknown, dtype(v), {v}) : v;
}

}  // namespace ufuse::codegen::loop
