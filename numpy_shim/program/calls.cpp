// Calls: of Python's builtins, of the module math, of ufuncs, of functions whose text is known.
#include <algorithm>
#include <map>
#include <span>

#include "ir/support/error.h"
#include "numpy_shim/program/writer.h"
#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim::program {
namespace {

constexpr std::size_t kMostParameters = 64;  // of a function, a bit for each

// Functions of math that take and give one float.
const std::map<std::string, Primitive>& of_one_float() {
  static const std::map<std::string, Primitive> rows = {
      {"sqrt", Primitive::MathSqrt},       {"exp", Primitive::MathExp},
      {"log", Primitive::MathLog},         {"sin", Primitive::MathSin},
      {"cos", Primitive::MathCos},         {"tan", Primitive::MathTan},
      {"atan", Primitive::MathAtan},       {"asin", Primitive::MathAsin},
      {"acos", Primitive::MathAcos},       {"sinh", Primitive::MathSinh},
      {"cosh", Primitive::MathCosh},       {"tanh", Primitive::MathTanh},
      {"fabs", Primitive::MathFabs},       {"log2", Primitive::MathLog2},
      {"log10", Primitive::MathLog10},     {"log1p", Primitive::MathLog1p},
      {"expm1", Primitive::MathExpm1},     {"exp2", Primitive::MathExp2},
      {"cbrt", Primitive::MathCbrt},       {"asinh", Primitive::MathAsinh},
      {"acosh", Primitive::MathAcosh},     {"atanh", Primitive::MathAtanh},
      {"erf", Primitive::MathErf},         {"erfc", Primitive::MathErfc},
      {"degrees", Primitive::MathDegrees}, {"radians", Primitive::MathRadians},
  };
  return rows;
}

// Those of two floats; below, those that tell something of one.
const std::map<std::string, Primitive>& of_two_floats() {
  static const std::map<std::string, Primitive> rows = {{"atan2", Primitive::MathAtan2},
                                                        {"pow", Primitive::MathPow},
                                                        {"fmod", Primitive::MathFmod},
                                                        {"copysign", Primitive::MathCopysign}};
  return rows;
}
const std::map<std::string, Primitive>& truths_of_a_float() {
  static const std::map<std::string, Primitive> rows = {{"isnan", Primitive::MathIsNan},
                                                        {"isinf", Primitive::MathIsInf},
                                                        {"isfinite", Primitive::MathIsFinite}};
  return rows;
}

// Those that give an integer of a float.
const std::map<std::string, Primitive>& to_integer() {
  static const std::map<std::string, Primitive> rows = {{"floor", Primitive::FloorToInt},
                                                        {"ceil", Primitive::CeilToInt},
                                                        {"trunc", Primitive::ToInt}};
  return rows;
}

}  // namespace

// What stands behind the first argument.
Writer::Arguments Writer::behind_first(Arguments all) {
  all.places.erase(all.places.begin());
  return all;
}

bool Writer::is_builtin(const Expr& e, const std::string& name) {
  if (e.kind != Expr::Kind::Outside) return false;
  const Given given = world_.outside(scope_.function, static_cast<int>(e.integer));
  return given.kind == Given::Kind::Builtin && given.name == name;
}

// NumPy takes a list that is written in a call as it takes a tuple.
Value Writer::argument(const Expr& e) {
  if (e.kind != Expr::Kind::List) return value(e);
  Value v;
  v.kind = Value::Kind::Tuple;
  v.parts = values(e, 0);
  return v;
}

Writer::Arguments Writer::arguments(const Expr& e) {
  Arguments made;
  for (std::size_t i = 1; i < e.parts.size(); ++i) {
    const Expr& part = e.parts[i];
    for (Value& v : made.places) v = before(v, part);
    for (auto& [name, v] : made.keywords) v = before(v, part);
    if (part.kind == Expr::Kind::Keyword)
      made.keywords.emplace(part.name, argument(part.parts[0]));
    else
      made.places.push_back(argument(part));
  }
  return made;
}

