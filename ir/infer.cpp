// Which dtype and shape must a node have? The rules of every op, as the tables and ir/graph.h say
// them; throws InternalError when its operands or attributes fit no rule. The builder fills nodes
// in with the answer, the verifier compares them with it.
#include <algorithm>
#include <string>

#include "ir/build.h"
#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw InternalError(std::string(op_name(node.op)) + ": " + what);
}

void require(bool condition, const Node& node, const char* what) {
  if (!condition) fail(node, what);
}

std::int64_t count(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

// Operand k, after checking that there are `min` to `max` operands.
class Operands {
 public:
  Operands(const Graph& g, const Node& node, std::size_t min, std::size_t max)
      : g_(g), node_(node) {
    require(node.inputs.size() >= min && node.inputs.size() <= max, node,
            "wrong number of operands");
    for (NodeId id : node.inputs) require(id.value < g.size(), node, "operand does not exist");
  }
  const Node& operator[](std::size_t k) const { return g_[node_.inputs[k]]; }

 private:
  const Graph& g_;
  const Node& node_;
};

bool are_distinct_axes(const Dims& axes, std::size_t ndim, bool allow_minus_one) {
  SmallVector<bool, 16> seen(ndim, false);
  for (std::int64_t a : axes) {
    if (a == -1 && allow_minus_one) continue;
    if (a < 0 || a >= static_cast<std::int64_t>(ndim) || seen[a]) return false;
    seen[a] = true;
  }
  return true;
}

Inferred infer_broadcast(const Node& node, const Node& x) {
  require(node.ints.size() == node.shape.size(), node, "one axis per result axis is needed");
  require(are_distinct_axes(node.ints, x.shape.size(), true), node, "bad axes");
  SmallVector<bool, 16> followed(x.shape.size(), false);
  for (std::size_t i = 0; i < node.ints.size(); ++i) {
    if (node.ints[i] < 0) continue;
    followed[node.ints[i]] = true;
    require(node.shape[i] == x.shape[node.ints[i]], node, "a followed axis keeps its extent");
  }
  for (std::size_t a = 0; a < followed.size(); ++a)
    require(followed[a] || x.shape[a] == 1, node, "only axes of extent 1 may be dropped");
  return {x.dtype, node.shape};
}

Inferred infer_transpose(const Node& node, const Node& x) {
  require(node.ints.size() == x.shape.size() && are_distinct_axes(node.ints, x.shape.size(), false),
          node, "not a permutation");
  Dims shape(x.shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = x.shape[node.ints[i]];
  return {x.dtype, std::move(shape)};
}

Inferred infer_slice(const Node& node, const Node& x) {
  const std::size_t nd = x.shape.size();
  require(node.shape.size() == nd, node, "keeps the number of axes");
  require(node.ints.size() == 2 * nd, node, "one start and one step per axis are needed");
  for (std::size_t i = 0; i < nd; ++i) {
    const std::int64_t start = node.ints[i], step = node.ints[nd + i], n = node.shape[i];
    require(step != 0, node, "step 0");
    if (n <= 0) continue;
    const std::int64_t last = start + (n - 1) * step;
    require(start >= 0 && start < x.shape[i] && last >= 0 && last < x.shape[i], node,
            "out of bounds");
  }
  return {x.dtype, node.shape};
}

Inferred infer_ufunc(const Graph& g, const LoopTable* loops, const Node& node) {
  const Operands x(g, node, 1, 64);
  for (std::size_t k = 1; k < node.inputs.size(); ++k)
    require(x[k].shape == x[0].shape, node, "operands differ in shape");
  if (loops == nullptr) return {node.dtype, x[0].shape};  // a parsed graph has no loops yet
  require(node.id < loops->size(), node, "no such loop");
  const LoopEntry& entry = (*loops)[node.id];
  require(node.slot < entry.outputs.size(), node, "no such output");
  require(node.inputs.size() == entry.inputs.size(), node, "wrong number of operands");
  for (std::size_t k = 0; k < entry.inputs.size(); ++k)
    require(x[k].dtype == entry.inputs[k], node, "an operand's dtype is not the loop's");
  return {entry.outputs[node.slot], x[0].shape};
}

Inferred infer_elementwise(const Graph& g, const Node& node) {
  const OpInfo& row = op_info(node.op);
  const auto arity = static_cast<std::size_t>(row.arity);
  const Operands x(g, node, arity, arity);
  // `where` chooses by a bool between two values of one dtype; all other rows have operands of one
  // dtype.
  const std::size_t first = node.op == Op::Where ? 1 : 0;
  if (first == 1) require(x[0].dtype == DType::Bool, node, "the condition is not bool");
  for (std::size_t k = 0; k < arity; ++k) {
    require(x[k].shape == x[0].shape, node, "operands differ in shape");
    if (k >= first) require(x[k].dtype == x[first].dtype, node, "operands differ in dtype");
  }
  const DType dtype = x[first].dtype;
  if (!is_accepted(dtype, row.accepts))
    fail(node, "does not accept " + std::string(info(dtype).name));
  switch (row.result) {
    case ResultRule::Same:
      return {dtype, x[0].shape};
    case ResultRule::Bool:
      return {DType::Bool, x[0].shape};
    case ResultRule::Real:
      return {real_part(dtype), x[0].shape};
  }
  fail(node, "unknown result rule");
}

void check_order(const Node& node, DType dtype) {
  const bool pairwise = node.order == Order::Pairwise;
  if (pairwise) {
    require(node.reduction == Reduction::Sum && is_in(dtype, kInexact), node,
            "pairwise is an order of inexact sums");
    require(node.run_axes >= 1 && node.run_axes <= node.ints.size(), node, "bad run_axes");
    require(node.chunk >= 0, node, "bad chunk");
  }
  if (node.order == Order::Extremum)
    require(reduction_info(node.reduction).identity == Identity::None && is_in(dtype, kFloat), node,
            "extremum is an order of float minimum and maximum");
}

Inferred infer_reduce(const Graph& g, const Node& node) {
  const Operands x(g, node, 1, 2);
  const DType dtype = x[0].dtype;
  const ReductionInfo& row = reduction_info(node.reduction);
  if (!is_accepted(dtype, row.accepts))
    fail(node, std::string(row.name) + " does not accept " + std::string(info(dtype).name));
  require(are_distinct_axes(node.ints, x[0].shape.size(), false), node, "bad axes");
  check_order(node, dtype);
  const bool has_initial = node.inputs.size() == 2;
  if (has_initial)
    require(x[1].dtype == dtype && x[1].shape.empty(), node,
            "the initial value is not a 0-d "
            "value of the operand's dtype");
  Dims shape;
  std::int64_t reduced = 1;
  for (std::size_t a = 0; a < x[0].shape.size(); ++a) {
    if (std::ranges::find(node.ints, static_cast<std::int64_t>(a)) != node.ints.end())
      reduced *= x[0].shape[a];
    else
      shape.push_back(x[0].shape[a]);
  }
  require(reduced > 0 || has_initial || row.identity != Identity::None || count(shape) == 0, node,
          "no elements and no identity");
  return {dtype, std::move(shape)};
}

Inferred infer_arg_reduce(const Graph& g, const Node& node) {
  const Operands x(g, node, 1, 1);
  require(node.id <= 1, node, "id is neither 0 (argmin) nor 1 (argmax)");
  require(node.ints.size() == 1 && are_distinct_axes(node.ints, x[0].shape.size(), false), node,
          "bad axis");
  require(is_accepted(x[0].dtype, kBool | kReal), node, "has no order of these numbers");
  Dims shape = x[0].shape;
  const std::int64_t extent = shape[node.ints[0]];
  shape.erase(shape.begin() + node.ints[0]);
  require(extent > 0 || count(shape) == 0, node, "no elements");
  return {DType::Int64, std::move(shape)};
}

}  // namespace

Inferred infer(const Graph& g, const LoopTable* loops, const Node& node) {
  for (std::int64_t d : node.shape) require(d >= 0, node, "negative extent");
  switch (node.op) {
    case Op::Input:
      Operands(g, node, 0, 0);
      return {node.dtype, node.shape};
    case Op::Param:
    case Op::Const:
      Operands(g, node, 0, 0);
      return {node.dtype, {}};
    case Op::Broadcast:
      return infer_broadcast(node, Operands(g, node, 1, 1)[0]);
    case Op::Transpose:
      return infer_transpose(node, Operands(g, node, 1, 1)[0]);
    case Op::Slice:
      return infer_slice(node, Operands(g, node, 1, 1)[0]);
    case Op::Reshape: {
      const Node& x = Operands(g, node, 1, 1)[0];
      require(count(node.shape) == count(x.shape), node, "the number of elements changes");
      return {x.dtype, node.shape};
    }
    case Op::Cast:
      return {node.dtype, Operands(g, node, 1, 1)[0].shape};
    case Op::Ufunc:
      return infer_ufunc(g, loops, node);
    case Op::Reduce:
      return infer_reduce(g, node);
    case Op::ArgReduce:
      return infer_arg_reduce(g, node);
    default:
      return infer_elementwise(g, node);
  }
}

}  // namespace ufuse::ir
