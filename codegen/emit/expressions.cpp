// What stands inside a statement of the text: names, addresses, operations.
#include <string_view>

#include "codegen/emit/kernel_printer.h"
#include "codegen/emit/literal.h"

namespace ufuse::codegen {
namespace {

// A pattern of ops.def with its holes filled: `in` gives what stands for the letter in {}.
template <class F>
std::string filled(std::string_view pattern, const F& in) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == '{') {
      text += in(pattern[i + 1]);
      i += 2;
    } else {
      text += pattern[i];
    }
  return text;
}

}  // namespace

std::string KernelPrinter::number(const loop::Number& n) const {
  return n.literal() ? std::to_string(n.value) : "n" + std::to_string(n.symbol);
}

// ---- Memory ----

// The element's distance from the buffer's pointer, with `base` written in place of the variable
// `block_base`.
std::string KernelPrinter::address(const Access& a, VarId block_base,
                                   const std::string& base) const {
  std::string sum;
  const auto add = [&](const std::string& term) { sum += (sum.empty() ? "" : " + ") + term; };
  for (const loop::Term& t : a.terms) {
    if (t.var == block_base && base == "0") continue;
    const std::string var = t.var == block_base ? base : name(t.var);
    add(t.stride.literal() && t.stride.value == 1 ? var : var + " * " + number(t.stride));
  }
  for (const auto& [factor, stride] : a.fixed)
    add(stride.literal() ? std::to_string(factor * stride.value)
                         : std::to_string(factor) + " * " + number(stride));
  return sum.empty() ? "0" : sum;
}

std::string KernelPrinter::element(const Access& a) const {
  return name(a) + "[" + address(a) + "]";
}

// At positions that are values.
std::string KernelPrinter::chosen(const Stmt& s) const {
  const std::size_t first = s.args.size() - s.along.size();
  std::string sum = address(s.access);
  for (std::size_t i = 0; i < s.along.size(); ++i) {
    const loop::Along& a = s.along[i];
    std::string position = use(s.args[first + i]);
    if (a.bounds == ir::Bounds::Signed)
      position = "rt::signed_position(" + position + ", " + number(a.extent) + ", flags)";
    if (a.bounds == ir::Bounds::Wrap)
      position = "rt::wrapped_position(" + position + ", " + number(a.extent) + ")";
    if (a.bounds == ir::Bounds::Clip)
      position = "rt::clipped_position(" + position + ", " + number(a.extent) + ")";
    sum += " + " + position + " * " + number(a.stride);
  }
  return name(s.access) + "[" + sum + "]";
}

// ---- Values ----

std::string KernelPrinter::use(ValueId v) const {
  if (auto it = constants_.find(v); it != constants_.end()) return it->second;
  return is_array(v) ? value_name(v) + "[" + place_of(v) + "]" : value_name(v);
}

// Locals are plain bools, which g++ packs into bytes far better than the bytes of rt::b8;
// operations know b8 only.
std::string KernelPrinter::operand(ValueId v) const {
  const bool local = dtype(v) == ir::DType::Bool && !constants_.contains(v) && !is_array(v);
  return local ? "rt::b8(" + use(v) + ")" : use(v);
}

// ---- Operations ----

std::string KernelPrinter::expression(const Stmt& s) const {
  const ir::DType d = dtype(s.result);
  const std::string type = type_of(d);
  if (s.helper != Stmt::Helper::None) {
    static constexpr const char* kNames[] = {
        "",           "rt::root_less", "rt::arg_key<false>", "rt::arg_key<true>",
        "rt::opaque", "rt::unknown"};
    std::string arguments = operand(s.args[0]);
    if (s.args.size() > 1) arguments += ", " + operand(s.args[1]);
    if (s.helper == Stmt::Helper::Unknown) arguments = use(s.args[0]) + ", unset";
    return kNames[static_cast<int>(s.helper)] + ("(" + arguments + ")");
  }
  if (s.op == ir::Op::Param)
    return "rt::param<" + type + ">(args->params[" + std::to_string(s.index) + "])";
  if (s.op == ir::Op::Iota) return address(s.access);
  if (s.op == ir::Op::Cast) return "rt::cast<" + type + ">(" + operand(s.args[0]) + ")";
  const ir::DType operands = dtype(s.args.back());
  const std::string text = filled(ir::expression(s.op, operands, raises_), [&](char hole) {
    return hole == 'T' ? type_of(operands) : operand(s.args[index(hole - '0')]);
  });
  // Small integers compute as int in C++; bool expressions as bool.
  const bool narrow = is_in(d, ir::kInteger) && ir::size_of(d) < 4;
  return narrow ? "(" + type + ")(" + text + ")" : text;
}

// The last value and the next operand as one; the first operand is a value itself.
std::string KernelPrinter::carried(const Stmt& s) const {
  const std::string type = type_of(dtype(s.result)), next = operand(s.args[0]);
  const std::string text = filled(ir::op_info(s.op).expression, [&](char hole) {
    if (hole == 'T') return type;
    return hole == '0' ? carry_name(s) : next;
  });
  return name(s.vars[0]) + " == 0 ? (" + type + ")" + next + " : (" + type + ")(" + text + ")";
}

// One step of a reduction.
std::string KernelPrinter::combine(const Stmt& s, const std::string& a,
                                   const std::string& b) const {
  const std::string_view pattern = ir::op_info(ir::reduction_info(s.reduction).combine).expression;
  const std::string text = filled(pattern, [&](char hole) { return hole == '0' ? a : b; });
  return "(" + type_of(dtype(s.result)) + ")(" + text + ")";
}

std::string KernelPrinter::identity(const Stmt& s) const {
  return "(" + type_of(dtype(s.result)) + ")" +
         literal(dtype(s.result), ir::identity_bits(s.reduction, dtype(s.result)));
}

}  // namespace ufuse::codegen
