// Operators: what do they mean for Python's numbers and for NumPy's scalars?
//
// Python's rules are those of its int, float and complex, NumPy's those of its scalar types, with
// NEP 50's promotion or the one before. Where either raises, warns or needs a larger integer the
// program exits.
#include <array>
#include <bit>
#include <limits>

#include "ir/support/error.h"
#include "numpy_shim/program/writer.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim::program {
namespace {

bool is_integer(DType t) { return is_in(t, ir::kInteger); }
bool is_float(DType t) { return t == DType::Float32 || t == DType::Float64; }
bool is_complex(DType t) { return t == DType::Complex64 || t == DType::Complex128; }

bool is_bitwise(Operator op) {
  return op == Operator::BitAnd || op == Operator::BitOr || op == Operator::BitXor;
}
Op bitwise(Operator op) {
  return op == Operator::BitAnd ? Op::BitAnd : op == Operator::BitOr ? Op::BitOr : Op::BitXor;
}

}  // namespace

WeakScalar weak_of(const Value& v) {
  WeakScalar weak;
  weak.kind = v.dtype == DType::Int64     ? WeakScalar::Kind::Int
              : v.dtype == DType::Float64 ? WeakScalar::Kind::Float
                                          : WeakScalar::Kind::Complex;
  return weak;
}

// ---- Numbers ----

Value Writer::python_number(DType dtype, Reg reg) {
  Value v;
  v.kind = Value::Kind::Number;
  v.dtype = dtype;
  v.reg = reg;
  return v;
}
Value Writer::numpy_number(DType dtype, Reg reg) {
  Value v = python_number(dtype, reg);
  v.box = Box::NumPy;
  v.non_negative = is_in(dtype, ir::kUInt);
  return v;
}
Value Writer::python_int(std::int64_t value) {
  Value v = python_number(DType::Int64, integer(value));
  v.known = value;
  v.non_negative = value >= 0;
  return v;
}

Value Writer::python_float(double value) {
  const Reg reg = constant(DType::Float64, {{std::bit_cast<std::uint64_t>(value)}});
  known_floats_.emplace(reg, value);
  return python_number(DType::Float64, reg);
}

// The value of a number of Python's that is written in the text.
std::optional<double> Writer::known_float(const Value& v) const {
  if (v.is_int() && v.known) return static_cast<double>(*v.known);
  const auto known = known_floats_.find(v.reg);
  if (!v.is_python() || known == known_floats_.end()) return std::nullopt;
  return known->second;
}

void Writer::take_box(Value& result, const Value& a, const Value& b) {
  if (a.box == Box::NumPy || b.box == Box::NumPy) {
    result.box = Box::NumPy;
  } else if (a.box == Box::Python && b.box == Box::Python) {
    result.box = Box::Python;
  } else {
    result.box = Box::Either;
    result.numpy = a.box == Box::Python   ? b.numpy
                   : b.box == Box::Python ? a.numpy
                                          : compute(Op::LogicalOr, DType::Bool, {a.numpy, b.numpy});
  }
}

// Python's bool as an int.
Value Writer::widened(const Value& v) {
  if (v.dtype != DType::Bool || v.box != Box::Python) return v;
  Value wide = python_number(DType::Int64, cast_to(v.reg, DType::Int64));
  wide.known = v.known;
  wide.non_negative = true;
  return wide;
}

// The dtype of a result of NumPy's scalars: Python's numbers have none of their own.
DType Writer::common(const Value& a, const Value& b) const {
  std::array<Operand, 2> operands;
  for (std::size_t i = 0; i < 2; ++i) {
    const Value& v = i == 0 ? a : b;
    operands[i].layout.dtype = v.dtype;
    if (v.box == Box::Python && !world_.version.promotes_by_value()) operands[i].weak = weak_of(v);
  }
  return result_type(operands);
}

// What may be Python's or NumPy's number has to be NumPy's where that makes a difference.
void Writer::settle(Value& v) {
  if (v.box != Box::Either) return;
  guard(v.numpy);
  v.box = Box::NumPy;
}

// A number as an operand of NumPy's in this dtype.
Reg Writer::as(const Value& v, DType dtype) {
  if (v.dtype == dtype) return v.reg;
  if (v.dtype == DType::Bool || v.box != Box::Python || world_.version.promotes_by_value())
    return cast_to(v.reg, dtype);
  if (is_integer(dtype) && v.dtype == DType::Int64)
    return primitive(Primitive::Fits, dtype, {v.reg});
  // By way of a double, as NumPy converts Python's numbers.
  const DType wide = is_complex(v.dtype) ? DType::Complex128 : DType::Float64;
  const Reg exact = cast_to(v.reg, wide);
  const Reg narrow = cast_to(exact, dtype);
  if (ir::size_of(ir::real_part(dtype)) < ir::size_of(DType::Float64) && v.dtype != DType::Int64)
    finite(narrow, {exact});
  return narrow;
}

