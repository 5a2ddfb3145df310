// Whole arrays: what do operators, ufuncs and assignments mean where an operand is an array?
//
// Elementwise operations are only noted (Elements) until it is known where their results go: into
// part of an array that is assigned, or into memory of their own, for products. NumPy computes one
// operation after the other; element by element gives the same numbers, as long as what is written
// is read before, and flags are looked at before anything else is done.
#include <algorithm>
#include <bit>

#include "numpy_shim/operators.h"
#include "numpy_shim/program/writer.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim::program {
namespace {

const char* ufunc_of(Operator op) {
  switch (op) {
    case Operator::Add:
      return "add";
    case Operator::Subtract:
      return "subtract";
    case Operator::Multiply:
      return "multiply";
    case Operator::Divide:
      return "divide";
    case Operator::FloorDivide:
      return "floor_divide";
    case Operator::Remainder:
      return "remainder";
    case Operator::LeftShift:
      return "left_shift";
    case Operator::RightShift:
      return "right_shift";
    case Operator::BitAnd:
      return "bitwise_and";
    case Operator::BitOr:
      return "bitwise_or";
    case Operator::BitXor:
      return "bitwise_xor";
    case Operator::Negative:
      return "negative";
    case Operator::Positive:
      return "positive";
    case Operator::Invert:
      return "invert";
    case Operator::Less:
      return "less";
    case Operator::LessEqual:
      return "less_equal";
    case Operator::Greater:
      return "greater";
    case Operator::GreaterEqual:
      return "greater_equal";
    case Operator::Equal:
      return "equal";
    case Operator::NotEqual:
      return "not_equal";
    case Operator::Power:
    case Operator::MatrixMultiply:
    case Operator::Not:
    case Operator::Is:
    case Operator::IsNot:
      break;
  }
  return nullptr;
}

constexpr int kMostAxes = 8;  // of a new array
constexpr int kVectorBytes = 64;

// Whether an element of an array may be assigned to one of another array of this dtype, as far as
// that is done here; of the rest NumPy warns, or some compilers and machines disagree.
bool is_assigned(DType from, DType to) {
  if (from == to) return true;
  if (!Writer::is_plain(from) || !Writer::is_plain(to) || to == DType::Bool) return false;
  if (is_in(from, ir::kComplex) && !is_in(to, ir::kComplex)) return false;
  return is_in(to, ir::kInexact) || !is_in(from, ir::kInexact);
}

}  // namespace

bool Writer::is_plain(DType t) {
  return t != DType::Float16 && ir::real_part(t) != DType::LongDouble;
}

bool Writer::is_array(const Value& v) {
  return v.kind == Value::Kind::Array || v.kind == Value::Kind::Elements;
}

// ---- Elementwise ----

// An array as elements that nothing has been done with yet.
Value Writer::elements(const Value& v) {
  if (v.kind == Value::Kind::Elements) return v;
  if (v.rank == 0) fail("an array without axes");
  if (!is_plain(v.dtype)) fail("an array of " + std::string(ir::info(v.dtype).name));
  Value made = v;
  made.kind = Value::Kind::Elements;
  if (keeps_) in_rows(v.array);
  const Reg element = fresh(v.dtype);
  made.elements = std::make_shared<Elements>(Elements{{}, {v.array}, {element}, element, false});
  return made;
}

// The arrays and the work of several, in the order in which NumPy would do it.
void Writer::take_in(Elements& into, const Value& v) {
  const Elements& from = *v.elements;
  into.body.insert(into.body.end(), from.body.begin(), from.body.end());
  into.arrays.insert(into.arrays.end(), from.arrays.begin(), from.arrays.end());
  into.registers.insert(into.registers.end(), from.registers.begin(), from.registers.end());
  into.raises |= from.raises;
}

