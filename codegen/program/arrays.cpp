// See arrays.h. What the lines call stands in codegen/runtime/arrays.h.
#include "codegen/program/arrays.h"

#include <algorithm>

#include "ir/support/error.h"

namespace ufuse::codegen {

using ir::program::ArrayReg;
using ir::program::Reg;
using ir::program::Step;

namespace {

// A call of rt::axes_of or rt::other_axes_of.
std::string axes_of(const std::string& function, int first, int count, const std::string& part) {
  return "rt::" + function + "<" + std::to_string(first) + ", " + std::to_string(count) + ">(" +
         part + ")";
}

}  // namespace

std::vector<Reg> numbers_of(const Step& s) {
  std::set<Reg> known(s.args.begin(), s.args.end());
  std::vector<Reg> numbers;
  const auto take = [&](Reg r) {
    if (known.insert(r).second) numbers.push_back(r);
  };
  for (const Step& each : s.body) {
    for (Reg r : each.args) take(r);
    known.insert(each.result);
  }
  take(s.result);
  return numbers;
}

// What functions are given.
std::string ArrayPrinter::part(ArrayReg a) const {
  const std::string name = n_.array_name(a);
  return n_.stays_in_registers(a) ? n_.part_type(a) + "(" + name + ")" : name;
}

void ArrayPrinter::fit(const Step& s) {
  const std::string to = part(s.target);
  std::string unfit =
      "rt::does_not_fit<" + ProgramNames::memory_type(n_.element_type(s.target)) + ">(" + to + ")";
  for (ArrayReg a : s.arrays) unfit += " || rt::does_not_broadcast(" + part(a) + ", " + to + ")";
  exit_where_(unfit, s.exit);
}

void ArrayPrinter::elements(const Step& s) {
  const std::string rank = std::to_string(n_.rank(s.target));
  const ir::DType written = n_.element_type(s.target);
  const std::string bytes = std::to_string(ir::size_of(written));
  const std::vector<Reg> numbers = numbers_of(s);
  const std::string name = function(s, numbers);
  line_("const rt::Part<" + rank + ">& to = " + part(s.target) + ";");
  // NumPy would have temporaries of larger elements than the array's.
  std::size_t largest = 0;
  for (const Step& each : s.body) largest = std::max(largest, ir::size_of(n_.dtype(each.result)));
  if (largest > ir::size_of(written))
    exit_where_("rt::is_large(to.size(), " + std::to_string(largest) + ")", s.exit);
  const bool may_overlap = !s.arrays.empty() && !s.aside;
  if (may_overlap) line_("bool aside = false;");
  if (s.aside) line_("const bool aside = to.size() != 0;");
  std::string given;
  for (std::size_t i = 0; i < s.arrays.size(); ++i) {
    const std::string x = "x" + std::to_string(i), of = part(s.arrays[i]);
    const ir::DType type = n_.element_type(s.arrays[i]);
    // What is read where it is written does no harm.
    const std::string read = may_overlap ? "rt::beside<" + ProgramNames::memory_type(type) + ">(" +
                                               room() + ", " + of + ", to, " + bytes + ", " +
                                               (type == written ? "true" : "false") + ", aside)"
                                         : "rt::stretched(" + of + ", to)";
    line_("const rt::Part<" + rank + "> " + x + " = " + read + ";");
    given += ", " + x;
  }
  for (Reg r : numbers) given += ", " + n_.name(r);
  if (!may_overlap && !s.aside) return exit_where_(name + "(to" + given + ")", s.exit);
  line_("const rt::Part<" + rank + "> made = aside ? rt::made(" + room() + ", to, " + bytes +
        ") : to;");
  exit_where_("made.at == nullptr || " + name + "(made" + given + ")", s.exit);
  line_("if (aside) rt::copy<" + ProgramNames::memory_type(written) + ">(to, made);");
}

// What the compiler must not see through in each np.where, by its result; bit i: operand i. The
// values, if they are computed here: it would compute them only where they are chosen, and their
// flags would be lost (g++ 14 has such instructions). The condition, if a value comes from an inner
// np.where: that may have the same one, and what is chosen within and never outside would be left
// out.
std::map<Reg, std::uint32_t> ArrayPrinter::hidden_operands(const Step& s) const {
  std::map<Reg, std::uint32_t> hidden;
  std::set<Reg> computed, from_choices;
  for (const Step& each : s.body) {
    const bool chooses = each.kind == Step::Kind::Compute && each.op == ir::Op::Where &&
                         is_in(n_.dtype(each.result), ir::kInexact);
    for (std::size_t i = 1; chooses && i < each.args.size(); ++i) {
      if (computed.contains(each.args[i])) hidden[each.result] |= 1U << i;
      if (from_choices.contains(each.args[i])) hidden[each.result] |= 1U;
    }
    computed.insert(each.result);
    if (chooses || std::ranges::any_of(each.args, [&](Reg r) { return from_choices.contains(r); }))
      from_choices.insert(each.result);
  }
  return hidden;
}

// The name of the function that computes the elements. Steps that compute the same share one.
std::string ArrayPrinter::function(const Step& s, const std::vector<Reg>& numbers) {
  const std::string text = function_text(s, numbers);
  std::map<std::string, std::string, std::less<>> names;
  const auto number = [&](Reg r) { names.emplace(n_.name(r), "." + std::to_string(names.size())); };
  std::ranges::for_each(s.args, number);
  for (const Step& each : s.body) number(each.result);
  std::ranges::for_each(numbers, number);
  const std::string name = "elements" + std::to_string(known_functions_.size());
  const auto [known, is_new] = known_functions_.emplace(
      with_words(text,
                 [&](std::string_view word) {
                   const auto found = names.find(word);
                   return found == names.end() ? std::string(word) : found->second;
                 }),
      name);
  if (is_new) functions_ += "static __attribute__((noinline)) bool " + name + text + "\n";
  return known->second;
}

// Its parameters, and the loops over the elements. Their innermost one stands there twice: for
// elements side by side, a block at a time, where one that stands beside a whole row is repeated in
// memory of its own; and for others.
std::string ArrayPrinter::function_text(const Step& s, const std::vector<Reg>& numbers) const {
  const int rank = n_.rank(s.target), last = rank - 1;
  std::size_t depth = 0;
  std::string made;
  const auto line = [&](const std::string& text) {
    made += std::string(2 * depth, ' ') + text + "\n";
  };
  const auto open = [&](const std::string& text) {
    line(text + " {");
    ++depth;
  };
  const auto close = [&](const std::string& behind = {}) {
    --depth;
    line("}" + behind);
  };
  const std::string type = ProgramNames::memory_type(n_.element_type(s.target));
  const auto element_type = [&](std::size_t i) {
    return ProgramNames::memory_type(n_.element_type(s.arrays[i]));
  };
  const std::string part = "const rt::Part<" + std::to_string(rank) + ">& ";
  std::string parameters = part + "to";
  for (std::size_t i = 0; i < s.arrays.size(); ++i)
    parameters += ", " + part + "x" + std::to_string(i);
  for (Reg r : numbers)
    parameters += ", const " + ProgramNames::type_of(n_.dtype(r)) + " " + n_.name(r);
  open("(" + parameters + ")");
  if (s.raises) line("const rt::Raised flags;");
  const std::string end = std::to_string(last);
  line("const rt::i64 n = to.length[" + end + "], step = to.stride[" + end + "];");
  std::string in_rows = "step == sizeof(" + type + ")";
  for (std::size_t i = 0; i < s.arrays.size(); ++i) {
    const std::string x = "x" + std::to_string(i);
    line("const rt::i64 step_" + x + " = " + x + ".stride[" + end + "];");
    in_rows += " && (step_" + x + " == sizeof(" + element_type(i) + ") || (step_" + x +
               " == 0 && n >= rt::kRepeated))";
    line(element_type(i) + " same" + std::to_string(i) + "[rt::kBlock];");
  }
  line("const bool in_rows = " + in_rows + ";");
  std::string to = "to.at";
  std::vector<std::string> from;
  for (std::size_t i = 0; i < s.arrays.size(); ++i) from.push_back("x" + std::to_string(i) + ".at");
  for (int axis = 0; axis < last; ++axis) {
    const std::string i = "i" + std::to_string(axis), at = "[" + std::to_string(axis) + "]";
    open("for (rt::i64 " + i + " = 0; " + i + " < to.length" + at + "; ++" + i + ")");
    const auto moved = [&](std::string& base, const std::string& x) {
      base += " + " + i + " * " + x + ".stride" + at;
    };
    moved(to, "to");
    for (std::size_t k = 0; k < from.size(); ++k) moved(from[k], "x" + std::to_string(k));
  }
  line("char* const to_row = " + to + ";");
  for (std::size_t i = 0; i < from.size(); ++i)
    line("const char* const row" + std::to_string(i) + " = " + from[i] + ";");
  std::map<Reg, std::uint32_t> hidden;
  if (s.raises) hidden = hidden_operands(s);
  if (!hidden.empty()) line("const rt::u8 unset = rt::unset();");
  const auto body = [&](bool side_by_side) {
    line("#pragma GCC ivdep");
    open("for (rt::i64 i = 0; i < " + std::string(side_by_side ? "size" : "n") + "; ++i)");
    for (std::size_t i = 0; i < s.arrays.size(); ++i) {
      const std::string k = std::to_string(i);
      line("const " + ProgramNames::type_of(n_.element_type(s.arrays[i])) + " " +
           n_.name(s.args[i]) + " = " +
           (side_by_side
                ? "from" + k + "[i];"
                : "*(const " + element_type(i) + "*)(row" + k + " + i * step_x" + k + ");"));
    }
    for (const Step& each : s.body) {
      const auto found = hidden.find(each.result);
      const std::string value =
          each.kind == Step::Kind::Cast
              ? n_.cast_text(each)
              : n_.op_text(each, s.raises, found == hidden.end() ? 0 : found->second);
      line("const " + ProgramNames::type_of(n_.dtype(each.result)) + " " + n_.name(each.result) +
           " = " + value + ";");
    }
    line((side_by_side ? "into[i]" : "*(" + type + "*)(to_row + i * step)") + " = " +
         n_.operand(s.result) + ";");
    close();
  };
  open("if (in_rows)");
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::string k = std::to_string(i);
    line("if (step_x" + k + " == 0) rt::repeat(same" + k + ", row" + k + ", n);");
  }
  open("for (rt::i64 begin = 0; begin < n; begin += rt::kBlock)");
  line("const rt::i64 size = n - begin < rt::kBlock ? n - begin : rt::kBlock;");
  line(type + "* const into = (" + type + "*)to_row + begin;");
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::string k = std::to_string(i), of = "const " + element_type(i) + "*";
    line(of + " const from" + k + " = step_x" + k + " == 0 ? same" + k + " : (" + of + ")row" + k +
         " + begin;");
  }
  body(true);
  close();
  --depth;
  line("} else {");
  ++depth;
  body(false);
  close();
  for (int axis = 0; axis < last; ++axis) close();
  line(s.raises ? "return flags.any();" : "return false;");
  close();
  return made;
}

