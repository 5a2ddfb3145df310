// Graph to text; see print.h for the form. Every attribute that equality compares is in the text,
// so that equal text means equal graphs.
#include "ir/print.h"

#include <bit>
#include <charconv>
#include <cmath>

namespace ufuse::ir {
namespace {

std::string hex(std::uint64_t bits) {
  char text[20];
  const auto end = std::to_chars(text, text + sizeof text, bits, 16).ptr;
  return "0x" + std::string(text, end);
}

template <class Float, class Bits>
std::string print_float(Bits bits) {
  const auto value = std::bit_cast<Float>(bits);
  if (std::isnan(value)) return "nan(" + hex(bits) + ")";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof text, std::fabs(value), std::chars_format::hex).ptr;
  return (std::signbit(value) ? "-0x" : "0x") + std::string(text, end);
}

std::string print_f32(std::uint64_t bits) {
  return print_float<float>(static_cast<std::uint32_t>(bits));
}
std::string print_f64(std::uint64_t bits) { return print_float<double>(bits); }

void add_dims(std::string& line, const char* name, const Dims& dims) {
  line += std::string(" ") + name + "=" + print_dims(dims);
}

void add_attributes(std::string& line, const Node& node, const LoopTable* loops) {
  switch (node.op) {
    case Op::Broadcast:
      add_dims(line, "axes", node.ints);
      break;
    case Op::Transpose:
      add_dims(line, "permutation", node.ints);
      break;
    case Op::Slice: {
      const auto middle = node.ints.begin() + static_cast<std::ptrdiff_t>(node.ints.size() / 2);
      add_dims(line, "start", Dims(node.ints.begin(), middle));
      add_dims(line, "step", Dims(middle, node.ints.end()));
      break;
    }
    case Op::Ufunc:
      if (loops != nullptr && node.id < loops->size()) line += " name=" + (*loops)[node.id].ufunc;
      break;
    case Op::Reduce:
      add_dims(line, "axes", node.ints);
      line += " order=" + std::string(order_name(node.order));
      if (node.order == Order::Pairwise)
        line +=
            " run_axes=" + std::to_string(node.run_axes) + " chunk=" + std::to_string(node.chunk);
      break;
    case Op::ArgReduce:
      add_dims(line, "axes", node.ints);
      break;
    default:
      break;
  }
}

// What stands between the op's name and its operands.
std::string head(const Node& node) {
  switch (node.op) {
    case Op::Input:
    case Op::Param:
      return " " + std::to_string(node.id);
    case Op::Const:
      return " " + print_scalar(node.dtype, node.constant);
    case Op::Ufunc:
      return " " + std::to_string(node.id) + "." + std::to_string(node.slot);
    case Op::Reduce:
      return " " + std::string(reduction_info(node.reduction).name);
    case Op::ArgReduce:
      return node.id == 0 ? " argmin" : " argmax";
    default:
      return "";
  }
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
      return dtype == DType::Float32 ? print_f32(low) : print_f64(low);
    case Kind::Complex:
      if (dtype == DType::Complex64)
        return "(" + print_f32(low & 0xffffffffU) + ", " + print_f32(low >> 32) + ")";
      return "(" + print_f64(low) + ", " + print_f64(value.bits[1]) + ")";
  }
  return "?";
}

std::string print_node(const Graph& g, NodeId id, const LoopTable* loops) {
  const Node& node = g[id];
  std::string line = "%" + std::to_string(id.value) + " = " + std::string(op_name(node.op));
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
