// Where ways of the program meet: what is known of the variables behind a branch or at a loop's
// head, and where does Python find them?
#include <algorithm>

#include "ir/support/error.h"
#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {
namespace {

// Which of several types a variable is taken to have where it is read: the one that it gets in the
// course of a loop, rather than the one that it began with.
int weight(const Value& v) {
  switch (v.kind) {
    case Value::Kind::Unbound:
      return 0;
    case Value::Kind::Nothing:
    case Value::Kind::Given:
      return 1;
    case Value::Kind::Number:
      return 2 + static_cast<int>(v.dtype);
    default:
      return 100;
  }
}

// Whether both can be in one place: the same registers, whatever else is known.
bool share(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Value::Kind::Number:
      return a.dtype == b.dtype && a.reg == b.reg;
    case Value::Kind::Array:
      return a.array == b.array;
    case Value::Kind::List:
      return a.reg == b.reg && Writer::holds_the_same(a, b);
    case Value::Kind::Given:
      return a.variable == b.variable && a.given == b.given;
    case Value::Kind::Mixed:
      if (a.reg != b.reg) return false;
      [[fallthrough]];
    case Value::Kind::Tuple:
      return std::ranges::equal(a.parts, b.parts, [](const Value& x, const Value& y) {
        return share(x, y) && x.box == y.box && x.numpy == y.numpy;
      });
    default:
      return true;
  }
}

// What is known of a value that may as well be the other, in the same registers.
void forget_differences(Value& v, const Value& other) {
  v.non_negative &= other.non_negative;
  if (v.known != other.known) v.known.reset();
  v.writeable &= other.writeable;
  v.arguments |= other.arguments;
  v.outside |= other.outside;
  for (std::size_t i = 0; i < v.parts.size(); ++i) forget_differences(v.parts[i], other.parts[i]);
}

}  // namespace

bool Writer::same_value(const Value& a, const Value& b) {
  if (!share(a, b)) {
    if (a.kind != Value::Kind::OneOf || b.kind != Value::Kind::OneOf) return false;
  }
  return a.kind == b.kind && a.box == b.box && a.numpy == b.numpy &&
         a.non_negative == b.non_negative && a.known == b.known && a.writeable == b.writeable &&
         a.arguments == b.arguments && a.outside == b.outside && a.parts.size() == b.parts.size() &&
         std::ranges::equal(a.parts, b.parts, same_value);
}

bool Writer::same(const Env& a, const Env& b) { return std::ranges::equal(a, b, same_value); }

// Whether a variable has other registers in the second: not only less is known of it.
bool Writer::changes_type(const Env& head, const Env& joined) {
  for (std::size_t i = 0; i < head.size(); ++i) {
    const Value &a = head[i], &b = joined[i];
    if (b.kind != Value::Kind::OneOf || a.kind == Value::Kind::OneOf) continue;
    // What is assigned in the loop for the first time, or is nothing at first, may go on so.
    if (a.kind == Value::Kind::Number) return true;
  }
  return false;
}

Env Writer::joined(const Env& a, const Env& b) {
  Env both;
  for (std::size_t i = 0; i < a.size(); ++i)
    both.push_back(joined(static_cast<int>(i), a[i], b[i]));
  return both;
}

Env Writer::joined_all(std::vector<Env> envs, bool with_current) {
  if (with_current) envs.push_back(env_);
  if (envs.empty()) return env_;
  Env all = std::move(envs[0]);
  for (std::size_t i = 1; i < envs.size(); ++i) all = joined(all, envs[i]);
  return all;
}

Value Writer::joined(int variable, const Value& a, const Value& b) {
  if (a.kind != Value::Kind::OneOf && b.kind != Value::Kind::OneOf && share(a, b)) {
    Value v = a;
    forget_differences(v, b);
    if (a.box == b.box && (a.box != Box::Either || a.numpy == b.numpy)) return v;
    if (!has_twin(v.dtype))
      throw InternalError("numbers of Python and NumPy share a dtype that one lacks");
    v.box = Box::Either;
    v.numpy = tag_of(variable);
    return v;
  }
  Value v;
  v.kind = Value::Kind::OneOf;
  v.reg = selector_of(variable);
  const auto add = [&](const Value& each) {
    for (Value& known : v.parts)
      if (share(known, each)) {
        known = joined(variable, known, each);
        return;
      }
    v.parts.push_back(each);
  };
  for (const Value* each : {&a, &b}) {
    if (each->kind == Value::Kind::OneOf)
      std::ranges::for_each(each->parts, add);
    else
      add(*each);
  }
  std::ranges::sort(v.parts, {}, [&](const Value& each) { return position_of(variable, each); });
  return v;
}

// Whether both Python and NumPy have numbers of this dtype.
bool Writer::has_twin(DType dtype) {
  return dtype == DType::Int64 || dtype == DType::Float64 || dtype == DType::Complex128 ||
         dtype == DType::Bool;
}

