#include "codegen/program/printer.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "codegen/emit/literal.h"
#include "codegen/program/arrays.h"
#include "codegen/program/lifetimes.h"
#include "codegen/program/names.h"
#include "embedded/arrays.h"
#include "embedded/draws.h"
#include "embedded/generators.h"
#include "embedded/lists.h"
#include "embedded/scalars.h"
#include "embedded/selections.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using namespace ir::program;
using ir::DType;

class ProgramPrinter : private ProgramNames {
 public:
  ProgramPrinter(const Program& program, const FrameLayout& frame, LineComments comments)
      : ProgramNames(program),
        p_(program),
        frame_(frame),
        comments_(comments),
        lifetimes_(program),
        arrays_(
            *this, [this](const std::string& text) { line(text); },
            [this](const std::string& condition, int exit) { exit_where(condition, exit); }) {
    note_used(program.body);
  }

  PrintedProgram print() {
    line("extern \"C\" unsigned ufuse_kernel(const rt::Args* args) {");
    ++depth_;
    line("rt::u64* const frame = (rt::u64*)args->buffers[0];");
    line("int (*const ask)(void*) = (int (*)(void*))frame[" + std::to_string(FrameLayout::kAsk) +
         "];");
    line("int unasked = 0;");
    if (frame_.lists != 0)
      line("const rt::Lists& lists = *(const rt::Lists*)frame[" + std::to_string(frame_.lists) +
           "];");
    if (p_.has_chances)
      line("rt::u64 chances = frame[" + std::to_string(FrameLayout::kChances) + "];");
    line("const rt::Flags around;");
    line("unsigned exit = 0;");
    declare();
    read();
    std::string before = std::exchange(text_, {});
    steps(p_.body);
    for (const std::string& each : arrays_.declarations())
      before += std::string(2 * depth_, ' ') + each + "\n";
    text_ = arrays_.functions() + before + text_;
    if (p_.uses_lists) text_ = std::string(embedded::lists) + text_;
    // Every way through the body ends at an exit.
    line("leave:");
    for (const std::string& each : arrays_.endings()) line(each);
    write();
    line("return exit;");
    --depth_;
    line("}");
    return {std::move(text_), std::move(rows_)};
  }

 private:
  void line(const std::string& what) { text_ += std::string(2 * depth_, ' ') + what + "\n"; }
  void open(const std::string& what) {
    line(what + " {");
    ++depth_;
  }
  void close(const std::string& behind = {}) {
    --depth_;
    line("}" + behind);
  }

  // Elements have registers in functions of their own. What was written and taken back has left
  // registers that nobody uses.
  void note_used(const Steps& list) {
    for (const Step& s : list) {
      used_arrays_.insert({s.array, s.target});
      used_arrays_.insert(s.arrays.begin(), s.arrays.end());
      if (s.kind == Step::Kind::Elements) {
        for (Reg r : numbers_of(s)) used_.insert(r);
        continue;
      }
      used_.insert(s.result);
      used_.insert(s.args.begin(), s.args.end());
      note_used(s.body);
      note_used(s.other);
    }
  }

  // ---- Frame ----

  void declare() {
    for (std::size_t i = 0; i < p_.registers.size(); ++i) {
      const auto r = static_cast<Reg>(i);
      if (!used_.contains(r) && frame_.registers[i] == 0) continue;
      line(type_of(dtype(r)) + " " + name(r) + "{};");
    }
    for (std::size_t i = 0; i < p_.arrays.size(); ++i) {
      const auto a = static_cast<ArrayReg>(i);
      if (!used_arrays_.contains(a) && frame_.arrays[i] == 0) continue;
      line(part_type(a) + " " + array_name(a) + "{};");
      line("rt::u64 " + array_name(a) + "_object = 0, " + array_name(a) + "_is_view = 0;");
    }
  }