void ArrayPrinter::save(const Step& s) {
  saved_.push_back(s.array);
  exit_where_(n_.array_name(s.array) + "_saved.save(" + part(s.array) + ")", s.exit);
}

void ArrayPrinter::release(const Step& s) {
  for (ArrayReg a : s.arrays) line_(n_.array_name(a) + "_saved.release();");
}

std::vector<std::string> ArrayPrinter::declarations() const {
  std::vector<std::string> lines;
  for (int i = 0; i < rooms_; ++i) lines.push_back("rt::Room room" + std::to_string(i) + ";");
  for (ArrayReg a : saved_)
    lines.push_back("rt::Saved<" + ProgramNames::memory_type(n_.element_type(a)) + ", " +
                    std::to_string(n_.rank(a)) + "> " + n_.array_name(a) + "_saved;");
  return lines;
}

// Copies that share memory: the oldest one is put back last.
std::vector<std::string> ArrayPrinter::endings() const {
  std::vector<std::string> lines;
  for (auto a = saved_.rbegin(); a != saved_.rend(); ++a)
    lines.push_back(n_.array_name(*a) + "_saved.put_back();");
  return lines;
}

void ArrayPrinter::in_rows(const Step& s) {
  std::string none;
  for (ArrayReg a : s.arrays)
    none += (none.empty() ? "!" : " || !") + ("rt::lies_in_rows(" + part(a)) + ")";
  exit_where_(none, s.exit);
}

