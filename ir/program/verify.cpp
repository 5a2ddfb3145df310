// Is a program well formed? Typing writes it, and a mistake there is found here rather than in the
// text or the results.
#include <algorithm>
#include <set>
#include <utility>

#include "ir/program/program.h"
#include "ir/support/error.h"

namespace ufuse::ir::program {
namespace {

// Checks one program.
class Checker {
 public:
  Checker(const Program& program, const LoopTable& loops) : p_(program), loops_(loops) {}

  void check() {
    for (const Input& input : p_.inputs) where(input.value);
    need(p_.attributes.size() <= p_.variables.size(), "names for attributes");
    for (const Attribute& attribute : p_.attributes) where(attribute.value);
    if (p_.head) rounds(*p_.head);
    steps(p_.body);
    for (const program::Exit& e : p_.exits) {
      need(e.variables.size() == p_.variables.size(), "an exit knows all variables");
      for (const Where& w : e.variables) where(w);
      where(e.value);
      for (const Rounds& r : e.loops) rounds(r);
    }
  }

 private:
  static void need(bool holds, const char* what) {
    if (!holds) throw InternalError(std::string("program: not ") + what);
  }
  DType dtype(Reg r) const {
    need(r >= 0 && static_cast<std::size_t>(r) < p_.registers.size(), "a register");
    return p_.registers[static_cast<std::size_t>(r)].dtype;
  }
  void is(Reg r, DType wanted) const { need(dtype(r) == wanted, "a register of its dtype"); }
  void array(ArrayReg a) const {
    need(a >= 0 && static_cast<std::size_t>(a) < p_.arrays.size(), "an array");
  }
  void rounds(const Rounds& r) const {
    is(r.position, DType::Int64);
    count(r.count);
    over(r.over);
  }
  void over(const Over& o) const {
    switch (o.kind) {
      case Over::Kind::Range:
        for (Reg r : {o.count, o.start, o.step}) is(r, DType::Int64);
        break;
      case Over::Kind::Array:
        array(o.array);
        break;
      case Over::Kind::List:
        need(p_.uses_lists, "a list");
        is(o.list, DType::UInt64);
        break;
      case Over::Kind::Tuple:
        for (const Where& item : o.items) where(item);
        break;
      case Over::Kind::Enumerate:
        is(o.start, DType::Int64);
        need(o.parts.size() == 1, "what is enumerated");
        break;
      case Over::Kind::Zip:
        need(!o.parts.empty(), "what goes side by side");
        break;
    }
    for (const Over& part : o.parts) over(part);
  }
  void count(Reg r) const {
    need(dtype(r) == DType::Int64 || (p_.uses_lists && dtype(r) == DType::UInt64),
         "a number of rounds, or a list");
  }
  void where(const Where& w) const {
    if (w.kind == Where::Kind::Number) {
      dtype(w.reg);
      if (w.box == Box::Either) is(w.numpy, DType::Bool);
    }
    if (w.kind == Where::Kind::Array) array(w.reg);
    if (w.kind == Where::Kind::Object) is(w.reg, DType::UInt64);
    if (w.kind == Where::Kind::OneOf) is(w.reg, DType::Int64);
    for (const Where& part : w.parts) where(part);
  }
  void steps(const Steps& list) {
    for (const Step& s : list) step(s);
  }
  void inside(const Steps& list) {
    ++nesting_;
    steps(list);
    --nesting_;
  }
  void exits(const Step& s) const {
    need(s.exit >= 0 && static_cast<std::size_t>(s.exit) < p_.exits.size(), "an exit");
  }

