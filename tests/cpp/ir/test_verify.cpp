// Inference gives what each op's rule says, and the verifier rejects each way in which a node can
// be malformed.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>

#include "ir/build.h"
#include "ir/support/error.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {

TEST_CASE("verify: leaves without ids stand beside those that have some") {
  Graph g;
  param(g, 0, DType::Int64);
  iota(g, 3);
  iota(g, 4);
  CHECK_NOTHROW(verify(g, nullptr));
}

TEST_CASE("infer: every row accepts the kinds of its table and no others") {
  for (Op op : testing::all_rows()) {
    const OpInfo& row = op_info(op);
    for (DType dtype : testing::all_dtypes()) {
      CAPTURE(row.name);
      CAPTURE(info(dtype).name);
      Graph g;
      NodeIds operands;
      for (int k = 0; k < row.arity; ++k)
        operands.push_back(input(g, static_cast<std::uint32_t>(k),
                                 op == Op::Where && k == 0 ? DType::Bool : dtype, {2}));
      if (!is_accepted(dtype, row.accepts)) {
        CHECK_THROWS_AS(elementwise(g, op, operands), InternalError);
        continue;
      }
      const Node& node = g[elementwise(g, op, operands)];
      CHECK(node.shape == Dims{2});
      const DType wanted = row.result == ResultRule::Bool   ? DType::Bool
                           : row.result == ResultRule::Real ? real_part(dtype)
                                                            : dtype;
      CHECK(node.dtype == wanted);
      CHECK_NOTHROW(verify(g, nullptr));
    }
  }
}

TEST_CASE("infer: shapes of maps and reductions") {
  Graph g;
  const NodeId x = input(g, 0, DType::Int32, {2, 3, 4});
  CHECK(g[transpose(g, x, {2, 0, 1})].shape == Dims{4, 2, 3});
  CHECK(g[reduce(g, Reduction::Sum, x, {2, 0}, {Order::Free})].shape == Dims{3});
  CHECK(g[arg_reduce(g, false, x, 1)].shape == Dims{2, 4});
  CHECK(g[arg_reduce(g, false, x, 1)].dtype == DType::Int64);
  CHECK(g[broadcast_to(g, x, {5, 2, 3, 4})].ints == Dims{-1, 0, 1, 2});
  CHECK(broadcast_to(g, x, {2, 3, 4}) == x);
  CHECK(cast(g, x, DType::Int32) == x);
  const NodeId one = input(g, 1, DType::Int32, {3, 1});
  CHECK(g[broadcast_to(g, one, {2, 3, 1})].ints == Dims{-1, 0, 1});
  CHECK(g[broadcast_to(g, one, {3, 7})].ints == Dims{0, -1});
  CHECK_THROWS_AS(broadcast_to(g, x, {3, 4}), InternalError);
  CHECK_THROWS_AS(broadcast_to(g, x, {2, 5, 4}), InternalError);
}

