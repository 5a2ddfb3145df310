// Items: which element or part of an array is meant, and what is known of it?
#include <algorithm>
#include <iterator>
#include <span>

#include "ir/support/error.h"
#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

Value Writer::item(const Expr& e) {
  const Value base = in_memory(value(e.parts[0]));
  if (base.kind == Value::Kind::Tuple) {
    const Value index = value(e.parts[1]);
    const auto count = static_cast<std::int64_t>(base.parts.size());
    if (!index.is_int() || !index.known || *index.known < -count || *index.known >= count)
      fail("an item of a tuple whose position is not written in the text");
    return base
        .parts[static_cast<std::size_t>(*index.known < 0 ? *index.known + count : *index.known)];
  }
  if (base.kind == Value::Kind::List) return list_item(base, whole_index(value(e.parts[1])));
  if (base.kind != Value::Kind::Array)
    fail("something else than an array, a tuple or a list of numbers is indexed");
  const std::vector<Value> parts = indices(base, e.parts[1]);
  if (has_arrays(parts)) return gathered(select(base, parts));
  const At where = at(base, parts);
  return where.is_element ? load(base, where.args) : view(base, where);
}

Reg Writer::length(const Value& array, int axis) {
  Step step;
  step.kind = Step::Kind::Length;
  step.array = array.array;
  step.axis = axis;
  step.result = fresh(DType::Int64);
  return emit(std::move(step)).result;
}

// An integer of Python's or NumPy's, wherever it points.
Reg Writer::whole_index(const Value& index) {
  if (!index.is_number() || !is_in(index.dtype, ir::kInteger) || index.dtype == DType::UInt64)
    fail("an index that is no integer");
  return cast_to(index.reg, DType::Int64);
}

// An index within [0, length), or the program exits.
Reg Writer::index_of(const Value& index, Reg length) {
  const Reg wide = whole_index(index);
  return primitive(index.non_negative ? Primitive::IndexFromStart : Primitive::Index, DType::Int64,
                   {wide, length});
}

Value Writer::whole_slice() {
  Value nothing, whole;
  nothing.kind = Value::Kind::Nothing;
  whole.kind = Value::Kind::Slice;
  whole.parts.assign(3, nothing);
  return whole;
}

// What stands between the brackets behind an array; in the place of `...` its slices.
std::vector<Value> Writer::indices(const Value& array, const Expr& e) {
  const auto is_rest = [](const Expr& each) { return each.kind == Expr::Kind::Ellipsis; };
  const std::span<const Expr> given =
      e.kind == Expr::Kind::Tuple ? std::span(e.parts) : std::span(&e, 1);
  if (std::ranges::none_of(given, is_rest)) {
    Value v = value(e);
    return v.kind == Value::Kind::Tuple ? std::move(v.parts) : std::vector<Value>{std::move(v)};
  }
  if (std::ranges::count_if(given, is_rest) > 1) fail("more than one `...` in an index");
  std::vector<Value> parts;
  std::ptrdiff_t rest = 0;
  int left = array.rank, choose = 0;
  for (const Expr& each : given) {
    if (is_rest(each)) {
      rest = std::ssize(parts);
      continue;
    }
    const Value part = value(each);
    const bool is_mask = is_array(part) && part.dtype == DType::Bool;
    if (part.kind != Value::Kind::Nothing) left -= is_mask ? part.rank : 1;
    if (part.is_number() || is_array(part)) ++choose;
    parts.push_back(part);
  }
  if (left < 0) fail("too many indices");
  // Arrays on both sides of `...` are no neighbours, even where it stands for no axis.
  if (has_arrays(parts) && choose > 1) fail("`...` beside several positions or masks");
  if (left == 0 && choose == std::ssize(parts) && !has_arrays(parts)) fail("an array without axes");
  parts.insert(parts.begin() + rest, static_cast<std::size_t>(left), whole_slice());
  return parts;
}

Writer::At Writer::at(const Value& array, const std::vector<Value>& parts) {
  const auto indices = std::ranges::count_if(
      parts, [](const Value& part) { return part.kind != Value::Kind::Nothing; });
  if (indices > array.rank) fail("too many indices");
  At where;
  where.is_element = parts.size() == static_cast<std::size_t>(array.rank);
  int axis = 0;
  for (const Value& part : parts) {
    if (part.kind == Value::Kind::Nothing) {
      where.is_element = false;
      where.axes.push_back(ir::program::Axis::New);
      ++where.left;
      continue;
    }
    if (part.kind == Value::Kind::Slice) {
      where.is_element = false;
      slice(array, axis, part, where);
    } else if (part.is_number() && part.dtype != DType::Bool) {
      where.args.push_back(index_of(part, length(array, axis)));
      where.axes.push_back(ir::program::Axis::Index);
    } else {
      fail("an index that is neither an integer nor a slice");
    }
    ++axis;
  }
  for (; axis < array.rank; ++axis) whole_axis(array, axis, where);
  return where;
}

void Writer::whole_axis(const Value& array, int axis, At& where) {
  where.args.insert(where.args.end(), {integer(0), integer(1), length(array, axis)});
  where.axes.push_back(ir::program::Axis::Slice);
  ++where.left;
}