  void step(const Step& s) {
    using enum Step::Kind;
    switch (s.kind) {
      case Constant:
        dtype(s.result);
        return;
      case Copy:
        return is(s.args[0], dtype(s.result));
      case Cast:
        dtype(s.args[0]);
        dtype(s.result);
        return;
      case Compute: {
        const OpInfo& op = op_info(s.op);
        need(s.args.size() == static_cast<std::size_t>(op.arity), "an op with its operands");
        for (Reg r : s.args)
          need(is_accepted(dtype(r), op.accepts), "operands that the op accepts");
        for (Reg r : s.args) is(r, dtype(s.args.back()));
        return is(s.result, result_dtype(s.op, dtype(s.args.back())));
      }
      case Call:
        dtype(s.result);
        for (Reg r : s.args) is(r, dtype(s.args[0]));
        if (primitive_info(s.primitive).leaves) exits(s);
        return;
      case Loop: {
        const LoopEntry& entry = loops_[s.row];
        need(s.args.size() == entry.inputs.size(), "a loop with its operands");
        for (std::size_t i = 0; i < s.args.size(); ++i) is(s.args[i], entry.inputs[i]);
        is(s.result, entry.outputs[s.slot]);
        return exits(s);
      }
      case Finite:
        for (Reg r : s.args) need(is_in(dtype(r), kInexact), "floats");
        return exits(s);
      case Length:
        array(s.array);
        return is(s.result, DType::Int64);
      case Load:
        return element(s, s.args.size(), s.result);
      case Store:
        return element(s, s.args.size() - 1, s.args.back());
      case View: {
        array(s.array);
        array(s.target);
        std::size_t args = 0, left = 0, own = 0;
        for (Axis axis : s.axes) {
          args += axis == Axis::Slice ? 3 : axis == Axis::New ? 0 : 1;
          left += axis != Axis::Index;
          own += axis == Axis::Index || axis == Axis::Slice;
        }
        need(args == s.args.size() && own == rank(s.array) && left == rank(s.target),
             "a view with its indices");
        for (Reg r : s.args) is(r, DType::Int64);
        return;
      }
      case Transpose:
      case SameArray:
        array(s.array);
        array(s.target);
        return need(rank(s.array) == rank(s.target), "arrays of one rank");
      case Fit:
        array(s.target);
        for (ArrayReg a : s.arrays) {
          array(a);
          need(rank(a) <= rank(s.target), "arrays of no higher rank than the target");
        }
        return exits(s);
      case Elements:
        return elements(s);
      case InRows:
      case InOneRow:
        for (ArrayReg a : s.arrays) array(a);
        return exits(s);
      case NewArray:
        array(s.target);
        need(s.args.size() == rank(s.target), "a length for each axis");
        for (Reg r : s.args) is(r, DType::Int64);
        return exits(s);
      case LoopOver:
        return loop_over(s);
      case Reduce:
        return reduce(s);
      case CountTrue:
        positions(s, s.array, s.args.size());
        is(s.result, DType::Int64);
        return exits(s);
      case Within:
        positions(s, s.array, s.args.size());
        return exits(s);
      case Gather:
        array(s.target);
        need(dtype_of(s.array) == dtype_of(s.target) &&
                 rank(s.target) == positions(s, s.array, s.args.size()),
             "a result that fits");
        return exits(s);
      case Apart:
        array(s.target);
        for (ArrayReg a : s.arrays) array(a);
        return exits(s);
      case Scatter:
        return scatter(s);
      case Product:
        return product(s);
      case Dot:
        return dot(s);
      case Save:
        array(s.array);
        need(rank(s.array) > 0 && saved_.insert(s.array).second, "an array that is saved once");
        return exits(s);
      case Release:
        for (ArrayReg a : s.arrays) need(saved_.contains(a), "an array that has been saved");
        return;
      case ListLength:
        is(s.result, DType::Int64);
        return on_list(s, 1);
      case ListItem:
        on_list(s, 2);
        need(is_of_list(dtype(s.result), s), "what a list holds");
        return exits(s);
      case ObjectFor:
        on_list(s, 3);
        is_number_of_list(s.args[2], s);
        is(s.result, DType::UInt64);
        return exits(s);
      case StoreItem:
        return stores(s);
      case NoteItem:
        stores(s);
        return exits(s);
      case KeepItems:
        return need(p_.uses_lists, "lists");
      case NewObject:
        is_number_of_list(s.args[0], s);
        is(s.result, DType::UInt64);
        return exits(s);
      case NoteEnd:
      case AppendItem:
        need(p_.uses_lists && s.args.size() == 2, "a list and an object");
        for (Reg r : s.args) is(r, DType::UInt64);
        return exits(s);
      case Guard:
        is(s.args[0], DType::Bool);
        return exits(s);
      case Poll:
      case Chance:
      case Exit:
        return exits(s);
      case If:
        is(s.args[0], DType::Bool);
        steps(s.body);
        return steps(s.other);
      case Count:
        is(s.result, DType::Int64);
        count(s.args[0]);
        return inside(s.body);
      case Repeat:
      case Block:
        return inside(s.body);
      case Break:
      case Continue:
        return need(s.depth >= 0 && s.depth < nesting_, "a jump out of a loop around it");
    }
  }

  std::size_t rank(ArrayReg a) const {
    return static_cast<std::size_t>(p_.arrays[static_cast<std::size_t>(a)].rank);
  }
  DType dtype_of(ArrayReg a) const { return p_.arrays[static_cast<std::size_t>(a)].dtype; }

  static bool is_of_list(DType d, const Step& s) {
    if (s.of_numpy) return d != DType::UInt64;
    return d == DType::Bool || d == DType::Int64 || d == DType::Float64 || d == DType::Complex128 ||
           d == DType::UInt64;
  }
  void is_number_of_list(Reg r, const Step& s) const {
    need(p_.uses_lists && dtype(r) != DType::UInt64 && is_of_list(dtype(r), s),
         "a number of Python's or NumPy's");
  }
  void stores(const Step& s) const {
    on_list(s, 4);
    is(s.args[3], DType::UInt64);
  }
  // The list, the item where the step is about one, and what else there is.
  void on_list(const Step& s, std::size_t operands) const {
    need(p_.uses_lists && s.args.size() == operands, "a list with its operands");
    is(s.args[0], DType::UInt64);
    if (operands > 1) is(s.args[1], DType::Int64);
  }

