// Which dtype and shape must a node have? The columns of the tables say it, and what they leave
// open stands here, one function for each kind of node; throws InternalError when operands or
// attributes do not fit. The builder fills nodes in with the answer, the verifier compares them
// with it.
#include <algorithm>
#include <string>
#include <utility>

#include "ir/build.h"
#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

[[noreturn]] void fail(const Node& node, const std::string& what) {
  throw InternalError(std::string(op_info(node.op).name) + ": " + what);
}

void require(bool condition, const Node& node, const char* what) {
  if (!condition) fail(node, what);
}

std::int64_t count(const Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

// A node's operands, of which there are as many as its row says, of dtypes that it accepts, and of
// one shape where the result has it, too.
class Operands {
 public:
  Operands(const Graph& g, const Node& node) : g_(g), node_(node) {
    const OpInfo& row = op_info(node.op);
    const auto n = static_cast<int>(node.inputs.size());
    require(n >= row.arity && n <= row.arity + row.optional, node, "wrong number of operands");
    for (NodeId id : node.inputs) require(id.value < g.size(), node, "operand does not exist");
    if (n > 0 && !is_accepted(values().dtype, row.accepts))
      fail(node, "does not accept " + std::string(info(values().dtype).name));
    if (row.shape != ShapeRule::Same) return;
    for (NodeId id : node.inputs)
      require(g[id].shape == g[node.inputs[0]].shape, node, "operands differ in shape");
  }
  const Node& operator[](std::size_t k) const { return g_[node_.inputs[k]]; }
  std::size_t size() const { return node_.inputs.size(); }
  // The first operand that is no condition.
  const Node& values() const { return (*this)[node_.op == Op::Where ? 1 : 0]; }

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

void check_broadcast(const Node& node, const Node& x) {
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
}

void check_slice(const Node& node, const Node& x) {
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
}

Dims transposed(const Node& node, const Node& x) {
  require(node.ints.size() == x.shape.size() && are_distinct_axes(node.ints, x.shape.size(), false),
          node, "not a permutation");
  Dims shape(x.shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = x.shape[node.ints[i]];
  return shape;
}

// A parsed graph has no loops yet.
void check_ufunc(const Node& node, const Operands& x, const LoopTable* loops) {
  if (loops == nullptr) return;
  require(node.id < loops->size(), node, "no such loop");
  const LoopEntry& entry = (*loops)[node.id];
  require(node.slot < entry.outputs.size(), node, "no such output");
  require(x.size() == entry.inputs.size(), node, "wrong number of operands");
  for (std::size_t k = 0; k < entry.inputs.size(); ++k)
    require(x[k].dtype == entry.inputs[k], node, "an operand's dtype is not the loop's");
}

// `where` chooses by a bool between two values of one dtype; of the other rows all operands are of
// one dtype.
void check_elementwise(const Node& node, const Operands& x) {
  const std::size_t first = node.op == Op::Where ? 1 : 0;
  if (first == 1) require(x[0].dtype == DType::Bool, node, "the condition is not bool");
  for (std::size_t k = first; k < x.size(); ++k)
    require(x[k].dtype == x[first].dtype, node, "operands differ in dtype");
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

Dims reduced(const Node& node, const Operands& x) {
  const DType dtype = x[0].dtype;
  const ReductionInfo& row = reduction_info(node.reduction);
  if (!is_accepted(dtype, row.accepts))
    fail(node, std::string(row.name) + " does not accept " + std::string(info(dtype).name));
  require(are_distinct_axes(node.ints, x[0].shape.size(), false), node, "bad axes");
  check_order(node, dtype);
  const bool has_initial = x.size() == 2;
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
  return shape;
}

Dims without_axis(const Node& node, const Node& x) {
  require(node.id <= 1, node, "id is neither 0 (argmin) nor 1 (argmax)");
  require(node.ints.size() == 1 && are_distinct_axes(node.ints, x.shape.size(), false), node,
          "bad axis");
  Dims shape = x.shape;
  const std::int64_t extent = shape[node.ints[0]];
  shape.erase(shape.begin() + node.ints[0]);
  require(extent > 0 || count(shape) == 0, node, "no elements");
  return shape;
}

// A row of ops.def that gives what it takes.
void check_combine(const Node& node, Op combine, DType dtype, int arity) {
  require(is_elementwise_row(combine) && combine != Op::Where, node, "not an op that combines");
  const OpInfo& row = op_info(combine);
  require(row.arity == arity, node, "combine takes another number of operands");
  require(is_accepted(dtype, row.accepts) && result_dtype(combine, dtype) == dtype, node,
          "combine does not give the dtype that it takes");
}

void check_scan(const Node& node, const Operands& x) {
  require(node.ints.size() == 1 && are_distinct_axes(node.ints, x[0].shape.size(), false), node,
          "bad axis");
  require(node.combine.has_value(), node, "combine is missing");
  check_combine(node, *node.combine, x[0].dtype, 2);
}

// The shape of what stands at the positions.
Dims gathered(const Node& node, const Operands& x) {
  const std::size_t axes = node.ints.size();
  require(axes >= 1 && x.size() >= axes + 1, node, "one operand for each axis is needed");
  require(are_distinct_axes(node.ints, x[0].shape.size(), false), node, "bad axes");
  Dims shape = x[1].shape;
  for (std::size_t k = 1; k <= axes; ++k) {
    require(x[k].dtype == DType::Int64, node, "positions are int64");
    require(x[k].shape == shape, node, "positions differ in shape");
  }
  for (std::size_t a = 0; a < x[0].shape.size(); ++a)
    if (std::ranges::find(node.ints, static_cast<std::int64_t>(a)) == node.ints.end())
      shape.push_back(x[0].shape[a]);
  return shape;
}

Dims scattered(const Node& node, const Operands& x) {
  const Dims shape = gathered(node, x);
  const std::size_t axes = node.ints.size();
  const bool has_values = x.size() > axes + 1;
  require(x.size() <= axes + 2, node, "too many operands");
  require(has_values || node.combine, node, "new elements are missing");
  if (has_values) {
    require(x[axes + 1].shape == shape, node, "the new elements are of another shape");
    require(node.combine || x[axes + 1].dtype == x[0].dtype, node,
            "the new elements are of another dtype");
  }
  if (node.combine)
    check_combine(node, *node.combine, x[has_values ? axes + 1 : 0].dtype, has_values ? 2 : 1);
  return x[0].shape;
}

// What the row leaves open: whether the attributes fit the operands, and the shape where it is
// derived from both.
Dims checked(const Node& node, const Operands& x, const LoopTable* loops) {
  switch (kind_of(node.op)) {
    case NodeKind::Input:
    case NodeKind::Param:
    case NodeKind::Const:
    case NodeKind::Cast:
      return {};
    case NodeKind::Broadcast:
      check_broadcast(node, x[0]);
      return {};
    case NodeKind::Transpose:
      return transposed(node, x[0]);
    case NodeKind::Slice:
      check_slice(node, x[0]);
      return {};
    case NodeKind::Reshape:
      require(count(node.shape) == count(x[0].shape), node, "the number of elements changes");
      return {};
    case NodeKind::Ufunc:
      check_ufunc(node, x, loops);
      return {};
    case NodeKind::Reduce:
      return reduced(node, x);
    case NodeKind::ArgReduce:
      return without_axis(node, x[0]);
    case NodeKind::Iota:
      require(node.shape.size() == 1, node, "has one axis");
      return {};
    case NodeKind::Scan:
      check_scan(node, x);
      return {};
    case NodeKind::Gather:
      require(x.size() == node.ints.size() + 1, node, "one operand for each axis is needed");
      return gathered(node, x);
    case NodeKind::Scatter:
      return scattered(node, x);
    case NodeKind::Nonzero:
      require(
          node.shape.size() == 2 && node.shape[1] == static_cast<std::int64_t>(x[0].shape.size()),
          node, "has one column for each axis");
      require(node.shape[0] <= count(x[0].shape), node, "more positions than elements");
      return {};
    case NodeKind::Elementwise:
      check_elementwise(node, x);
      return {};
  }
  fail(node, "unknown kind");
}

DType dtype_of(const Node& node, const Operands& x, const LoopTable* loops) {
  switch (op_info(node.op).result) {
    case ResultRule::Own:
      return node.dtype;
    case ResultRule::Loop:
      return loops == nullptr ? node.dtype : (*loops)[node.id].outputs[node.slot];
    case ResultRule::Same:
    case ResultRule::Bool:
    case ResultRule::Real:
      return result_dtype(node.op, x.values().dtype);
    case ResultRule::Int64:
      return DType::Int64;
  }
  fail(node, "unknown result rule");
}

Dims shape_of(const Node& node, const Operands& x, Dims&& derived) {
  switch (op_info(node.op).shape) {
    case ShapeRule::Own:
      return node.shape;
    case ShapeRule::Scalar:
      return {};
    case ShapeRule::Same:
      return x[0].shape;
    case ShapeRule::Derived:
      return std::move(derived);
  }
  fail(node, "unknown shape rule");
}

}  // namespace

Inferred infer(const Graph& g, const LoopTable* loops, const Node& node) {
  for (std::int64_t d : node.shape) require(d >= 0, node, "negative extent");
  const Operands x(g, node);
  Dims derived = checked(node, x, loops);
  return {dtype_of(node, x, loops), shape_of(node, x, std::move(derived))};
}

}  // namespace ufuse::ir
