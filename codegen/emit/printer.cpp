#include "codegen/emit/printer.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/emit/literal.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using loop::Access;
using loop::Body;
using loop::Buffer;
using loop::Kernel;
using loop::Number;
using loop::Stmt;
using loop::ValueId;
using loop::VarId;

// A loop over lanes that runs in blocks: which of its inner loops (segments) makes and uses each
// value.
struct Lanes {
  VarId var = -1;
  std::string base, count;  // text: first element of the block, how many
  int block = loop::kBlock;
  std::unordered_map<ValueId, int>
      segment_of;  // where made; Call and Fold results: -1, they are arrays
  std::unordered_map<ValueId, const Stmt*> loads;   // made anew wherever they are used
  std::unordered_map<ValueId, const Stmt*> stores;  // call results that go straight to memory
  std::set<ValueId> arrays;
};

class Printer {
 public:
  Printer(const Kernel& kernel, const ir::LoopTable& loops) : k_(kernel), loops_(loops) {}

  std::string print() {
    name_buffers();
    find_constants(k_.body);
    std::string head = "// " + joined(k_.ops, ", ") + "\n";
    std::string signature, call;
    for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
      const Buffer& b = k_.buffers[i];
      if (b.role == Buffer::Role::Row) continue;
      const std::string type = (b.written ? "" : "const ") + type_of(b.dtype) + "*";
      signature += type + " __restrict " + names_[i] + ", ";
      call += "(" + type + ")args->buffers[" + std::to_string(position_[i]) + "], ";
    }
    const bool serial = k_.parallel < 0;
    text_ = head + "static void rows(" + signature + "const rt::Args* args" +
            (serial ? "" : ", rt::Index lo, rt::Index hi") + ", rt::Flags& flags) {\n";
    indent_ = 1;
    preliminaries();
    print_body(k_.body);
    for (const std::string& name : rows_) line("rt::release(" + name + ");");
    text_ += "}\n\nextern \"C\" unsigned ufuse_kernel(const rt::Args* args) {\n";
    if (serial) {
      text_ += "  return rt::run_range([&](rt::Index, rt::Index, rt::Flags& flags) {\n    rows(" +
               call + "args, flags);\n  }, 0, 1);\n}\n";
    } else {
      const Number extent = k_.vars[index(k_.parallel)].extent;
      text_ += "  const rt::Index n = " +
               (extent.literal() ? std::to_string(extent.value)
                                 : "args->sizes[" + std::to_string(extent.symbol) + "]") +
               ";\n  return rt::parallel(args->threads, n, " + std::to_string(grain()) +
               ", [&](rt::Index lo, rt::Index hi, rt::Flags& flags) {\n    rows(" + call +
               "args, lo, hi, flags);\n  });\n}\n";
    }
    return std::move(text_);
  }

 private:
  // ---- Names ----

  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  static std::string type_of(ir::DType dtype) { return std::string(ir::info(dtype).cpp_type); }
  ir::DType dtype(ValueId v) const { return k_.values[index(v)].dtype; }
  static std::string joined(const std::vector<std::string>& parts, const char* separator) {
    std::string all;
    for (const std::string& part : parts) all += (all.empty() ? "" : separator) + part;
    return all;
  }

  void name_buffers() {
    int counts[4] = {0, 0, 0, 0};
    static constexpr const char* kNames[] = {"in", "out", "tmp", "row"};
    int position = 0;
    for (const Buffer& b : k_.buffers) {
      const auto role = static_cast<std::size_t>(b.role);
      names_.push_back(kNames[role] + std::to_string(counts[role]++));
      position_.push_back(b.role == Buffer::Role::Row ? -1 : position++);
    }
  }
  std::string number(const Number& n) const {
    return n.literal() ? std::to_string(n.value) : "n" + std::to_string(n.symbol);
  }
  std::string extent(VarId var) const { return number(k_.vars[index(var)].extent); }
  const std::string& name(VarId var) const { return k_.vars[index(var)].name; }
  static std::string value_name(ValueId v) { return "t" + std::to_string(v); }

  // How the value is written where it is used.
  std::string use(ValueId v) const {
    if (auto it = constants_.find(v); it != constants_.end()) return it->second;
    if (lanes_ != nullptr && lanes_->arrays.contains(v))
      return value_name(v) + "[" + lane_index() + "]";
    return value_name(v);
  }
  std::string lane_index() const { return name(lanes_->var) + " - " + lanes_->base; }

  std::string address(const Access& a, VarId block_base = -1, const std::string& base = {}) const {
    std::string sum;
    const auto add = [&](const std::string& term) { sum += (sum.empty() ? "" : " + ") + term; };
    for (const loop::Term& t : a.terms) {
      const std::string var = t.var == block_base ? base : name(t.var);
      add(t.stride.literal() && t.stride.value == 1 ? var : var + " * " + number(t.stride));
    }
    for (const auto& [factor, stride] : a.fixed)
      add(stride.literal() ? std::to_string(factor * stride.value)
                           : std::to_string(factor) + " * " + number(stride));
    return sum.empty() ? "0" : sum;
  }
  std::string element(const Access& a) const {
    return names_[index(a.buffer)] + "[" + address(a) + "]";
  }

  void line(const std::string& text) {
    text_.append(static_cast<std::size_t>(2 * indent_), ' ');
    text_ += text + "\n";
  }
  void open(const std::string& text) {
    line(text + " {");
    ++indent_;
  }
  void close(const char* text = "}") {
    --indent_;
    line(text);
  }

  int grain() const {
    bool lanes = false;
    walk(k_.body, [&](const Stmt& s) {
      lanes |= s.kind == Stmt::Kind::Loop && s.lanes && s.vars[0] == k_.parallel;
    });
    return lanes ? loop::kBlock : 1;
  }

  static void walk(const Body& body, const std::function<void(const Stmt&)>& visit) {
    for (const Stmt& s : body) {
      visit(s);
      walk(s.body, visit);
      walk(s.exact, visit);
    }
  }

  // ---- Before the loops ----

  void find_constants(const Body& body) {
    walk(body, [&](const Stmt& s) {
      if (s.kind == Stmt::Kind::Compute && s.op == ir::Op::Const)
        constants_[s.result] = literal(dtype(s.result), s.constant);
    });
  }

  void preliminaries() {
    std::set<int> symbols;
    const auto need = [&](const Number& n) {
      if (!n.literal()) symbols.insert(n.symbol);
    };
    walk(k_.body, [&](const Stmt& s) {
      for (const loop::Term& t : s.access.terms) need(t.stride);
      for (const auto& f : s.access.fixed) need(f.second);
      for (VarId v : s.vars)
        if (v != k_.parallel || s.kind != Stmt::Kind::Loop) need(k_.vars[index(v)].extent);
    });
    for (int s : symbols)
      line("const rt::Index n" + std::to_string(s) + " = args->sizes[" + std::to_string(s) + "];");
    for (std::size_t i = 0; i < k_.buffers.size(); ++i) {
      const Buffer& b = k_.buffers[i];
      if (b.role != Buffer::Role::Row) continue;
      line(type_of(b.dtype) + "* __restrict " + names_[i] + " = rt::row<" + type_of(b.dtype) +
           ">(" + number(b.length) + ");");
      rows_.push_back(names_[i]);
    }
  }

  // ---- Statements outside blocks ----

  void print_body(const Body& body) {
    for (const Stmt& s : body) print_stmt(s);
  }

  void print_stmt(const Stmt& s) {
    switch (s.kind) {
      case Stmt::Kind::Load:
      case Stmt::Kind::Compute:
      case Stmt::Kind::Store:
      case Stmt::Kind::Redo:
      case Stmt::Kind::Doubt:
        return print_scalar(s);
      case Stmt::Kind::Call:
        return print_call_one(s);
      case Stmt::Kind::Loop:
        return print_loop(s);
      case Stmt::Kind::Fold:
        return s.form == Stmt::Form::Lanes ? print_fold_one(s) : print_horizontal(s);
    }
  }

  void print_scalar(const Stmt& s) {
    switch (s.kind) {
      case Stmt::Kind::Load:
        return define(s.result, element(s.access));
      case Stmt::Kind::Compute:
        if (s.op == ir::Op::Const) return;
        if (s.op == ir::Op::Param)
          return define(s.result, "rt::param<" + type_of(dtype(s.result)) + ">(args->params[" +
                                      std::to_string(s.index) + "])");
        return define(s.result, expression(s));
      case Stmt::Kind::Store:
        return line(element(s.access) + " = " + use(s.args[0]) + ";");
      case Stmt::Kind::Doubt:
        return line("doubt |= " + use(s.args[0]) + ";");
      default:
        return line("if (" + use(s.args[0]) + ") flags.redo();");
    }
  }
  void define(ValueId v, const std::string& expression) {
    if (lanes_ != nullptr && lanes_->arrays.contains(v))
      line(use(v) + " = " + expression + ";");
    else
      line("const " + (dtype(v) == ir::DType::Bool ? "bool" : type_of(dtype(v))) + " " +
           value_name(v) + " = " + expression + ";");
  }

  // Locals are plain bools, which g++ packs into bytes far better than the bytes of rt::b8;
  // operations know b8 only.
  std::string operand(ValueId v) const {
    const bool local = dtype(v) == ir::DType::Bool && !constants_.contains(v) &&
                       !(lanes_ != nullptr && lanes_->arrays.contains(v));
    return local ? "rt::b8(" + use(v) + ")" : use(v);
  }
  std::string expression(const Stmt& s) const {
    const std::string type = type_of(dtype(s.result));
    if (s.helper != Stmt::Helper::None) {
      static constexpr const char* kNames[] = {
          "",          "rt::root_less", "rt::root_doubt", "rt::arg_key<false>", "rt::arg_key<true>",
          "rt::opaque"};
      std::string arguments = operand(s.args[0]);
      if (s.args.size() > 1) arguments += ", " + operand(s.args[1]);
      return kNames[static_cast<int>(s.helper)] + ("(" + arguments + ")");
    }
    if (s.op == ir::Op::Cast) return "rt::cast<" + type + ">(" + operand(s.args[0]) + ")";
    std::string text(ir::op_info(s.op).expression);
    const auto replace = [&](const std::string& from, const std::string& to) {
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    };
    replace("{T}", type_of(dtype(s.args.back())));
    for (std::size_t i = 0; i < s.args.size(); ++i)
      replace("{" + std::to_string(i) + "}", operand(s.args[i]));
    const ir::DType d = dtype(s.result);
    // Small integers compute as int in C++; bool expressions as bool.
    const bool narrow = is_in(d, ir::kInteger) && ir::size_of(d) < 4;
    return narrow ? "(" + type + ")(" + text + ")" : text;
  }

  // A call for one element: its operands are locals, with a gap behind each (see kGap).
  void print_call_one(const Stmt& s) {
    const ir::LoopEntry& entry = loops_[k_.calls[index(s.index)]];
    std::vector<std::string> pointers, steps;
    const auto operand = [&](ir::DType dtype, const std::string& name, const std::string& value) {
      line(type_of(dtype) + " " + name + "[2]" + value + ";");
      pointers.push_back("(char*)" + name);
      steps.push_back("sizeof(" + type_of(dtype) + ")");
    };
    const std::string serial = "_" + std::to_string(serial_++);
    for (std::size_t i = 0; i < s.args.size(); ++i)
      operand(entry.inputs[i], "a" + std::to_string(i) + serial, " = {" + use(s.args[i]) + "}");
    for (std::size_t i = 0; i < s.results.size(); ++i)
      operand(entry.outputs[i], "r" + std::to_string(i) + serial, "");
    print_invocation(s, entry, pointers, steps, "1");
    for (std::size_t i = 0; i < s.results.size(); ++i)
      if (s.results[i] >= 0) define(s.results[i], "r" + std::to_string(i) + serial + "[0]");
  }

  void print_invocation(const Stmt& s, const ir::LoopEntry& entry,
                        const std::vector<std::string>& pointers,
                        const std::vector<std::string>& steps, const std::string& count) {
    line("{  // " + entry.ufunc);
    ++indent_;
    line("char* operands[] = {" + joined(pointers, ", ") + "};");
    line("const rt::Index steps[] = {" + joined(steps, ", ") + "}, count = " + count + ";");
    line("const rt::Loop& f = args->loops[" + std::to_string(s.index) + "];");
    line("flags.collect();");
    line("f.call(operands, &count, steps, f.data);");
    close();
  }

  void print_loop(const Stmt& s) {
    const VarId var = s.vars[0];
    const bool shared = var == k_.parallel;
    const std::string lo = shared ? "lo" : "0", hi = shared ? "hi" : extent(var);
    if (!s.exact.empty()) return print_doubtful(s, lo, hi);
    if (s.lanes && needs_blocks(s.body)) return print_blocks(s, lo, hi);
    open("for (rt::Index " + name(var) + " = " + lo + "; " + name(var) + " < " + hi + "; ++" +
         name(var) + ")");
    print_body(s.body);
    close();
  }

  // A fast body block by block, and the exact one over the few blocks that need it.
  void print_doubtful(const Stmt& s, const std::string& lo, const std::string& hi) {
    const std::string& i = name(s.vars[0]);
    const std::string base = "b" + i.substr(1), end = "e" + i.substr(1);
    const std::string range =
        "for (rt::Index " + i + " = " + base + "; " + i + " < " + end + "; ++" + i + ")";
    open("for (rt::Index " + base + " = " + lo + "; " + base + " < " + hi + "; " + base +
         " += " + std::to_string(loop::kBlock) + ")");
    line("const rt::Index " + end + " = " + base + " + rt::block(" + hi + " - " + base + ", " +
         std::to_string(loop::kBlock) + ");");
    line("rt::i64 doubt = 0;");
    open(range);
    print_body(s.body);
    close();
    line("if (__builtin_expect(doubt == 0, 1)) continue;");
    line("// Too close to tell without the square roots: this block once more, in full.");
    open(range);
    print_body(s.exact);
    close();
    close();
  }

  // -- Reductions with scalar accumulators --

  void print_fold_one(const Stmt& s) {
    const bool first = starts_at_first(s);
    declare_accumulators(s, "");
    if (first) line("bool first" + value_name(s.result) + " = true;");
    open_fold_loops(s);
    print_body(s.body);
    print_update(s, "");
    if (first) line("first" + value_name(s.result) + " = false;");
    close_fold_loops(s);
  }
  static bool starts_at_first(const Stmt& s) {
    return s.arg >= 0 ||
           (s.initial < 0 && ir::reduction_info(s.reduction).identity == ir::Identity::None);
  }
  void open_fold_loops(const Stmt& s) {
    for (VarId v : s.vars)
      open("for (rt::Index " + name(v) + " = 0; " + name(v) + " < " + extent(v) + "; ++" + name(v) +
           ")");
  }
  void close_fold_loops(const Stmt& s) {
    for (std::size_t i = 0; i < s.vars.size(); ++i) close();
  }
  static std::string best_name(const Stmt& s) { return "best" + value_name(s.result); }

  void declare_accumulators(const Stmt& s, const std::string& suffix) {
    const std::string type = type_of(dtype(s.result));
    const std::string initial = s.initial >= 0 ? " = " + use(s.initial) : " = {}";
    if (suffix.empty()) {
      line(type + " " + value_name(s.result) + initial + ";");
      if (s.arg >= 0) line(type_of(dtype(s.element)) + " " + best_name(s) + " = {};");
      return;
    }
    line(type + " " + value_name(s.result) + suffix + ";");
    if (s.arg >= 0) line(type_of(dtype(s.element)) + " " + best_name(s) + suffix + ";");
  }

  // One element into the accumulators; `at` is their subscript.
  void print_update(const Stmt& s, const std::string& at) {
    const std::string acc = value_name(s.result) + at, e = use(s.element);
    const std::string first = "first" + value_name(s.result);
    if (s.arg >= 0) {
      const std::string best = best_name(s) + at;
      const std::string take = "take" + value_name(s.result);
      line("const bool " + take + " = " + first + " | (" + e + (s.arg == 1 ? " > " : " < ") + best +
           ");");
      line(best + " = " + take + " ? " + e + " : " + best + ";");
      line(acc + " = " + take + " ? " + name(s.vars.back()) + " : " + acc + ";");
      return;
    }
    const std::string sum = combine(s, acc, e);
    line(acc + " = " + (starts_at_first(s) ? first + " ? " + e + " : " + sum : sum) + ";");
  }
  std::string combine(const Stmt& s, const std::string& a, const std::string& b) const {
    std::string text(ir::op_info(ir::reduction_info(s.reduction).combine).expression);
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"{0}", a}, {"{1}", b}})
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return "(" + type_of(dtype(s.result)) + ")(" + text + ")";
  }

  // -- Reductions along a run --

  // The result is a scalar while it is made, also where an array keeps it for each lane.
  std::string run_name(const Stmt& s) const {
    const bool kept = lanes_ != nullptr && lanes_->arrays.contains(s.result);
    return value_name(s.result) + (kept ? "_run" : "");
  }

  void print_horizontal(const Stmt& s) {
    const std::string type = type_of(dtype(s.result));
    const std::string acc = run_name(s);
    const VarId run = s.vars.back();
    const std::string n = extent(run);
    const bool parallel = s.form == Stmt::Form::Parallel;
    if (s.arg >= 0 || starts_at_first(s)) {
      print_extremum(s, run, n, parallel);
      return;
    }
    line(type + " " + acc + " = " + (s.initial >= 0 ? use(s.initial) : "{}") + ";");
    for (std::size_t i = 0; i + 1 < s.vars.size(); ++i)
      open("for (rt::Index " + name(s.vars[i]) + " = 0; " + name(s.vars[i]) + " < " +
           extent(s.vars[i]) + "; ++" + name(s.vars[i]) + ")");
    print_element(s, run);
    if (s.order == ir::Order::Pairwise) {
      const std::string chunk = s.chunk > 0 ? std::to_string(s.chunk) : "0";
      line(acc + " = rt::" + (parallel ? "parallel_sum" : "sum") + "<" + type + ">(" + acc + ", " +
           n + ", " + chunk + ", f" + acc + (parallel ? ", args->threads, flags" : "") + ");");
    } else {
      line("const auto add" + acc + " = [](" + type + " a, " + type + " b) { return " +
           combine(s, "a", "b") + "; };");
      line(acc + " = rt::" + (parallel ? "parallel_fold" : "fold") + "(" + acc + ", " + n + ", f" +
           acc + ", add" + acc + (parallel ? ", " + identity(s) + ", args->threads, flags" : "") +
           ");");
    }
    for (std::size_t i = 0; i + 1 < s.vars.size(); ++i) close();
  }
  std::string identity(const Stmt& s) const {
    return "(" + type_of(dtype(s.result)) + ")" +
           literal(dtype(s.result), ir::identity_bits(s.reduction, dtype(s.result)));
  }
  // The run's element as a callable.
  void print_element(const Stmt& s, VarId run) {
    open("const auto f" + run_name(s) + " = [&](rt::Index " + name(run) + ") -> " +
         type_of(dtype(s.element)));
    print_body(s.body);
    line("return " + use(s.element) + ";");
    close("};");
  }
  void print_extremum(const Stmt& s, VarId run, const std::string& n, bool parallel) {
    const std::string type = type_of(dtype(s.result)), acc = run_name(s);
    const std::string tail = parallel ? ", args->threads, flags" : ", flags";
    const std::string where = parallel ? "rt::parallel_" : "rt::";
    if (s.arg >= 0) {
      print_element(s, run);
      return line("const " + type + " " + acc + " = " + where + "arg_extremum<" +
                  type_of(dtype(s.element)) + ", " + (s.arg == 1 ? "true" : "false") + ">(" + n +
                  ", f" + acc + tail + ");");
    }
    const std::string largest = s.reduction == ir::Reduction::Max ? "true" : "false";
    const std::string in_doubt = s.order == ir::Order::Extremum ? "true" : "false";
    line("rt::Extremum<" + type + ", " + largest + ", " + in_doubt + "> x" + acc + ";");
    if (s.initial >= 0) line("x" + acc + ".start(" + use(s.initial) + ");");
    for (std::size_t i = 0; i + 1 < s.vars.size(); ++i)
      open("for (rt::Index " + name(s.vars[i]) + " = 0; " + name(s.vars[i]) + " < " +
           extent(s.vars[i]) + "; ++" + name(s.vars[i]) + ")");
    print_element(s, run);
    line("x" + acc + "." + (parallel ? "parallel_run" : "run") + "(" + n + ", f" + acc +
         (parallel ? tail : "") + ");");
    for (std::size_t i = 0; i + 1 < s.vars.size(); ++i) close();
    line("const " + type + " " + acc + " = x" + acc + ".result(flags);");
  }

  // ---- Blocks of lanes ----

  bool depends(ValueId v, VarId var) const {
    const auto& vars = k_.values[index(v)].vars;
    return std::binary_search(vars.begin(), vars.end(), var);
  }
  static bool needs_blocks(const Body& body) {
    return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
      return s.kind == Stmt::Kind::Call ||
             (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes);
    });
  }
  bool is_lane(const Stmt& s) const {
    const VarId var = lanes_->var;
    const auto any = [&](const std::vector<ValueId>& values) {
      return std::any_of(values.begin(), values.end(),
                         [&](ValueId v) { return v >= 0 && depends(v, var); });
    };
    if (s.kind == Stmt::Kind::Store) {
      return any(s.args) || std::any_of(s.access.terms.begin(), s.access.terms.end(),
                                        [&](const loop::Term& t) { return t.var == var; });
    }
    return (s.result >= 0 && depends(s.result, var)) || any(s.results) ||
           (s.kind == Stmt::Kind::Redo && any(s.args));
  }

  void print_blocks(const Stmt& s, const std::string& lo, const std::string& hi) {
    const VarId var = s.vars[0];
    Lanes lanes;
    lanes.var = var;
    lanes.base = "b" + name(var).substr(1);
    lanes.count = "m" + name(var).substr(1);
    lanes_ = &lanes;
    find_direct_stores(s.body);
    int segment = 0;
    plan_segments(s.body, segment);
    bool calls = false;
    walk(s.body, [&](const Stmt& inner) { calls |= inner.kind == Stmt::Kind::Call; });
    lanes.block = calls || lanes.arrays.size() > 4 ? loop::kBlock : loop::kWideBlock;
    const std::string block = std::to_string(lanes.block);
    open("for (rt::Index " + lanes.base + " = " + lo + "; " + lanes.base + " < " + hi + "; " +
         lanes.base + " += " + block + ")");
    const bool whole = var != k_.parallel && k_.vars[index(var)].extent.literal();
    line("const rt::Index " + lanes.count + " = " +
         (whole ? hi : "rt::block(" + hi + " - " + lanes.base + ", " + block + ")") + ";");
    const std::string size = "[" + std::to_string(block_size()) + "]";
    for (ValueId v : lanes.arrays) line(type_of(dtype(v)) + " " + value_name(v) + size + ";");
    print_segments(s.body, nullptr);
    close();
    lanes_ = nullptr;
  }
  // A call's result that is only stored, to neighbouring elements, needs no array on the way.
  void find_direct_stores(const Body& body) {
    std::unordered_map<ValueId, int> uses;
    walk(body, [&](const Stmt& s) {
      for (ValueId v : s.args) ++uses[v];
      ++uses[s.element];
      ++uses[s.initial];
    });
    std::set<int> loaded;  // what is overwritten in place is stored last
    walk(k_.body, [&](const Stmt& s) {
      if (s.kind == Stmt::Kind::Load &&
          k_.buffers[index(s.access.buffer)].role != Buffer::Role::Row)
        loaded.insert(s.access.buffer);
    });
    std::set<ValueId> made;
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Call) made.insert(s.results.begin(), s.results.end());
      if (s.kind != Stmt::Kind::Store || !made.contains(s.args[0]) || uses[s.args[0]] != 1 ||
          loaded.contains(s.access.buffer))
        continue;
      const auto& terms = s.access.terms;
      const auto lane = std::find_if(terms.begin(), terms.end(),
                                     [&](const loop::Term& t) { return t.var == lanes_->var; });
      if (lane != terms.end() && lane->stride.literal() && lane->stride.value == 1)
        lanes_->stores[s.args[0]] = &s;
    }
  }
  bool stored_by_call(const Stmt& s) const {
    if (s.kind != Stmt::Kind::Store) return false;
    auto it = lanes_->stores.find(s.args[0]);
    return it != lanes_->stores.end() && it->second == &s;
  }
  std::int64_t block_size() const {
    const Number& extent = k_.vars[index(lanes_->var)].extent;
    return kGap + (extent.literal() ? std::max<std::int64_t>(1, extent.value) : lanes_->block);
  }
  // Elements between one array and the next: NumPy 1.x takes operands that touch for overlapping,
  // and then computes otherwise.
  static constexpr std::int64_t kGap = 8;

  // Which statements share an inner loop: calls and nested loops end one.
  static bool ends_segment(const Stmt& s) {
    return s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Fold || s.kind == Stmt::Kind::Loop;
  }
  void plan_segments(const Body& body, int& segment) {
    ++segment;
    for (const Stmt& s : body) {
      if (!is_lane(s)) continue;
      if (s.kind == Stmt::Kind::Call) {
        for (ValueId v : s.args) use_in(v, -1);
        for (ValueId v : s.results)
          if (v >= 0 && !lanes_->stores.contains(v)) array(v);
        ++segment;
        continue;
      }
      if (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes) {
        array(s.result);
        if (s.initial >= 0) use_in(s.initial, -1);
        plan_segments(s.body, segment);
        use_in(s.element, segment);  // the update is the last statement of the body's last segment
        ++segment;
        continue;
      }
      if (s.kind == Stmt::Kind::Fold) {
        ++segment;
        std::set<ValueId> inside;
        walk(s.body, [&](const Stmt& t) {
          if (t.result >= 0) inside.insert(t.result);
        });
        const auto outer = [&](ValueId v) {
          if (v >= 0 && !inside.contains(v)) use_in(v, segment);
        };
        walk(s.body, [&](const Stmt& t) {
          for (ValueId v : t.args) outer(v);
        });
        outer(s.element);
        outer(s.initial);
        lanes_->segment_of[s.result] = segment++;
        continue;
      }
      for (ValueId v : s.args) use_in(v, segment);
      if (s.result >= 0) {
        lanes_->segment_of[s.result] = segment;
        if (s.kind == Stmt::Kind::Load && !k_.buffers[index(s.access.buffer)].written)
          lanes_->loads[s.result] = &s;
      }
    }
  }
  void array(ValueId v) {
    lanes_->arrays.insert(v);
    lanes_->segment_of[v] = -2;
  }
  void use_in(ValueId v, int segment) {
    if (constants_.contains(v) || !depends(v, lanes_->var)) return;
    auto it = lanes_->segment_of.find(v);
    if (it == lanes_->segment_of.end() || it->second == segment || it->second == -2) return;
    if (segment >= 0 && lanes_->loads.contains(v)) return;  // loaded again there
    if (segment < 0 && direct(v) != nullptr && as_numpy_walks(*direct(v)))
      return;  // the call reads the memory itself
    lanes_->arrays.insert(v);
  }
  // NumPy's inner loops may give other bits for other strides, so they get what NumPy hands them:
  // an operand of one stride as it is, where the lanes follow its shortest steps, and any other
  // packed.
  bool as_numpy_walks(const Stmt& load) const {
    const std::int64_t stride = lane_stride(load).value;
    const auto& terms = load.access.terms;
    return load.index == 1 && stride != 0 && load.access.fixed.empty() &&
           std::all_of(terms.begin(), terms.end(), [&](const loop::Term& t) {
             return std::abs(t.stride.value) >= std::abs(stride);
           });
  }
  Number lane_stride(const Stmt& load) const {
    for (const loop::Term& t : load.access.terms)
      if (t.var == lanes_->var) return t.stride;
    return {};
  }
  // The load behind a call's operand, if it can be read in place with its own stride.
  const Stmt* direct(ValueId v) const {
    auto it = lanes_->loads.find(v);
    return it == lanes_->loads.end() ? nullptr : it->second;
  }

  // Prints a body: runs of lane statements become inner loops. `fold`: the reduction whose body
  // this is.
  void print_segments(const Body& body, const Stmt* fold) {
    std::vector<const Stmt*> open_segment;
    const auto flush = [&] {
      // Loads alone make no segment: whoever uses them loads again.
      if (!std::all_of(open_segment.begin(), open_segment.end(), [&](const Stmt* s) {
            return lanes_->loads.contains(s->result) && !lanes_->arrays.contains(s->result);
          }))
        print_segment(open_segment, nullptr);
      open_segment.clear();
    };
    for (const Stmt& s : body) {
      if (!is_lane(s)) {
        print_stmt(s);  // the same for all lanes
        continue;
      }
      if (stored_by_call(s)) continue;
      if (!ends_segment(s)) {
        open_segment.push_back(&s);
        continue;
      }
      flush();
      if (s.kind == Stmt::Kind::Call) {
        print_call_block(s);
      } else if (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes) {
        print_fold_block(s);
      } else if (s.kind == Stmt::Kind::Fold) {
        print_segment({&s}, nullptr);
      } else {
        throw InternalError("printer: a loop over lanes inside a block");
      }
    }
    if (fold != nullptr || !open_segment.empty()) print_segment(open_segment, fold);
  }

  void reload(ValueId v, std::set<ValueId>& made) {
    if (v < 0 || made.contains(v) || lanes_->arrays.contains(v)) return;
    if (const Stmt* load = direct(v)) {
      made.insert(v);
      print_scalar(*load);
    }
  }
  void print_segment(const std::vector<const Stmt*>& stmts, const Stmt* fold) {
    open(lane_range());
    // Loads of other segments are loaded again: cheaper than keeping them.
    std::set<ValueId> made;
    for (const Stmt* s : stmts)
      if (s->result >= 0) made.insert(s->result);
    for (const Stmt* s : stmts) {
      for (ValueId v : s->args) reload(v, made);
      if (s->kind == Stmt::Kind::Fold) {
        walk(s->body, [&](const Stmt& t) {
          for (ValueId v : t.args) reload(v, made);
        });
        reload(s->element, made);
        reload(s->initial, made);
      }
    }
    if (fold != nullptr) reload(fold->element, made);
    for (const Stmt* s : stmts) {
      if (s->kind == Stmt::Kind::Fold) {
        print_horizontal(*s);
        if (lanes_->arrays.contains(s->result)) line(use(s->result) + " = " + run_name(*s) + ";");
      } else {
        print_scalar(*s);
      }
    }
    if (fold != nullptr) print_update(*fold, "[" + lane_index() + "]");
    close();
  }

  void print_call_block(const Stmt& s) {
    const ir::LoopEntry& entry = loops_[k_.calls[index(s.index)]];
    std::vector<std::string> pointers, steps;
    for (std::size_t i = 0; i < s.args.size(); ++i) {
      const ValueId v = s.args[i];
      const Stmt* load = direct(v);
      if (load != nullptr && !lanes_->arrays.contains(v)) {
        const std::string stride = number(lane_stride(*load)), type = type_of(entry.inputs[i]);
        pointers.push_back("(char*)(" + names_[index(load->access.buffer)] + " + " +
                           address(load->access, lanes_->var, lanes_->base) + ")");
        steps.push_back(stride + " * (rt::Index)sizeof(" + type + ")");
      } else if (lanes_->arrays.contains(v)) {
        pointers.push_back("(char*)" + value_name(v));
        steps.push_back("sizeof(" + type_of(entry.inputs[i]) + ")");
      } else {  // the same for all lanes
        const std::string name = "a" + std::to_string(i) + "_" + std::to_string(serial_);
        line(type_of(entry.inputs[i]) + " " + name + " = " + use(v) + ";");
        pointers.push_back("(char*)&" + name);
        steps.push_back("0");
      }
    }
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      std::string name = "unused" + std::to_string(i) + "_" + std::to_string(serial_);
      if (auto it = lanes_->stores.find(s.results[i]); it != lanes_->stores.end())
        name = "(" + names_[index(it->second->access.buffer)] + " + " +
               address(it->second->access, lanes_->var, lanes_->base) + ")";
      else if (s.results[i] >= 0)
        name = value_name(s.results[i]);
      else
        line(type_of(entry.outputs[i]) + " " + name + "[" + std::to_string(block_size()) + "];");
      pointers.push_back("(char*)" + name);
      steps.push_back("sizeof(" + type_of(entry.outputs[i]) + ")");
    }
    ++serial_;
    print_invocation(s, entry, pointers, steps, lanes_->count);
  }

  std::string lane_range() const {
    const std::string& i = name(lanes_->var);
    return "for (rt::Index " + i + " = " + lanes_->base + "; " + i + " < " + lanes_->base + " + " +
           lanes_->count + "; ++" + i + ")";
  }
  void print_fold_block(const Stmt& s) {
    const std::string size = "[" + std::to_string(block_size()) + "]";
    if (s.arg >= 0) line(type_of(dtype(s.element)) + " " + best_name(s) + size + ";");
    open(lane_range());
    if (s.initial >= 0 && direct(s.initial) != nullptr && !lanes_->arrays.contains(s.initial))
      print_scalar(*direct(s.initial));
    line(use(s.result) + " = " +
         (s.initial >= 0 ? use(s.initial) : type_of(dtype(s.result)) + "{}") + ";");
    if (s.arg >= 0) line(best_name(s) + "[" + lane_index() + "] = {};");
    close();
    const bool first = starts_at_first(s);
    if (s.vars.size() == 1 && one_segment(s)) return print_rows(s, first);
    if (first) line("bool first" + value_name(s.result) + " = true;");
    open_fold_loops(s);
    print_segments(s.body, &s);
    if (first) line("first" + value_name(s.result) + " = false;");
    close_fold_loops(s);
  }

  bool one_segment(const Stmt& s) const {
    return std::none_of(s.body.begin(), s.body.end(),
                        [](const Stmt& t) { return ends_segment(t); }) &&
           !lanes_->arrays.contains(s.element);
  }
  // Row after row, as they lie in memory; some at a time where the lanes are so few that a row is a
  // trifle.
  void print_rows(const Stmt& s, bool first) {
    const std::string i = name(s.vars[0]), n = extent(s.vars[0]), base = "r" + i.substr(1);
    const std::string at = "[" + lane_index() + "]", acc = value_name(s.result);
    const std::string step = std::to_string(loop::kRowsAtOnce);
    const auto rows = [&](const std::string& from, const std::string& to, bool is_first) {
      open(lane_range());
      std::set<ValueId> made;
      for (const Stmt& t : s.body)
        if (t.result >= 0) made.insert(t.result);
      for (const Stmt& t : s.body)
        for (ValueId v : t.args) reload(v, made);
      reload(s.element, made);
      line(type_of(dtype(s.result)) + " acc = " + acc + at + ";");
      if (s.arg >= 0) line(type_of(dtype(s.element)) + " best = " + best_name(s) + at + ";");
      if (!to.empty())
        open("for (rt::Index " + i + " = " + from + "; " + i + " < " + to + "; ++" + i + ")");
      for (const Stmt& t : s.body) print_scalar(t);
      if (s.arg >= 0) {
        const std::string e = use(s.element);
        if (!is_first) line("const bool take = " + e + (s.arg == 1 ? " > best;" : " < best;"));
        line("best = " + (is_first ? e : "take ? " + e + " : best") + ";");
        line("acc = " + (is_first ? i : "take ? " + i + " : acc") + ";");
      } else {
        line("acc = " + (is_first ? use(s.element) : combine(s, "acc", use(s.element))) + ";");
      }
      if (!to.empty()) close();
      line(acc + at + " = acc;");
      if (s.arg >= 0) line(best_name(s) + at + " = best;");
      close();
    };
    std::string start = "0";
    if (first) {
      rows("0", "1", true);
      start = "1";
    }
    if (k_.vars[index(lanes_->var)].extent.literal()) {
      line("rt::Index " + base + " = " + start + ";");
      open("for (; " + base + " + " + step + " <= " + n + "; " + base + " += " + step + ")");
      rows(base, base + " + " + step, false);
      close();
      start = base;
    }
    open("for (rt::Index " + i + " = " + start + "; " + i + " < " + n + "; ++" + i + ")");
    rows("", "", false);
    close();
  }

  const Kernel& k_;
  const ir::LoopTable& loops_;
  std::string text_;
  int indent_ = 0;
  int serial_ = 0;
  std::vector<std::string> names_, rows_;
  std::vector<int> position_;
  std::unordered_map<ValueId, std::string> constants_;
  Lanes* lanes_ = nullptr;
};

}  // namespace

std::string print_cpp(const Kernel& kernel, const ir::LoopTable& loops) {
  return Printer(kernel, loops).print();
}

}  // namespace ufuse::codegen
