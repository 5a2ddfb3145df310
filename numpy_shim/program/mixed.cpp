// Numbers that are a float or an int of Python's, as `max(0, x)` is: what follows from that?
//
// Beside a float both mean the same, since Python takes the int for a float, which is exact up to
// 2**53. Elsewhere the likely one is meant, a float, which is checked.
#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

// Whether one of two numbers is an int of Python's, and the other one a float or float64.
bool Writer::mixes(const Value& a, const Value& b) {
  const auto is_float64 = [](const Value& v) {
    return v.is_number() && v.dtype == DType::Float64 && v.box != Box::Either;
  };
  return (a.is_int() && is_float64(b)) || (is_float64(a) && b.is_int());
}

// One of two numbers that mix, in registers that nobody else has. `is_int`: an Int64, 0 or 1.
Value Writer::mixed(Reg is_int, const Value& a, const Value& b) {
  Value v;
  v.kind = Value::Kind::Mixed;
  v.reg = is_int;
  v.parts = {a.is_int() ? b : a, a.is_int() ? a : b};
  v.parts[1].known.reset();
  return v;
}

// As a float; exits where there is none for the int.
Value Writer::as_float(const Value& v) {
  Value made = v.parts[0];
  made.reg = fresh(DType::Float64);
  const Reg is_int = cast_to(v.reg, DType::Bool);
  Step step;
  step.kind = Step::Kind::If;
  step.args = {is_int};
  step.body = written(
      [&] { copy(made.reg, primitive(Primitive::ExactFloat, DType::Float64, {v.parts[1].reg})); });
  step.other = written([&] { copy(made.reg, v.parts[0].reg); });
  emit(std::move(step));
  if (made.box == Box::NumPy) {
    made.box = Box::Either;
    made.numpy = compute(Op::LogicalNot, DType::Bool, {is_int});
  }
  return made;
}

Value Writer::likely(const Value& v) {
  if (v.kind != Value::Kind::Mixed) return v;
  guard(compute(Op::Equal, DType::Bool, {v.reg, integer(0)}));
  return v.parts[0];
}

// The operands of an arithmetic operator: two ints would give an int.
void Writer::unmix(Value& a, Value& b) {
  if (a.kind == Value::Kind::Mixed && b.kind == Value::Kind::Mixed) a = likely(a);
  const auto unmixed = [&](const Value& v, const Value& other) {
    if (v.kind != Value::Kind::Mixed) return v;
    const bool is_float = (other.is_number() || is_array(other)) && other.dtype == DType::Float64;
    return is_float ? as_float(v) : likely(v);
  };
  a = unmixed(a, b);
  b = unmixed(b, a);
}

// Those of a comparison.
void Writer::unmix_to_compare(Value& a, Value& b) {
  const auto unmixed = [&](const Value& v, const Value& other) {
    if (v.kind != Value::Kind::Mixed) return v;
    constexpr std::int64_t kSmall = std::int64_t{1} << 32;
    const bool is_small = other.known && -kSmall < *other.known && *other.known < kSmall;
    const bool is_exact = other.is_int() && (v.parts[0].is_python() || is_small);
    const bool is_float = other.is_number() && other.dtype == DType::Float64;
    return is_exact || is_float ? as_float(v) : likely(v);
  };
  if (a.kind == Value::Kind::Mixed && b.kind == Value::Kind::Mixed) a = as_float(a);
  a = unmixed(a, b);
  b = unmixed(b, a);
}

// An expression whose value stands beside another one: a variable may be an int or a float.
Value Writer::operand(const Expr& e) {
  if (e.kind != Expr::Kind::Local) return argument(e);
  const auto variable = static_cast<std::size_t>(e.integer);
  const Value v = env_[variable];
  const bool is_mixed = v.kind == Value::Kind::OneOf && v.parts.size() == 2 &&
                        mixes(v.parts[0], v.parts[1]) && v.parts[0].is_python() &&
                        v.parts[1].is_python();
  if (!is_mixed) return value(e);
  const int at = position_of(static_cast<int>(variable), v.parts[v.parts[0].is_int() ? 0 : 1]);
  const Reg is_int = compute(Op::Equal, DType::Bool, {v.reg, integer(at)});
  return mixed(cast_to(is_int, DType::Int64), v.parts[0], v.parts[1]);
}

// The variable is the one or the other from now on.
void Writer::set_mixed(int variable, const Value& v) {
  Step step;
  step.kind = Step::Kind::If;
  step.args = {cast_to(v.reg, DType::Bool)};
  const Env before = env_;
  step.body = written([&] { set(variable, v.parts[1]); });
  const Env after = std::exchange(env_, before);
  step.other = written([&] { set(variable, v.parts[0]); });
  emit(std::move(step));
  env_ = joined(after, env_);
}

}  // namespace ufuse::numpy_shim::program