// ---- Binary operators ----

// A complex number of Python's on the left takes a float64, which is a float of Python's, for one
// of its own.
void Writer::as_float_beside_complex(const Value& left, Value& right) {
  if (!is_complex(left.dtype) || right.dtype != DType::Float64 || right.box == Box::Python) return;
  if (left.box == Box::Either) fail("a complex number of Python's or of NumPy's beside a float64");
  if (left.box == Box::Python) right.box = Box::Python;
}

Value Writer::binary(Operator op, Value left, Value right) {
  unmix(left, right);
  if (is_array(left) || is_array(right)) return array_operator(op, {left, right});
  if (op == Operator::MatrixMultiply) fail("a matrix product of numbers");
  for (const Value* v : {&left, &right}) {
    if (!v->is_number()) fail("an operation on something else than numbers");
  }
  Value a = widened(left), b = widened(right);
  as_float_beside_complex(a, b);
  const bool of_python = a.box == Box::Python && b.box == Box::Python;
  if (of_python && left.dtype == DType::Bool && right.dtype == DType::Bool && is_bitwise(op))
    return python_number(DType::Bool, compute(bitwise(op), DType::Bool, {left.reg, right.reg}));
  if (of_python) return python_binary(op, a, b);
  if ((a.box == Box::Either || b.box == Box::Either) && a.box != b.box) {
    // Beside a scalar of NumPy's, Python's number and NumPy's may give other dtypes.
    Value as_python = a.box == Box::Either ? a : b, as_numpy = as_python;
    as_python.box = Box::Python;
    as_numpy.box = Box::NumPy;
    const Value& other = a.box == Box::Either ? b : a;
    if (other.box == Box::NumPy && common(as_python, other) != common(as_numpy, other)) {
      settle(a);
      settle(b);
    }
  }
  return numpy_binary(op, a, b);
}

Value Writer::python_binary(Operator op, const Value& a, const Value& b) {
  if (a.dtype == DType::Int64 && b.dtype == DType::Int64) return integer_binary(op, a, b);
  const DType dtype =
      is_complex(a.dtype) || is_complex(b.dtype) ? DType::Complex128 : DType::Float64;
  if (world_.combines_by_parts && is_complex(a.dtype) != is_complex(b.dtype))
    fail("a complex number beside another one");
  const Reg x = cast_to(a.reg, dtype), y = cast_to(b.reg, dtype);
  if (dtype == DType::Complex128) return python_number(dtype, complex_binary(op, x, y, dtype));
  if (is_bitwise(op) || op == Operator::LeftShift || op == Operator::RightShift)
    fail("bits of a float");
  return python_number(dtype, float_binary(op, x, y, dtype, Box::Python));
}

Value Writer::numpy_binary(Operator op, const Value& a, const Value& b) {
  DType dtype = common(a, b);
  if (dtype == DType::Float16 || ir::real_part(dtype) == DType::LongDouble)
    fail("a scalar of " + std::string(ir::info(dtype).name));
  Value result;
  if (dtype == DType::Bool) {
    if (!is_bitwise(op)) fail("arithmetic with truths");
    result = python_number(dtype, compute(bitwise(op), dtype, {a.reg, b.reg}));
  } else if (is_integer(dtype) && op != Operator::Divide) {
    if (a.dtype == DType::Bool || b.dtype == DType::Bool) fail("arithmetic with truths");
    Value x = a, y = b;
    x.reg = as(a, dtype);
    y.reg = as(b, dtype);
    x.dtype = y.dtype = dtype;
    take_box(result, a, b);
    x.box = y.box = result.box;
    x.numpy = y.numpy = result.numpy;
    return integer_binary(op, x, y);
  } else {
    if (is_integer(dtype)) dtype = DType::Float64;
    const Reg x = as(a, dtype), y = as(b, dtype);
    take_box(result, a, b);
    const Reg made = is_complex(dtype) ? complex_binary(op, x, y, dtype)
                                       : float_binary(op, x, y, dtype, result.box);
    const Value box = result;
    result = python_number(dtype, made);
    result.box = box.box;
    result.numpy = box.numpy;
    return result;
  }
  const DType kept = result.dtype;
  const Reg reg = result.reg;
  take_box(result, a, b);
  result.dtype = kept;
  result.reg = reg;
  return result;
}

