// Is this graph well formed? Checked after tracing and between passes in debug mode; names the
// first bad node. Beside what inference demands: operands come before users, attributes that an op
// does not use keep their defaults (equality compares all fields, so a stray one would split equal
// nodes), constants are canonical, one input is one array.
#include <string>
#include <unordered_map>
#include <utility>

#include "ir/build.h"
#include "ir/print.h"
#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

struct Fail {
  const Graph& g;
  std::size_t index;
  [[noreturn]] void operator()(const std::string& what) const {
    throw InternalError("malformed graph: " + what + "\n  at " + print_node(g, g.at(index)));
  }
};

// Which attributes an op's line in `Op` names.
struct Uses {
  bool ints = false, id = false, slot = false, constant = false, reduce = false;
};

Uses uses_of(Op op) {
  switch (op) {
    case Op::Input:
    case Op::Param:
      return {.id = true};
    case Op::Const:
      return {.constant = true};
    case Op::Broadcast:
    case Op::Transpose:
    case Op::Slice:
      return {.ints = true};
    case Op::Ufunc:
      return {.id = true, .slot = true};
    case Op::Reduce:
      return {.ints = true, .reduce = true};
    case Op::ArgReduce:
      return {.ints = true, .id = true};
    default:
      return {};
  }
}

void check_unused(const Node& node, const Fail& fail) {
  const Uses uses = uses_of(node.op);
  const Node defaults{};
  if (!uses.ints && !node.ints.empty()) fail("ints are not an attribute of this op");
  if (!uses.id && node.id != defaults.id) fail("id is not an attribute of this op");
  if (!uses.slot && node.slot != defaults.slot) fail("slot is not an attribute of this op");
  if (!uses.constant && node.constant != defaults.constant)
    fail("constant is not an attribute of this op");
  if (!uses.reduce && (node.reduction != defaults.reduction || node.order != defaults.order))
    fail("reduction and order are not attributes of this op");
  if (node.order != Order::Pairwise &&
      (node.run_axes != defaults.run_axes || node.chunk != defaults.chunk))
    fail("run_axes and chunk are attributes of the pairwise order only");
}

// Bits beyond the dtype are zero and a bool is 0 or 1, so that equal values are equal nodes.
void check_constant(const Node& node, const Fail& fail) {
  if (node.constant != without_padding(node.constant, node.dtype))
    fail("the constant has bits beyond its dtype");
  if (node.dtype == DType::Bool && node.constant.bits[0] > 1) fail("a bool constant is 0 or 1");
}

}  // namespace

void verify(const Graph& g, const LoopTable* loops) {
  std::unordered_map<std::uint64_t, std::size_t> leaves;  // (op, id) -> first node
  for (std::size_t i = 0; i < g.size(); ++i) {
    const Node& node = g[g.at(i)];
    const Fail fail{g, i};
    for (NodeId operand : node.inputs)
      if (operand.value >= i) fail("an operand does not come before its user");
    check_unused(node, fail);
    if (node.op == Op::Const) check_constant(node, fail);
    if (node.op == Op::Input || node.op == Op::Param) {
      const std::uint64_t key = (std::uint64_t{node.op == Op::Input} << 32) | node.id;
      if (!leaves.emplace(key, i).second) fail("two nodes of different type share an id");
    }
    Inferred inferred;
    try {
      inferred = infer(g, loops, node);
    } catch (const InternalError& error) {
      fail(error.what());
    }
    if (inferred.dtype != node.dtype)
      fail("the dtype should be " + std::string(info(inferred.dtype).name));
    if (inferred.shape != node.shape) fail("the shape should be " + print_dims(inferred.shape));
  }
  for (NodeId output : g.outputs)
    if (output.value >= g.size()) throw InternalError("malformed graph: an output does not exist");
}

}  // namespace ufuse::ir
