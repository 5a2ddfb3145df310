// Follows operands a few steps down: positions are seldom far from what bounds them.
#include "ir/ranges.h"

#include <algorithm>
#include <limits>

#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

constexpr int kMostSteps = 16;

using Known = std::optional<Range>;

// Of all values of a dtype; unset where they are too many for int64, or no integers.
Known all_of(DType dtype) {
  if (dtype == DType::Bool) return Range{0, 1};
  if (!is_in(dtype, kInteger) || size_of(dtype) == 8) return std::nullopt;
  const int bits = 8 * static_cast<int>(size_of(dtype));
  const std::int64_t values = std::int64_t{1} << bits;
  if (is_in(dtype, kUInt)) return Range{0, values - 1};
  return Range{-values / 2, values / 2 - 1};
}

bool is_within(const Range& inner, const Known& outer) {
  return !outer || (outer->low <= inner.low && inner.high <= outer->high);
}

Known united(const Known& a, const Known& b) {
  if (!a || !b) return std::nullopt;
  return Range{std::min(a->low, b->low), std::max(a->high, b->high)};
}

// Of a monotonous operation on the bounds; unset where it overflows.
template <class Combine>
Known combined(const Known& a, const Known& b, Combine combine) {
  if (!a || !b) return std::nullopt;
  Known range;
  for (std::int64_t x : {a->low, a->high})
    for (std::int64_t y : {b->low, b->high}) {
      std::int64_t value;
      if (combine(x, y, &value)) return std::nullopt;
      range = united(range ? range : Known(Range{value, value}), Range{value, value});
    }
  return range;
}

class Ranges {
 public:
  explicit Ranges(const Graph& g) : g_(g) {}

  Known of(NodeId id, int steps) const {
    const Node& node = g_[id];
    if (!is_in(node.dtype, kBool | kInteger) || steps == 0) return std::nullopt;
    const Known possible = all_of(node.dtype);
    const Known found = computed(node, steps - 1);
    // What overflows the dtype wraps around.
    return found && is_within(*found, possible) ? found : possible;
  }

 private:
  Known operand(const Node& node, std::size_t k, int steps) const {
    return of(node.inputs[k], steps);
  }

  Known computed(const Node& node, int steps) const {
    switch (kind_of(node.op)) {
      case NodeKind::Const:
        return constant(node);
      case NodeKind::Iota:
        return up_to(node.shape[0]);
      case NodeKind::Broadcast:
      case NodeKind::Transpose:
      case NodeKind::Reshape:
      case NodeKind::Cast:
      case NodeKind::Gather:
        return operand(node, 0, steps);
      case NodeKind::Slice:
        return sliced(node, steps);
      case NodeKind::ArgReduce:
        return up_to(g_[node.inputs[0]].shape[static_cast<std::size_t>(node.ints[0])]);
      case NodeKind::Nonzero:
        return up_to(*std::ranges::max_element(g_[node.inputs[0]].shape));
      case NodeKind::Elementwise:
        return elementwise(node, steps);
      case NodeKind::Input:
      case NodeKind::Param:
      case NodeKind::Ufunc:
      case NodeKind::Reduce:
      case NodeKind::Scan:
      case NodeKind::Scatter:
        return std::nullopt;
    }
    throw InternalError("known_range: unknown kind");
  }

  static Known up_to(std::int64_t extent) {
    return Range{0, std::max<std::int64_t>(extent - 1, 0)};
  }

  static Known constant(const Node& node) {
    const auto bits = static_cast<std::int64_t>(node.constant.bits[0]);
    if (size_of(node.dtype) == 8) {
      if (is_in(node.dtype, kUInt) && bits < 0) return std::nullopt;
      return Range{bits, bits};
    }
    const std::int64_t values = std::int64_t{1} << (8 * size_of(node.dtype));
    const bool negative = is_in(node.dtype, kInt) && bits >= values / 2;
    const std::int64_t value = negative ? bits - values : bits;
    return Range{value, value};
  }

  // One column of positions lies within one axis of the mask.
  Known sliced(const Node& node, int steps) const {
    const Node& rows = g_[node.inputs[0]];
    if (rows.op != Op::Nonzero || node.shape[1] != 1) return operand(node, 0, steps);
    return up_to(g_[rows.inputs[0]].shape[static_cast<std::size_t>(node.ints[1])]);
  }

  Known elementwise(const Node& node, int steps) const {
    const auto x = [&](std::size_t k) { return operand(node, k, steps); };
    const auto of_both = [&](auto combine) { return combined(x(0), x(1), combine); };
    if (node.op == Op::Add)
      return of_both([](auto a, auto b, auto* r) { return __builtin_add_overflow(a, b, r); });
    if (node.op == Op::Subtract)
      return of_both([](auto a, auto b, auto* r) { return __builtin_sub_overflow(a, b, r); });
    if (node.op == Op::Multiply)
      return of_both([](auto a, auto b, auto* r) { return __builtin_mul_overflow(a, b, r); });
    if (node.op == Op::Where) return united(x(1), x(2));
    if (node.op == Op::Positive) return x(0);
    if (node.op == Op::Maximum || node.op == Op::Minimum) return limited(node.op, x(0), x(1));
    // Of two numbers one of which is not negative, no bit is set beyond its own.
    if (node.op == Op::BitAnd)
      for (std::size_t k : {0, 1})
        if (const Known one = x(k); one && one->low >= 0) return Range{0, one->high};
    return std::nullopt;
  }

  // One operand alone bounds one side.
  static Known limited(Op op, const Known& a, const Known& b) {
    constexpr Range kAll{std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max()};
    if (!a && !b) return std::nullopt;
    const Range x = a.value_or(kAll), y = b.value_or(kAll);
    if (op == Op::Maximum) return Range{std::max(x.low, y.low), std::max(x.high, y.high)};
    return Range{std::min(x.low, y.low), std::min(x.high, y.high)};
  }

  const Graph& g_;
};

}  // namespace

std::optional<Range> known_range(const Graph& g, NodeId node) {
  return Ranges(g).of(node, kMostSteps);
}

}  // namespace ufuse::ir