// Start, step and length of a slice, clipped as Python clips them.
void Writer::slice(const Value& array, int axis, const Value& slice, At& where) {
  const auto number = [&](const Value& part, std::int64_t otherwise) {
    if (part.kind == Value::Kind::Nothing) return python_int(otherwise);
    if (!part.is_number() || !is_in(part.dtype, ir::kInteger) || part.dtype == DType::UInt64)
      fail("a slice between something else than integers");
    Value wide = part;
    wide.reg = cast_to(part.reg, DType::Int64);
    return wide;
  };
  const Value step = number(slice.parts[2], 1);
  if (step.known && *step.known == 0) fail("a slice with a step of 0");
  // What is not written in the text mostly goes up.
  if (!step.known) guard(compute(Op::Greater, DType::Bool, {step.reg, integer(0)}));
  const Reg all = length(array, axis), by = step.reg;
  const bool down = step.known && *step.known < 0;
  const Reg first = down ? compute(Op::Subtract, DType::Int64, {all, integer(1)}) : integer(0);
  const Reg last = down ? integer(-1) : all;
  const bool up = step.known && *step.known > 0;
  const auto bound = [&](const Value& part, Reg otherwise) {
    if (part.kind == Value::Kind::Nothing) return otherwise;
    const Value at = number(part, 0);
    if (up && at.known)
      return compute_primitive(*at.known < 0 ? Primitive::BoundFromEnd : Primitive::BoundFromStart,
                               DType::Int64, {at.reg, all});
    return compute_primitive(Primitive::SliceBound, DType::Int64, {at.reg, all, by});
  };
  const Reg start = bound(slice.parts[0], first), stop = bound(slice.parts[1], last);
  const Reg count = step.known && *step.known == 1
                        ? compute_primitive(Primitive::Between, DType::Int64, {start, stop})
                        : compute_primitive(Primitive::Rounds, DType::Int64, {start, stop, by});
  where.args.insert(where.args.end(), {start, by, count});
  where.axes.push_back(ir::program::Axis::Slice);
  ++where.left;
}

Value Writer::view(const Value& array, const At& where) {
  Value v = array;
  v.rank = static_cast<int>(where.left);
  v.array = array_register(-1, array.dtype, v.rank);
  Step step;
  step.kind = Step::Kind::View;
  step.array = array.array;
  step.target = v.array;
  step.args = where.args;
  step.axes = where.axes;
  emit(std::move(step));
  return v;
}

// With its axes in reverse.
Value Writer::transposed(const Value& array) {
  Value v = array;
  v.array = array_register(-1, array.dtype, array.rank);
  Step step;
  step.kind = Step::Kind::Transpose;
  step.array = array.array;
  step.target = v.array;
  emit(std::move(step));
  return v;
}

void Writer::copy_array(ArrayReg to, ArrayReg from) {
  Step step;
  step.kind = Step::Kind::SameArray;
  step.array = from;
  step.target = to;
  emit(std::move(step));
}

Value Writer::load(const Value& array, const std::vector<Reg>& at) {
  if (array.dtype == DType::Float16 || ir::real_part(array.dtype) == DType::LongDouble)
    fail("a scalar of " + std::string(ir::info(array.dtype).name));
  Step step;
  step.kind = Step::Kind::Load;
  step.array = array.array;
  step.args = at;
  step.result = fresh(array.dtype);
  return numpy_number(array.dtype, emit(std::move(step)).result);
}

void Writer::store(const Value& array, std::vector<Reg> at, Reg element) {
  Step step;
  step.kind = Step::Kind::Store;
  step.array = array.array;
  step.args = std::move(at);
  step.args.push_back(element);
  emit(std::move(step));
}

// A number as an element of an array that it is assigned to.
Reg Writer::to_store(const Value& given, DType dtype) {
  const bool may_be_int = given.kind == Value::Kind::Mixed && is_in(dtype, ir::kFloat);
  const Value v = may_be_int ? as_float(given) : likely(given);
  if (!v.is_number()) fail("something else than a number is assigned to an element");
  if (dtype == DType::Float16 || ir::real_part(dtype) == DType::LongDouble)
    fail("an element of " + std::string(ir::info(dtype).name));
  if (v.dtype == dtype) return v.reg;
  const bool to_integer = is_in(dtype, ir::kInteger);
  if (is_in(v.dtype, ir::kComplex) && !is_in(dtype, ir::kComplex))
    fail("a complex number is assigned to a real element");
  if (v.box == Box::Python && v.dtype == DType::Int64 && to_integer)
    return primitive(Primitive::Fits, dtype, {v.reg});
  if (v.box == Box::Either && to_integer) fail("a number of Python's or NumPy's is assigned");
  if (is_in(v.dtype, ir::kFloat) && to_integer)
    return primitive(Primitive::TruncateTo, dtype, {v.reg});
  // NumPy 2 takes its integers for Python's where the elements have a sign.
  const bool has_sign = is_in(dtype, ir::kInt), from_sign = is_in(v.dtype, ir::kInt);
  if (has_sign && v.dtype != DType::Bool &&
      ir::size_of(v.dtype) + (from_sign ? 0 : 1) > ir::size_of(dtype))
    return primitive(Primitive::Fits, dtype, {v.reg});
  const Reg made = cast_to(v.reg, dtype);
  const bool narrows = ir::size_of(ir::real_part(dtype)) < ir::size_of(ir::real_part(v.dtype)) &&
                       is_in(v.dtype, ir::kInexact);
  if (narrows && dtype != DType::Bool) finite(made, {v.reg});
  return made;
}

}  // namespace ufuse::numpy_shim::program