void ArrayPrinter::in_one_row(const Step& s) {
  std::string none;
  for (ArrayReg a : s.arrays)
    none += (none.empty() ? "!" : " || !") + ("rt::lies_in_one_row(" + part(a)) + ", " +
            std::to_string(ir::size_of(n_.element_type(a))) + ")";
  exit_where_(none, s.exit);
}

void ArrayPrinter::loop_over(const Step& s, const std::string& loop) {
  std::string size = "1";
  for (int axis = 0; axis < n_.rank(s.target); ++axis) size += " * " + n_.length(s.target, axis);
  std::string operands, strides, odd;
  const auto operand = [&](const std::string& at, const std::string& stride) {
    operands += (operands.empty() ? "" : ", ") + at;
    strides += (strides.empty() ? "" : ", ") + stride;
  };
  for (std::size_t i = 0; i < s.arrays.size(); ++i) {
    const ArrayReg a = s.arrays[i];
    if (a == ir::program::kNone) {
      operand("(char*)&" + n_.name(s.args[i]), "0");
      continue;
    }
    const std::string bytes = std::to_string(ir::size_of(n_.element_type(a)));
    const bool in_one_row = n_.rank(a) > 1 || is_in(n_.element_type(a), ir::kComplex);
    operand(n_.data(a), in_one_row ? bytes : n_.stride(a, 0));
    odd += in_one_row ? "!rt::lies_in_one_row(" + part(a) + ", " + bytes + ") || "
                      : "rt::is_odd(" + size + ", " + n_.stride(a, 0) + ", " + bytes + ") || ";
  }
  operand(n_.data(s.target), std::to_string(ir::size_of(n_.element_type(s.target))));
  line_("char* operands[] = {" + operands + "};");
  line_("const rt::Index strides[] = {" + strides + "};");
  exit_where_(odd + "rt::loop_over(" + loop + ", operands, " + size + ", strides)", s.exit);
}