Value Writer::call(const Expr& e) {
  if (e.parts[0].kind == Expr::Kind::Attribute) {
    const Value base = value(e.parts[0].parts[0]);
    if (is_array(base)) return method(base, e.parts[0].name, e);
    if (base.kind == Value::Kind::List) return list_method(base, e.parts[0].name, e);
    const bool of_ufunc = base.kind == Value::Kind::Given && base.given.kind == Given::Kind::Ufunc;
    if (of_ufunc && e.parts[0].name == "outer") return outer(*base.given.ufunc, values(e, 1));
    if (base.kind == Value::Kind::Given && base.given.kind == Given::Kind::Generator)
      return drawn(base.given, e.parts[0].name, e);
  }
  const Value called = value(e.parts[0]);
  if (called.kind != Value::Kind::Given) fail("something is called that is no known function");
  const Given& f = called.given;
  switch (f.kind) {
    case Given::Kind::Builtin:
      return builtin(f.name, e);
    case Given::Kind::Math:
      return math(f.name, e);
    case Given::Kind::Ufunc:
      return ufunc(*f.ufunc, e);
    case Given::Kind::NumPy:
      return of_numpy(f.name, e);
    case Given::Kind::DType:
      return cast(f.dtype, e);
    case Given::Kind::Function:
      return inlined(f, e);
    case Given::Kind::Draw:
      return drawn(*f.self, f.name, e);
    default:
      fail("`" + f.name + "` is called");
  }
}

Value Writer::number(const Expr& e) {
  Value v = likely(value(e));
  if (!v.is_number()) fail("a function is called with something else than a number");
  return v;
}

Value Writer::builtin(const std::string& name, const Expr& e) {
  const std::size_t count = e.parts.size() - 1;
  if (name == "min" || name == "max") return extreme(name == "max", e);
  if (name == "isinstance" && count == 2) {
    const bool is = is_instance(value(e.parts[1]), value(e.parts[2]));
    Value v = python_number(DType::Bool, truth_constant(is));
    v.known = is;
    return v;
  }
  if (name == "divmod" || name == "pow") return of_two_numbers(name, values(e, 1));
  if (name == "complex" && count == 2) {
    std::vector<Reg> parts;
    for (std::size_t i = 1; i <= 2; ++i) {
      const Value part = number(e.parts[i]);
      if (is_in(part.dtype, ir::kComplex)) fail("a complex number of complex ones");
      parts.push_back(cast_to(part.reg, DType::Float64));
    }
    return python_number(DType::Complex128,
                         compute_primitive(Primitive::ComplexOf, DType::Complex128, parts));
  }
  if (count != 1) fail("`" + name + "` is called with " + std::to_string(count) + " arguments");
  if (name == "len") {
    const Value v = value(e.parts[1]);
    if (v.kind == Value::Kind::Tuple) return python_int(static_cast<std::int64_t>(v.parts.size()));
    if (v.kind == Value::Kind::List) return list_length(v);
    if (v.kind != Value::Kind::Array || v.rank == 0)
      fail("the length of something else than an array, a tuple or a list of numbers");
    Value n = python_number(DType::Int64, length(v, 0));
    n.non_negative = true;
    return n;
  }
  if (name == "abs") {
    const Value x = value(e.parts[1]);
    if (is_array(x)) return elementwise(world_.ufunc("absolute"), {x});
    if (!x.is_number()) fail("abs() of something else than a number");
    return absolute(x);
  }
  const Value v = number(e.parts[1]);
  if (is_in(v.dtype, ir::kComplex) && name != "complex" && name != "bool")
    fail("a complex number is made real");
  if (name == "round") {
    if (!v.is_python()) fail("a NumPy scalar is rounded");
    return is_in(v.dtype, ir::kFloat)
               ? python_number(DType::Int64,
                               primitive(Primitive::RoundToInt, DType::Int64, {v.reg}))
               : python_number(DType::Int64, cast_to(v.reg, DType::Int64));
  }
  if (name == "float") return python_number(DType::Float64, cast_to(v.reg, DType::Float64));
  if (name == "complex") return python_number(DType::Complex128, cast_to(v.reg, DType::Complex128));
  if (name == "bool") return python_number(DType::Bool, truth_of(v));
  if (name == "int") {
    if (v.dtype == DType::UInt64) fail("int() of uint64");
    Value n = python_number(DType::Int64, kNone);
    n.non_negative = v.non_negative || v.dtype == DType::Bool;
    n.reg = is_in(v.dtype, ir::kFloat)
                ? primitive(Primitive::ToInt, DType::Int64, {cast_to(v.reg, DType::Float64)})
                : cast_to(v.reg, DType::Int64);
    return n;
  }
  fail("`" + name + "` is called");
}