  // Gives the words of a register's or an array's place, and what stands there.
  template <class Visit>
  void words_of(Reg r, const Visit& visit) {
    const std::size_t at = frame_.registers[static_cast<std::size_t>(r)];
    if (at != 0) visit("*(" + type_of(dtype(r)) + "*)&frame[" + std::to_string(at) + "]", name(r));
  }
  template <class Visit>
  void words_of_array(ArrayReg a, const Visit& visit) {
    const std::size_t at = frame_.arrays[static_cast<std::size_t>(a)];
    if (at == 0) return;
    const auto word = [&](std::size_t k) { return "frame[" + std::to_string(at + k) + "]"; };
    visit("*(char**)&" + word(FrameLayout::kData), data(a));
    visit(word(FrameLayout::kObject), array_name(a) + "_object");
    visit(word(FrameLayout::kIsView), array_name(a) + "_is_view");
    for (int axis = 0; axis < rank(a); ++axis) {
      const auto k = static_cast<std::size_t>(axis);
      visit("*(rt::i64*)&" + word(FrameLayout::kLengths + k), length(a, axis));
      visit("*(rt::i64*)&" + word(FrameLayout::strides(rank(a)) + k), stride(a, axis));
    }
  }
  template <class Visit>
  void each_place(const Visit& visit) {
    for (std::size_t i = 0; i < p_.registers.size(); ++i) words_of(static_cast<Reg>(i), visit);
    for (std::size_t i = 0; i < p_.arrays.size(); ++i)
      words_of_array(static_cast<ArrayReg>(i), visit);
  }
  void read() {
    each_place(
        [&](const std::string& word, const std::string& name) { line(name + " = " + word + ";"); });
  }
  void write() {
    each_place([this](const auto& word, const auto& name) { write(word, name); });
  }
  void write(const std::string& word, const std::string& name) { line(word + " = " + name + ";"); }
  void write_attributes() {
    const auto visit = [this](const auto& word, const auto& name) { write(word, name); };
    for (const auto& [index, value] : p_.attributes) {
      if (value.kind == Where::Kind::Array) {
        words_of_array(value.reg, visit);
        continue;
      }
      words_of(value.reg, visit);
      if (value.numpy != kNone) words_of(value.numpy, visit);
    }
  }

  // ---- Steps ----

  void steps(const Steps& list) {
    for (const Step& s : list) step(s);
  }

  void exit_where(const std::string& condition, int exit) {
    open("if (__builtin_expect(" + condition + ", 0))");
    leave(exit);
    close();
  }
  void leave(int exit) {
    line("exit = " + std::to_string(exit) + ";");
    line("goto leave;");
  }

  // x0 -> the first operand, T -> their type, r -> the result.
  std::string filled(std::string_view expression, const Step& s) const {
    return with_words(expression, [&](std::string_view word) {
      if (word == "T") return memory_type(dtype(s.args.back()));
      if (word == "r") return name(s.result);
      if (word.size() == 2 && word[0] == 'x' && word[1] >= '0' && word[1] <= '4')
        return operand(s.args[static_cast<std::size_t>(word[1] - '0')]);
      return std::string(word);
    });
  }
  std::string address(ArrayReg a, const std::vector<Reg>& at) const {
    std::string sum = data(a);
    for (std::size_t i = 0; i < at.size(); ++i)
      sum += " + " + name(at[i]) + " * " + stride(a, static_cast<int>(i));
    return sum;
  }
  std::string element(ArrayReg a, const std::vector<Reg>& at) const {
    return "*(" + memory_type(element_type(a)) + "*)(" + address(a, at) + ")";
  }

  void set(const Step& s, const std::string& value) { line(name(s.result) + " = " + value + ";"); }