void ArrayPrinter::reduce(const Step& s, const std::string& loop) {
  const std::string given = "(" + loop + ", " + part(s.arrays[0]) + ", ";
  if (s.target != ir::program::kNone) {
    const std::string type = ProgramNames::memory_type(n_.element_type(s.target));
    if (!s.args.empty()) line_("const " + type + " from = " + n_.operand(s.args[0]) + ";");
    exit_where_("rt::reduce_axes<" + type + ">" + given + (s.args.empty() ? "nullptr" : "&from") +
                    ", " + part(s.target) + ")",
                s.exit);
    return;
  }
  const std::string r = n_.name(s.result);
  if (!s.args.empty()) line_(r + " = " + n_.operand(s.args[0]) + ";");
  exit_where_("rt::reduce" + given + std::to_string(s.run) + ", " +
                  (s.args.empty() ? "true" : "false") + ", " + r + ")",
              s.exit);
}

// ---- Elements at positions (codegen/runtime/selections.h) ----

ArrayPrinter::Positions ArrayPrinter::positions(const Step& s, ArrayReg of) const {
  const ir::DType dtype = n_.element_type(s.arrays[0]);
  Positions p;
  p.indexed = static_cast<int>(s.arrays.size());
  if (dtype == ir::DType::Bool) p.indexed = n_.rank(s.arrays[0]);
  const std::string axes = axes_of("axes_of", s.axis, p.indexed, part(of));
  if (dtype == ir::DType::Bool) {
    p.text = "rt::Mask<" + std::to_string(p.indexed) + ">{" + part(s.arrays[0]) + ", " + axes + "}";
    return p;
  }
  for (ArrayReg a : s.arrays) p.axes = std::max(p.axes, n_.rank(a));
  std::string lengths, index;
  for (int axis = 0; axis < p.axes; ++axis)
    lengths += (axis ? ", " : "") + n_.name(s.args[static_cast<std::size_t>(axis)]);
  const std::string own = std::to_string(p.axes);
  for (ArrayReg a : s.arrays)
    index += (index.empty() ? "" : ", ") + ("rt::stretched(" + part(a)) + ", rt::Part<" + own +
             ">{nullptr, {" + lengths + "}, {}})";
  p.text = "rt::Positions<" + ProgramNames::memory_type(dtype) + ", " + std::to_string(p.indexed) +
           ", " + own + ">{{" + index + "}, " + axes + "}";
  return p;
}