Value Writer::of_two_numbers(const std::string& name, const std::vector<Value>& given) {
  if (given.size() != 2 || !given[0].is_python() || !given[1].is_python())
    fail("`" + name + "` is called with something else than two numbers of Python's");
  if (name == "pow") return binary(Operator::Power, given[0], given[1]);
  Value both;
  both.kind = Value::Kind::Tuple;
  both.parts = {binary(Operator::FloorDivide, given[0], given[1]),
                binary(Operator::Remainder, given[0], given[1])};
  return both;
}

// Whether a value is of a class, or of one of several.
bool Writer::is_instance(const Value& v, const Value& type) const {
  if (type.kind == Value::Kind::Tuple)
    return std::ranges::any_of(type.parts, [&](const Value& each) { return is_instance(v, each); });
  const Given& given = type.given;
  const bool is_builtin =
      given.kind == Given::Kind::Builtin && (given.name == "int" || given.name == "float" ||
                                             given.name == "bool" || given.name == "complex");
  const bool is_value =
      v.kind != Value::Kind::Given && v.kind != Value::Kind::OneOf && v.kind != Value::Kind::Mixed;
  if (type.kind != Value::Kind::Given || !(is_builtin || given.kind == Given::Kind::DType) ||
      !is_value || v.box == Box::Either)
    fail("`isinstance` of a class that is no number's");
  if (!v.is_number()) return false;
  const bool is_numpy = v.box == Box::NumPy;
  if (!is_builtin) return is_numpy && v.dtype == given.dtype;
  if (v.dtype == DType::Float64) return given.name == "float";
  if (v.dtype == DType::Complex128) return given.name == "complex";
  if (is_numpy) return false;
  return given.name == "int" || (given.name == "bool" && v.dtype == DType::Bool);
}

// The first of equal ones; of a NaN whatever the comparisons say.
Value Writer::extreme(bool largest, const Expr& e) {
  if (e.parts.size() < 3) fail("the extreme of a collection");
  Value best = number(e.parts[1]);
  for (std::size_t i = 2; i < e.parts.size(); ++i) {
    const Value next = number(e.parts[i]);
    if (e.parts.size() == 3 && mixes(best, next)) return mixed_extreme(largest, best, next);
    const bool is_either = shares_dtype(best, next);
    if (next.dtype != best.dtype || (next.box != best.box && !is_either))
      fail("the extreme of numbers of different types");
    if (is_in(best.dtype, ir::kComplex)) fail("complex numbers are put in order");
    const Primitive p = largest ? Primitive::MaximumFirst : Primitive::MinimumFirst;
    if (is_either) {
      const Op op = largest ? Op::Greater : Op::Less;
      const Reg is_next = compute(op, DType::Bool, {next.reg, best.reg});
      const Reg is_best = compute(Op::LogicalNot, DType::Bool, {is_next});
      const Reg either =
          compute(Op::LogicalOr, DType::Bool,
                  {compute(Op::LogicalAnd, DType::Bool, {is_next, is_numpys(next)}),
                   compute(Op::LogicalAnd, DType::Bool, {is_best, is_numpys(best)})});
      best.box = Box::Either;
      best.numpy = either;
    }
    best.reg = compute_primitive(p, best.dtype, {best.reg, next.reg});
    best.non_negative =
        largest ? best.non_negative || next.non_negative : best.non_negative && next.non_negative;
    best.known.reset();
  }
  return best;
}

// Of a float and an int, as floats: Python compares them exactly.
Value Writer::mixed_extreme(bool largest, const Value& first, const Value& second) {
  const auto real = [&](const Value& v) {
    return v.is_int() ? primitive(Primitive::ExactFloat, DType::Float64, {v.reg}) : v.reg;
  };
  const Op op = largest ? Op::Greater : Op::Less;
  const Reg is_second = compute(op, DType::Bool, {real(second), real(first)});
  const Reg is_int =
      second.is_int() ? is_second : compute(Op::LogicalNot, DType::Bool, {is_second});
  return mixed(cast_to(is_int, DType::Int64), own_copy(first), own_copy(second));
}