  void step(const Step& s) {
    using enum Step::Kind;
    note(s);
    switch (s.kind) {
      case Constant:
        return set(s, literal(dtype(s.result), s.constant));
      case Copy:
        return set(s, name(s.args[0]));
      case Cast:
        return set(s, cast_text(s));
      case Compute:
        return set(s, op_text(s, false));
      case Call: {
        const PrimitiveInfo& info = primitive_info(s.primitive);
        const std::string text = filled(info.expression, s);
        return info.leaves ? exit_where(text, s.exit) : set(s, text);
      }
      case Loop:
        return call_loop(s);
      case Finite:
        return exit_where("rt::raised(" + names(s.args) + ")", s.exit);
      case Length:
        return set(s, length(s.array, s.axis));
      case Load:
        return set(s, element(s.array, s.args));
      case Store: {
        const std::vector<Reg> at(s.args.begin(), s.args.end() - 1);
        return line(element(s.array, at) + " = " + operand(s.args.back()) + ";");
      }
      case View:
        return view(s);
      case Transpose:
        return transpose(s);
      case SameArray:
        return same_array(s);
      case Fit:
        return arrays_.fit(s);
      case Elements:
        return in_block([&] { arrays_.elements(s); });
      case NewArray:
        return in_block([&] { new_array(s); });
      case InRows:
        return arrays_.in_rows(s);
      case InOneRow:
        return arrays_.in_one_row(s);
      case LoopOver:
        return in_block([&] { arrays_.loop_over(s, loop_of(s)); });
      case Reduce:
        return in_block([&] { arrays_.reduce(s, loop_of(s)); });
      case CountTrue:
        return arrays_.count_true(s);
      case Within:
        return arrays_.within(s);
      case Gather:
        return arrays_.gather(s);
      case Apart:
        return arrays_.apart(s);
      case Scatter:
        return in_block([&] { arrays_.scatter(s); });
      case Product:
        return arrays_.product(s, loop_of(s));
      case Dot:
        return arrays_.dot(s, loop_of(s));
      case Save:
        return arrays_.save(s);
      case Release:
        return arrays_.release(s);
      case ListLength:
        return set(s, length_of_list(s.args[0]));
      case ListItem:
        return through_memory(s, function("read", dtype(s.result), s) + names(s.args) + ", &made)");
      case ObjectFor:
        return through_memory(s, function("object_for", dtype(s.args[2]), s) + "lists.made, " +
                                     names({s.args[0], s.args[1]}) + ", &given, " +
                                     (s.aside ? "false" : "true") + ", &made)");
      case StoreItem:
        return in_block([&] {
          given(s.args[2]);
          line("lists.store(lists.made, " + names({s.args[0], s.args[1]}) + ", &given, " +
               name(s.args[3]) + ");");
        });
      case NewObject:
        return through_memory(s,
                              function("make", dtype(s.args[0]), s) + "lists.made, &given, &made)");
      case NoteItem:
        return exit_where(
            "lists.note(lists.made, " + names({s.args[0], s.args[1], s.args[3]}) + ")", s.exit);
      case NoteEnd:
        return exit_where("lists.note(lists.made, " + name(s.args[0]) + ", " +
                              length_of_list(s.args[0]) + ", " + name(s.args[1]) + ")",
                          s.exit);
      case KeepItems:
        return line("lists.keep(lists.made);");
      case AppendItem:
        return exit_where("lists.append(lists.made, " + names(s.args) + ")", s.exit);
      case Guard:
        return exit_where("!" + name(s.args[0]), s.exit);
      case Poll:
        open("if (__builtin_expect(--unasked < 0, 0))");
        write_attributes();
        line("unasked = ask((void*)frame[" + std::to_string(FrameLayout::kAsked) + "]);");
        exit_where("unasked < 0", s.exit);
        return close();
      case Chance:
        return exit_where("--chances == 0", s.exit);
      case If:
        return branch(s);
      case Count:
        return loop(s, "for (; " + name(s.result) + " < " + limit(s.args[0]) + "; ++" +
                           name(s.result) + ")");
      case Repeat:
        return loop(s, "for (;;)");
      case Block:
        return loop(s, "");
      case Break:
        return jump(s, true);
      case Continue:
        return jump(s, false);
      case Exit:
        return leave(s.exit);
    }
  }

