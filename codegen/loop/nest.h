// A loop nest under construction: which loops are open, and in which of them does a statement
// stand?
//
// A statement goes to the outermost scope in which all variables of its operands are bound.
// Lowering decides what is computed and opens the scopes; this class numbers variables and values,
// puts the statements where they belong and adds up what they cost. It knows no nodes and no
// memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// One level of the nest: the variables it binds and where its statements go.
struct Scope {
  std::vector<VarId> vars;
  Body* body = nullptr;
  bool lanes = false;
  bool horizontal = false;
  bool parallel = false;
  int uid = 0;
};

class Nest {
 public:
  Kernel& kernel() { return kernel_; }
  const Kernel& kernel() const { return kernel_; }
  double cost() const { return cost_; }
  void add_cost(double work) { cost_ += work; }

  // ---- Variables ----

  VarId new_var(std::int64_t extent);
  Var& var(VarId v) { return kernel_.vars[static_cast<std::size_t>(v)]; }
  std::int64_t extent(VarId v) const {
    return kernel_.vars[static_cast<std::size_t>(v)].extent.value;
  }
  // A number that is handed in at run time.
  Number symbol(std::int64_t value);

  // ---- Scopes, outermost first ----

  const std::vector<Scope>& scopes() const { return stack_; }
  const Scope& innermost() const { return stack_.back(); }
  std::size_t depth() const { return stack_.size() - 1; }
  Scope& push(std::vector<VarId> vars, Body& body);
  void pop() { stack_.pop_back(); }

  // Works on the stack cut down to `depth`, as if nothing deeper were open.
  template <class F>
  auto within(std::size_t depth, F&& f) {
    const auto cut = stack_.begin() + static_cast<std::ptrdiff_t>(depth) + 1;
    const std::vector<Scope> deeper(cut, stack_.end());
    stack_.resize(depth + 1);
    auto result = f();
    stack_.insert(stack_.end(), deeper.begin(), deeper.end());
    return result;
  }

  // The outermost scope in which all of `vars` are bound.
  std::size_t place(const std::vector<VarId>& vars) const;
  int uid_at(std::size_t depth) const { return stack_[depth].uid; }
  bool alive(int uid) const;
  // How often scope `depth` is entered for each combination of `vars`.
  double repetitions(std::size_t depth, const std::vector<VarId>& vars) const;
  double executions(std::size_t depth) const { return repetitions(depth, {}); }

  // ---- Values ----

  ValueId new_value(ir::DType dtype, std::vector<VarId> vars);
  ir::DType dtype(ValueId v) const { return kernel_.values[static_cast<std::size_t>(v)].dtype; }
  const std::vector<VarId>& vars(ValueId v) const {
    return kernel_.values[static_cast<std::size_t>(v)].vars;
  }
  std::vector<VarId> vars(const std::vector<ValueId>& values) const;

  // ---- Statements ----

  Body& body(std::size_t depth) { return *stack_[depth].body; }
  // Puts the statement where all its variables are bound.
  void emit(Stmt stmt, const std::vector<VarId>& vars, double work);
  // The same for a statement that makes one value.
  ValueId define(Stmt stmt, ir::DType dtype, const std::vector<VarId>& vars, double work);

  ValueId compute(ir::Op op, ir::DType dtype, std::vector<ValueId> args);
  ValueId compute(Stmt::Helper helper, ir::DType dtype, std::vector<ValueId> args);
  ValueId constant(ir::DType dtype, ir::Scalar bits);
  // A constant that the compiler must not compute with.
  ValueId opaque(ValueId v);
  // A truth or integer that the compiler must not take for a constant.
  ValueId unknown(ValueId v);

 private:
  Kernel kernel_;
  std::vector<Scope> stack_;
  int next_uid_ = 0;
  double cost_ = 0;
};

}  // namespace ufuse::codegen::loop