Value Writer::math(const std::string& name, const Expr& e) {
  std::vector<Value> given = values(e, 1);
  for (Value& v : given) {
    if (v.kind == Value::Kind::Mixed) v = as_float(v);
    if (!v.is_number()) fail("a function is called with something else than a number");
    if (is_in(v.dtype, ir::kComplex)) fail("a complex number is made real");
  }
  const auto is_of_integers = [&](std::size_t count) {
    return given.size() == count && std::ranges::all_of(given, &Value::is_int);
  };
  if (name == "gcd" && is_of_integers(2))
    return python_number(DType::Int64,
                         primitive(Primitive::MathGcd, DType::Int64, {given[0].reg, given[1].reg}));
  if (name == "isqrt" && is_of_integers(1))
    return python_number(DType::Int64,
                         primitive(Primitive::MathIsqrt, DType::Int64, {given[0].reg}));
  if (const auto row = of_two_floats().find(name);
      row != of_two_floats().end() && given.size() == 2)
    return math_float(row->second, given);
  if (given.size() != 1) fail("`math." + name + "` is called with several arguments");
  Value v = given[0];
  if (name.starts_with("log") && name != "log1p" && is_in(v.dtype, ir::kInteger)) {
    // Of integers beyond 2**53 Python takes the logarithm in another way.
    v = python_number(DType::Float64, primitive(Primitive::ExactFloat, DType::Float64,
                                                {cast_to(v.reg, DType::Int64)}));
  }
  if (const auto row = to_integer().find(name);
      row != to_integer().end() && is_in(v.dtype, ir::kFloat)) {
    if (name == "trunc" && v.dtype != DType::Float64) fail("a scalar of NumPy's is truncated");
    return python_number(DType::Int64,
                         primitive(row->second, DType::Int64, {cast_to(v.reg, DType::Float64)}));
  }
  if (const auto row = truths_of_a_float().find(name); row != truths_of_a_float().end())
    return python_number(
        DType::Bool, compute_primitive(row->second, DType::Bool, {cast_to(v.reg, DType::Float64)}));
  const auto row = of_one_float().find(name);
  if (row == of_one_float().end()) fail("`math." + name + "` is called");
  return math_float(row->second, {v});
}

// What a function of math gives of these numbers as floats.
Value Writer::math_float(Primitive p, const std::vector<Value>& given) {
  std::vector<Reg> args;
  for (const Value& v : given) args.push_back(cast_to(v.reg, DType::Float64));
  return python_number(DType::Float64, ir::program::primitive_info(p).leaves
                                           ? primitive(p, DType::Float64, args)
                                           : compute_primitive(p, DType::Float64, args));
}

// Where a ufunc is told to put its result, by place or by keyword.
std::optional<Value> Writer::out_of(const Ufunc& f, Arguments& given) const {
  std::optional<Value> out;
  if (given.places.size() == static_cast<std::size_t>(f.nin) + 1) {
    // NumPy warns of a third argument, from 2.4 on.
    if (f.name == "maximum" || f.name == "minimum") fail("`" + f.name + "` of three arguments");
    out = given.places.back();
    given.places.pop_back();
  } else if (const auto named = given.keywords.find("out"); named != given.keywords.end()) {
    out = named->second;
    given.keywords.erase(named);
    if (out->kind == Value::Kind::Tuple && out->parts.size() == 1) out = Value(out->parts[0]);
  }
  if (out && out->kind == Value::Kind::Nothing) out.reset();
  return out;
}

// A ufunc of numbers gives a scalar of NumPy's.
Value Writer::ufunc(const Ufunc& f, const Expr& e) {
  const bool is_whole = whole_ == &e;
  Arguments all = arguments(e);
  const std::optional<Value> out = out_of(f, all);
  std::vector<Value>& given = all.places;
  if (f.nout != 1 || given.size() != static_cast<std::size_t>(f.nin) || !all.keywords.empty())
    fail("`" + f.name + "` is called with other arguments than its operands and `out`");
  if (out && !is_whole) fail("`out` in a call that is part of a statement");
  for (Value& v : given) v = likely(v);
  if (out) return computed_into(f, std::move(given), *out);
  return std::ranges::any_of(given, is_array) ? elementwise(f, std::move(given))
                                              : of_numbers(f, std::move(given));
}