  // What reads or makes objects of such numbers, and the beginning of its arguments.
  static std::string function(const std::string& name, DType dtype, const Step& s) {
    if (s.axis > 0) return "lists.read_tuple(" + std::to_string(s.axis) + ", ";
    if (!s.of_numpy) return "lists." + name + "[rt::Lists::" + kind_in_list(dtype) + "](";
    return "lists." + name + "_numpy(" + std::to_string(static_cast<int>(dtype)) + ", ";
  }
  static std::string kind_in_list(DType dtype) {
    switch (dtype) {
      case DType::Bool:
        return "kTruth";
      case DType::Int64:
        return "kInteger";
      case DType::Float64:
        return "kReal";
      case DType::Complex128:
        return "kComplex";
      case DType::UInt64:
        return "kList";
      default:
        throw InternalError("a list with numbers of NumPy's");
    }
  }
  std::string length_of_list(Reg list) const { return "lists.length(" + name(list) + ")"; }
  std::string limit(Reg r) const { return dtype(r) == DType::UInt64 ? length_of_list(r) : name(r); }
  // A call that exits, or writes its result to memory, which is no register's.
  void through_memory(const Step& s, const std::string& call) {
    in_block([&] {
      if (s.kind != Step::Kind::ListItem) given(s.args.back());
      line(type_of(dtype(s.result)) + " made;");
      exit_where(call, s.exit);
      set(s, "made");
    });
  }
  void given(Reg number) {
    line("const " + type_of(dtype(number)) + " given = " + name(number) + ";");
  }
  std::string names(const std::vector<Reg>& registers) const {
    std::string all;
    for (Reg r : registers) all += (all.empty() ? "" : ", ") + name(r);
    return all;
  }

  void note(const Step& s) {
    if (comments_ == LineComments::No || s.line == 0 || s.line == noted_) return;
    line("// line " + std::to_string(s.line));
    noted_ = s.line;
  }

  // NumPy's inner loop.
  std::string loop_of(const Step& s) {
    const auto it = std::ranges::find(rows_, s.row);
    const auto row = it - rows_.begin();
    if (it == rows_.end()) rows_.push_back(s.row);
    return "args->loops[" + std::to_string(row) + "]";
  }
  void call_loop(const Step& s) {
    std::string given;
    for (Reg r : s.args) given += ", " + name(r);
    exit_where("rt::call_loop(" + loop_of(s) + ", " + name(s.result) + given + ")", s.exit);
  }

  void view(const Step& s) {
    std::string start = data(s.array);
    std::vector<std::string> lengths, strides;
    std::size_t at = 0;
    int axis = 0;
    for (Axis way : s.axes) {
      if (way == Axis::New || way == Axis::Repeat) {
        strides.push_back("0");
        lengths.push_back(way == Axis::New ? "1" : name(s.args[at++]));
        continue;
      }
      const std::string by = stride(s.array, axis++);
      start += " + " + name(s.args[at]) + " * " + by;
      if (way == Axis::Slice) {
        strides.push_back(by + " * " + name(s.args[at + 1]));
        lengths.push_back(name(s.args[at + 2]));
      }
      at += way == Axis::Slice ? 3 : 1;
    }
    line(data(s.target) + " = " + start + ";");
    is_view_of(s);
    for (std::size_t k = 0; k < lengths.size(); ++k) {
      line(length(s.target, static_cast<int>(k)) + " = " + lengths[k] + ";");
      line(stride(s.target, static_cast<int>(k)) + " = " + strides[k] + ";");
    }
  }

  void transpose(const Step& s) {
    line(data(s.target) + " = " + data(s.array) + ";");
    is_view_of(s);
    for (int axis = 0; axis < rank(s.array); ++axis) {
      const int other = rank(s.array) - 1 - axis;
      line(length(s.target, axis) + " = " + length(s.array, other) + ";");
      line(stride(s.target, axis) + " = " + stride(s.array, other) + ";");
    }
  }

