// Graph to text; see print.h for the form. Every attribute that equality compares is in the text,
// so that equal text means equal graphs.
#include "ir/print.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"

namespace ufuse::ir {
namespace {

std::string hex(std::uint64_t bits) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, bits, 16).ptr;
  return "0x" + std::string(text, end);
}

// `bits` is what tells one NaN from another.
template <class Float>
std::string print_float(Float value, const std::string& bits) {
  if (std::isnan(value)) return "nan(" + bits + ")";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::hex).ptr;
  return (std::signbit(value) ? "-0x" : "0x") + std::string(text, end);
}

std::string print_real(DType dtype, const char* at) {
  const auto read = [at](auto value) {
    std::memcpy(&value, at, sizeof value);
    return value;
  };
  switch (dtype) {
    case DType::Float16: {
      const auto half = read(rt::f16{});
      return print_float(static_cast<float>(half), hex(half.bits));
    }
    case DType::Float32:
      return print_float(read(0.0F), hex(read(std::uint32_t{})));
    case DType::Float64:
      return print_float(read(0.0), hex(read(std::uint64_t{})));
    default: {  // high bits, then low ones
      std::uint64_t bits[2];
      std::memcpy(bits, at, sizeof bits);
      return print_float(read(0.0L), hex(bits[1]) + ", " + hex(bits[0]));
    }
  }
}

void add_dims(std::string& line, const char* name, const Dims& dims) {
  line += std::string(" ") + name + "=" + print_dims(dims);
}

// What stands behind the operands.
void add_attributes(std::string& line, const Node& node, const LoopTable* loops) {
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
      return add_dims(line, "axes", node.ints);
    case NodeKind::Gather:
    case NodeKind::Scatter:
      add_dims(line, "axes", node.ints);
      line += " bounds=" + std::string(bounds_name(node.bounds));
      return;
    case NodeKind::Scan:
      return add_dims(line, "axes", node.ints);
    case NodeKind::Transpose:
      return add_dims(line, "permutation", node.ints);
    case NodeKind::Slice: {
      const auto middle = node.ints.begin() + static_cast<std::ptrdiff_t>(node.ints.size() / 2);
      add_dims(line, "start", Dims(node.ints.begin(), middle));
      add_dims(line, "step", Dims(middle, node.ints.end()));
      return;
    }
    case NodeKind::Ufunc:
      if (loops != nullptr && node.id < loops->size()) line += " name=" + (*loops)[node.id].ufunc;
      return;
    case NodeKind::Reduce:
      add_dims(line, "axes", node.ints);
      line += " order=" + std::string(order_name(node.order));
      if (node.order == Order::Pairwise)
        line +=
            " run_axes=" + std::to_string(node.run_axes) + " chunk=" + std::to_string(node.chunk);
      return;
  }
}

// What stands between the op's name and its operands.
std::string head(const Node& node) {
  switch (kind_of(node.op)) {
    case NodeKind::Input:
    case NodeKind::Param:
      return " " + std::to_string(node.id);
    case NodeKind::Const:
      return " " + print_scalar(node.dtype, node.constant);
    case NodeKind::Ufunc:
      return " " + std::to_string(node.id) + "." + std::to_string(node.slot);
    case NodeKind::Reduce:
      return " " + std::string(reduction_info(node.reduction).name);
    case NodeKind::ArgReduce:
      return node.id == 0 ? " argmin" : " argmax";
    case NodeKind::Scan:
    case NodeKind::Scatter:
      return node.combine ? " " + std::string(op_info(*node.combine).name) : "";
    case NodeKind::Iota:
    case NodeKind::Gather:
    case NodeKind::Nonzero:
    case NodeKind::Broadcast:
    case NodeKind::Transpose:
    case NodeKind::Slice:
    case NodeKind::Reshape:
    case NodeKind::Cast:
    case NodeKind::Elementwise:
      return "";
  }
  return "?";
}

}  // namespace

std::string_view order_name(Order order) {
  switch (order) {
    case Order::Free:
      return "free";
    case Order::Sequential:
      return "sequential";
    case Order::Pairwise:
      return "pairwise";
    case Order::Extremum:
      return "extremum";
  }
  return "?";
}

std::string_view bounds_name(Bounds bounds) {
  switch (bounds) {
    case Bounds::Signed:
      return "signed";
    case Bounds::Unsigned:
      return "unsigned";
    case Bounds::Wrap:
      return "wrap";
    case Bounds::Clip:
      return "clip";
  }
  return "?";
}

std::string print_dims(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + "]";
}

std::string print_scalar(DType dtype, const Scalar& value) {
  const std::uint64_t low = value.bits[0];
  switch (info(dtype).kind) {
    case Kind::Bool:
      return low == 0 ? "false" : "true";
    case Kind::Int: {
      const int unused = 64 - 8 * static_cast<int>(size_of(dtype));
      return std::to_string(static_cast<std::int64_t>(low << unused) >> unused);
    }
    case Kind::UInt:
      return std::to_string(low);
    case Kind::Float:
      return print_real(dtype, reinterpret_cast<const char*>(value.bits));
    case Kind::Complex: {
      const DType part = real_part(dtype);
      const char* at = reinterpret_cast<const char*>(value.bits);
      return "(" + print_real(part, at) + ", " + print_real(part, at + size_of(part)) + ")";
    }
  }
  return "?";
}

std::string print_node(const Graph& g, NodeId id, const LoopTable* loops) {
  const Node& node = g[id];
  std::string line = "%" + std::to_string(id.value) + " = " + std::string(op_info(node.op).name);
  line += head(node);
  for (NodeId operand : node.inputs) line += " %" + std::to_string(operand.value);
  add_attributes(line, node, loops);
  return line + " : " + std::string(info(node.dtype).name) + print_dims(node.shape);
}

std::string print(const Graph& g, const LoopTable* loops) {
  std::string text;
  for (std::size_t i = 0; i < g.size(); ++i) text += print_node(g, g.at(i), loops) + "\n";
  text += "return";
  for (NodeId output : g.outputs) text += " %" + std::to_string(output.value);
  return text + "\n";
}

}  // namespace ufuse::ir