// Both of one dtype and box.
Value Writer::integer_binary(Operator op, const Value& a, const Value& b) {
  const bool of_numpy = a.box != Box::Python;
  const DType dtype = a.dtype;
  Value v = a;
  v.known.reset();
  v.non_negative = is_in(dtype, ir::kUInt);
  const bool both = a.non_negative && b.non_negative;
  const auto made = [&](Primitive p) { v.reg = primitive(p, dtype, {a.reg, b.reg}); };
  switch (op) {
    case Operator::Add:
      made(Primitive::AddChecked);
      v.non_negative |= both;
      break;
    case Operator::Subtract:
      made(Primitive::SubtractChecked);
      break;
    case Operator::Multiply:
      made(Primitive::MultiplyChecked);
      v.non_negative |= both || a.reg == b.reg;
      break;
    case Operator::FloorDivide:
      made(Primitive::FloorDivide);
      v.non_negative |= both;
      break;
    case Operator::Remainder:
      made(Primitive::Remainder);
      v.non_negative |= b.non_negative;
      break;
    case Operator::Power:
      if (of_numpy) fail("an integer power of a NumPy scalar");
      made(Primitive::PowerInt);
      v.non_negative |= a.non_negative;
      break;
    case Operator::Divide:
      if (of_numpy) throw InternalError("a quotient in an integer dtype");
      return python_number(DType::Float64,
                           primitive(Primitive::TrueDivide, DType::Float64, {a.reg, b.reg}));
    case Operator::LeftShift:
      if (a.box == Box::Either) fail("a shift of a number that may be Python's or NumPy's");
      if (of_numpy)
        v.reg = compute(Op::LeftShift, dtype, {a.reg, b.reg});
      else
        made(Primitive::ShiftLeft);
      v.non_negative |= both && !of_numpy;
      break;
    case Operator::RightShift:
      if (a.box == Box::Either) fail("a shift of a number that may be Python's or NumPy's");
      if (of_numpy)
        v.reg = compute(Op::RightShift, dtype, {a.reg, b.reg});
      else
        made(Primitive::ShiftRight);
      v.non_negative |= a.non_negative;
      break;
    case Operator::BitAnd:
      v.reg = compute(Op::BitAnd, dtype, {a.reg, b.reg});
      v.non_negative |= a.non_negative || b.non_negative;
      break;
    case Operator::BitOr:
    case Operator::BitXor:
      v.reg = compute(bitwise(op), dtype, {a.reg, b.reg});
      v.non_negative |= both;
      break;
    default:
      throw InternalError("no binary operator");
  }
  if (a.known && b.known) fold(op, *a.known, *b.known, v);
  return v;
}

// Sums, differences and products of numbers in the text, such as bounds of ranges.
void Writer::fold(Operator op, std::int64_t a, std::int64_t b, Value& v) {
  std::int64_t known;
  const bool overflows = op == Operator::Add        ? __builtin_add_overflow(a, b, &known)
                         : op == Operator::Subtract ? __builtin_sub_overflow(a, b, &known)
                         : op == Operator::Multiply ? __builtin_mul_overflow(a, b, &known)
                                                    : true;
  if (overflows || v.dtype != DType::Int64) return;
  v.known = known;
  v.non_negative = known >= 0;
}

Reg Writer::float_binary(Operator op, Reg a, Reg b, DType dtype, Box box) {
  const bool warns = box != Box::Python;
  Reg r = kNone;
  switch (op) {
    case Operator::Add:
      r = compute(Op::Add, dtype, {a, b});
      break;
    case Operator::Subtract:
      r = compute(Op::Subtract, dtype, {a, b});
      break;
    case Operator::Multiply:
      r = compute(Op::Multiply, dtype, {a, b});
      break;
    case Operator::Divide:
      // Python raises where the divisor is zero, whatever it divides.
      r = box == Box::NumPy ? compute(Op::Divide, dtype, {a, b})
                            : primitive(Primitive::DivideFloat, dtype, {a, b});
      break;
    case Operator::FloorDivide:
      r = primitive(Primitive::FloorDivideFloat, dtype, {a, b});
      break;
    case Operator::Remainder:
      r = primitive(Primitive::RemainderFloat, dtype, {a, b});
      break;
    case Operator::Power:
      r = box == Box::NumPy ? compute_primitive(Primitive::PowerScalar, dtype, {a, b})
                            : primitive(Primitive::PowerFloat, dtype, {a, b});
      break;
    default:
      fail("bits of a float");
  }
  if (warns) finite(r, {a, b});
  return r;
}

Reg Writer::complex_binary(Operator op, Reg a, Reg b, DType dtype) {
  Reg r = kNone;
  if (op == Operator::Add)
    r = compute(Op::Add, dtype, {a, b});
  else if (op == Operator::Subtract)
    r = compute(Op::Subtract, dtype, {a, b});
  else if (op == Operator::Multiply)
    r = compute_primitive(Primitive::ComplexMultiply, dtype, {a, b});
  else
    fail("quotients and powers of complex numbers");
  // Versions of Python differ in products of infinities.
  finite(r, {});
  return r;
}

// ---- Comparisons ----