  void is_view_of(const Step& s) {
    line(array_name(s.target) + "_object = " + array_name(s.array) + "_object;");
    line(array_name(s.target) + "_is_view = 1;");
  }

  // Memory that no array has that is still used.
  void new_array(const Step& s) {
    const std::vector<ArrayReg> used = lifetimes_.held(s);
    std::string held, lengths, size = "1";
    for (ArrayReg a : used) held += array_name(a) + "_object, ";
    for (Reg r : s.args) {
      lengths += (lengths.empty() ? "" : ", ") + name(r);
      size += " * " + name(r);
    }
    const DType of = element_type(s.target);
    const std::string type = part_type(s.target);
    exit_where("rt::is_large(" + size + ", " + std::to_string(ir::size_of(of)) + ")", s.exit);
    line("const rt::u64 held[] = {" + held + "0};");
    line("const " + type + " made = rt::new_array((rt::NewArray*&)frame[" +
         std::to_string(FrameLayout::kNewArrays) + "], held, " + std::to_string(used.size()) +
         ", " + std::to_string(static_cast<int>(of)) + ", " + std::to_string(ir::size_of(of)) +
         ", " + type + "{nullptr, {" + lengths + "}, {}});");
    exit_where("made.at == nullptr", s.exit);
    const std::string to = array_name(s.target);
    line(to + " = made;");
    line(to + "_object = rt::object_of(made.at);");
    line(to + "_is_view = 0;");
  }

  void same_array(const Step& s) {
    const std::string to = array_name(s.target), from = array_name(s.array);
    line(to + " = " + from + ";");
    line(to + "_object = " + from + "_object;");
    line(to + "_is_view = " + from + "_is_view;");
  }

  void branch(const Step& s) {
    open("if (" + name(s.args[0]) + ")");
    steps(s.body);
    if (s.other.empty()) return close();
    --depth_;
    line("} else {");
    ++depth_;
    steps(s.other);
    close();
  }

  // ---- Loops, blocks and jumps ----

  struct Around {
    bool is_loop;
    std::string label;
    bool broken = false, continued = false;  // by a jump from further inside
  };

  void loop(const Step& s, const std::string& head) {
    around_.push_back({!head.empty(), std::to_string(labels_++)});
    head.empty() ? open_block() : open(head);
    steps(s.body);
    const Around here = around_.back();
    around_.pop_back();
    if (here.continued) line("next_" + here.label + ":;");
    close();
    if (here.broken) line("end_" + here.label + ":;");
  }
  void open_block() {
    line("{");
    ++depth_;
  }
  template <class Write>
  void in_block(const Write& write) {
    open_block();
    write();
    close();
  }
  void jump(const Step& s, bool is_break) {
    const auto depth = static_cast<std::size_t>(s.depth);
    Around& to = around_[around_.size() - 1 - depth];
    if (depth == 0 && to.is_loop) return line(is_break ? "break;" : "continue;");
    (is_break ? to.broken : to.continued) = true;
    line("goto " + ((is_break ? "end_" : "next_") + to.label) + ";");
  }

  const Program& p_;
  const FrameLayout& frame_;
  const LineComments comments_;
  const Lifetimes lifetimes_;
  std::string text_;
  std::size_t depth_ = 0;
  std::vector<std::uint32_t> rows_;
  int noted_ = 0;  // the line of the last comment
  std::vector<Around> around_;
  int labels_ = 0;
  std::set<Reg> used_;
  std::set<ArrayReg> used_arrays_;
  ArrayPrinter arrays_;
};

}  // namespace

PrintedProgram print_cpp(const Program& program, const FrameLayout& frame, LineComments comments) {
  return ProgramPrinter(program, frame, comments).print();
}

std::string program_preamble() {
  return "// native program of a loop\n" + std::string(embedded::scalars) +
         std::string(embedded::arrays) + std::string(embedded::selections) +
         std::string(embedded::generators) + std::string(embedded::draws);
}

}  // namespace ufuse::codegen
