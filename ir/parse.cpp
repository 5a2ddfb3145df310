// Text to graph; see print.h for the form. A line is read from left to right by a cursor; what
// print.cpp leaves out of the text are defaults here as well.
#include "ir/parse.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "ir/build.h"
#include "ir/print.h"
#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"
#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

class Cursor {
 public:
  Cursor(std::string_view line, std::size_t number) : rest_(line), line_(line), number_(number) {
    skip_spaces();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError("line " + std::to_string(number_) + ": " + what + ": " +
                        std::string(line_));
  }
  bool at_end() const { return rest_.empty(); }
  bool is_at(std::string_view token) const { return rest_.starts_with(token); }
  bool accept(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    skip_spaces();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail("expected '" + std::string(token) + "'");
  }
  // Letters, digits, '_' and '.': names of ops, dtypes, reductions, ufuncs.
  std::string_view word() {
    std::size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) ||
                                rest_[n] == '_' || rest_[n] == '.'))
      ++n;
    if (n == 0) fail("expected a name");
    return take(n);
  }
  template <class T>
  T integer(int base = 10) {
    T value{};
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
    if (error != std::errc()) fail("expected an integer");
    take(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  template <class F>
  F hex_float() {
    F value{};
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, std::chars_format::hex);
    if (error != std::errc()) fail("expected a hex-float");
    take(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  NodeId node() {
    expect("%");
    return NodeId{integer<std::uint32_t>()};
  }
  Dims dims() {
    Dims dims;
    expect("[");
    while (!accept("]")) {
      if (!dims.empty()) expect(",");
      dims.push_back(integer<std::int64_t>());
    }
    return dims;
  }
  Dims dims(std::string_view name) {
    expect(name);
    expect("=");
    return dims();
  }

 private:
  std::string_view take(std::size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    skip_spaces();
    return taken;
  }
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_, line_;
  std::size_t number_;
};

template <class F>
Scalar bits_of(F value) {
  Scalar bits;
  std::memcpy(bits.bits, &value, sizeof value);
  return bits;
}

template <class F>
F parse_number(Cursor& c) {
  const bool negative = c.accept("-");
  F value = std::numeric_limits<F>::infinity();
  if (!c.accept("inf")) {
    c.expect("0x");
    value = c.hex_float<F>();
  }
  return negative ? -value : value;
}

Scalar parse_float(Cursor& c, DType dtype) {
  if (c.accept("nan(0x")) {
    Scalar bits{{c.integer<std::uint64_t>(16)}};
    if (c.accept(",")) {
      c.expect("0x");
      bits = {{c.integer<std::uint64_t>(16), bits.bits[0]}};
    }
    c.expect(")");
    return bits;
  }
  switch (dtype) {
    case DType::Float16:
      return bits_of(rt::f16(parse_number<float>(c)));
    case DType::Float32:
      return bits_of(parse_number<float>(c));
    case DType::Float64:
      return bits_of(parse_number<double>(c));
    default:
      return without_padding(bits_of(parse_number<long double>(c)), dtype);
  }
}

Scalar parse_scalar(Cursor& c, DType dtype) {
  switch (info(dtype).kind) {
    case Kind::Bool:
      if (c.accept("true")) return {{1, 0}};
      c.expect("false");
      return {};
    case Kind::Int: {
      const auto bits = static_cast<std::uint64_t>(c.integer<std::int64_t>());
      const int unused = 64 - 8 * static_cast<int>(size_of(dtype));
      return {{(bits << unused) >> unused, 0}};
    }
    case Kind::UInt:
      return {{c.integer<std::uint64_t>(), 0}};
    case Kind::Float:
      return parse_float(c, dtype);
    case Kind::Complex: {
      const DType part = real_part(dtype);
      c.expect("(");
      const Scalar re = parse_float(c, part);
      c.expect(",");
      const Scalar im = parse_float(c, part);
      c.expect(")");
      return complex_of(re, im, part);
    }
  }
  c.fail("unknown kind");
}

Op parse_op(Cursor& c) {
  const std::optional<Op> op = op_named(c.word());
  if (!op) c.fail("unknown op");
  return *op;
}

Reduction parse_reduction(Cursor& c) {
  const std::optional<Reduction> reduction = reduction_named(c.word());
  if (!reduction) c.fail("unknown reduction");
  return *reduction;
}

void parse_order(Cursor& c, Node& node) {
  c.expect("order=");
  const std::string_view name = c.word();
  std::optional<Order> order;
  for (Order o : {Order::Free, Order::Sequential, Order::Pairwise, Order::Extremum})
    if (order_name(o) == name) order = o;
  if (!order) c.fail("unknown order");
  node.order = *order;
  if (node.order == Order::Pairwise) {
    c.expect("run_axes=");
    node.run_axes = c.integer<std::uint32_t>();
    c.expect("chunk=");
    node.chunk = c.integer<std::int64_t>();
  }
}

Bounds parse_bounds(Cursor& c) {
  c.expect("bounds=");
  const std::string_view name = c.word();
  for (Bounds b : {Bounds::Signed, Bounds::Unsigned, Bounds::Wrap, Bounds::Clip})
    if (bounds_name(b) == name) return b;
  c.fail("unknown bounds");
}

DType parse_dtype(Cursor& c) {
  const std::optional<DType> dtype = dtype_from_name(c.word());
  if (!dtype) c.fail("unknown dtype");
  return *dtype;
}

// A constant's text depends on its dtype, which stands at the end of the line.
DType dtype_at_end(std::string_view line, const Cursor& c, std::size_t number) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos) c.fail("expected ':'");
  Cursor end(line.substr(colon + 1), number);
  return parse_dtype(end);
}