// An array or a number as those rules see it that decide about dtypes.
Operand Writer::operand_of(const Value& v) const {
  Operand operand;
  operand.layout.dtype = v.dtype;
  operand.scalar = v.is_number();
  if (v.is_python() && v.dtype != DType::Bool && !world_.version.promotes_by_value())
    operand.weak = weak_of(v);
  return operand;
}

// Before NEP 50 the dtype of a result may depend on a number's value: where it could, NumPy
// decides.
void Writer::check_numbers(const std::vector<Operand>& operands) {
  if (!world_.version.promotes_by_value()) return;
  std::vector<Operand> arrays;
  for (const Operand& each : operands)
    if (!each.scalar) arrays.push_back(each);
  if (arrays.size() < operands.size() && result_type(arrays) != result_type(operands))
    fail("a number beside an array of another kind, before NumPy 2");
}

// `out`: where the result is going to be written.
Value Writer::elementwise(const Ufunc& f, std::vector<Value> given, const Value* out) {
  std::vector<Operand> operands;
  auto work = std::make_shared<Elements>();
  Value result;
  result.kind = Value::Kind::Elements;
  for (Value& v : given) {
    if (is_array(v)) {
      v = elements(v);
      result.rank = std::max(result.rank, v.rank);
    } else if (!v.is_number()) {
      fail("an operation on an array and something that is neither an array nor a number");
    } else {
      settle(v);
    }
    operands.push_back(operand_of(v));
  }
  check_numbers(operands);
  Resolved resolved;
  try {
    resolved = resolve(f, operands, {});
  } catch (const Unsupported& error) {
    fail("`" + f.name + "`: " + error.what());
  }
  if (resolved.outputs.size() != 1) fail("`" + f.name + "` of whole arrays");
  if (!is_plain(resolved.inputs[0]) || !is_plain(resolved.outputs[0]))
    fail("an array of " + std::string(ir::info(resolved.inputs[0]).name));
  if (!resolved.op) return looped_over(f, resolved, given, out);
  std::vector<Reg> args;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const DType to = resolved.inputs[i];
    if (given[i].is_number()) {
      args.push_back(as(given[i], to));
      continue;
    }
    take_in(*work, given[i]);
    const Reg element = given[i].elements->result;
    work->raises |= given[i].dtype != to && ir::cast_may_raise(given[i].dtype, to);
    write_to(work->body, [&] { args.push_back(cast_to(element, to)); });
  }
  result.dtype = resolved.outputs[0];
  write_to(work->body, [&] { work->result = compute(*resolved.op, result.dtype, args); });
  work->raises |= ir::may_raise(*resolved.op, resolved.inputs.back(), result.dtype);
  result.elements = std::move(work);
  return result;
}

// What no row of ops.def does: NumPy's inner loop, with the strides that NumPy gives it. Of complex
// numbers the loops round by their strides, and arrays of other dtypes reach them in several ways.
Value Writer::looped_over(const Ufunc& f, const Resolved& resolved, const std::vector<Value>& given,
                          const Value* out) {
  Step step;
  step.kind = Step::Kind::LoopOver;
  std::vector<Reg> lengths;
  std::optional<Value> made;
  if (out != nullptr) {
    if (out->dtype != resolved.outputs[0]) fail("`out` is of another kind than the result");
    made = in_place_of(*out, given);
    for (int axis = 0; axis < made->rank; ++axis) lengths.push_back(length(*made, axis));
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const DType to = resolved.inputs[i];
    if (is_in(to, ir::kComplex) && given[i].dtype != to)
      fail("`" + f.name + "` of complex numbers and others");
    if (given[i].is_number()) {
      step.arrays.push_back(kNone);
      step.args.push_back(as(given[i], to));
      continue;
    }
    const Elements& work = *given[i].elements;
    Value operand = given[i];
    if (work.body.empty() && operand.dtype == to) {
      operand.kind = Value::Kind::Array;
      operand.array = work.arrays[0];
      if (out != nullptr && operand.array == out->array) operand = *made;
    } else {
      operand = as_numpy_lays_out(as_elements_of(operand, to));
    }
    if (!lengths.empty() && operand.rank != static_cast<int>(lengths.size()))
      fail("`" + f.name + "` of arrays of several shapes");
    for (int axis = 0; axis < operand.rank; ++axis) {
      const Reg one = length(operand, axis);
      const auto known = static_cast<std::size_t>(axis);
      if (known == lengths.size())
        lengths.push_back(one);
      else
        guard(compute(Op::Equal, DType::Bool, {lengths[known], one}));
    }
    step.arrays.push_back(operand.array);
    step.args.push_back(kNone);
  }
  const UfuncLoop& loop = f.loops[resolved.loop];
  step.row = world_.loops().add({f.name,
                                 {resolved.inputs.begin(), resolved.inputs.end()},
                                 {resolved.outputs.begin(), resolved.outputs.end()},
                                 loop.loop,
                                 loop.data});
  const Value result = made ? *made : new_array(resolved.outputs[0], lengths);
  step.target = result.array;
  step.exit = exit();
  emit(std::move(step));
  return result;
}

