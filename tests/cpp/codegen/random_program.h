// Random graphs over random layouts (strided, reversed, transposed, broadcast, tiny and empty
// axes), with every kind of node, NaN, infinities and signed zeros among the numbers. Used by the
// tests that compare ways to compute them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <ranges>
#include <string>
#include <vector>

#include "codegen/schedule/views.h"
#include "ir/build.h"
#include "ir/interp/interpreter.h"
#include "ir/print.h"
#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"
#include "ir/support/error.h"

namespace ufuse::codegen::testing {

using ir::Dims;
using ir::DType;
using ir::NodeId;
using ir::Op;

// A block call with two outputs, as NumPy's inner loops are called.
inline void split_loop(char** args, const std::int64_t* dims, const std::int64_t* strides, void*) {
  for (std::int64_t i = 0; i < dims[0]; ++i) {
    double x;
    std::memcpy(&x, args[0] + i * strides[0], sizeof x);
    const double whole = std::trunc(x), rest = x - whole;
    std::memcpy(args[1] + i * strides[1], &rest, sizeof rest);
    std::memcpy(args[2] + i * strides[2], &whole, sizeof whole);
  }
}
inline void halve_loop(char** args, const std::int64_t* dims, const std::int64_t* strides, void*) {
  for (std::int64_t i = 0; i < dims[0]; ++i) {
    double x;
    std::memcpy(&x, args[0] + i * strides[0], sizeof x);
    x = x * 0.5 + 1;
    std::memcpy(args[1] + i * strides[1], &x, sizeof x);
  }
}

class Program {
 public:
  explicit Program(unsigned seed) : rng_(seed) {
    halve_ = loops.add({"halve", {DType::Float64}, {DType::Float64}, halve_loop, nullptr});
    split_ = loops.add(
        {"split", {DType::Float64}, {DType::Float64, DType::Float64}, split_loop, nullptr});
    const int rank = pick(0, 3);
    std::int64_t total = 1;
    for (int i = 0; i < rank; ++i) {
      extents_.push_back(extent());
      while (total * extents_.back() > 300'000) extents_.back() /= 2;
      total *= extents_.back();
    }
    for (int i = 0, n = pick(1, 3); i < n; ++i) values_.push_back(new_input());
    for (int i = 0, n = pick(1, 12); i < n; ++i) grow();
    for (int i = 0, n = pick(1, 3); i < n; ++i)
      graph.outputs.push_back(
          values_[values_.size() - 1 - index(std::min<std::size_t>(values_.size(), 4))]);
    for (NodeId out : graph.outputs) {
      alias.push_back(pick(0, 2) == 0 ? overwritable(graph[out]) : -1);
      if (alias.back() >= 0)
        outputs.push_back(inputs[static_cast<std::size_t>(alias.back())]);
      else
        outputs.push_back(new_buffer(graph[out].dtype, graph[out].shape, false));
    }
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (alias[k] < 0) fill_bytes(outputs[k]);
    before_ = memory;
  }

  ir::Graph graph;
  ir::LoopTable loops;
  std::vector<ir::Buffer> inputs, outputs;
  std::vector<int> alias;
  std::vector<std::vector<char>> memory;

  ir::RunArgs args() const { return {inputs, {}, outputs, alias, {}}; }
  std::vector<std::vector<char>> run(ir::Backend& backend, ir::RunStatus& status) {
    for (std::size_t i = 0; i < memory.size(); ++i)
      std::copy(before_[i].begin(), before_[i].end(), memory[i].begin());
    const ir::RunArgs args = this->args();
    status = backend.prepare(graph, args)->run(args);
    std::vector<std::vector<char>> results;
    for (const ir::Buffer& b : outputs) results.push_back(bytes(b));
    return results;
  }

 private:
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng_); }
  std::size_t index(std::size_t n) {
    return static_cast<std::size_t>(pick(0, static_cast<int>(n) - 1));
  }
  std::int64_t extent() {
    static constexpr int kExtents[] = {0, 1, 1, 2, 3, 5, 8, 16, 17, 40, 130, 300, 700};
    return kExtents[pick(pick(0, 20) == 0 ? 0 : 1, 12)];
  }
  DType dtype() {
    static constexpr DType kTypes[] = {DType::Float64, DType::Float64,    DType::Float64,
                                       DType::Float32, DType::Int64,      DType::Int32,
                                       DType::UInt8,   DType::Bool,       DType::Complex128,
                                       DType::Float16, DType::LongDouble, DType::CLongDouble};
    return kTypes[index(std::size(kTypes))];
  }