Value Writer::of_numbers(const Ufunc& f, std::vector<Value> given) {
  std::vector<Operand> operands;
  for (Value& v : given) {
    if (!v.is_number()) fail("a function is called with something else than a number");
    settle(v);
    operands.push_back(operand_of(v));
  }
  Resolved resolved;
  try {
    resolved = resolve(f, operands, {});
  } catch (const Unsupported& error) {
    fail("`" + f.name + "`: " + error.what());
  }
  std::vector<Reg> args;
  for (std::size_t i = 0; i < given.size(); ++i) args.push_back(as(given[i], resolved.inputs[i]));
  for (DType dtype : {resolved.inputs[0], resolved.outputs[0]})
    if (dtype == DType::Float16 || ir::real_part(dtype) == DType::LongDouble)
      fail("a scalar of " + std::string(ir::info(dtype).name));
  const DType dtype = resolved.outputs[0];
  if (resolved.op) {
    const Reg r = compute(*resolved.op, dtype, args);
    if (ir::may_raise(*resolved.op, resolved.inputs[0], dtype)) finite(r, args);
    return numpy_number(dtype, r);
  }
  const UfuncLoop& loop = f.loops[resolved.loop];
  ir::LoopEntry entry;
  entry.ufunc = f.name;
  entry.inputs.assign(resolved.inputs.begin(), resolved.inputs.end());
  entry.outputs.assign(resolved.outputs.begin(), resolved.outputs.end());
  entry.loop = loop.loop;
  entry.data = loop.data;
  Step step;
  step.kind = Step::Kind::Loop;
  step.row = world_.loops().add(std::move(entry));
  step.args = args;
  step.result = fresh(dtype);
  step.exit = exit();
  return numpy_number(dtype, emit(std::move(step)).result);
}

// np.clip(x, least, most): a ufunc that has no name of its own in NumPy.
Value Writer::clipped(std::vector<Value> given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    Value& v = given[i] = likely(given[i]);
    if (i == 0 && is_array(v)) continue;
    if (!v.is_number() || is_in(v.dtype, ir::kComplex) || v.box == Box::Either)
      fail("`np.clip` with something else than real numbers");
    // Older NumPys take a NaN for no bound.
    if (i > 0 && is_in(v.dtype, ir::kFloat)) guard(compute(Op::Equal, DType::Bool, {v.reg, v.reg}));
  }
  const Ufunc& f = world_.ufunc("clip");
  if (is_array(given[0])) return elementwise(f, std::move(given));
  given[0].box = Box::NumPy;  // it becomes an array
  return of_numbers(f, std::move(given));
}

