// A loop nest under construction: in which of the open loops does a statement stand?
//
// A statement goes to the outermost scope in which all variables of its operands are bound.
// Lowering decides what is computed and opens the scopes; this class numbers values and symbols and
// puts the statements where they belong. It knows no nodes and no memory.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/loop/ir.h"
#include "codegen/loop/scopes.h"

namespace ufuse::codegen::loop {

class Nest {
 public:
  struct Scope : ScopeBase {
    Body* body = nullptr;  // where its statements go
  };

  Kernel& kernel() { return kernel_; }
  Scopes<Scope>& scopes() { return scopes_; }
  void push(Vars vars, Body& body);
  void pop() { scopes_.pop(); }
  Body& body(std::size_t depth) { return *scopes_[depth].body; }
  std::size_t place(ValueId v) const { return scopes_.place(vars(v)); }

  // A number that is handed in at run time.
  Number symbol(std::int64_t value);

  ValueId new_value(ir::DType dtype, Vars vars);
  ir::DType dtype(ValueId v) const { return kernel_.value(v).dtype; }
  const Vars& vars(ValueId v) const { return kernel_.value(v).vars; }
  Vars vars(const std::vector<ValueId>& values) const;

  // Puts the statement where all its variables are bound.
  void emit(Stmt stmt, const Vars& vars);
  // The same for a statement that makes one value.
  ValueId define(Stmt stmt, ir::DType dtype, const Vars& vars);

  ValueId compute(ir::Op op, ir::DType dtype, std::vector<ValueId> args);
  ValueId compute(Stmt::Helper helper, ir::DType dtype, std::vector<ValueId> args);
  ValueId constant(ir::DType dtype, ir::Scalar bits);
  // A constant that the compiler must not compute with.
  ValueId opaque(ValueId v);
  // A truth or integer that the compiler must not take for a constant.
  ValueId unknown(ValueId v);

 private:
  Kernel kernel_;
  Scopes<Scope> scopes_;
};

}  // namespace ufuse::codegen::loop