// Memory in the place of an array that a loop writes: it holds the same elements, where the loop
// reads them in the same places. NumPy's loops look at whether their operands lie so near that
// vectors would overlap: none of the others does.
Value Writer::in_place_of(const Value& out, const std::vector<Value>& given) {
  Step apart, row;
  apart.kind = Step::Kind::Apart;
  apart.target = out.array;
  apart.gap = kVectorBytes;
  bool is_read = false;
  for (const Value& v : given) {
    if (v.is_number()) continue;
    for (ArrayReg a : v.elements->arrays) {
      if (a == out.array)
        is_read = true;
      else
        apart.arrays.push_back(a);
    }
  }
  apart.exit = exit();
  emit(std::move(apart));
  row.kind = Step::Kind::InOneRow;
  row.arrays = {out.array};
  row.exit = exit();
  emit(std::move(row));
  if (is_read) return in_memory(elements(out));
  std::vector<Reg> lengths;
  for (int axis = 0; axis < out.rank; ++axis) lengths.push_back(length(out, axis));
  return new_array(out.dtype, lengths);
}

Value Writer::array_operator(Operator op, std::vector<Value> given) {
  if (op == Operator::MatrixMultiply) return product("matmul", given[0], given[1]);
  if (op == Operator::Power) return power(given[0], given[1]);
  return elementwise(world_.ufunc(ufunc_of(op)), std::move(given));
}

// Whether elements are true: all but zeros are.
Value Writer::truths(const Value& v) {
  if (v.dtype == DType::Bool) return v;
  Value made = elements(v);
  auto work = std::make_shared<Elements>(*made.elements);
  write_to(work->body, [&] { work->result = cast_to(work->result, DType::Bool); });
  made.dtype = DType::Bool;
  made.elements = std::move(work);
  return made;
}

// np.where(condition, x, y).
Value Writer::chosen(const Value& condition, Value x, Value y) {
  std::vector<Operand> operands;
  for (Value* each : {&x, &y}) {
    if (!each->is_number() && !is_array(*each)) fail("np.where of something else than arrays");
    if (each->is_number()) settle(*each);
    operands.push_back(operand_of(*each));
  }
  if (!is_array(condition)) fail("np.where with something else than an array as its condition");
  check_numbers(operands);
  const DType dtype = result_type(operands);
  if (!is_plain(dtype)) fail("an array of " + std::string(ir::info(dtype).name));
  Value made = elements(truths(condition));
  auto work = std::make_shared<Elements>(*made.elements);
  std::vector<Reg> args = {work->result};
  for (const Value* each : {&x, &y}) {
    if (each->is_number()) {
      args.push_back(as(*each, dtype));
      continue;
    }
    const Value operand = as_elements_of(*each, dtype);
    take_in(*work, operand);
    args.push_back(operand.elements->result);
    made.rank = std::max(made.rank, operand.rank);
  }
  write_to(work->body, [&] { work->result = compute(Op::Where, dtype, args); });
  made.dtype = dtype;
  made.elements = std::move(work);
  return made;
}

