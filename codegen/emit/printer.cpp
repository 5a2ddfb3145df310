#include "codegen/emit/printer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/emit/kernel_printer.h"
#include "codegen/emit/literal.h"

namespace ufuse::codegen {

using loop::Buffer;
using loop::Number;

std::string print_cpp(const loop::Kernel& kernel, const ir::LoopTable& loops) {
  return KernelPrinter(kernel, loops).print();
}

KernelPrinter::KernelPrinter(const loop::Kernel& kernel, const ir::LoopTable& loops)
    : k_(kernel), loops_(loops) {
  int counts[4] = {0, 0, 0, 0};
  static constexpr const char* kNames[] = {"in", "out", "tmp", "row"};
  for (const Buffer& b : k_.buffers) {
    const auto role = static_cast<std::size_t>(b.role);
    names_.push_back(kNames[role] + std::to_string(counts[role]++));
  }
  walk(k_.body, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::Compute && s.op == ir::Op::Const)
      constants_[s.result] = literal(dtype(s.result), s.constant);
    raises_ |= may_raise(s);
  });
}

// ---- Lines ----

void KernelPrinter::line(const std::string& text) {
  text_.append(static_cast<std::size_t>(2 * indent_), ' ');
  text_ += text;
  text_ += '\n';
}
void KernelPrinter::open(const std::string& text) {
  line(text + " {");
  ++indent_;
}
void KernelPrinter::close(const char* text) {
  --indent_;
  line(text);
}
void KernelPrinter::open_for(const std::string& variable, const std::string& lo,
                             const std::string& hi) {
  open("for (rt::Index " + variable + " = " + lo + "; " + variable + " < " + hi + "; ++" +
       variable + ")");
}

// ---- The frame ----

std::string KernelPrinter::print() {
  std::string ops, signature, pointers;
  for (const std::string& op : k_.ops) ops += (ops.empty() ? "" : ", ") + op;
  int position = 0;  // in the entry's array of pointers; rows of scratch have none
  for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
    const Buffer& b = k_.buffers[i];
    if (b.role == Buffer::Role::Row) continue;
    const std::string type = (b.written ? "" : "const ") + type_of(b.dtype) + "*";
    signature += type + " __restrict " + names_[i] + ", ";
    pointers += "(" + type + ")args->buffers[" + std::to_string(position++) + "], ";
  }
  text_ = "// " + ops + "\n" + options() + "static void rows(" + signature +
          "const rt::Args* args" + (k_.parallel < 0 ? "" : ", rt::Index lo, rt::Index hi") +
          ", rt::Flags& flags) {\n";
  indent_ = 1;
  preliminaries();
  print_body(k_.body);
  for (std::size_t i = 0; i < k_.buffers.size(); ++i)
    if (k_.buffers[i].role == Buffer::Role::Row) line("rt::release(" + names_[i] + ");");
  if (std::ranges::any_of(k_.buffers, &Buffer::streamable)) line("if (stream) rt::end_streams();");
  print_entry(pointers);
  return std::move(text_);
}

// What g++ must not do in this kernel, and may in others: sums need both.
std::string KernelPrinter::options() const {
  std::string options;
  // g++ 12 forgets the rounding where two neighbouring doubles become floats and doubles again.
  if (rounds_between()) options += "#pragma GCC optimize(\"no-tree-slp-vectorize\")\n";
  // g++ 14 makes two loops of one with `unset`, and computes less in that for zero.
  if (has_unknown()) options += "#pragma GCC optimize(\"no-unswitch-loops\")\n";
  return options;
}

// Whether a double becomes a float and then, without arithmetic between, a double again.
bool KernelPrinter::rounds_between() const {
  const auto casts = [&](const Stmt& s, ir::DType from, ir::DType to) {
    return s.kind == Stmt::Kind::Compute && s.op == ir::Op::Cast && !s.args.empty() &&
           ir::real_part(dtype(s.args[0])) == from && ir::real_part(dtype(s.result)) == to;
  };
  std::set<ValueId> rounded;
  std::set<int> buffers;
  bool found = false;
  for (bool grows = true; grows;) {
    grows = false;
    walk(k_.body, [&](const Stmt& s) {
      bool passes = rounded.contains(s.element) || rounded.contains(s.initial);
      for (ValueId v : s.args) passes |= rounded.contains(v);
      if (s.kind == Stmt::Kind::Load) passes |= buffers.contains(s.access.buffer);
      found |= passes && casts(s, ir::DType::Float32, ir::DType::Float64);
      if (may_raise(s)) passes = false;
      if (passes && s.kind == Stmt::Kind::Store) grows |= buffers.insert(s.access.buffer).second;
      if (passes || casts(s, ir::DType::Float64, ir::DType::Float32))
        grows |= s.result >= 0 && rounded.insert(s.result).second;
    });
  }
  return found;
}