// `line` is the whole line.
void parse_head(Cursor& c, std::string_view line, std::size_t number, Node& node) {
  switch (kind_of(node.op)) {
    case NodeKind::Input:
    case NodeKind::Param:
      node.id = c.integer<std::uint32_t>();
      return;
    case NodeKind::Const:
      node.constant = parse_scalar(c, dtype_at_end(line, c, number));
      return;
    case NodeKind::Ufunc:
      node.id = c.integer<std::uint32_t>();
      c.expect(".");
      node.slot = c.integer<std::uint32_t>();
      return;
    case NodeKind::Reduce:
      node.reduction = parse_reduction(c);
      return;
    case NodeKind::ArgReduce:
      node.id = c.accept("argmax") ? 1 : 0;
      if (node.id == 0) c.expect("argmin");
      return;
    case NodeKind::Scan:
    case NodeKind::Scatter:
      if (c.is_at("%")) return;
      node.combine = parse_op(c);
      return;
    case NodeKind::Iota:
    case NodeKind::Gather:
    case NodeKind::Nonzero:
    case NodeKind::Broadcast:
    case NodeKind::Transpose:
    case NodeKind::Slice:
    case NodeKind::Reshape:
    case NodeKind::Cast:
    case NodeKind::Elementwise:
      return;
  }
}

void parse_attributes(Cursor& c, Node& node) {
  switch (kind_of(node.op)) {
    case NodeKind::Input:
    case NodeKind::Param:
    case NodeKind::Const:
    case NodeKind::Iota:
    case NodeKind::Reshape:
    case NodeKind::Cast:
    case NodeKind::Elementwise:
    case NodeKind::Nonzero:
      return;
    case NodeKind::Broadcast:
    case NodeKind::ArgReduce:
    case NodeKind::Scan:
      node.ints = c.dims("axes");
      return;
    case NodeKind::Gather:
    case NodeKind::Scatter:
      node.ints = c.dims("axes");
      node.bounds = parse_bounds(c);
      return;
    case NodeKind::Transpose:
      node.ints = c.dims("permutation");
      return;
    case NodeKind::Slice: {
      node.ints = c.dims("start");
      const Dims step = c.dims("step");
      node.ints.insert(node.ints.end(), step.begin(), step.end());
      return;
    }
    case NodeKind::Ufunc:
      if (c.accept("name=")) c.word();
      return;
    case NodeKind::Reduce:
      node.ints = c.dims("axes");
      parse_order(c, node);
      return;
  }
}

Node parse_node(Cursor& c, std::string_view line, std::size_t number) {
  Node node{};
  node.op = parse_op(c);
  parse_head(c, line, number, node);
  while (c.accept("%")) node.inputs.push_back(NodeId{c.integer<std::uint32_t>()});
  parse_attributes(c, node);
  c.expect(":");
  node.dtype = parse_dtype(c);
  node.shape = c.dims();
  if (!c.at_end()) c.fail("unexpected text at the end");
  return node;
}

}  // namespace

Graph parse(std::string_view text, const LoopTable* loops) {
  Graph g;
  bool returned = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    Cursor c(line, number);
    if (c.at_end() || c.accept("#")) continue;
    if (returned) c.fail("text after 'return'");
    if (c.accept("return")) {
      while (!c.at_end()) g.outputs.push_back(c.node());
      returned = true;
      continue;
    }
    const NodeId name = c.node();
    c.expect("=");
    if (g.add(parse_node(c, line, number)) != name)
      c.fail("nodes must be distinct and numbered from %0");
  }
  if (!returned) throw InternalError("expected 'return' at the end of the graph");
  verify(g, loops);
  return g;
}

}  // namespace ufuse::ir