// Whether it is NumPy's number: asked for where that depends on the way.
Reg Writer::tag_of(int variable) {
  const Key key{scope_.instance, variable};
  if (!marks_.tagged.contains(key)) {
    marks_.tagged.insert(key);
    throw Restart();
  }
  return tags_.at(key);
}
Reg Writer::selector_of(int variable) {
  const Key key{scope_.instance, variable};
  if (!marks_.selected.contains(key)) {
    marks_.selected.insert(key);
    throw Restart();
  }
  return selectors_.at(key);
}

// Which of the variable's types this is; a type that is new gets the next number.
int Writer::position_of(int variable, const Value& v) {
  std::vector<Value>& known = alternatives_[{scope_.instance, variable}];
  const auto it = std::ranges::find_if(known, [&](const Value& each) { return share(each, v); });
  const auto at = static_cast<int>(it - known.begin());
  if (it == known.end()) known.push_back(v);
  return at;
}

// Behind an assignment: what the variable's own registers have to say.
void Writer::mark(int variable, Value& v) {
  const Key key{scope_.instance, variable};
  if (marks_.tagged.contains(key)) {
    Reg& tag = tags_.try_emplace(key, kNone).first->second;
    if (tag == kNone) tag = fresh(DType::Bool);
    if (v.kind == Value::Kind::Number) {
      copy(tag, v.box == Box::Either ? v.numpy : truth_constant(v.box == Box::NumPy));
      if (v.box == Box::Either) v.numpy = tag;
    }
  } else if (v.kind == Value::Kind::Number && v.box == Box::Either) {
    // It keeps what it was computed with, which nobody changes.
    const Reg own = fresh(DType::Bool);
    copy(own, v.numpy);
    v.numpy = own;
  }
  if (!marks_.selected.contains(key)) return;
  Reg& selector = selectors_.try_emplace(key, kNone).first->second;
  if (selector == kNone) selector = fresh(DType::Int64);
  copy(selector, integer(position_of(variable, v)));
}

// A variable's value where it is read: of several types the likely one, which is checked.
Value Writer::read(const Expr& e) {
  const auto variable = static_cast<std::size_t>(e.integer);
  const Value& v = env_[variable];
  if (v.kind == Value::Kind::Unbound) fail("`" + (*scope_.names)[variable] + "` has no value");
  if (v.kind != Value::Kind::OneOf) return v;
  const auto likely = std::ranges::max_element(v.parts, {}, weight);
  if (weight(*likely) == 0) fail("`" + (*scope_.names)[variable] + "` has no value");
  const int at = position_of(static_cast<int>(variable), *likely);
  guard(compute(Op::Equal, DType::Bool, {v.reg, integer(at)}));
  return *likely;
}

Where Writer::where(const Value& v) const {
  Where w;
  switch (v.kind) {
    case Value::Kind::Unbound:
      w.kind = Where::Kind::Unbound;
      return w;
    case Value::Kind::Nothing:
      w.kind = Where::Kind::Nothing;
      return w;
    case Value::Kind::Number:
      w.kind = Where::Kind::Number;
      w.reg = v.reg;
      w.box = v.box;
      w.numpy = v.box == Box::Either ? v.numpy : kNone;
      return w;
    case Value::Kind::Array:
      w.kind = Where::Kind::Array;
      w.reg = v.array;
      return w;
    case Value::Kind::List:
      w.kind = Where::Kind::Object;
      w.reg = v.reg;
      return w;
    case Value::Kind::Given:
      if (v.variable < 0) fail("a function or module is kept in a variable");
      w.kind = Where::Kind::Same;
      w.reg = v.variable;
      return w;
    case Value::Kind::Tuple:
      w.kind = Where::Kind::Tuple;
      for (const Value& part : v.parts) w.parts.push_back(where(part));
      return w;
    case Value::Kind::Mixed:
      for (const Value& part : v.parts) w.parts.push_back(where(part));
      break;
    case Value::Kind::OneOf:
      break;
    case Value::Kind::Elements:
    case Value::Kind::Slice:
      throw InternalError("a variable is a slice, or an array that has not been computed");
  }
  w.kind = Where::Kind::OneOf;
  w.reg = v.reg;
  return w;
}

// The same of a variable, which knows the numbers of its types.
Where Writer::where_variable(int variable, const Value& v) {
  Where w = where(v);
  if (v.kind != Value::Kind::OneOf) return w;
  for (const Value& part : v.parts) {
    const auto at = static_cast<std::size_t>(position_of(variable, part));
    if (w.parts.size() <= at) w.parts.resize(at + 1);
    w.parts[at] = where(part);
  }
  return w;
}

}  // namespace ufuse::numpy_shim::program