namespace {

// A well-formed graph of one interesting node, and a way to break that node.
struct Case {
  std::string name;
  std::function<NodeId(Graph&)> build;
  std::function<void(Node&)> damage;
};

NodeId x3(Graph& g) { return input(g, 0, DType::Float64, {2, 3}); }
NodeId sum(Graph& g) { return reduce(g, Reduction::Sum, x3(g), {1}, {Order::Pairwise, 1, 0}); }
NodeId add(Graph& g) { return elementwise(g, Op::Add, {x3(g), x3(g)}); }
NodeId part(Graph& g) { return slice(g, x3(g), {0, 2}, {1, -2}, {2, 2}); }
NodeId wide(Graph& g) { return broadcast_to(g, input(g, 0, DType::Int8, {1, 3}), {2, 3}); }
NodeId turned(Graph& g) { return transpose(g, x3(g), {1, 0}); }
NodeId flat(Graph& g) { return reshape(g, x3(g), {6}); }
NodeId number(Graph& g) { return constant(g, DType::Float32, {}); }
NodeId position(Graph& g) { return arg_reduce(g, false, x3(g), 1); }
NodeId choice(Graph& g) {
  return elementwise(g, Op::Where, {input(g, 1, DType::Bool, {2, 3}), x3(g), x3(g)});
}
NodeId highest(Graph& g) { return reduce(g, Reduction::Max, x3(g), {0}, {Order::Extremum}); }
NodeId from_one(Graph& g) {
  return reduce(g, Reduction::Sum, x3(g), {1}, {Order::Sequential}, param(g, 0, DType::Float64));
}

const std::vector<Case> kCases = {
    {"dtype of a result", add, [](Node& n) { n.dtype = DType::Float32; }},
    {"shape of a result", add,
     [](Node& n) {
       n.shape = {3, 2};
     }},
    {"too few operands", add, [](Node& n) { n.inputs.pop_back(); }},
    {"too many operands", add, [](Node& n) { n.inputs.push_back(n.inputs[0]); }},
    {"an operand that does not exist", add, [](Node& n) { n.inputs[0] = NodeId{7}; }},
    {"an operand that comes later", add, [](Node& n) { n.inputs[0] = NodeId{1}; }},
    {"a dtype the row does not accept", add, [](Node& n) { n.op = Op::BitAnd; }},
    {"a condition that is not bool", choice, [](Node& n) { n.inputs[0] = n.inputs[1]; }},
    {"operands of two dtypes", choice, [](Node& n) { n.inputs[1] = n.inputs[0]; }},
    {"operands of a leaf", number, [](Node& n) { n.inputs = {NodeId{0}}; }},
    {"bits beyond the dtype", number,
     [](Node& n) {
       n.constant = {{std::uint64_t{1} << 32, 0}};
     }},
    {"an imaginary part of a real", number,
     [](Node& n) {
       n.constant = {{0, 1}};
     }},
    {"a bool constant of 2", number,
     [](Node& n) {
       n.dtype = DType::Bool, n.constant = {{2, 0}};
     }},
    {"a constant with a shape", number, [](Node& n) { n.shape = {2}; }},
    {"a negative extent", x3, [](Node& n) { n.shape = {-1}; }},
    {"a broadcast with too few axes", wide, [](Node& n) { n.ints = {1}; }},
    {"a broadcast of an axis twice", wide,
     [](Node& n) {
       n.ints = {1, 1};
     }},
    {"a broadcast of an axis out of range", wide,
     [](Node& n) {
       n.ints = {2, 1};
     }},
    {"a broadcast that changes an extent", wide,
     [](Node& n) {
       n.ints = {0, 1};
     }},
    {"a broadcast that drops an axis", wide,
     [](Node& n) {
       n.ints = {-1, -1};
     }},
    {"a transpose that is no permutation", turned,
     [](Node& n) {
       n.ints = {1, 1};
     }},
    {"a transpose of another rank", turned, [](Node& n) { n.ints = {0}; }},
    {"a slice of step 0", part, [](Node& n) { n.ints[2] = 0; }},
    {"a slice that starts before", part, [](Node& n) { n.ints[0] = -1; }},
    {"a slice that ends behind", part, [](Node& n) { n.ints[3] = 2; }},
    {"a slice without steps", part,
     [](Node& n) {
       n.ints = {0, 0};
     }},
    {"a slice of another rank", part, [](Node& n) { n.shape = {2}; }},
    {"a reshape to another size", flat, [](Node& n) { n.shape = {5}; }},
    {"a reduction over an axis twice", sum,
     [](Node& n) {
       n.ints = {1, 1};
     }},
    {"a reduction over no such axis", sum, [](Node& n) { n.ints = {2}; }},
    {"a reduction that does not accept floats", sum,
     [](Node& n) { n.reduction = Reduction::BitwiseOr; }},
    {"pairwise product", sum, [](Node& n) { n.reduction = Reduction::Prod; }},
    {"pairwise without a run", sum, [](Node& n) { n.run_axes = 0; }},
    {"pairwise with too long a run", sum, [](Node& n) { n.run_axes = 2; }},
    {"a negative chunk", sum, [](Node& n) { n.chunk = -1; }},
    {"run_axes outside of pairwise", highest, [](Node& n) { n.run_axes = 1; }},
    {"chunk outside of pairwise", highest, [](Node& n) { n.chunk = 8; }},
    {"extremum of a sum", highest, [](Node& n) { n.reduction = Reduction::Sum; }},
    {"an initial value with a shape", from_one, [](Node& n) { n.inputs[1] = n.inputs[0]; }},
    {"an arg_reduce that is neither", position, [](Node& n) { n.id = 2; }},
    {"an arg_reduce over two axes", position,
     [](Node& n) {
       n.ints = {0, 1};
     }},
    {"an arg_reduce of another dtype", position, [](Node& n) { n.dtype = DType::Int32; }},
};

}  // namespace

TEST_CASE("verify: rejects each malformed node, and names it") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    Graph good;
    const NodeId last = c.build(good);
    CHECK_NOTHROW(verify(good, nullptr));
    Graph bad;
    for (std::size_t i = 0; i < last.value; ++i) bad.add(good[good.at(i)]);
    Node node = good[last];
    c.damage(node);
    bad.add(node);
    CHECK_THROWS_AS(verify(bad, nullptr), InternalError);
  }
}