// NumPy's shortcuts for some exponents; what is not written in the text must be none of these.
Value Writer::power(const Value& base, const Value& exponent) {
  if (is_array(base) && exponent.is_number()) {
    const std::optional<double> known = known_float(exponent);
    if (known) {
      const char* shortcut = power_shortcut(
          world_.version, base.dtype, {*known, !exponent.is_int(), exponent.box == Box::Python});
      if (shortcut != nullptr && (shortcut == kPowerByNumpy || base.dtype == DType::Bool))
        fail("a power of an array that is another one in each NumPy");
      if (shortcut != nullptr) return elementwise(world_.ufunc(shortcut), {base});
    } else if (is_in(exponent.dtype, ir::kComplex)) {
      fail("a complex power of an array");
    } else {
      const Reg own = cast_to(exponent.reg, DType::Float64);
      for (double special : kSpecialExponents) {
        const Reg other = constant(DType::Float64, {{std::bit_cast<std::uint64_t>(special)}});
        guard(compute(Op::NotEqual, DType::Bool, {own, other}));
      }
    }
  }
  // The loops of integers raise where an exponent is negative.
  if (!is_in(base.dtype, ir::kInexact) && !is_in(exponent.dtype, ir::kInexact))
    fail("a power of integers");
  return elementwise(world_.ufunc("power"), {base, exponent});
}

// f.outer(a, b): each element of one beside the whole other.
Value Writer::outer(const Ufunc& f, const std::vector<Value>& given) {
  if (f.nin != 2 || f.nout != 1 || given.size() != 2 || !is_array(given[0]) || !is_array(given[1]))
    fail("`" + f.name + ".outer` of something else than two arrays");
  const Value first = as_numpy_lays_out(given[0]);
  return elementwise(f, {with_new_axes(first, 0, given[1].rank), given[1]});
}

// f(..., out=out): written at once.
Value Writer::computed_into(const Ufunc& f, std::vector<Value> given, const Value& out) {
  if (out.kind != Value::Kind::Array || out.rank == 0 || !std::ranges::any_of(given, is_array))
    fail("`" + f.name + "` with something else than arrays and numbers");
  const Value made = elements(elementwise(f, std::move(given), &out));
  if (made.dtype != out.dtype) fail("`out` is of another kind than the result");
  mark_written(out);
  fit(out.array, made);
  assign_elements(out.array, made, false);
  return out;
}

// ---- Memory ----

// The arrays that elements are computed of.
std::vector<Value> Writer::arrays_of(const Elements& work) const {
  std::vector<Value> arrays(work.arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    arrays[i].array = work.arrays[i];
    arrays[i].rank = program_.arrays[static_cast<std::size_t>(arrays[i].array)].rank;
  }
  return arrays;
}

// The lengths of the axes, of what several arrays broadcast to where these are elements.
std::vector<Reg> Writer::lengths_of(const Value& v) {
  std::vector<Value> arrays = {v};
  if (v.kind == Value::Kind::Elements) arrays = arrays_of(*v.elements);
  std::vector<Reg> lengths;
  for (int axis = 0; axis < v.rank; ++axis)
    lengths.push_back(broadcast_length(arrays, v.rank, axis));
  return lengths;
}

// The elements as an array, which NumPy would lay out in rows.
Value Writer::in_memory(const Value& v) {
  if (v.kind != Value::Kind::Elements) return v;
  const Value made = new_array(v.dtype, lengths_of(v));
  assign_elements(made.array, v, true);
  return made;
}

