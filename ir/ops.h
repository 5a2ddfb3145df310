// Which nodes are there, and what do the tables say of each? An `Op` is what a node computes: a
// kind of node (a row of kinds.def), or an elementwise op (a row of ops.def), of which all are of
// one kind. Facts are read from the tables here and nowhere else; a graph (graph.h) is not needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ir/dtype.h"

namespace ufuse::ir {

// What kind of node? Switches over it have no `default`: the compiler names those that lack one.
enum class NodeKind : std::uint8_t {
#define KIND(id, ...) id,
#include "ir/kinds.def"
#undef KIND
  Elementwise,  // a row of ops.def
};

enum class Op : std::uint8_t {
#define KIND(id, ...) id,
#include "ir/kinds.def"
#undef KIND
#define OP(id, name, arity, accepts, result, flags, cpp) id,
#include "ir/ops.def"
#undef OP
};

constexpr NodeKind kind_of(Op op) {
  const bool is_row =
      static_cast<std::size_t>(op) >= static_cast<std::size_t>(NodeKind::Elementwise);
  return is_row ? NodeKind::Elementwise : static_cast<NodeKind>(op);
}

// The columns; kinds.def and ops.def say what each value means.
enum class Group : std::uint8_t { Leaf, IndexMap, Computed };
enum class ResultRule : std::uint8_t { Same, Bool, Real, Own, Int64, Loop };
enum class ShapeRule : std::uint8_t { Own, Scalar, Same, Derived };
enum class Flags : std::uint8_t { Quiet, Fp, Cast, Combine, Any };
using Attributes = std::uint8_t;
inline constexpr Attributes kHasNothing = 0, kHasInts = 1, kHasId = 2, kHasSlot = 4,
                            kHasConstant = 8, kHasOrder = 16,  // reduction, order, run_axes, chunk
    kHasCombine = 32, kHasBounds = 64;

struct OpInfo {
  std::string_view
      name;  // NumPy's name of the ufunc; of what is no ufunc, the name it is printed as
  Group group;
  int arity;     // operands that it must have
  int optional;  // and so many more that it may have
  Kinds accepts;
  ResultRule result;
  ShapeRule shape;
  Attributes attributes;
  Flags flags;
  std::string_view expression;  // scalar C++ of an elementwise op, with holes: {0} + {1}
};
const OpInfo& op_info(Op op);
// The same C++. `raises`: somebody looks at the flags. Else nothing keeps comparisons from raising
// one for a NaN, and they take a third of the time.
std::string_view expression(Op op, DType operand, bool raises);
std::optional<Op> op_named(std::string_view name);

inline bool is_leaf(Op op) { return op_info(op).group == Group::Leaf; }
inline bool is_index_map(Op op) { return op_info(op).group == Group::IndexMap; }
constexpr bool is_elementwise_row(Op op) { return kind_of(op) == NodeKind::Elementwise; }

// The dtype of an elementwise op's result.
DType result_dtype(Op op, DType operand);
// May an elementwise op or a cast raise a floating-point flag that NumPy reports? Of `where`, the
// operand is one of the two values.
bool may_raise(Op op, DType operand, DType result);

enum class Reduction : std::uint8_t {
#define REDUCTION(id, name, combine, accepts, identity) id,
#include "ir/reductions.def"
#undef REDUCTION
};

enum class Identity : std::uint8_t { Zero, One, AllOnes, None };
struct ReductionInfo {
  std::string_view name;  // NumPy's ufunc
  Op combine;
  Kinds accepts;
  Identity identity;
};
const ReductionInfo& reduction_info(Reduction r);
std::optional<Reduction> reduction_named(std::string_view name);

}  // namespace ufuse::ir
