// Rewrites that hold to the bit for every value: NaN with its payload, -0.0, the smallest integer;
// and that lose no warning. What is *not* here is not here for a reason: x*0 is not 0 (NaN, -1),
// x+0 is not x (-0.0), x/x is not 1, (-x)*(-x) is not x*x for a NaN.
#include <optional>

#include "ir/build.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace ufuse::ir {
namespace {

// The operand when `id` is a node of `op`.
NodeId under(const Graph& g, NodeId id, Op op) {
  return g[id].op == op ? g[id].inputs[0] : NodeId{};
}

// A constant condition, also when broadcast.
std::optional<bool> known_condition(const Graph& g, NodeId id) {
  if (g[id].op == Op::Broadcast) id = g[id].inputs[0];
  if (g[id].op != Op::Const) return std::nullopt;
  return g[id].constant.bits[0] != 0;
}

// A bool in an array may be any byte (true when not 0), and an op on it gives 0 or 1: `x` itself
// would keep the byte.
bool keeps_bytes(const Graph& g, NodeId x) { return g[x].dtype != DType::Bool; }

NodeId simplify_unary(Graph& g, const Node& node) {
  const NodeId x = node.inputs[0];
  switch (node.op) {
    case Op::Positive:
      return x;
    case Op::Conjugate:
      return is_in(node.dtype, kComplex) ? under(g, x, Op::Conjugate) : x;
    case Op::Negative:
      return under(g, x, Op::Negative);
    case Op::Invert:
      return keeps_bytes(g, x) ? under(g, x, Op::Invert) : NodeId{};
    case Op::Fabs:
    case Op::Absolute: {
      if (is_in(node.dtype, kUInt) || g[x].op == Op::Absolute) return x;
      const NodeId y = under(g, x, Op::Negative);
      return elementwise(g, Op::Absolute, {y ? y : x});
    }
    case Op::RealPart:
      // The real part of a real number made complex; the cast to the part's own dtype warns as
      // before.
      if (const NodeId y = under(g, x, Op::Cast); y && !is_in(g[y].dtype, kComplex))
        return cast(g, y, node.dtype);
      return {};
    case Op::ImagPart:
      // A cast of float64 to complex64 may overflow, and then the warning must stay.
      if (const NodeId y = under(g, x, Op::Cast);
          y && (is_in(g[y].dtype, kBool | kInteger) || g[y].dtype == DType::Float32 ||
                g[y].dtype == node.dtype))
        return broadcast_to(g, constant(g, node.dtype, Scalar{}), node.shape);
      return {};
    default:
      return {};
  }
}

NodeId rule(Graph& g, const Node& node) {
  if (!is_elementwise_row(node.op)) return {};
  switch (node.op) {
    case Op::Maximum:
    case Op::Minimum:
    case Op::BitAnd:
    case Op::BitOr:
      return node.inputs[0] == node.inputs[1] && keeps_bytes(g, node.inputs[0]) ? node.inputs[0]
                                                                                : NodeId{};
    case Op::Where: {
      if (!keeps_bytes(g, node.inputs[1])) return {};
      if (node.inputs[1] == node.inputs[2]) return node.inputs[1];
      if (const std::optional<bool> condition = known_condition(g, node.inputs[0]))
        return node.inputs[*condition ? 1 : 2];
      return {};
    }
    default:
      return op_info(node.op).arity == 1 ? simplify_unary(g, node) : NodeId{};
  }
}

}  // namespace

Graph simplify(const Graph& graph) { return rewrite(graph, rule); }

}  // namespace ufuse::ir
