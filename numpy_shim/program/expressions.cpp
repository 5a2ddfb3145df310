// Expressions: what is their value, and which steps compute it?
#include <algorithm>
#include <bit>

#include "ir/support/error.h"
#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

Value Writer::value(const Expr& e) {
  using enum Expr::Kind;
  switch (e.kind) {
    case Int:
      return python_int(e.integer);
    case Float:
      return python_float(e.real);
    case Complex:
      return python_number(DType::Complex128,
                           constant(DType::Complex128, {{std::bit_cast<std::uint64_t>(e.real),
                                                         std::bit_cast<std::uint64_t>(e.imag)}}));
    case Bool: {
      Value v = python_number(DType::Bool, truth_constant(e.integer != 0));
      v.known = e.integer;
      return v;
    }
    case Nothing: {
      Value v;
      v.kind = Value::Kind::Nothing;
      return v;
    }
    case Local:
      return read(e);
    case Outside:
      return outside(world_.outside(scope_.function, static_cast<int>(e.integer)),
                     (*scope_.outside)[static_cast<std::size_t>(e.integer)]);
    case Attribute:
      return attribute(e);
    case Unary:
      if (e.op == Operator::Not) {
        const Reg x = truth(e.parts[0]);
        return python_number(DType::Bool, compute(Op::LogicalNot, DType::Bool, {x}));
      }
      return unary(e.op, value(e.parts[0]));
    case Binary: {
      const std::vector<Value> sides = operands(e);
      return binary(e.op, sides[0], sides[1]);
    }
    case Compare:
      return compare(e);
    case And:
    case Or:
      return both(e);
    case Choice:
      return choice(e);
    case Item:
      return item(e);
    case Ellipsis:
      fail("`...` outside of an index");
    case Slice: {
      Value v;
      v.kind = Value::Kind::Slice;
      for (const Expr& part : e.parts) v.parts.push_back(value(part));
      return v;
    }
    case Tuple: {
      Value v;
      v.kind = Value::Kind::Tuple;
      v.parts = values(e, 0);
      return v;
    }
    case List:
      fail("a list");
    case Call:
      return call(e);
    case Keyword:
      fail("a call with the keyword `" + e.name + "`");
  }
  throw InternalError("an expression of unknown kind");
}

// Of the parts of an expression, from this one on.
std::vector<Value> Writer::values(const Expr& e, std::size_t first) {
  std::vector<Value> made;
  for (std::size_t i = first; i < e.parts.size(); ++i) {
    for (Value& v : made) v = before(v, e.parts[i]);
    made.push_back(argument(e.parts[i]));
  }
  return made;
}

// The two sides of an operator.
std::vector<Value> Writer::operands(const Expr& e) {
  const Value left = before(operand(e.parts[0]), e.parts[1]);
  return {left, operand(e.parts[1])};
}

// A value that is used behind another expression: what is only noted of it is computed now, where
// that expression may change what it is computed of.
Value Writer::before(const Value& v, const Expr& next) {
  return may_change(next) ? own_copy(v) : v;
}

// What a global name stands for. Numbers and arrays are handed in like variables.
Value Writer::outside(const Given& given, const std::string& name) {
  if (given.kind == Given::Kind::Unbound) fail("`" + name + "` has no value");
  if (given.kind != Given::Kind::Number && given.kind != Given::Kind::Array &&
      given.kind != Given::Kind::Tuple && given.kind != Given::Kind::List)
    return value_of(given, -1);
  auto known = outsiders_.find(given.object);
  if (known == outsiders_.end()) {
    Value v = value_of(given, -1);
    constexpr std::size_t kMostTold = 63;
    const bool is_told = outside_.size() < kMostTold;
    set_origin(v, 0, is_told ? std::uint64_t{1} << outside_.size() : kElsewhere);
    if (is_told) outside_.push_back(given);
    known = outsiders_.emplace(given.object, std::move(v)).first;
    program_.inputs.push_back(
        {ir::program::Input::From::Outside, given.object, where(known->second)});
  }
  return known->second;
}

// ---- Truth ----

