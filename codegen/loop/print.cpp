// Loop IR as text, for golden files and UFUSE_LOGS=fusion. One statement a line; run-time numbers
// as n<symbol>.
#include <string>

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {
namespace {

std::string number(const Number& n) {
  return n.literal() ? std::to_string(n.value) : "n" + std::to_string(n.symbol);
}

class LoopPrinter {
 public:
  explicit LoopPrinter(const Kernel& kernel) : k_(kernel) {}

  std::string print() {
    for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
      static constexpr const char* kRoles[] = {"input", "output", "temp", "row"};
      const Buffer& b = k_.buffers[i];
      line("buffer b" + std::to_string(i) + " = " + kRoles[static_cast<int>(b.role)] + " " +
           std::to_string(b.index) + " : " + std::string(ir::info(b.dtype).name) +
           (b.written ? " written" : "") + (b.streamable ? " streamable" : ""));
    }
    body(k_.body);
    return std::move(text_);
  }

 private:
  void line(const std::string& text) {
    text_.append(static_cast<std::size_t>(2 * depth_), ' ');
    text_ += text;
    text_ += '\n';
  }
  static std::string value(ValueId v) { return "t" + std::to_string(v); }
  // With the length of the array that keeps it, if one does.
  std::string typed(ValueId v) const {
    const Value& value = k_.value(v);
    const std::string array = value.array > 0 ? "[" + std::to_string(value.array) + "]" : "";
    return LoopPrinter::value(v) + array + ":" + ir::info(value.dtype).code;
  }
  std::string access(const Access& a) const {
    return "b" + std::to_string(a.buffer) + "[" + sum(a) + "]";
  }
  std::string sum(const Access& a) const {
    std::string text;
    bool first = true;
    const auto add = [&](const std::string& term) {
      text += (first ? "" : " + ") + term;
      first = false;
    };
    for (const Term& t : a.terms) add(k_.var(t.var).name + "*" + number(t.stride));
    for (const auto& [factor, stride] : a.fixed) add(std::to_string(factor) + "*" + number(stride));
    return text;
  }
  // The positions, which are the operands from `first` on.
  std::string along(const Stmt& s, std::size_t first) const {
    static constexpr const char* kBounds[] = {"signed", "unsigned", "wrap", "clip"};
    std::string text;
    for (std::size_t i = 0; i < s.along.size(); ++i) {
      const Along& a = s.along[i];
      text += std::string(" + ") + kBounds[static_cast<int>(a.bounds)] + " " +
              value(s.args[first + i]) + "<" + number(a.extent) + "*" + number(a.stride);
    }
    return text;
  }
  std::string args(const Stmt& s) const {
    std::string text;
    for (ValueId v : s.args) text += " " + value(v);
    return text;
  }

  // Of a call: what it reads or writes itself, or a value.
  std::string operand(const Stmt& s, std::size_t i, const std::string& value) const {
    const bool direct = i < s.direct.size() && s.direct[i].buffer >= 0;
    return direct ? access(s.direct[i]) : value;
  }
  std::string blocks(const Stmt& s) const {
    if (s.block == 0) return "";
    return is_one_block(k_, s) ? " one block" : " blocks " + std::to_string(s.block);
  }

  void body(const Body& statements) {
    for (const Stmt& s : statements) statement(s);
  }
  void statement(const Stmt& s) {
    switch (s.kind) {
      case Stmt::Kind::Load:
        return line(typed(s.result) + " = load " + access(s.access) + along(s, 0));
      case Stmt::Kind::Carry:
        return line(typed(s.result) + " = carry " + std::string(ir::op_info(s.op).name) +
                    " along " + k_.var(s.vars[0]).name + args(s));
      case Stmt::Kind::List: {
        std::string text = "list " + access(s.access) + " = " + access(s.mask) + " of " +
                           number(s.along[0].extent) + " rows by " + number(s.along[0].stride);
        for (std::size_t i = 1; i < s.along.size(); ++i)
          text += ", " + number(s.along[i].extent) + " at " + number(s.along[i].stride);
        return line(text);
      }
      case Stmt::Kind::Compute: {
        static constexpr const char* kHelpers[] = {"",           "root_less", "argmin_key",
                                                   "argmax_key", "opaque",    "unknown"};
        const bool row = s.helper == Stmt::Helper::None;
        std::string text =
            typed(s.result) + " = " +
            (row ? std::string(ir::op_info(s.op).name) : kHelpers[static_cast<int>(s.helper)]) +
            args(s);
        if (s.op == ir::Op::Const) text += " 0x" + hex(s.constant.bits[0]);
        if (s.op == ir::Op::Iota) text += " " + sum(s.access);
        if (s.op == ir::Op::Param) text += " p" + std::to_string(s.index);
        return line(text);
      }
      case Stmt::Kind::Call: {
        std::string text;
        for (std::size_t i = 0; i < s.results.size(); ++i)
          text +=
              operand(s, s.args.size() + i, s.results[i] >= 0 ? typed(s.results[i]) : "_") + " ";
        text += "= call f" + std::to_string(s.index);
        for (std::size_t i = 0; i < s.args.size(); ++i)
          text += " " + operand(s, i, value(s.args[i]));
        return line(text + (s.lanes ? " lanes" : ""));
      }
      case Stmt::Kind::Store:
        return line("store " + access(s.access) + along(s, 1) + " = " + value(s.args[0]));
      case Stmt::Kind::Redo:
        return line("redo if" + args(s));
      case Stmt::Kind::Doubt:
        return line("doubt roots" + args(s));
      case Stmt::Kind::Loop: {
        std::string text = "for " + range(s.vars[0]);
        if (s.lanes) text += " lanes";
        if (s.parallel) text += " parallel";
        if (s.vars[0] == k_.parallel) text += " grain " + std::to_string(k_.grain);
        if (s.merges) text += " merges";
        line(text + blocks(s));
        break;
      }
      case Stmt::Kind::Segment:
        line("segment");
        break;
      case Stmt::Kind::Fold: {
        static constexpr const char* kForms[] = {"lanes", "horizontal", "parallel"};
        static constexpr const char* kOrders[] = {"free", "sequential", "pairwise", "extremum"};
        std::string text = typed(s.result) + " = fold ";
        text += s.arg >= 0 ? (s.arg == 0 ? "argmin" : "argmax")
                           : std::string(ir::reduction_info(s.reduction).name);
        for (VarId v : s.vars) text += " " + range(v);
        text += std::string(" ") + kForms[static_cast<int>(s.form)];
        if (s.arg < 0) text += std::string(" ") + kOrders[static_cast<int>(s.order)];
        if (s.lanes) text += " of lanes";
        if (s.in_blocks && s.block == 0) text += " blocks";
        if (s.rows > 0) text += " rows " + std::to_string(s.rows);
        if (s.ahead > 0) text += " ahead " + std::to_string(s.ahead);
        text += blocks(s);
        if (s.chunk > 0) text += " chunk " + std::to_string(s.chunk);
        if (s.initial >= 0) text += " from " + value(s.initial);
        line(text);
        break;
      }
    }
    ++depth_;
    body(s.body);
    if (s.kind == Stmt::Kind::Fold) line("element " + value(s.element));
    if (!s.exact.empty()) {
      --depth_;
      line("in doubt:");
      ++depth_;
      body(s.exact);
    }
    --depth_;
  }
  std::string range(VarId v) const {
    const Var& var = k_.var(v);
    return var.name + "<" + number(var.extent);
  }
  static std::string hex(std::uint64_t bits) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    do {
      text.insert(text.begin(), kDigits[bits & 15]);
      bits >>= 4;
    } while (bits != 0);
    return text;
  }

  const Kernel& k_;
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string print(const Kernel& kernel) { return LoopPrinter(kernel).print(); }

}  // namespace ufuse::codegen::loop