void ArrayPrinter::count_true(const Step& s) {
  exit_where_("rt::count_true(" + positions(s, s.array).text + ", " + n_.name(s.result) + ")",
              s.exit);
}

void ArrayPrinter::within(const Step& s) {
  exit_where_("rt::is_outside(" + positions(s, s.array).text + ")", s.exit);
}

void ArrayPrinter::gather(const Step& s) {
  const Positions p = positions(s, s.array);
  const std::string type = ProgramNames::memory_type(n_.element_type(s.target));
  const std::string to = part(s.target), from = part(s.array);
  std::string others;
  if (n_.rank(s.array) != p.indexed)
    others = ", " + axes_of("other_axes_of", s.axis, p.indexed, from) + ", " +
             axes_of("other_axes_of", 0, p.axes, to);
  exit_where_("rt::gather<" + type + ">(" + p.text + ", " + axes_of("axes_of", 0, p.axes, to) +
                  others + ")",
              s.exit);
}

void ArrayPrinter::apart(const Step& s) {
  const auto bytes = [&](ArrayReg a) { return std::to_string(ir::size_of(n_.element_type(a))); };
  std::string shared = "!rt::is_apart(" + part(s.target) + ", " + bytes(s.target) + ")";
  for (ArrayReg a : s.arrays)
    shared += " || rt::may_share(" + part(s.target) + ", " + bytes(s.target) + ", " + part(a) +
              ", " + bytes(a) + ", " + std::to_string(s.gap) + ")";
  exit_where_(shared, s.exit);
}

void ArrayPrinter::scatter(const Step& s) {
  const Positions p = positions(s, s.target);
  const int rank = n_.rank(s.target) - p.indexed + p.axes;
  const std::string type = ProgramNames::memory_type(n_.element_type(s.target));
  const std::string whole = "rt::Part<" + std::to_string(rank) + ">";
  if (s.array == ir::program::kNone) {
    line_("const " + type + " value = " + n_.operand(s.args.back()) + ";");
    line_("const " + whole + " values{(char*)&value, {}, {}};");
  } else {
    std::string lengths;
    const auto add = [&](const std::string& length) {
      lengths += (lengths.empty() ? "" : ", ") + length;
    };
    for (int axis = 0; axis < s.axis; ++axis) add(n_.length(s.target, axis));
    for (Reg r : s.args) add(n_.name(r));
    for (int axis = s.axis + p.indexed; axis < n_.rank(s.target); ++axis)
      add(n_.length(s.target, axis));
    line_("const " + whole + " values = rt::stretched(" + part(s.array) + ", " + whole +
          "{nullptr, {" + lengths + "}, {}});");
  }
  std::string others;
  if (rank != p.axes)
    others = ", " + axes_of("other_axes_of", s.axis, p.indexed, part(s.target)) + ", " +
             axes_of("other_axes_of", s.axis, p.axes, "values");
  line_("rt::scatter<" + type + ">(" + p.text + ", " +
        axes_of("axes_of", s.axis, p.axes, "values") + others + ");");
}

void ArrayPrinter::product(const Step& s, const std::string& loop) {
  const std::string a = part(s.arrays[0]), b = part(s.arrays[1]);
  const std::string type = ProgramNames::memory_type(n_.element_type(s.arrays[0]));
  const bool is_number = s.target == ir::program::kNone;
  exit_where_("rt::matmul<" + type + ">(" + loop + ", rt::left(" + a + "), rt::right(" + b + "), " +
                  (is_number ? "(char*)&" + n_.name(s.result) : n_.data(s.target)) + ")",
              s.exit);
}

void ArrayPrinter::dot(const Step& s, const std::string& loop) {
  const std::string type = ProgramNames::memory_type(n_.element_type(s.arrays[0]));
  const std::string first = room(), second = room();
  exit_where_("rt::dot<" + type + ">(" + loop + ", " + part(s.arrays[0]) + ", " +
                  part(s.arrays[1]) + ", " + first + ", " + second + ", " +
                  (s.raises ? "true" : "false") + ", " + n_.name(s.result) + ")",
              s.exit);
}

}  // namespace ufuse::codegen