TEST_CASE("verify: an attribute that a kind's row does not name is refused") {
  const auto build = [](Graph& g, const LoopTable& loops, NodeKind kind) -> NodeId {
    switch (kind) {
      case NodeKind::Input:
        return x3(g);
      case NodeKind::Param:
        return param(g, 0, DType::Float64);
      case NodeKind::Const:
        return number(g);
      case NodeKind::Broadcast:
        return wide(g);
      case NodeKind::Transpose:
        return turned(g);
      case NodeKind::Slice:
        return part(g);
      case NodeKind::Reshape:
        return flat(g);
      case NodeKind::Cast:
        return cast(g, x3(g), DType::Int8);
      case NodeKind::Ufunc:
        return ufunc(g, loops, 0, 0, {x3(g)});
      case NodeKind::Reduce:
        return highest(g);
      case NodeKind::ArgReduce:
        return position(g);
      case NodeKind::Iota:
        return iota(g, 3);
      case NodeKind::Scan:
        return scan(g, Op::Add, x3(g), 0);
      case NodeKind::Gather:
        return gather(g, x3(g), {iota(g, 2)}, {0}, Bounds::Signed);
      case NodeKind::Scatter:
        return scatter(g, x3(g), {iota(g, 2)}, x3(g), {0}, Bounds::Signed);
      case NodeKind::Nonzero:
        return nonzero(g, input(g, 1, DType::Bool, {2, 3}), 4);
      case NodeKind::Elementwise:
        return add(g);
    }
    return {};
  };
  const std::pair<Attributes, std::function<void(Node&)>> kSet[] = {
      {kHasInts, [](Node& n) { n.ints = {1}; }},
      {kHasId, [](Node& n) { n.id = 1; }},
      {kHasSlot, [](Node& n) { n.slot = 1; }},
      {kHasConstant,
       [](Node& n) {
         n.constant = {{1, 0}};
       }},
      {kHasOrder, [](Node& n) { n.reduction = Reduction::Prod; }},
      {kHasOrder, [](Node& n) { n.order = Order::Sequential; }},
      {kHasCombine, [](Node& n) { n.combine = Op::Multiply; }},
      {kHasBounds, [](Node& n) { n.bounds = Bounds::Clip; }},
      {kHasNothing, [](Node& n) { n.run_axes = 1; }},  // of the pairwise order only
      {kHasNothing, [](Node& n) { n.chunk = 1; }},
  };
  LoopTable loops;
  loops.add({"exp", {DType::Float64}, {DType::Float64}, nullptr, nullptr});
  for (std::size_t k = 0; k <= static_cast<std::size_t>(NodeKind::Elementwise); ++k) {
    Graph good;
    const NodeId last = build(good, loops, static_cast<NodeKind>(k));
    const OpInfo& row = op_info(good[last].op);
    CAPTURE(row.name);
    CHECK(kind_of(good[last].op) == static_cast<NodeKind>(k));
    CHECK_NOTHROW(verify(good, &loops));
    for (const auto& [attribute, set] : kSet) {
      if (row.attributes & attribute) continue;
      Graph bad;
      for (std::size_t i = 0; i < last.value; ++i) bad.add(good[good.at(i)]);
      Node node = good[last];
      set(node);
      bad.add(node);
      CHECK_THROWS_AS(verify(bad, &loops), InternalError);
    }
  }
}

TEST_CASE(
    "verify: empty reductions need an identity or an initial value, unless nothing is asked for") {
  Graph g;
  const NodeId none = input(g, 0, DType::Float64, {2, 0}),
               nothing = input(g, 1, DType::Float64, {0, 0});
  CHECK_THROWS_AS(reduce(g, Reduction::Max, none, {1}, {Order::Extremum}), InternalError);
  CHECK_THROWS_AS(arg_reduce(g, true, none, 1), InternalError);
  CHECK_NOTHROW(
      reduce(g, Reduction::Max, none, {1}, {Order::Extremum}, param(g, 0, DType::Float64)));
  CHECK_NOTHROW(reduce(g, Reduction::Max, nothing, {1}, {Order::Extremum}));
  CHECK_NOTHROW(reduce(g, Reduction::Sum, none, {1}, {Order::Pairwise, 1, 0}));
  CHECK_NOTHROW(arg_reduce(g, true, nothing, 1));
}

TEST_CASE("verify: one input is one array, and outputs exist") {
  Graph g;
  input(g, 0, DType::Float64, {2});
  input(g, 0, DType::Float64, {3});
  CHECK_THROWS_AS(verify(g, nullptr), InternalError);
  Graph h;
  input(h, 0, DType::Float64, {2});
  param(h, 0, DType::Float64);
  CHECK_NOTHROW(verify(h, nullptr));
  h.outputs = {NodeId{2}};
  CHECK_THROWS_AS(verify(h, nullptr), InternalError);
}

TEST_CASE("verify: block calls agree with their loop") {
  LoopTable loops;
  loops.add({"ldexp", {DType::Float64, DType::Int32}, {DType::Float64}, nullptr, nullptr});
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {4}), n = input(g, 1, DType::Int32, {4});
  CHECK(g[ufunc(g, loops, 0, 0, {x, n})].dtype == DType::Float64);
  CHECK_NOTHROW(verify(g, &loops));
  CHECK_THROWS_AS(ufunc(g, loops, 0, 0, {n, x}), InternalError);
  CHECK_THROWS_AS(ufunc(g, loops, 0, 0, {x}), InternalError);
  CHECK_THROWS_AS(ufunc(g, loops, 0, 1, {x, n}), InternalError);
  CHECK_THROWS_AS(ufunc(g, loops, 1, 0, {x, n}), InternalError);
}

}  // namespace ufuse::ir
