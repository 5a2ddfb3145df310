// Constant folding with the inner loops of the interpreter, so that a folded value has the bits it
// would have had. A value is constant when it is a constant, or a constant broadcast. Where
// computing raises a floating-point flag the node stays, because NumPy warns each time it runs.
#include <array>
#include <cstring>
#include <optional>

#include "ir/build.h"
#include "ir/inner_loops.h"
#include "ir/passes/passes.h"
#include "ir/passes/rewrite.h"

namespace ufuse::ir {
namespace {

// The constant that every element of a node equals.
std::optional<Scalar> uniform_value(const Graph& g, NodeId id) {
  while (is_index_map(g[id].op)) id = g[id].inputs[0];
  if (g[id].op != Op::Const) return std::nullopt;
  return g[id].constant;
}

// Runs `loop` on one element; nothing when it raises a flag.
std::optional<Scalar> evaluate(InnerLoop loop, const std::vector<Scalar>& operands, DType result) {
  std::array<char*, 4> args{};
  const std::array<std::int64_t, 4> strides{};
  const std::int64_t one = 1;
  std::vector<Scalar> values = operands;
  values.push_back(Scalar{});
  for (std::size_t k = 0; k < values.size(); ++k) args[k] = reinterpret_cast<char*>(values[k].bits);
  clear_fp_flags();
  loop(args.data(), &one, strides.data(), nullptr);
  const bool raised = read_fp_flags() != 0;
  clear_fp_flags();
  if (raised) return std::nullopt;
  return without_padding(values.back(), result);
}

NodeId rule(Graph& g, const Node& node) {
  const bool is_map = node.op == Op::Reshape || node.op == Op::Transpose || node.op == Op::Slice;
  if (!is_map && node.op != Op::Cast && !is_elementwise_row(node.op)) return {};
  std::vector<Scalar> operands;
  for (NodeId operand : node.inputs) {
    const std::optional<Scalar> value = uniform_value(g, operand);
    if (!value) return {};
    operands.push_back(*value);
  }
  std::optional<Scalar> value = operands[0];
  if (!is_map) {
    const DType dtype = g[node.inputs.back()].dtype;
    value = evaluate(
        node.op == Op::Cast ? cast_loop(dtype, node.dtype) : elementwise_loop(node.op, dtype),
        operands, node.dtype);
  }
  if (!value) return {};
  return broadcast_to(g, constant(g, node.dtype, *value), node.shape);
}

}  // namespace

Graph fold(const Graph& graph) { return rewrite(graph, rule); }

}  // namespace ufuse::ir
