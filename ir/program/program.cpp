// The table of primitives, and programs as text. See program.h.
#include "ir/program/program.h"

#include <array>

#include "ir/print.h"
#include "ir/support/error.h"

namespace ufuse::ir::program {
namespace {

enum class Leaving : bool { Stays = false, Leaves = true };

constexpr std::array kPrimitives = {
#define PRIMITIVE(id, name, leaves, cpp) \
  PrimitiveInfo{name, Leaving::leaves == Leaving::Leaves, #cpp},
#include "ir/program/primitives.def"
#undef PRIMITIVE
};

// Writes one program.
class Printer {
 public:
  explicit Printer(const Program& program) : p_(program) {}

  std::string print() {
    for (const Input& input : p_.inputs) line(source(input) + " -> " + text(input.value));
    if (p_.head)
      line("head " + reg(p_.head->position) + " of " + reg(p_.head->count) + " over " +
           over(p_.head->over));
    steps(p_.body);
    for (std::size_t i = 0; i < p_.exits.size(); ++i) exit(i);
    return std::move(text_);
  }

 private:
  void line(const std::string& what) { text_ += std::string(2 * depth_, ' ') + what + "\n"; }

  std::string reg(Reg r) const {
    if (r == kNone) return "-";
    const Register& row = p_.registers[static_cast<std::size_t>(r)];
    return "%" + std::to_string(r) + (row.name.empty() ? "" : ":" + row.name);
  }
  std::string array(ArrayReg a) const {
    const ArrayRegister& row = p_.arrays[static_cast<std::size_t>(a)];
    return "@" + std::to_string(a) + (row.name.empty() ? "" : ":" + row.name);
  }
  std::string list(const std::vector<Reg>& regs) const {
    std::string text;
    for (Reg r : regs) text += (text.empty() ? "" : ", ") + reg(r);
    return text;
  }
  std::string arrays(const std::vector<ArrayReg>& all) const {
    std::string text;
    for (ArrayReg a : all) text += (text.empty() ? "" : ", ") + (a == kNone ? "-" : array(a));
    return text;
  }
  std::string over(const Over& o) const {
    std::string parts;
    for (const Over& part : o.parts) parts += (parts.empty() ? "" : ", ") + over(part);
    switch (o.kind) {
      case Over::Kind::Range:
        return "range " + reg(o.start) + " by " + reg(o.step);
      case Over::Kind::Array:
        return array(o.array);
      case Over::Kind::List:
        return "list " + reg(o.list);
      case Over::Kind::Tuple: {
        Where tuple;
        tuple.kind = Where::Kind::Tuple;
        tuple.parts = o.items;
        return text(tuple);
      }
      case Over::Kind::Enumerate:
        return "enumerate " + parts + " from " + reg(o.start);
      case Over::Kind::Zip:
        return "zip (" + parts + ")";
    }
    throw InternalError("a loop over something unknown");
  }
  std::string positions(const Step& s, ArrayReg of) const {
    return array(of) + " axis " + std::to_string(s.axis) + " at " + arrays(s.arrays) + " (" +
           list(s.args) + ")";
  }

  std::string source(const Input& input) const {
    switch (input.from) {
      case Input::From::Variable:
        return "variable " + p_.variables[static_cast<std::size_t>(input.index)];
      case Input::From::Outside:
        return "outside " + std::to_string(input.index);
      case Input::From::Iterable:
        return "iterable";
      case Input::From::Generator:
        return "generator " + std::to_string(input.index);
    }
    throw InternalError("an input of unknown origin");
  }

  std::string text(const Where& w) const {
    using enum Where::Kind;
    switch (w.kind) {
      case Unbound:
        return "unbound";
      case Nothing:
        return "None";
      case Same:
        return "as entered";
      case Number: {
        const std::string of = w.box == Box::Python  ? "python "
                               : w.box == Box::NumPy ? "numpy "
                                                     : "numpy if " + reg(w.numpy) + " ";
        return of + reg(w.reg);
      }
      case Array:
        return array(w.reg);
      case Object:
        return "object " + reg(w.reg);
      case Tuple:
      case OneOf: {
        std::string parts;
        for (const Where& part : w.parts) parts += (parts.empty() ? "" : ", ") + text(part);
        return w.kind == Tuple ? "(" + parts + ")" : "by " + reg(w.reg) + " of [" + parts + "]";
      }
    }
    throw InternalError("a place of unknown kind");
  }

  static std::string whose(const Step& s) { return s.of_numpy ? "numpy " : ""; }

  void exit(std::size_t i) {
    static constexpr std::array kKinds = {"leave before", "exhausted", "broke", "returned in"};
    const Exit& e = p_.exits[i];
    line("exit " + std::to_string(i) + ": " + kKinds[static_cast<std::size_t>(e.kind)] +
         (e.at_round ? " a round of" : "") + " statement " + std::to_string(e.statement));
    ++depth_;
    for (std::size_t v = 0; v < e.variables.size(); ++v)
      line(p_.variables[v] + " = " + text(e.variables[v]));
    if (e.kind == Exit::Kind::Returned) line("return " + text(e.value));
    for (const Rounds& r : e.loops)
      line("loop " + std::to_string(r.loop) + " at " + reg(r.position) + " of " + reg(r.count));
    --depth_;
  }

  void steps(const Steps& list) {
    ++depth_;
    for (const Step& s : list) step(s);
    --depth_;
  }

  void step(const Step& s) {
    using enum Step::Kind;
    const std::string at = s.exit == kNone ? "" : " or exit " + std::to_string(s.exit);
    const std::string result = s.result == kNone ? "" : reg(s.result) + " = ";
    const auto type = [&] {
      return " : " + std::string(info(p_.registers[static_cast<std::size_t>(s.result)].dtype).name);
    };
    switch (s.kind) {
      case Constant:
        return line(
            result +
            print_scalar(p_.registers[static_cast<std::size_t>(s.result)].dtype, s.constant) +
            type());
      case Copy:
        return line(result + reg(s.args[0]));
      case Cast:
        return line(result + "cast " + reg(s.args[0]) + type());
      case Compute:
        return line(result + std::string(op_info(s.op).name) + " " + list(s.args) + type());
      case Call:
        return line(result + std::string(primitive_info(s.primitive).name) + " " + list(s.args) +
                    type() + at);
      case Loop:
        return line(result + "loop " + std::to_string(s.row) + " " + list(s.args) + type() + at);
      case Finite:
        return line("finite " + list(s.args) + at);
      case Length:
        return line(result + "length " + array(s.array) + " axis " + std::to_string(s.axis));
      case Load:
        return line(result + array(s.array) + "[" + list(s.args) + "]");
      case Store:
        return line("store " + array(s.array) + "[" + list(s.args) + "]");
      case View: {
        std::string kinds;
        for (Axis axis : s.axes)
          kinds += ":+*i"[axis == Axis::Slice    ? 0
                          : axis == Axis::New    ? 1
                          : axis == Axis::Repeat ? 2
                                                 : 3];
        return line(array(s.target) + " = " + array(s.array) + "[" + kinds + " " + list(s.args) +
                    "]");
      }
      case Transpose:
        return line(array(s.target) + " = transposed " + array(s.array));
      case SameArray:
        return line(array(s.target) + " = " + array(s.array));
      case Fit:
        return line("fit " + arrays(s.arrays) + " to " + array(s.target) + at);
      case Elements: {
        line("elements " + list(s.args) + " of " + arrays(s.arrays) + (s.aside ? " aside" : "") +
             at);
        steps(s.body);
        return line("to " + array(s.target) + " = " + reg(s.result));
      }
      case NewArray:
        return line(array(s.target) + " = new " + list(s.args) + at);
      case InRows:
        return line("in rows " + arrays(s.arrays) + at);
      case InOneRow:
        return line("in one row " + arrays(s.arrays) + at);
      case LoopOver:
        return line(array(s.target) + " = loop " + std::to_string(s.row) + " over " +
                    arrays(s.arrays) + " with " + list(s.args) + at);
      case Reduce:
        return line((s.target == kNone ? result : array(s.target) + " = ") + "reduce " +
                    std::to_string(s.row) + " " + arrays(s.arrays) + " from " + list(s.args) +
                    (s.run != 0 ? " in runs of " + std::to_string(s.run) : "") + at);
      case CountTrue:
        return line(result + "count true " + positions(s, s.array) + at);
      case Within:
        return line("within " + positions(s, s.array) + at);
      case Gather:
        return line(array(s.target) + " = " + positions(s, s.array) + at);
      case Apart:
        return line("apart " + array(s.target) + " from " + arrays(s.arrays) + " by " +
                    std::to_string(s.gap) + at);
      case Scatter:
        return line(positions(s, s.target) + " = " +
                    (s.array == kNone ? reg(s.args.back()) : array(s.array)));
      case Product:
        return line((s.target == kNone ? result : array(s.target) + " = ") + "product " +
                    std::to_string(s.row) + " " + arrays(s.arrays) + at);
      case Dot:
        return line(result + "dot " + std::to_string(s.row) + " " + arrays(s.arrays) +
                    (s.raises ? " with flags" : "") + at);
      case Save:
        return line("save " + array(s.array) + at);
      case Release:
        return line("release " + arrays(s.arrays));
      case ListLength:
        return line(result + "length of list " + list(s.args));
      case ListItem:
        return line(result + whose(s) + "item " + list(s.args) +
                    (s.axis > 0 ? " of " + std::to_string(s.axis) : "") + type() + at);
      case ObjectFor:
        return line(result + whose(s) + "object for item " + list(s.args) +
                    (s.aside ? " aside" : "") + at);
      case StoreItem:
        return line("store item " + list(s.args));
      case NewObject:
        return line(result + whose(s) + "object of " + list(s.args) + at);
      case NoteItem:
        return line("note item " + list(s.args) + at);
      case NoteEnd:
        return line("note end " + list(s.args) + at);
      case KeepItems:
        return line("keep items");
      case AppendItem:
        return line("append " + list(s.args) + at);
      case Guard:
        return line("guard " + reg(s.args[0]) + at);
      case Poll:
        return line("poll" + at);
      case Chance:
        return line("chance" + at);
      case If:
        line("if " + reg(s.args[0]));
        steps(s.body);
        if (s.other.empty()) return;
        line("else");
        return steps(s.other);
      case Count:
        line("count " + reg(s.result) + " below " + reg(s.args[0]));
        return steps(s.body);
      case Repeat:
        line("repeat");
        return steps(s.body);
      case Block:
        line("block");
        return steps(s.body);
      case Break:
        return line("break " + std::to_string(s.depth));
      case Continue:
        return line("continue " + std::to_string(s.depth));
      case Exit:
        return line("exit " + std::to_string(s.exit));
    }
  }

  const Program& p_;
  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace

const PrimitiveInfo& primitive_info(Primitive p) {
  return kPrimitives[static_cast<std::size_t>(p)];
}

std::string print(const Program& program) { return Printer(program).print(); }

}  // namespace ufuse::ir::program