// A function of NumPy's that is no ufunc.
Value Writer::of_numpy(const std::string& name, const Expr& e) {
  Arguments all = arguments(e);
  const std::vector<Value>& given = all.places;
  const bool is_new = name == "zeros" || name == "ones" || name == "empty";
  // What may stand in the second place as well.
  const bool is_array_of = name == "array" || name == "asarray";
  const bool has_axis = name == "concatenate" || name == "roll";
  const char* second = is_new || is_array_of ? "dtype" : has_axis ? "axis" : "";
  if (is_reduction(name) && !given.empty()) return reduction(name, given[0], behind_first(all));
  if (name == "norm" && !given.empty()) return norm(given[0], behind_first(all));
  if (is_position(name) && !given.empty()) return positions(name, given[0], behind_first(all));
  if (const auto named = all.keywords.find(second);
      given.size() == (name == "roll" ? 2U : 1U) && named != all.keywords.end()) {
    all.places.push_back(named->second);
    all.keywords.erase(named);
  }
  if (!all.keywords.empty())
    fail("`np." + name + "` is called with the keyword `" + all.keywords.begin()->first + "`");
  if (name == "outer" && given.size() == 2 && given[0].rank == 1 && given[1].rank == 1)
    return outer(world_.ufunc("multiply"), given);
  if (name == "dot" && given.size() == 2) return product(name, given[0], given[1]);
  if (name == "flip" && given.size() == 1) return flipped(given[0]);
  if (name == "clip" && given.size() == 3) return clipped(given);
  if (name == "roll" && given.size() >= 2) return rolled(given);
  if (name == "arange" && !given.empty()) return counted_up(given);
  if (name == "cumsum" && given.size() == 1) return summed_up(given[0]);
  if (name == "diff" && given.size() == 1) return differences(given[0]);
  if (name == "where" && given.size() == 3) return chosen(given[0], given[1], given[2]);
  if (name == "copy" && given.size() == 1) return array_of("array", given);
  if (name == "full" && given.size() == 2) return full(given[0], given[1]);
  if (name == "concatenate" || name == "hstack" || name == "vstack") return stacked(name, given);
  if (is_array_of) return array_of(name, given);
  if (name == "triu" || name == "tril") return triangle(name == "triu", given);
  const bool has_dtype = given.size() == 2;
  if (is_new && (given.size() == 1 || has_dtype)) {
    const DType dtype = has_dtype ? dtype_given(given[1]) : DType::Float64;
    return filled(dtype, shape(given[0]), name == "ones");
  }
  const bool is_like = name == "zeros_like" || name == "ones_like" || name == "empty_like";
  if (is_like && given.size() == 1 && given[0].kind == Value::Kind::Array && given[0].rank > 0) {
    in_rows(given[0].array);
    std::vector<Reg> lengths;
    for (int axis = 0; axis < given[0].rank; ++axis) lengths.push_back(length(given[0], axis));
    return filled(given[0].dtype, lengths, name == "ones_like");
  }
  fail("`np." + name + "` is called with " + std::to_string(given.size()) + " arguments");
}

// The lengths that a call of np.zeros names.
std::vector<Reg> Writer::shape(const Value& v) {
  std::vector<Value> parts = v.parts;
  if (v.kind != Value::Kind::Tuple) parts = {v};
  std::vector<Reg> lengths;
  for (const Value& part : parts) {
    if (!part.is_number() || !is_in(part.dtype, ir::kInteger) || part.dtype == DType::UInt64)
      fail("a shape of something else than integers");
    lengths.push_back(cast_to(part.reg, DType::Int64));
    if (!part.non_negative)
      guard(compute(Op::GreaterEqual, DType::Bool, {lengths.back(), integer(0)}));
  }
  return lengths;
}

DType Writer::dtype_given(const Value& v) {
  if (v.kind == Value::Kind::Given && v.given.kind == Given::Kind::DType &&
      v.given.dtype != DType::Bool)
    return v.given.dtype;
  const std::string& name = v.given.name;
  if (v.kind == Value::Kind::Given && v.given.kind == Given::Kind::Builtin) {
    if (name == "float") return DType::Float64;
    if (name == "int") return DType::Int64;
    if (name == "complex") return DType::Complex128;
  }
  fail("a new array of such a dtype");
}

Value Writer::method(const Value& array, const std::string& name, const Expr& e) {
  const std::size_t count = e.parts.size() - 1;
  if (name == "copy" && count == 0) return copied(array);
  if (name == "clip" && count == 2) {
    const Value base = before(before(array, e.parts[1]), e.parts[2]);
    std::vector<Value> given = values(e, 1);
    given.insert(given.begin(), base);
    return clipped(given);
  }
  if (is_reduction(name) || is_position(name)) {
    Value base = array;
    for (std::size_t i = 1; i < e.parts.size(); ++i) base = before(base, e.parts[i]);
    const Arguments given = arguments(e);
    return is_position(name) ? positions(name, base, given) : reduction(name, base, given);
  }
  if (name == "dot" && count == 1) {
    const Value left = before(array, e.parts[1]);
    return product("dot", left, value(e.parts[1]));
  }
  fail("`" + name + "` of an array");
}

// np.float64(x) and the like.
Value Writer::cast(DType dtype, const Expr& e) {
  if (e.parts.size() != 2) fail("a scalar of NumPy's is made of something else than a number");
  if (dtype == DType::Float16 || ir::real_part(dtype) == DType::LongDouble)
    fail("a scalar of " + std::string(ir::info(dtype).name));
  return numpy_number(dtype, to_store(number(e.parts[1]), dtype));
}

// ---- Functions whose text is known ----