Value Writer::new_array(DType dtype, const std::vector<Reg>& lengths) {
  Value v;
  v.kind = Value::Kind::Array;
  v.dtype = dtype;
  v.rank = static_cast<int>(lengths.size());
  if (v.rank == 0 || v.rank > kMostAxes) fail("a new array of so many axes");
  v.is_new = v.writeable = true;
  v.array = array_register(-1, dtype, v.rank);
  Step step;
  step.kind = Step::Kind::NewArray;
  step.target = v.array;
  step.args = lengths;
  step.exit = exit();
  emit(std::move(step));
  return v;
}

Value Writer::filled(DType dtype, const std::vector<Reg>& lengths, std::int64_t number) {
  return filled_with(dtype, lengths, cast_to(integer(number), dtype));
}

Value Writer::filled_with(DType dtype, const std::vector<Reg>& lengths, Reg number) {
  const Value v = new_array(dtype, lengths);
  Value content;
  content.kind = Value::Kind::Elements;
  content.dtype = dtype;
  content.elements = std::make_shared<Elements>(Elements{{}, {}, {}, number, false});
  assign_elements(v.array, content, true);
  return v;
}

// np.full(lengths, number): of the number's own dtype.
Value Writer::full(const Value& lengths, const Value& number) {
  if (!number.is_number() || number.box == Box::Either || !is_plain(number.dtype))
    fail("np.full of something else than a number");
  return filled_with(number.dtype, shape(lengths), number.reg);
}

// NumPy lays out a new array as its operands: in rows where they are.
void Writer::in_rows(ArrayReg array) {
  Step step;
  step.kind = Step::Kind::InRows;
  step.arrays = {array};
  step.exit = exit();
  emit(std::move(step));
}

// A new array with the same elements, in rows whatever the layout of this one is.
Value Writer::copied(const Value& array) {
  const bool keeps = std::exchange(keeps_, false);
  const Value made = in_memory(elements(array));
  keeps_ = keeps;
  return made;
}

// The elements as an array, where NumPy would lay it out in rows. The order in which NumPy adds or
// multiplies depends on the layout.
Value Writer::as_numpy_lays_out(const Value& v) {
  if (v.kind == Value::Kind::Elements && v.rank > 1)
    for (ArrayReg a : v.elements->arrays) in_rows(a);
  return in_memory(v);
}

// ---- Products ----

Value Writer::product(const std::string& name, const Value& left, const Value& right) {
  if (!is_array(left) || !is_array(right)) fail("a matrix product of something else than arrays");
  const Value a = as_numpy_lays_out(left), b = as_numpy_lays_out(right);
  const bool is_dot = name == "dot";
  const bool fits = a.rank >= 1 && a.rank <= 2 && b.rank >= 1 && b.rank <= 2;
  if (!fits || a.dtype != b.dtype) fail("a matrix product of such arrays");
  // np.dot of matrices is another call of BLAS's.
  if (is_dot && (a.rank != 1 || b.rank != 1)) fail("np.dot of matrices");
  if (is_dot && a.dtype != DType::Float64 && a.dtype != DType::Float32)
    fail("np.dot of " + std::string(ir::info(a.dtype).name));
  const Ufunc& matmul = world_.ufunc("matmul");
  const std::string types(3, ir::info(a.dtype).code);
  const auto loop = std::ranges::find(matmul.loops, types, &UfuncLoop::types);
  if (loop == matmul.loops.end() || !is_plain(a.dtype) || a.dtype == DType::Bool)
    fail("a matrix product of " + std::string(ir::info(a.dtype).name));
  guard(compute(Op::Equal, DType::Bool, {length(a, a.rank - 1), length(b, 0)}));
  Step step;
  step.kind = is_dot ? Step::Kind::Dot : Step::Kind::Product;
  step.row = world_.loops().add({"matmul", {a.dtype, a.dtype}, {a.dtype}, loop->loop, loop->data});
  step.arrays = {a.array, b.array};
  step.raises = is_dot && world_.version.dot_reports_errors();
  step.exit = exit();
  if (a.rank == 1 && b.rank == 1) {
    step.result = fresh(a.dtype);
    return numpy_number(a.dtype, emit(std::move(step)).result);
  }
  std::vector<Reg> lengths;
  if (a.rank == 2) lengths.push_back(length(a, 0));
  if (b.rank == 2) lengths.push_back(length(b, 1));
  const Value result = new_array(a.dtype, lengths);
  step.target = result.array;
  emit(std::move(step));
  return result;
}