  double number() {
    switch (pick(0, 24)) {
      case 0:
        return 0.0;
      case 1:
        return -0.0;
      case 2:
        return pick(0, 3) == 0 ? std::numeric_limits<double>::quiet_NaN() : 1;
      case 3:
        return pick(0, 3) == 0 ? std::numeric_limits<double>::infinity() : 2;
      case 4:
        return pick(-3, 3);
      default:
        return std::normal_distribution<double>(0, 3)(rng_);
    }
  }
  void store(char* at, DType dtype) {
    const double x = number();
    const auto put = [&](auto value) { std::memcpy(at, &value, sizeof value); };
    switch (dtype) {
      case DType::Float64:
        return put(x);
      case DType::Float32:
        return put(static_cast<float>(x));
      case DType::Float16:
        return put(rt::f16(x));
      case DType::LongDouble:
        return put(static_cast<long double>(x));
      case DType::CLongDouble:
        put(static_cast<long double>(x));
        at += 16;
        return put(static_cast<long double>(number()));
      case DType::Bool:
        return put(static_cast<char>(pick(0, 1)));
      case DType::Complex128:
        put(x);
        at += 8;
        return put(number());
      default: {
        const std::int64_t n = pick(-100, 100);
        std::memcpy(at, &n, ir::size_of(dtype));
      }
    }
  }

