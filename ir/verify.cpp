// Is this graph well formed? Names the first bad node. Beside what inference demands: operands come
// before users, attributes that an op's row does not name keep their defaults (equality compares
// all fields, so a stray one would split equal nodes), constants are canonical, one input is one
// array.
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

// The fields of a node that the attributes column speaks of.
struct Field {
  Attributes attribute;
  const char* name;
  bool (*is_default)(const Node& node);
};
constexpr Field kFields[] = {
    {kHasInts, "ints", [](const Node& n) { return n.ints.empty(); }},
    {kHasId, "id", [](const Node& n) { return n.id == 0; }},
    {kHasSlot, "slot", [](const Node& n) { return n.slot == 0; }},
    {kHasConstant, "constant", [](const Node& n) { return n.constant == Scalar{}; }},
    {kHasOrder, "reduction",
     [](const Node& n) { return n.reduction == Node{}.reduction && n.order == Node{}.order; }},
    {kHasCombine, "combine", [](const Node& n) { return !n.combine; }},
    {kHasBounds, "bounds", [](const Node& n) { return n.bounds == Node{}.bounds; }},
};

void check_unused(const Node& node, const Fail& fail) {
  for (const Field& field : kFields)
    if (!(op_info(node.op).attributes & field.attribute) && !field.is_default(node))
      fail(std::string(field.name) + " is not an attribute of this op");
  if (node.order != Order::Pairwise && (node.run_axes != 0 || node.chunk != 0))
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
    if (is_leaf(node.op) && op_info(node.op).attributes & kHasId) {
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
