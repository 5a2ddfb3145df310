#include "codegen/loop/nest.h"

namespace ufuse::codegen::loop {

void Nest::push(Vars vars, Body& body) {
  Scope scope;
  scope.vars = std::move(vars);
  scope.body = &body;
  scopes_.push(std::move(scope));
}

Number Nest::symbol(std::int64_t value) {
  kernel_.sizes.push_back(value);
  return Number{value, static_cast<int>(kernel_.sizes.size() - 1)};
}

// ---- Values ----

ValueId Nest::new_value(ir::DType dtype, Vars vars) {
  kernel_.values.push_back({dtype, std::move(vars)});
  return static_cast<ValueId>(kernel_.values.size() - 1);
}

Vars Nest::vars(const std::vector<ValueId>& values) const {
  Vars all;
  for (ValueId v : values) join(all, vars(v));
  return all;
}

// ---- Statements ----

void Nest::emit(Stmt stmt, const Vars& vars) {
  body(scopes_.place(vars)).push_back(std::move(stmt));
}

ValueId Nest::define(Stmt stmt, ir::DType dtype, const Vars& vars) {
  stmt.result = new_value(dtype, vars);
  const ValueId result = stmt.result;
  emit(std::move(stmt), vars);
  return result;
}

ValueId Nest::compute(ir::Op op, ir::DType dtype, std::vector<ValueId> args) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = op;
  const Vars where = vars(args);
  stmt.args = std::move(args);
  return define(std::move(stmt), dtype, where);
}

ValueId Nest::compute(Stmt::Helper helper, ir::DType dtype, std::vector<ValueId> args) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = ir::Op::Cast;
  stmt.helper = helper;
  const Vars where = vars(args);
  stmt.args = std::move(args);
  return define(std::move(stmt), dtype, where);
}

ValueId Nest::constant(ir::DType dtype, ir::Scalar bits) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = ir::Op::Const;
  stmt.constant = bits;
  return define(std::move(stmt), dtype, {});
}

ValueId Nest::opaque(ValueId v) {
  return is_in(dtype(v), ir::kFloat) ? compute(Stmt::Helper::Opaque, dtype(v), {v}) : v;
}

ValueId Nest::unknown(ValueId v) {
  // No compiler has anything to leave out of a long double's arithmetic: it goes one by one.
  const bool is_long = ir::real_part(dtype(v)) == ir::DType::LongDouble;
  return is_long ? v : compute(Stmt::Helper::Unknown, dtype(v), {v});
}

}  // namespace ufuse::codegen::loop