bool KernelPrinter::has_unknown() const {
  bool has = false;
  walk(k_.body, [&](const Stmt& s) { has |= s.helper == Stmt::Helper::Unknown; });
  return has;
}

bool KernelPrinter::may_raise(const Stmt& s) const {
  switch (s.kind) {
    case Stmt::Kind::Compute:
      return s.helper == Stmt::Helper::None && !s.args.empty() &&
             ir::may_raise(s.op, dtype(s.args.back()), dtype(s.result));
    case Stmt::Kind::Carry:
      return ir::may_raise(s.op, dtype(s.result), dtype(s.result));
    case Stmt::Kind::Fold:
      return s.arg < 0 && ir::may_raise(ir::reduction_info(s.reduction).combine, dtype(s.result),
                                        dtype(s.result));
    case Stmt::Kind::Call:
      return true;
    default:
      return false;
  }
}

// Where nothing is to be reported, flags are those of NaNs that were compared.
void KernelPrinter::print_entry(const std::string& pointers) {
  const std::string end = raises_ ? ";\n}\n" : " & rt::kRedo;\n}\n";
  text_ += "}\n\nextern \"C\" unsigned ufuse_kernel(const rt::Args* args) {\n";
  if (k_.parallel < 0) {
    text_ += "  return rt::run_range([&](rt::Index, rt::Index, rt::Flags& flags) {\n    rows(" +
             pointers + "args, flags);\n  }, 0, 1)" + end;
    return;
  }
  const Number n = k_.vars[index(k_.parallel)].extent;
  text_ +=
      "  const rt::Index n = " +
      (n.literal() ? std::to_string(n.value) : "args->sizes[" + std::to_string(n.symbol) + "]") +
      ";\n  return rt::parallel(args->threads, n, " + std::to_string(k_.grain) +
      ", [&](rt::Index lo, rt::Index hi, rt::Flags& flags) {\n    rows(" + pointers +
      "args, lo, hi, flags);\n  })" + end;
}

// Before the loops: sizes, rows of scratch, the way to memory.
void KernelPrinter::preliminaries() {
  if (std::ranges::any_of(k_.buffers, &Buffer::streamable))
    line("const bool stream = args->stream;");
  std::set<int> symbols;
  const auto need = [&](const Number& n) {
    if (!n.literal()) symbols.insert(n.symbol);
  };
  const auto need_strides = [&](const Access& a) {
    for (const loop::Term& t : a.terms) need(t.stride);
    for (const auto& f : a.fixed) need(f.second);
  };
  walk(k_.body, [&](const Stmt& s) {
    need_strides(s.access);
    for (const Access& a : s.direct) need_strides(a);
    for (const loop::Along& a : s.along) need(a.extent), need(a.stride);
    for (VarId v : s.vars)
      if (v != k_.parallel || s.kind != Stmt::Kind::Loop) need(k_.vars[index(v)].extent);
  });
  if (has_unknown()) line("const rt::u8 unset = rt::unset();");
  for (int s : symbols)
    line("const rt::Index n" + std::to_string(s) + " = args->sizes[" + std::to_string(s) + "];");
  for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
    const Buffer& b = k_.buffers[i];
    if (b.role != Buffer::Role::Row) continue;
    line(type_of(b.dtype) + "* __restrict " + names_[i] + " = rt::row<" + type_of(b.dtype) + ">(" +
         number(b.length) + ");");
  }
}

// ---- Statements ----

void KernelPrinter::print_body(const Body& body) {
  for (const Stmt& s : body) print_stmt(s);
}

void KernelPrinter::print_stmt(const Stmt& s) {
  switch (s.kind) {
    case Stmt::Kind::Load:
      return define(s.result, s.along.empty() ? element(s.access) : chosen(s));
    case Stmt::Kind::Carry:
      line(carry_name(s) + " = " + carried(s) + ";");
      return define(s.result, carry_name(s));
    case Stmt::Kind::List:
      return print_list(s);
    case Stmt::Kind::Compute:
      if (s.op == ir::Op::Const) return;
      return define(s.result, expression(s));
    case Stmt::Kind::Store:
      return print_store(s);
    case Stmt::Kind::Redo:
      return line("if (" + use(s.args[0]) + ") flags.redo();");
    case Stmt::Kind::Doubt:
      return line("doubt." +
                  (s.args.size() == 1 ? "look(" + use(s.args[0])
                                      : "compare(" + use(s.args[0]) + ", " + use(s.args[1])) +
                  ");");
    case Stmt::Kind::Call:
      return s.lanes ? print_call_block(s) : print_call_one(s);
    case Stmt::Kind::Loop:
      return print_loop(s);
    case Stmt::Kind::Segment:
      return print_segment(s);
    case Stmt::Kind::Fold:
      return print_fold(s);
  }
}