Value Writer::relation(Operator op, Value left, Value right) {
  unmix_to_compare(left, right);
  if (is_array(left) || is_array(right)) return array_operator(op, {left, right});
  if (!left.is_number() || !right.is_number()) fail("something else than numbers is compared");
  Value a = widened(left), b = widened(right);
  as_float_beside_complex(a, b);
  DType dtype;
  const bool of_python = a.box == Box::Python && b.box == Box::Python;
  Reg x, y;
  const auto is_whole = [](DType t) { return is_integer(t) || t == DType::Bool; };
  if (is_whole(a.dtype) && is_whole(b.dtype)) {
    // As the integers that they are, whatever their dtypes.
    if (a.dtype == DType::UInt64 || b.dtype == DType::UInt64) {
      if (a.dtype != b.dtype) fail("uint64 is compared with another integer");
      dtype = DType::UInt64;
    } else {
      dtype = DType::Int64;
    }
    x = cast_to(a.reg, dtype);
    y = cast_to(b.reg, dtype);
  } else if (of_python) {
    dtype = is_complex(a.dtype) || is_complex(b.dtype) ? DType::Complex128 : DType::Float64;
    const auto exact = [&](const Value& v) {
      constexpr std::int64_t kExact = std::int64_t{1} << 53;
      const bool is_exact = v.known && -kExact <= *v.known && *v.known <= kExact;
      if (v.dtype != DType::Int64 || is_exact) return cast_to(v.reg, dtype);
      return cast_to(primitive(Primitive::ExactFloat, DType::Float64, {v.reg}), dtype);
    };
    x = exact(a);
    y = exact(b);
  } else {
    Value p = a, q = b;
    // Python compares its integers exactly, NumPy does not.
    if (a.box == Box::Either || b.box == Box::Either) {
      if (is_whole(a.dtype)) settle(p);
      if (is_whole(b.dtype)) settle(q);
    }
    dtype = common(p, q);
    x = as(p, dtype);
    y = as(q, dtype);
  }
  const bool is_equality = op == Operator::Equal || op == Operator::NotEqual;
  if (is_complex(dtype) && !is_equality) fail("complex numbers are put in order");
  static constexpr Op kOps[] = {Op::Less,         Op::LessEqual, Op::Greater,
                                Op::GreaterEqual, Op::Equal,     Op::NotEqual};
  const auto row = static_cast<std::size_t>(op) - static_cast<std::size_t>(Operator::Less);
  Value v = python_number(DType::Bool, compute(kOps[row], DType::Bool, {x, y}));
  take_box(v, a, b);
  return v;
}

// ---- Unary operators ----

Value Writer::unary(Operator op, const Value& mixed) {
  const Value given = likely(mixed);
  if (is_array(given)) return array_operator(op, {given});
  if (!given.is_number()) fail("an operation on something else than numbers");
  const bool differs = given.box == Box::Either;
  if (given.dtype == DType::Bool &&
      (differs || (op == Operator::Invert) == (given.box == Box::Python)))
    fail("arithmetic with truths");
  Value v = widened(given);
  const bool is_known = v.is_int() && v.known.has_value();
  const std::int64_t known = is_known ? *v.known : 0;
  v.known.reset();
  const bool of_integer = is_integer(v.dtype);
  switch (op) {
    case Operator::Positive:
      return widened(given);
    case Operator::Negative:
      if (is_in(v.dtype, ir::kUInt)) fail("an unsigned number is negated");
      if (is_known && known != std::numeric_limits<std::int64_t>::min()) return python_int(-known);
      if (is_float(v.dtype) && known_float(v)) return python_float(-*known_float(v));
      v.reg = of_integer ? primitive(Primitive::NegateChecked, v.dtype, {v.reg})
                         : compute(Op::Negative, v.dtype, {v.reg});
      v.non_negative = false;
      return v;
    case Operator::Invert:
      if (!of_integer && v.dtype != DType::Bool) fail("bits of a float");
      v.reg = compute(Op::Invert, v.dtype, {v.reg});
      v.non_negative = is_in(v.dtype, ir::kUInt);
      return v;
    default:
      throw InternalError("no unary operator");
  }
}

Value Writer::absolute(const Value& given) {
  Value v = widened(given);
  v.known.reset();
  v.non_negative = is_integer(v.dtype);
  if (v.dtype == DType::Bool) fail("arithmetic with truths");
  if (is_complex(v.dtype)) {
    const Reg z = v.reg;
    v.dtype = ir::real_part(v.dtype);
    v.reg = primitive(Primitive::ComplexAbsolute, v.dtype, {z});
  } else if (is_in(v.dtype, ir::kInt)) {
    v.reg = primitive(Primitive::AbsoluteChecked, v.dtype, {v.reg});
  } else if (is_float(v.dtype)) {
    v.reg = compute(Op::Absolute, v.dtype, {v.reg});
  }
  return v;
}

}  // namespace ufuse::numpy_shim::program
