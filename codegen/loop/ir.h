// What is a kernel before it is text? Loop nests over scalar values: a few kinds of statement, each
// with fields for everything that matters to speed, so that passes rewrite data and the printer
// decides nothing. Made by lower.cpp, rewritten by the passes, checked by verify.cpp, printed by
// codegen/emit. It knows no array semantics: shapes, strides and orders have become loops and
// addresses.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/support/small_vector.h"

namespace ufuse::codegen::loop {

using VarId = int;    // index into Kernel::vars
using ValueId = int;  // index into Kernel::values; -1: none

// Sorted, each variable once.
using Vars = ir::SmallVector<VarId, 4>;
inline bool contains(const Vars& vars, VarId var) {
  return std::binary_search(vars.begin(), vars.end(), var);
}
inline void join(Vars& vars, const Vars& more) {
  for (VarId var : more) {
    const auto at = std::lower_bound(vars.begin(), vars.end(), var);
    if (at == vars.end() || *at != var) vars.insert(at, var);
  }
}

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
  std::vector<Term> terms;  // sorted by variable
  std::vector<std::pair<std::int64_t, Number>> fixed;
  Number stride_along(VarId var) const {  // 0: it does not depend on that
    const auto term = std::ranges::find(terms, var, &Term::var);
    return term == terms.end() ? Number{} : term->stride;
  }
  friend auto operator<=>(const Access&, const Access&) = default;
};

// An axis along which a position is a value: it adds `stride` times that to an address.
struct Along {
  Number extent, stride;
  ir::Bounds bounds = ir::Bounds::Signed;
};

// Whether what is stored may go past the caches, and whether it is so large that it shall.
enum class Streaming : std::uint8_t { No, Allowed, Wanted };

struct Buffer {
  enum class Role : std::uint8_t {
    Input,
    Output,
    Temp,
    Row
  };  // Row: scratch of one thread, `length` elements
  Role role = Role::Input;
  int index = 0;  // of the request's input or output, or of the schedule's temporary
  std::int64_t offset =
      0;  // elements from the operand's first element (a view's start); known only when bound
  ir::DType dtype = ir::DType::Float64;
  bool read = false, written = false;
  Streaming streaming = Streaming::No;
  bool streamable = false;  // what blocks of lanes store in it can go past the caches
  Number length = {};
};

// SSA: computed once per iteration of the loops over `vars`. A load may be repeated in several
// segments of one block: it is the same value in all of them.
struct Value {
  ir::DType dtype = ir::DType::Float64;
  Vars vars;
  // The length of the array that keeps it for all lanes of a block, from one segment to the next;
  // 0: it is a scalar.
  std::int64_t array = 0;
};

struct Stmt;
using Body = std::vector<Stmt>;

struct Stmt {
  enum class Kind : std::uint8_t {
    Load,     // result = access, farther by args as positions where axes are `along`
    Compute,  // result = op(args): a row of ops.def, Cast, Const, Param, or Iota: access as a
              // number
    Call,     // results = inner loop `index`(args)
    Store,    // access = args[0], the other args as those of Load
    Loop,     // for vars[0]: body
    Segment,  // for each lane of the block that is open: body
    Carry,  // result = args[0] in the first iteration of the loop over vars[0], then op of the last
            // result and of args[0]
    List,   // access = the positions of what is true in `mask`, in rows of along[0].stride; a
            // column for each axis of the mask, along[1]... by extent and step in a row
    Fold,   // result = reduction of `element` over vars (outermost first), computed by body
    Redo,   // the kernel's result is in doubt where args[0] is true
    Doubt,  // the loop's fast body is in doubt where args[0] has no square root, or one that may
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
  std::vector<Along> along;
  Access mask;  // List
  ir::Op op = ir::Op::Const;
  Helper helper = Helper::None;
  ir::Scalar constant;
  int index =
      0;  // Param: position in params; Call: in calls; Load: 1 where the array has one stride
  std::vector<VarId> vars;
  Body body;
  // Loop: innermost, its iterations are vector lanes. Call: takes all lanes of the open block at
  // once. Fold: has an accumulator for each lane of the open block.
  bool lanes = false;
  bool parallel = false;  // Loop: its iterations are to be shared out over the threads
  bool merges = false;    // Loop: with the one inside it, it may be run as one
  // Loop, Fold: runs over its lanes in blocks of so many; 0: it does not. The body then stands
  // around the lanes: segments, and between them what is done for a whole block.
  std::int64_t block = 0;
  Body exact;  // Loop: runs again in place of `body` where that met a Doubt
  // Call of lanes: by operand, inputs first: memory that it reads or writes itself (or no buffer).
  std::vector<Access> direct;
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
  // The elements had better be made a block at a time, in an array, and then combined: where g++
  // would make them one by one, or where block calls make them.
  bool in_blocks = false;
  // Fold of lanes: so many rows at a time go into the accumulators; 0: element by element. Its body
  // is one segment then, which ends with the loop over the rows.
  int rows = 0;
  int ahead = 0;  // so many rows later are fetched into the cache meanwhile; 0: none are
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

struct Kernel {
  std::vector<Var> vars;
  std::vector<Value> values;
  std::vector<Buffer> buffers;
  std::vector<std::int64_t> sizes;    // values of the symbols
  std::vector<std::uint32_t> params;  // the request's params used
  std::vector<std::uint32_t> calls;   // rows of the LoopTable used
  Body body;
  VarId parallel = -1;     // the loop whose range is shared out; -1: a Parallel fold, or one thread
  std::int64_t grain = 1;  // at multiples of which that range is cut
  std::vector<std::string> ops;  // what is fused, for people
  double cost_ns = 0;            // estimate for one thread
  bool streams =
      false;  // what is streamable is so large that it goes past the caches; not in the text

  const Var& var(VarId v) const { return vars[static_cast<std::size_t>(v)]; }
  const Value& value(ValueId v) const { return values[static_cast<std::size_t>(v)]; }
  const Buffer& buffer(const Access& a) const {
    return buffers[static_cast<std::size_t>(a.buffer)];
  }
};

// Elements between one array and the next: NumPy 1.x takes operands that touch for overlapping, and
// then computes otherwise.
inline constexpr std::int64_t kArrayGap = 8;

// The variable of the lanes that a blocked loop or reduction runs over.
inline VarId lanes_of(const Stmt& blocked) { return blocked.vars.back(); }
// Whether all lanes of a blocked loop are known to be one block.
inline bool is_one_block(const Kernel& kernel, const Stmt& blocked) {
  const VarId var = lanes_of(blocked);
  const Number& extent = kernel.var(var).extent;
  return blocked.kind == Stmt::Kind::Loop && extent.literal() && extent.value <= blocked.block &&
         var != kernel.parallel;
}
// Of the arrays that keep something for each lane of a block.
inline std::int64_t array_length(const Kernel& kernel, const Stmt& blocked) {
  const bool one = is_one_block(kernel, blocked);
  return (one ? kernel.var(lanes_of(blocked)).extent.value : blocked.block) + kArrayGap;
}

std::string print(const Kernel& kernel);  // for golden files and logs

}  // namespace ufuse::codegen::loop