// The arguments of a call in the order of the function's parameters.
std::vector<Value> Writer::bound(const Given& called, const Expr& e) {
  const Function& function = *called.function;
  std::vector<std::optional<Value>> given(function.parameters);
  if (called.self && given.empty()) fail("a method is called that takes nothing");
  if (called.self) given[0] = outside(*called.self, called.self->name);
  const std::size_t first = called.self ? 0 : 1;  // the part that is the first parameter
  for (std::size_t i = 1; i < e.parts.size(); ++i) {
    const Expr& part = e.parts[i];
    std::size_t place = i - first;
    if (part.kind == Expr::Kind::Keyword) {
      const auto names = std::span(function.variables).first(function.parameters);
      place = static_cast<std::size_t>(std::ranges::find(names, part.name) - names.begin());
      if (place < function.unnamed) fail("a parameter is given by name that cannot be");
    }
    if (place >= given.size() || given[place]) fail("a function is called with wrong arguments");
    given[place] = own_copy(value(part.kind == Expr::Kind::Keyword ? part.parts[0] : part));
  }
  const std::size_t needed = function.parameters - function.defaults.size();
  std::vector<Value> made;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i] && i < needed) fail("a function is called with too few arguments");
    if (!given[i])
      given[i] = own_copy(outside(function.defaults[i - needed], function.variables[i]));
    made.push_back(*given[i]);
  }
  return made;
}

// The function's text in the place of the call. What cannot be done in it is done by Python from
// the beginning of the loop's own statement with the call: what it has changed of the arguments is
// put back then.
Value Writer::inlined(const Given& called, const Expr& e) {
  const std::shared_ptr<const Function>& function = called.function;
  const auto is_it = [&](const Scope& scope) { return scope.function->code == function->code; };
  if (std::ranges::any_of(inlining_, is_it)) fail("a function calls itself");
  const bool keeps = std::exchange(keeps_, true);  // the function may keep its arguments
  std::vector<Value> arguments = bound(called, e);
  keeps_ = false;
  const int instance =
      marks_.instances
          .try_emplace({&e, scope_.instance}, static_cast<int>(marks_.instances.size()) + 1)
          .first->second;
  const bool first = scope_.instance == 0;
  if (first) {
    save_arguments(instance, arguments);
    caller_ = env_;
  }
  const Scope scope = std::exchange(
      scope_, Scope{instance, function.get(), &function->variables, &function->outside});
  Env outer = std::exchange(env_, Env(function->variables.size()));
  auto jumps = std::exchange(jumps_, {});
  auto returns = std::exchange(returns_, Returns{});
  inlining_.push_back(scope_);
  for (std::size_t i = 0; i < arguments.size(); ++i) set(static_cast<int>(i), arguments[i]);
  Step block;
  block.kind = Step::Kind::Block;
  returns_->depth = ++nesting_;
  bool ends = false;
  block.body = written([&] {
    ends = statements(function->body);
    if (!ends) return;
    Value nothing;
    nothing.kind = Value::Kind::Nothing;
    put_result(nothing);
  });
  --nesting_;
  emit(std::move(block));
  if (!returns_->result) fail("a function that it calls never returns");
  Value result = *returns_->result;
  inlining_.pop_back();
  returns_ = std::move(returns);
  jumps_ = std::move(jumps);
  env_ = std::move(outer);
  scope_ = scope;
  keeps_ = keeps;
  if (first) set_origin(result, 0, 0);
  return result;
}

// What the function at hand gives back, in registers that all its returns share.
void Writer::put_result(const Value& v) {
  std::optional<Value>& result = returns_->result;
  if (!result) result = place_like(v);
  put(*result, v);
}

Value Writer::place_like(const Value& v) {
  Value place = v;
  switch (v.kind) {
    case Value::Kind::Number:
      place.reg = fresh(v.dtype);
      place.known.reset();
      break;
    case Value::Kind::Array:
      place.array = array_register(-1, v.dtype, v.rank);
      break;
    case Value::Kind::Mixed:
      place.reg = fresh(v.dtype);
      [[fallthrough]];
    case Value::Kind::Tuple:
      for (Value& part : place.parts) part = place_like(part);
      break;
    case Value::Kind::List:
      place.reg = fresh(v.dtype);
      break;
    case Value::Kind::Nothing:
      break;
    default:
      fail("a function that it calls gives something else than numbers and arrays");
  }
  return place;
}