  void elements(const Step& s) {
    array(s.target);
    need(s.arrays.size() == s.args.size(), "a register for the elements of each array");
    for (std::size_t i = 0; i < s.args.size(); ++i) {
      array(s.arrays[i]);
      is(s.args[i], dtype_of(s.arrays[i]));
      need(rank(s.arrays[i]) <= rank(s.target), "arrays of no higher rank than the target");
    }
    for (const Step& each : s.body)
      need(each.kind == Step::Kind::Cast || each.kind == Step::Kind::Compute,
           "elements that are computed without a way out");
    steps(s.body);
    is(s.result, dtype_of(s.target));
    exits(s);
  }

  void loop_over(const Step& s) {
    const LoopEntry& entry = loops_[s.row];
    array(s.target);
    need(s.arrays.size() == entry.inputs.size() && s.args.size() == s.arrays.size(),
         "a loop with its operands");
    need(entry.outputs.size() == 1 && dtype_of(s.target) == entry.outputs[0], "the loop's result");
    for (std::size_t i = 0; i < s.arrays.size(); ++i) {
      if (s.arrays[i] == kNone) {
        is(s.args[i], entry.inputs[i]);
        continue;
      }
      array(s.arrays[i]);
      need(dtype_of(s.arrays[i]) == entry.inputs[i] && rank(s.arrays[i]) == rank(s.target),
           "arrays of the loop's dtypes and the result's rank");
    }
    exits(s);
  }

  void reduce(const Step& s) {
    const LoopEntry& entry = loops_[s.row];
    need(s.arrays.size() == 1 && s.args.size() <= 1, "one array, and where it begins");
    array(s.arrays[0]);
    need(dtype_of(s.arrays[0]) == entry.inputs[1], "elements of the loop's dtype");
    for (Reg r : s.args) is(r, entry.outputs[0]);
    if (s.target == kNone) {
      is(s.result, entry.outputs[0]);
    } else {
      array(s.target);
      need(dtype_of(s.target) == entry.outputs[0] && rank(s.target) == rank(s.arrays[0]),
           "a result that fits");
    }
    exits(s);
  }

  // The axes of what is read or written at positions of so many axes.
  std::size_t positions(const Step& s, ArrayReg of, std::size_t axes) const {
    array(of);
    need(!s.arrays.empty() && s.axis >= 0, "positions on axes of an array");
    for (std::size_t i = 0; i < axes; ++i) is(s.args[i], DType::Int64);
    std::size_t indexed = s.arrays.size(), own = 0;
    for (ArrayReg a : s.arrays) {
      array(a);
      own = std::max(own, rank(a));
      need(dtype_of(a) == dtype_of(s.arrays[0]), "positions of one dtype");
    }
    if (dtype_of(s.arrays[0]) == DType::Bool) {
      need(indexed == 1, "one mask");
      indexed = std::exchange(own, std::size_t{1});
    } else {
      need(is_in(dtype_of(s.arrays[0]), kInteger), "positions of integers");
    }
    need(own == axes || s.kind == Step::Kind::CountTrue, "a length for each axis of the positions");
    need(static_cast<std::size_t>(s.axis) + indexed <= rank(of), "positions on axes of an array");
    return rank(of) - indexed + own;
  }

  void scatter(const Step& s) {
    const bool of_number = s.array == kNone;
    const std::size_t left = positions(s, s.target, s.args.size() - (of_number ? 1 : 0));
    if (of_number) return is(s.args.back(), dtype_of(s.target));
    array(s.array);
    need(dtype_of(s.array) == dtype_of(s.target) && rank(s.array) <= left,
         "values of the dtype of the array that is written");
  }

  void product(const Step& s) {
    need(s.arrays.size() == 2, "a product of two");
    const LoopEntry& entry = loops_[s.row];
    std::size_t left = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      array(s.arrays[i]);
      need(rank(s.arrays[i]) == 1 || rank(s.arrays[i]) == 2, "a vector or a matrix");
      need(dtype_of(s.arrays[i]) == entry.inputs[i], "operands of the loop's dtypes");
      left += rank(s.arrays[i]) - 1;
    }
    if (left == 0) {
      is(s.result, entry.outputs[0]);
    } else {
      array(s.target);
      need(rank(s.target) == left && dtype_of(s.target) == entry.outputs[0], "a result that fits");
    }
    exits(s);
  }

  void dot(const Step& s) {
    need(s.arrays.size() == 2, "a product of two");
    for (ArrayReg a : s.arrays) {
      array(a);
      need(rank(a) == 1 && dtype_of(a) == dtype(s.result), "vectors of one dtype");
    }
    exits(s);
  }

  void element(const Step& s, std::size_t indices, Reg value) const {
    array(s.array);
    need(indices == rank(s.array), "an index for each axis");
    for (std::size_t i = 0; i < indices; ++i) is(s.args[i], DType::Int64);
    is(value, p_.arrays[static_cast<std::size_t>(s.array)].dtype);
  }

  const Program& p_;
  const LoopTable& loops_;
  int nesting_ = 0;
  std::set<ArrayReg> saved_;
};

}  // namespace

void verify(const Program& program, const LoopTable& loops) { Checker(program, loops).check(); }

}  // namespace ufuse::ir::program