// np.flip of all axes: a view.
Value Writer::flipped(const Value& v) {
  if (v.kind != Value::Kind::Array) fail("np.flip of something else than an array");
  At where;
  for (int axis = 0; axis < v.rank; ++axis) {
    const Reg all = length(v, axis);
    where.args.insert(where.args.end(),
                      {compute(Op::Subtract, DType::Int64, {all, integer(1)}), integer(-1), all});
    where.axes.push_back(ir::program::Axis::Slice);
    ++where.left;
  }
  return view(v, where);
}

// ---- Assignments ----

// A number that is assigned to part of an array, as an element of it.
Reg Writer::assigned_number(const Value& v, DType dtype) {
  const bool keeps = v.dtype == dtype || (is_in(dtype, ir::kInexact) &&
                                          (v.box == Box::Python || is_assigned(v.dtype, dtype)));
  if (!keeps || !is_plain(dtype)) fail("a number is assigned to an array of another kind");
  return to_store(v, dtype);
}

// What is assigned to part of an array, as elements of the array's dtype.
Value Writer::assigned_elements(const Value& v, DType dtype) {
  if (v.is_number()) {
    Value made;
    made.kind = Value::Kind::Elements;
    made.dtype = dtype;
    made.elements =
        std::make_shared<Elements>(Elements{{}, {}, {}, assigned_number(v, dtype), false});
    return made;
  }
  if (!is_array(v))
    fail("something else than an array or a number is assigned to part of an array");
  if (!is_assigned(v.dtype, dtype)) fail("an array is assigned to one of another kind");
  return as_elements_of(v, dtype);
}

Value Writer::as_elements_of(const Value& v, DType dtype) {
  Value made = elements(v);
  if (made.dtype == dtype) return made;
  auto work = std::make_shared<Elements>(*made.elements);
  work->raises |= ir::cast_may_raise(made.dtype, dtype);
  write_to(work->body, [&] { work->result = cast_to(work->result, dtype); });
  made.dtype = dtype;
  made.elements = std::move(work);
  return made;
}

// Exits where the elements do not broadcast to the part of an array.
void Writer::fit(ArrayReg target, const Value& v) {
  if (v.rank > program_.arrays[static_cast<std::size_t>(target)].rank)
    fail("an array of more axes is assigned");
  Step step;
  step.kind = Step::Kind::Fit;
  step.target = target;
  step.arrays = v.elements->arrays;
  step.exit = exit();
  emit(std::move(step));
}

void Writer::assign_elements(ArrayReg target, const Value& v, bool is_new) {
  const Elements& work = *v.elements;
  Step step;
  step.kind = Step::Kind::Elements;
  step.target = target;
  step.arrays = work.arrays;
  step.args = work.registers;
  step.body = work.body;
  step.result = work.result;
  step.raises = work.raises;
  // What a function changes is put back where a flag is raised.
  step.aside = work.raises && !is_new && scope_.instance == 0;
  step.exit = exit();
  program_.computes_arrays = true;
  emit(std::move(step));
}

// `a[i:j] += v`, or `a += v` of a whole one.
void Writer::augment_array(Operator op, const Value& array, const Value& v) {
  if (array.is_new || op == Operator::MatrixMultiply) fail("such an array is changed");
  const Value made = elements(array_operator(op, {array, v}));
  if (made.dtype != array.dtype)
    fail("the result is of another kind than the array that is changed");
  mark_written(array);
  fit(array.array, made);
  assign_elements(array.array, made, false);
}

}  // namespace ufuse::numpy_shim::program