void Writer::put(Value& place, const Value& v) {
  const bool same_tag = place.box != Box::Either || place.numpy == v.numpy;
  const bool is_list = v.kind == Value::Kind::List && place.kind == v.kind;
  if (place.kind != v.kind || place.dtype != v.dtype || place.box != v.box || !same_tag ||
      place.rank != v.rank || place.parts.size() != v.parts.size() ||
      (is_list && !holds_the_same(place, v)))
    fail("a function that it calls gives values of several types");
  place.non_negative &= v.non_negative;
  place.writeable &= v.writeable;
  place.is_new &= v.is_new;
  place.arguments |= v.arguments;
  place.outside |= v.outside;
  if (v.kind == Value::Kind::Number || v.kind == Value::Kind::Mixed || is_list)
    copy(place.reg, v.reg);
  if (is_list) return;
  if (v.kind == Value::Kind::Array) copy_array(place.array, v.array);
  for (std::size_t i = 0; i < v.parts.size(); ++i) put(place.parts[i], v.parts[i]);
}

// ---- Functions that change arrays ----

void Writer::set_origin(Value& v, std::uint64_t arguments, std::uint64_t outside) {
  v.arguments = arguments;
  v.outside = outside;
  for (Value& part : v.parts) set_origin(part, arguments, outside);
}

// Before a call in the loop's own text: copies of those arrays that the function changes. All are
// made before the first is changed, since they may share memory.
void Writer::save_arguments(int instance, std::vector<Value>& arguments) {
  if (arguments.size() > kMostParameters) fail("a function of so many parameters");
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    set_origin(arguments[i], std::uint64_t{1} << i, 0);
    if (marks_.changed.contains({instance, i})) save(arguments[i]);
  }
  for (const auto& [call, given] : marks_.changed_outside)
    if (call.first == instance) save(own_copy(this->outside(given, given.name)));
}

void Writer::save(const Value& v) {
  for (const Value& part : v.parts) save(part);
  if (v.kind != Value::Kind::Array || !v.writeable) return;
  if (v.rank == 0) fail("a function that it calls changes an array without axes");
  Step step;
  step.kind = Step::Kind::Save;
  step.array = v.array;
  step.exit = exit();
  program_.computes_arrays = true;
  emit(std::move(step));
  saved_.push_back(v.array);
}

// A statement of the loop's own text has been done.
void Writer::release() {
  if (scope_.instance != 0) return;
  if (std::exchange(notes_items_, false)) emit(list_step(Step::Kind::KeepItems, {}));
  if (saved_.empty()) return;
  Step step;
  step.kind = Step::Kind::Release;
  step.arrays = std::exchange(saved_, {});
  emit(std::move(step));
}

// An array is written: where a function does it, the calls on the way to it are known to change
// something, and the outermost of them to change its arguments.
void Writer::mark_changed(const Value& array) {
  if (inlining_.empty()) return;
  if ((array.outside & kElsewhere) != 0)
    fail("a function that it calls changes an array that it has not been given");
  bool is_known = true;
  for (const Scope& scope : inlining_) is_known &= !marks_.changing.insert(scope.instance).second;
  for (std::size_t i = 0; i < kMostParameters; ++i)
    if ((array.arguments >> i & 1) != 0)
      is_known &= !marks_.changed.insert({inlining_[0].instance, i}).second;
  for (std::size_t i = 0; i < outside_.size(); ++i)
    if ((array.outside >> i & 1) != 0)
      is_known &= !marks_.changed_outside
                       .try_emplace({inlining_[0].instance, outside_[i].object}, outside_[i])
                       .second;
  if (!is_known) throw Restart();
}

// Whether a function that an expression calls changes arrays.
bool Writer::may_change(const Expr& e) const {
  if (e.kind == Expr::Kind::Call) {
    const auto call = marks_.instances.find({&e, scope_.instance});
    if (call != marks_.instances.end() && marks_.changing.contains(call->second)) return true;
  }
  return std::ranges::any_of(e.parts, [&](const Expr& part) { return may_change(part); });
}

}  // namespace ufuse::numpy_shim::program