  // Memory with a random order of axes, gaps, negative and zero strides.
  ir::Buffer new_buffer(DType dtype, const Dims& shape, bool input) {
    ir::Buffer b;
    b.dtype = dtype;
    b.shape = shape;
    b.strides.assign(shape.size(), 0);
    std::vector<std::size_t> order(shape.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (pick(0, 2) == 0) std::shuffle(order.begin(), order.end(), rng_);
    std::int64_t step = static_cast<std::int64_t>(ir::size_of(dtype)), start = 0;
    for (std::size_t i = order.size(); i-- > 0;) {
      const std::size_t axis = order[i];
      if (input && pick(0, 9) == 0) continue;  // broadcast
      const std::int64_t gap = pick(0, 4) == 0 ? 2 : 1;
      b.strides[axis] = step * gap;
      step *= gap * std::max<std::int64_t>(1, shape[axis]);
      if (input && pick(0, 6) == 0 && shape[axis] > 0) {
        start += b.strides[axis] * (shape[axis] - 1);
        b.strides[axis] = -b.strides[axis];
      }
    }
    memory.emplace_back(static_cast<std::size_t>(step) + 16);
    char* data = memory.back().data();
    for (std::size_t at = 0; at + ir::size_of(dtype) <= static_cast<std::size_t>(step);
         at += ir::size_of(dtype))
      store(data + at, dtype);
    b.data = data + start;
    return b;
  }
  // An input that this node's value may overwrite: same dtype and shape, no element twice, not
  // overwritten yet.
  int overwritable(const ir::Node& node) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const ir::Buffer& b = inputs[i];
      bool fits = b.dtype == node.dtype && b.shape == node.shape &&
                  std::find(alias.begin(), alias.end(), static_cast<int>(i)) == alias.end();
      for (std::size_t k = 0; k < b.shape.size(); ++k) fits &= b.strides[k] != 0;
      if (fits) return static_cast<int>(i);
    }
    return -1;
  }
  NodeId new_input() {
    Dims shape = extents_;
    for (std::int64_t& n : shape)
      if (pick(0, 5) == 0) n = 1;
    const DType type = dtype();
    inputs.push_back(new_buffer(type, shape, true));
    return to_full(ir::input(graph, static_cast<std::uint32_t>(inputs.size() - 1), type, shape));
  }
  NodeId to_full(NodeId x) {
    return graph[x].shape == extents_ ? x : ir::broadcast_to(graph, x, extents_);
  }

  NodeId value() { return values_[index(values_.size())]; }
  NodeId as(NodeId x, DType dtype) {
    // Casts out of range are the hardware's business; here only what has one meaning.
    const DType from = graph[x].dtype;
    if (from == dtype) return x;
    if (is_in(dtype, ir::kComplex) || is_in(dtype, ir::kFloat)) {
      if (is_in(from, ir::kComplex) && is_in(dtype, ir::kFloat))
        x = ir::elementwise(graph, Op::RealPart, {x});
      return ir::cast(graph, x, dtype);
    }
    if (is_in(from, ir::kInexact)) x = ir::elementwise(graph, Op::NotEqual, {x, x});
    return ir::cast(graph, x, dtype);
  }
  static Dims all_axes(std::size_t rank) {
    Dims axes(rank);
    for (std::size_t i = 0; i < rank; ++i) axes[i] = static_cast<std::int64_t>(i);
    return axes;
  }

  void grow() {
    const NodeId x = value();
    NodeId made = x;
    switch (pick(0, 13)) {
      case 10:
        made = scanned(x);
        break;
      case 11:
        made = gathered(x);
        break;
      case 12:
        made = scattered(x);
        break;
      case 13:
        made = listed(x);
        break;
      case 0:
        made = ir::ufunc(graph, loops, halve_, 0, {as(x, DType::Float64)});
        break;
      case 1:
        made = ir::ufunc(graph, loops, split_, static_cast<std::uint32_t>(pick(0, 1)),
                         {as(x, DType::Float64)});
        break;
      case 2:
        made = reduced(x);
        break;
      case 3: {
        Dims order = all_axes(extents_.size());
        std::shuffle(order.begin(), order.end(), rng_);
        const NodeId turned = ir::transpose(graph, x, order);
        Dims start, step;
        for (std::int64_t n : graph[turned].shape) {
          const bool back = pick(0, 1) == 0;
          start.push_back(back ? std::max<std::int64_t>(0, n - 1) : 0);
          step.push_back(back ? -1 : 1);
        }
        const NodeId sliced = ir::slice(graph, turned, start, step, graph[turned].shape);
        made = ir::reshape(graph, sliced, extents_);
        break;
      }
      case 4: {
        std::int64_t n = 1;
        for (std::int64_t e : extents_) n *= e;
        made = ir::reshape(
            graph,
            ir::elementwise(graph, Op::Conjugate, {as(ir::reshape(graph, x, {n}), DType::Float64)}),
            extents_);
        break;
      }
      default:
        made = elementwise(x);
    }
    values_.push_back(made);
  }

  NodeId elementwise(NodeId x) {
    static constexpr Op kOps[] = {
        Op::Add,    Op::Subtract, Op::Multiply,     Op::Divide,     Op::Negative,   Op::Absolute,
        Op::Sqrt,   Op::Square,   Op::Sign,         Op::Floor,      Op::Maximum,    Op::Minimum,
        Op::Equal,  Op::Less,     Op::GreaterEqual, Op::LogicalAnd, Op::LogicalNot, Op::BitXor,
        Op::Invert, Op::IsNan,    Op::Where,        Op::CopySign,   Op::LeftShift};
    const Op op = kOps[index(std::size(kOps))];
    const ir::OpInfo& row = ir::op_info(op);
    DType type = graph[x].dtype;
    if (!is_accepted(type, row.accepts))
      type = is_in(DType::Float64, row.accepts) ? DType::Float64 : DType::Int64;
    if (op == Op::Where)
      return ir::elementwise(graph, op, {as(value(), DType::Bool), as(x, type), as(value(), type)});
    ir::NodeIds operands{as(x, type)};
    if (row.arity == 2) operands.push_back(as(value(), type));
    return ir::elementwise(graph, op, operands);
  }

  NodeId reduced(NodeId x) {
    const std::size_t rank = extents_.size();
    if (rank == 0) return x;
    Dims axes = all_axes(rank);
    std::shuffle(axes.begin(), axes.end(), rng_);
    axes.resize(static_cast<std::size_t>(pick(1, static_cast<int>(rank))));
    std::int64_t count = 1;
    for (std::int64_t a : axes) count *= extents_[static_cast<std::size_t>(a)];
    NodeId r;
    if (pick(0, 3) == 0 && count > 0) {
      const DType given = graph[x].dtype;
      const DType type = is_accepted(given, ir::kBool | ir::kReal) ? given : DType::Float64;
      axes.resize(1);
      if (extents_[static_cast<std::size_t>(axes[0])] == 0) return x;
      NodeId operand = as(x, type);
      if (pick(0, 1) == 0 && is_in(type, ir::kFloat))
        operand = ir::elementwise(graph, Op::Sqrt, {ir::elementwise(graph, Op::Square, {operand})});
      r = ir::arg_reduce(graph, pick(0, 1) == 0, operand, axes[0]);
    } else {
      const auto kind = static_cast<ir::Reduction>(pick(0, 9));
      const ir::ReductionInfo& row = ir::reduction_info(kind);
      DType type = graph[x].dtype;
      if (!is_accepted(type, row.accepts))
        type = is_in(DType::Float64, row.accepts) ? DType::Float64
               : is_in(DType::Int64, row.accepts) ? DType::Int64
                                                  : DType::Bool;
      if (row.identity == ir::Identity::None && count == 0) return x;
      ir::ReduceOrder order;
      if (is_in(type, ir::kInexact)) {
        order.order = ir::Order::Sequential;
        if (kind == ir::Reduction::Sum && pick(0, 2) > 0) {
          order.order = ir::Order::Pairwise;
          order.run_axes = static_cast<std::uint32_t>(pick(1, static_cast<int>(axes.size())));
          order.chunk = pick(0, 3) == 0 ? 8192 : 0;
        }
        const bool vectors = type == DType::Float32 || type == DType::Float64;
        if (row.identity == ir::Identity::None && vectors && pick(0, 2) > 0)
          order.order = ir::Order::Extremum;
      }
      r = ir::reduce(graph, kind, as(x, type), axes, order);
    }
    // Back to the full shape, so that everything can meet everything.
    Dims follow(rank, -1);
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < rank; ++i)
      if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(i)) == axes.end())
        follow[i] = kept++;
    return ir::broadcast(graph, r, extents_, follow);
  }

  bool has_elements() const { return std::ranges::find(extents_, 0) == extents_.end(); }
  std::int64_t axis() { return static_cast<std::int64_t>(index(extents_.size())); }

  // An op that gives the dtype that it takes.
  Op combining(DType& type) {
    static constexpr Op kOps[] = {Op::Add, Op::Multiply, Op::Maximum, Op::Minimum, Op::Subtract};
    const Op op = kOps[index(std::size(kOps))];
    if (!is_accepted(type, ir::op_info(op).accepts)) type = DType::Float64;
    return op;
  }
  NodeId scanned(NodeId x) {
    if (extents_.empty()) return x;
    DType type = graph[x].dtype;
    const Op op = combining(type);
    return ir::scan(graph, op, as(x, type), axis());
  }

  // Along one axis, positions that are known to lie within it; or along all, any.
  NodeId gathered(NodeId x) {
    if (extents_.empty() || !has_elements()) return x;
    if (pick(0, 1) == 0)
      return ir::gather(graph, x, anywhere(), all_axes(extents_.size()), bounds());
    const std::int64_t along = axis(), n = extents_[static_cast<std::size_t>(along)];
    const ir::Scalar back{{static_cast<std::uint64_t>(pick(0, static_cast<int>(n)))}};
    const NodeId shift = ir::broadcast_to(graph, ir::constant(graph, DType::Int64, back), {n});
    const NodeId p = ir::elementwise(graph, Op::Subtract, {ir::iota(graph, n), shift});
    const NodeId first = ir::gather(graph, x, {p}, {along}, ir::Bounds::Signed);
    Dims order;  // the axis was moved to the front
    for (std::int64_t a = 0; a < static_cast<std::int64_t>(extents_.size()); ++a)
      order.push_back(a == along ? 0 : a < along ? a + 1 : a);
    return ir::transpose(graph, first, order);
  }
  ir::NodeIds anywhere() {
    ir::NodeIds positions;
    for (std::size_t a = 0; a < extents_.size(); ++a)
      positions.push_back(as(value(), DType::Int64));
    return positions;
  }
  ir::Bounds bounds() { return pick(0, 1) == 0 ? ir::Bounds::Wrap : ir::Bounds::Clip; }

  NodeId scattered(NodeId x) {
    if (extents_.empty() || !has_elements()) return x;
    DType type = graph[x].dtype;
    std::optional<Op> op;
    if (pick(0, 1) == 0) op = combining(type);
    const ir::NodeIds positions = anywhere();
    return ir::scatter(graph, as(x, type), positions, as(value(), type), all_axes(extents_.size()),
                       bounds(), op);
  }

  // Of a mask whose true elements are known: their positions, added up.
  NodeId listed(NodeId x) {
    if (extents_.empty() || !has_elements()) return x;
    std::int64_t n = 1;
    for (std::int64_t e : extents_) n *= e;
    const auto number = [&](std::uint64_t v) {
      return ir::broadcast_to(graph, ir::constant(graph, DType::Int64, {{v}}), {n});
    };
    const NodeId third = ir::elementwise(graph, Op::BitAnd, {ir::iota(graph, n), number(3)});
    const NodeId mask = ir::elementwise(graph, Op::Equal, {third, number(0)});
    const NodeId rows = ir::nonzero(graph, ir::reshape(graph, mask, extents_), (n + 3) / 4);
    const NodeId sum = ir::reduce(graph, ir::Reduction::Sum, rows, {0, 1}, {});
    return to_full(sum);
  }

  template <class F>
  static void each(const ir::Buffer& b, F&& f) {
    const std::int64_t n = element_count(b.shape);
    Dims at(b.shape.size(), 0);
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t offset = 0;
      for (std::size_t k = 0; k < at.size(); ++k) offset += at[k] * b.strides[k];
      f(static_cast<char*>(b.data) + offset);
      for (std::size_t k = at.size(); k-- > 0;) {
        if (++at[k] < b.shape[k]) break;
        at[k] = 0;
      }
    }
  }
  static void fill_bytes(const ir::Buffer& b) {
    each(b, [&](char* at) { std::memset(at, 0x5a, ir::size_of(b.dtype)); });
  }
  // Elements in C order; of two NaNs any payload is as good (which operand's survives is the
  // compiler's choice).
  static std::vector<char> bytes(const ir::Buffer& b) {
    std::vector<char> all;
    each(b, [&](char* at) {
      const auto canonical = [&](auto zero, std::size_t offset) {
        std::memcpy(&zero, at + offset, sizeof zero);
        if (zero != zero) zero = std::numeric_limits<decltype(zero)>::quiet_NaN();
        const char* raw = reinterpret_cast<const char*>(&zero);
        all.insert(all.end(), raw, raw + ir::value_bytes(b.dtype));
      };
      switch (b.dtype) {
        case DType::Float64:
          return canonical(double{}, 0);
        case DType::Float32:
          return canonical(float{}, 0);
        case DType::LongDouble:
          return canonical(0.0L, 0);
        case DType::CLongDouble:
          canonical(0.0L, 0);
          return canonical(0.0L, 16);
        case DType::Float16: {
          rt::f16 half;
          std::memcpy(&half, at, sizeof half);
          if (rt::isnan(half)) half = rt::f16::of_bits(0x7e00);
          all.insert(all.end(), {static_cast<char>(half.bits), static_cast<char>(half.bits >> 8)});
          return;
        }
        case DType::Complex128:
          canonical(double{}, 0);
          return canonical(double{}, 8);
        default:
          all.insert(all.end(), at, at + ir::size_of(b.dtype));
      }
    });
    return all;
  }

  std::mt19937 rng_;
  std::vector<std::vector<char>> before_;
  Dims extents_;
  std::vector<NodeId> values_;
  std::uint32_t halve_ = 0, split_ = 0;
};

}  // namespace ufuse::codegen::testing