void KernelPrinter::define(ValueId v, const std::string& expression) {
  if (is_array(v)) return line(use(v) + " = " + expression + ";");
  // g++ keeps a constant struct of one member in memory, and then does not vectorise.
  const bool half = dtype(v) == ir::DType::Float16;
  line((half ? "" : "const ") + (dtype(v) == ir::DType::Bool ? "bool" : type_of(dtype(v))) + " " +
       value_name(v) + " = " + expression + ";");
}

void KernelPrinter::print_store(const Stmt& s) {
  const bool streams = k_.buffer(s.access).streamable && !blocks_.empty();
  const std::string to = !s.along.empty() ? chosen(s)
                         : streams ? target_name(s.access) + "[" + place_in(*blocks_.back()) + "]"
                                   : element(s.access);
  line(to + " = " + use(s.args[0]) + ";");
}

// ---- Loops ----

void KernelPrinter::print_loop(const Stmt& s) {
  const VarId var = s.vars[0];
  const bool shared = var == k_.parallel, in_doubt = !s.exact.empty();
  const std::string lo = shared ? "lo" : "0", hi = shared ? "hi" : extent(var);
  walk(s.body, [&](const Stmt& t) {
    if (t.kind == Stmt::Kind::Carry && t.vars[0] == var)
      line(type_of(dtype(t.result)) + " " + carry_name(t) + " = {};");
  });
  if (s.block > 0)
    open_blocks(s, lo, hi);
  else
    open_for(name(var), lo, hi);
  if (in_doubt) line("rt::RootDoubt doubt;");
  if (s.block > 0) open_streams(s);
  print_body(s.body);
  if (in_doubt) {
    open("if (__builtin_expect(doubt.any(), 0))");
    line("// Too close to tell without the square roots: this block once more, in full.");
    print_body(s.exact);
    close();
  }
  if (s.block > 0)
    close_blocks(s);
  else
    close();
}

// What is true in a mask, as a whole.
void KernelPrinter::print_list(const Stmt& s) {
  std::string extents, columns;
  for (std::size_t i = 1; i < s.along.size(); ++i) {
    extents += (i > 1 ? ", " : "") + number(s.along[i].extent);
    columns += (i > 1 ? ", " : "") + number(s.along[i].stride);
  }
  line("const rt::Index extents[] = {" + extents + "}, columns[] = {" + columns + "};");
  line("rt::list<" + std::to_string(s.along.size() - 1) + ">((const rt::u8*)" + name(s.mask) +
       ", extents, " + name(s.access) + ", " + number(s.along[0].stride) + ", columns, " +
       number(s.along[0].extent) + ", args->threads, flags);");
}

// ---- Calls ----

// A call for one element: its operands are locals, with a gap behind each (see loop::kArrayGap).
void KernelPrinter::print_call_one(const Stmt& s) {
  const ir::LoopEntry& entry = loops_[k_.calls[index(s.index)]];
  Texts pointers, steps;
  const auto local = [&](ir::DType dtype, const std::string& name, const std::string& value,
                         bool repeated) {
    line(type_of(dtype) + " " + name + "[2]" + value + ";");
    pointers.push_back("(char*)" + name);
    steps.push_back(repeated ? "0" : "sizeof(" + type_of(dtype) + ")");
  };
  const std::string serial = "_" + std::to_string(serial_++);
  for (std::size_t i = 0; i < s.args.size(); ++i)
    local(entry.inputs[i], "a" + std::to_string(i) + serial, " = {" + use(s.args[i]) + "}",
          entry.is_repeated(i));
  for (std::size_t i = 0; i < s.results.size(); ++i)
    local(entry.outputs[i], "r" + std::to_string(i) + serial, "", false);
  print_invocation(s, pointers, steps, "1");
  for (std::size_t i = 0; i < s.results.size(); ++i)
    if (s.results[i] >= 0) define(s.results[i], "r" + std::to_string(i) + serial + "[0]");
}

void KernelPrinter::print_invocation(const Stmt& s, const Texts& pointers, const Texts& steps,
                                     const std::string& count) {
  const auto joined = [](const Texts& parts) {
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : ", ") + part;
    return all;
  };
  line("{  // " + loops_[k_.calls[index(s.index)]].ufunc);
  ++indent_;
  line("char* operands[] = {" + joined(pointers) + "};");
  line("const rt::Index steps[] = {" + joined(steps) + "}, count = " + count + ";");
  line("const rt::Loop& f = args->loops[" + std::to_string(s.index) + "];");
  line("flags.collect();");
  line("f.call(operands, &count, steps, f.data);");
  close();
}

}  // namespace ufuse::codegen