// `x is None`, `x is not None` and `isinstance(x, ...)`: types tell.
std::optional<bool> Writer::decided(const Expr& e) {
  const bool is_not = e.kind == Expr::Kind::Unary && e.op == Operator::Not;
  if (is_not) {
    const std::optional<bool> inner = decided(e.parts[0]);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  if (e.kind == Expr::Kind::Call && is_builtin(e.parts[0], "isinstance"))
    return value(e).known.value() != 0;
  const bool is_it =
      e.kind == Expr::Kind::Compare && (e.ops[0] == Operator::Is || e.ops[0] == Operator::IsNot);
  if (!is_it) return std::nullopt;
  const Value v = value(e.parts[0]);
  if (v.kind == Value::Kind::Given && v.given.kind == Given::Kind::Other)
    fail("something unknown is compared with None");
  return (v.kind == Value::Kind::Nothing) == (e.ops[0] == Operator::Is);
}

Reg Writer::truth(const Expr& e) {
  if (e.kind == Expr::Kind::Unary && e.op == Operator::Not)
    return compute(Op::LogicalNot, DType::Bool, {truth(e.parts[0])});
  if (e.kind != Expr::Kind::And && e.kind != Expr::Kind::Or) return truth_of(value(e));
  const Reg result = fresh(DType::Bool);
  copy(result, truth(e.parts[0]));
  for (std::size_t i = 1; i < e.parts.size(); ++i) {
    Step step;
    step.kind = Step::Kind::If;
    step.args = {result};
    Steps& rest = e.kind == Expr::Kind::And ? step.body : step.other;
    rest = written([&] { copy(result, truth(e.parts[i])); });
    emit(std::move(step));
  }
  return result;
}

Reg Writer::truth_of(const Value& v) {
  switch (v.kind) {
    case Value::Kind::Nothing:
      return truth_constant(false);
    case Value::Kind::Tuple:
      return truth_constant(!v.parts.empty());
    case Value::Kind::List:
      return cast_to(list_length(v).reg, DType::Bool);
    case Value::Kind::Mixed:
      return truth_of(as_float(v));
    case Value::Kind::Number:
      return v.dtype == DType::Bool ? v.reg : cast_to(v.reg, DType::Bool);
    default:
      fail("the truth of something else than a number is asked");
  }
}

// `a and b`, `a or b`: one of the two, both of one type.
Value Writer::both(const Expr& e) {
  const Value first = value(e.parts[0]);
  if (!first.is_number()) fail("`and` and `or` of something else than numbers");
  Value result = first;
  result.reg = own_register(first);
  const Reg of_numpy = has_twin(result.dtype) ? fresh(DType::Bool) : kNone;
  if (of_numpy != kNone) copy(of_numpy, is_numpys(result));
  for (std::size_t i = 1; i < e.parts.size(); ++i) {
    Step step;
    step.kind = Step::Kind::If;
    step.args = {truth_of(result)};
    Steps& rest = e.kind == Expr::Kind::And ? step.body : step.other;
    rest = written([&] {
      const Value next = value(e.parts[i]);
      if (!shares_dtype(result, next)) return merge(result, next);
      copy(of_numpy, is_numpys(next));
      take_either(result, next, of_numpy);
    });
    emit(std::move(step));
  }
  result.known.reset();
  return result;
}

Value Writer::choice(const Expr& e) {
  if (const std::optional<bool> known = decided(e.parts[0])) return value(e.parts[*known ? 1 : 2]);
  Step step;
  step.kind = Step::Kind::If;
  step.args = {truth(e.parts[0])};
  Value result;
  step.body = written([&] {
    result = value(e.parts[1]);
    if (!result.is_number()) fail("one of two is chosen that are no numbers");
    result.reg = own_register(result);
  });
  std::optional<Value> either;
  step.other = written([&] {
    const Value second = value(e.parts[2]);
    if (shares_dtype(result, second)) {
      const Reg of_numpy = fresh(DType::Bool);
      write_to(step.body, [&] { copy(of_numpy, is_numpys(result)); });
      copy(of_numpy, is_numpys(second));
      return take_either(result, second, of_numpy);
    }
    if (!mixes(result, second)) return merge(result, second);
    const Reg is_int = fresh(DType::Int64);
    write_to(step.body, [&] { copy(is_int, integer(result.is_int())); });
    copy(is_int, integer(second.is_int()));
    either = mixed(is_int, result, own_copy(second));
  });
  emit(std::move(step));
  if (either) return *either;
  result.known.reset();
  return result;
}

// Whether one of two numbers may be Python's and one NumPy's, of a dtype that both have.
bool Writer::shares_dtype(const Value& a, const Value& b) {
  return a.is_number() && b.is_number() && a.dtype == b.dtype && has_twin(a.dtype) &&
         (a.box != b.box || a.box == Box::Either);
}

// The truth that a number is NumPy's.
Reg Writer::is_numpys(const Value& v) {
  return v.box == Box::Either ? v.numpy : truth_constant(v.box == Box::NumPy);
}

// Puts a number into the register of another one that shares its dtype. `of_numpy` tells whose the
// one is that is there.
void Writer::take_either(Value& into, const Value& v, Reg of_numpy) {
  into.non_negative &= v.non_negative;
  into.known.reset();
  copy(into.reg, v.reg);
  into.box = Box::Either;
  into.numpy = of_numpy;
}

// Puts a number into the register of another one, which has its type.
void Writer::merge(Value& into, const Value& v) {
  if (!v.is_number() || v.dtype != into.dtype || v.box != into.box || v.box == Box::Either)
    fail("one of two numbers of different types");
  into.non_negative &= v.non_negative;
  into.known.reset();
  copy(into.reg, v.reg);
}

// ---- Comparisons ----

// Each side is computed once, and none behind the first comparison that is false.
Value Writer::compare(const Expr& e) {
  if (const std::optional<bool> known = decided(e))
    return python_number(DType::Bool, truth_constant(*known));
  if (e.ops.size() == 1) {
    const std::vector<Value> sides = operands(e);
    return relation(e.ops[0], sides[0], sides[1]);
  }
  const Value left = value(e.parts[0]);
  const Value right = own_copy(value(e.parts[1]));
  if (is_array(left) || is_array(right)) fail("arrays in a chain of comparisons");
  Value result = relation(e.ops[0], left, right);
  result.reg = own_register(result);
  chain(e, 1, right, result);
  return result;
}

void Writer::chain(const Expr& e, std::size_t at, const Value& left, Value& result) {
  Step step;
  step.kind = Step::Kind::If;
  step.args = {result.reg};
  step.body = written([&] {
    const Value right = own_copy(value(e.parts[at + 1]));
    if (is_array(right)) fail("arrays in a chain of comparisons");
    merge(result, relation(e.ops[at], left, right));
    if (at + 1 < e.ops.size()) chain(e, at + 1, right, result);
  });
  emit(std::move(step));
}

}  // namespace ufuse::numpy_shim::program
