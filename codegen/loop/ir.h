// What is a kernel before it is text? Loop nests over scalar values: about seven kinds of
// statement, each with fields for everything that matters to speed, so that passes rewrite data and
// the printer decides nothing. Made by lower.cpp, rewritten by passes.cpp, printed by codegen/emit.
// It knows no array semantics: shapes, strides and orders have become loops and addresses.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace ufuse::codegen::loop {

using VarId = int;    // index into Kernel::vars
using ValueId = int;  // index into Kernel::values; -1: none

// A number that is either part of the text (symbol < 0) or handed in at run time as sizes[symbol].
struct Number {
  std::int64_t value = 0;
  int symbol = -1;
  bool literal() const { return symbol < 0; }
  friend auto operator<=>(const Number&, const Number&) = default;
};

struct Var {
  std::string name;
  Number extent;
};

// The address of one element: pointer + sum of var * stride + sum of factor * stride, in elements.
struct Term {
  VarId var;
  Number stride;
  friend auto operator<=>(const Term&, const Term&) = default;
};
struct Access {
  int buffer = -1;
  std::vector<Term> terms;
  std::vector<std::pair<std::int64_t, Number>> fixed;
  friend auto operator<=>(const Access&, const Access&) = default;
};

struct Buffer {
  enum class Role : std::uint8_t {
    Input,
    Output,
    Temp,
    Row
  };  // Row: scratch of one thread, `length` elements
  Role role = Role::Input;
  int index = 0;  // of the request's input or output, or of the plan's temporary
  std::int64_t offset =
      0;  // elements from the operand's first element (a view's start); known only when bound
  ir::DType dtype = ir::DType::Float64;
  bool written = false;
  bool streamable = false;  // can be written past the caches, a block of lanes at a time
  std::string name;
  Number length;
};

// SSA: computed once per iteration of the loops over `vars`.
struct Value {
  ir::DType dtype = ir::DType::Float64;
  std::vector<VarId> vars;  // sorted
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Stmt {
  enum class Kind : std::uint8_t {
    Load,     // result = access
    Compute,  // result = op(args): a row of ops.def, Cast, Const or Param
    Call,     // results = inner loop `row`(args): one call for a whole block of lanes
    Store,    // access = args[0]
    Loop,     // for vars[0]: body
    Fold,     // result = reduction of `element` over vars (outermost first), computed by body
    Redo,     // the kernel's result is in doubt where args[0] is true
    Doubt,    // the loop's fast body is in doubt where args[0] has no square root, or one that may
              // equal that of args[1], if given
  };
  // What a Compute does that is no row of ops.def (codegen/runtime/folds.h): comparing square roots
  // without taking them; integers whose order is that in which argmin and argmax prefer floats; a
  // constant that the compiler must not compute with, since 0/0 has to raise its flag at run time;
  // a truth or integer of which the compiler must not find out that it is always the same, since it
  // would leave out what that makes needless, flags and all.
  enum class Helper : std::uint8_t { None, RootLess, ArgMinKey, ArgMaxKey, Opaque, Unknown };
  Kind kind = Kind::Compute;
  ValueId result = -1;
  std::vector<ValueId> results;  // Call: by output slot, -1 where nobody asks
  std::vector<ValueId> args;
  Access access;
  ir::Op op = ir::Op::Const;
  Helper helper = Helper::None;
  ir::Scalar constant;
  int index =
      0;  // Param: position in params; Call: in calls; Load: 1 where the array has one stride
  std::vector<VarId> vars;
  Body body;
  bool lanes = false;  // Loop: innermost, runs in blocks of kBlock lanes where its body needs that
  Body exact;          // Loop: runs over a block again in place of `body` where that met a Doubt
  // Fold.
  enum class Form : std::uint8_t {
    Lanes,       // accumulators beside every lane (or one scalar outside lanes), loops over vars in
                 // order
    Horizontal,  // along the last of vars: its elements are one run of vector lanes
    Parallel,    // Horizontal, shared out over the threads; only in a kernel's outermost loops
  };
  Form form = Form::Lanes;
  ValueId element = -1;
  int arg = -1;  // 0 argmin, 1 argmax; -1: `reduction`
  ir::Reduction reduction = ir::Reduction::Sum;
  ir::Order order = ir::Order::Free;
  std::int64_t chunk = 0;
  bool stops = false;  // any, all: nothing is lost when elements after the answer are not looked at
  ValueId initial = -1;
  // The elements are made a block at a time, in an array, and then combined: where g++ would make
  // them one by one, or where `calls` of block calls do.
  bool blocks = false;
  bool calls = false;
};

// Visits each statement of a body, outer ones first.
template <class B, class F>
requires std::same_as<std::remove_const_t<B>, Body>
void walk(B& body, const F& visit) {
  for (auto& stmt : body) {
    visit(stmt);
    walk(stmt.body, visit);
    walk(stmt.exact, visit);
  }
}

inline constexpr int kBlock =
    256;  // lanes per block: NumPy's inner loops are at their best, and still in L1
inline constexpr int kWideBlock =
    8192;  // without calls: long stretches of each row; accumulators stay in L2
inline constexpr int kStreamBlock = 1024;  // where nothing else asks for blocks
inline constexpr int kMaxUnroll = 16;      // extents up to this are part of the text
inline constexpr int kRowsAtOnce =
    4;  // of a reduction beside few lanes, whose accumulators then stay in registers

struct Kernel {
  std::vector<Var> vars;
  std::vector<Value> values;
  std::vector<Buffer> buffers;
  std::vector<std::int64_t> sizes;    // values of the symbols
  std::vector<std::uint32_t> params;  // the request's params used
  std::vector<std::uint32_t> calls;   // rows of the LoopTable used
  Body body;
  VarId parallel = -1;  // the loop whose range is shared out; -1: a Parallel fold, or one thread
  std::vector<std::string> ops;  // what is fused, for people
  double cost_ns = 0;            // estimate for one thread
  bool streams =
      false;  // what is streamable is so large that it goes past the caches; not in the text

  bool may_stream(const Stmt& s) const {
    return s.kind == Stmt::Kind::Store &&
           buffers[static_cast<std::size_t>(s.access.buffer)].streamable;
  }
};

std::string print(const Kernel& kernel);  // for golden files and logs

}  // namespace ufuse::codegen::loop
