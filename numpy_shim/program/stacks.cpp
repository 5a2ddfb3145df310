// Functions of NumPy's that put new arrays together: of numbers, of others one behind the other,
// of what they have at other places or before, and triangles of a matrix.
#include <algorithm>

#include "numpy_shim/program/writer.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim::program {

// What `np.hstack`, `np.vstack` and `np.concatenate` are given, and along which axis they stack.
Value Writer::stacked(const std::string& name, const std::vector<Value>& given) {
  if (given.empty() || given[0].kind != Value::Kind::Tuple || given[0].parts.empty())
    fail("`np." + name + "` of something else than a tuple");
  std::vector<Value> parts;
  for (const Value& part : given[0].parts) {
    if (!is_array(part) || part.rank == 0) fail("`np." + name + "` of something else than arrays");
    parts.push_back(as_numpy_lays_out(part));
    const bool fits = part.rank == given[0].parts[0].rank && part.dtype == given[0].parts[0].dtype;
    if (!fits) fail("`np." + name + "` of arrays of several kinds");
  }
  int axis = 0;
  if (name == "hstack" && parts[0].rank > 1) axis = 1;
  if (name == "vstack" && parts[0].rank == 1)
    for (Value& part : parts) part = with_new_axes(part, 1, 0);
  const std::size_t most = name == "concatenate" ? 2 : 1;
  if (given.size() > most) fail("`np." + name + "` is called with other arguments than a tuple");
  if (given.size() == 2) axis = axis_of(given[1], parts[0].rank);
  return behind_each_other(parts, axis);
}

// The number of an axis, which may be counted from the last one.
int Writer::axis_of(const Value& given, int rank) const {
  if (!given.is_int() || !given.known) fail("an axis that is not written in the text");
  const std::int64_t axis = *given.known < 0 ? *given.known + rank : *given.known;
  if (axis < 0 || axis >= rank) fail("an axis that is not there");
  return static_cast<int>(axis);
}

Value Writer::behind_each_other(const std::vector<Value>& parts, int axis) {
  std::vector<Reg> lengths, starts;
  for (int k = 0; k < parts[0].rank; ++k) lengths.push_back(length(parts[0], k));
  const auto along = static_cast<std::size_t>(axis);
  Reg all = integer(0);
  for (const Value& part : parts) {
    if (part.rank > 1) in_rows(part.array);
    for (int k = 0; k < part.rank; ++k)
      if (k != axis)
        guard(compute(Op::Equal, DType::Bool,
                      {length(part, k), lengths[static_cast<std::size_t>(k)]}));
    starts.push_back(all);
    all = compute(Op::Add, DType::Int64, {all, length(part, axis)});
  }
  lengths[along] = all;
  const Value made = new_array(parts[0].dtype, lengths);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    At where;
    for (int k = 0; k < made.rank; ++k) whole_axis(parts[i], k, where);
    where.args[3 * along] = starts[i];
    assign_elements(view(made, where).array, elements(parts[i]), true);
  }
  return made;
}

// np.array and np.asarray, of numbers in tuples or lists, or of an array.
Value Writer::array_of(const std::string& name, const std::vector<Value>& given) {
  if (given.empty() || given.size() > 2) fail("`np." + name + "` is called with such arguments");
  const Value& v = given[0];
  if (is_array(v) && v.rank > 0 && given.size() == 1) {
    if (name == "asarray") return v;
    if (v.kind == Value::Kind::Elements) return as_numpy_lays_out(v);
    if (v.rank > 1) in_rows(v.array);
    return copied(v);
  }
  if (v.kind != Value::Kind::Tuple || v.parts.empty())
    fail("`np." + name + "` of something else than numbers in a list");
  std::vector<Value> numbers;
  std::vector<std::size_t> lengths;
  flatten(v, 0, numbers, lengths);
  DType dtype = numbers[0].dtype;
  for (const Value& number : numbers) dtype = promote(dtype, number.dtype);
  if (given.size() == 2) {
    const DType asked = dtype_given(given[1]);
    const bool rounds_twice = is_in(dtype, ir::kInteger) && asked != DType::Float64;
    if (asked != dtype && (promote(asked, dtype) != asked || rounds_twice))
      fail("a new array of another dtype than its numbers");
    dtype = asked;
  }
  if (dtype == DType::Float16 || ir::real_part(dtype) == DType::LongDouble)
    fail("an element of " + std::string(ir::info(dtype).name));
  std::vector<Reg> extents;
  for (std::size_t n : lengths) extents.push_back(integer(static_cast<std::int64_t>(n)));
  const Value made = new_array(dtype, extents);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::vector<Reg> at;
    std::size_t inner = numbers.size(), rest = i;
    for (std::size_t n : lengths) {
      inner /= n;
      at.push_back(integer(static_cast<std::int64_t>(rest / inner)));
      rest %= inner;
    }
    store(made, std::move(at), cast_to(numbers[i].reg, dtype));
  }
  return made;
}

// The numbers in tuples of tuples in order, and how many stand in one of each depth.
void Writer::flatten(const Value& v, std::size_t depth, std::vector<Value>& numbers,
                     std::vector<std::size_t>& lengths) const {
  if (v.is_number()) {
    if (depth != lengths.size()) fail("numbers and lists of them beside each other");
    numbers.push_back(v);
    return;
  }
  if (v.kind != Value::Kind::Tuple || v.parts.empty())
    fail("an array of something else than numbers");
  if (numbers.empty() && depth == lengths.size()) lengths.push_back(v.parts.size());
  if (depth >= lengths.size() || lengths[depth] != v.parts.size()) fail("lists of several lengths");
  for (const Value& part : v.parts) flatten(part, depth + 1, numbers, lengths);
}

// A view with new axes before and behind those of an array.
Value Writer::with_new_axes(const Value& array, int before, int behind) {
  At where;
  const auto add = [&](int count) {
    where.axes.insert(where.axes.end(), static_cast<std::size_t>(count), ir::program::Axis::New);
    where.left += static_cast<std::size_t>(count);
  };
  add(before);
  for (int axis = 0; axis < array.rank; ++axis) whole_axis(array, axis, where);
  add(behind);
  return view(array, where);
}

// Elements `start` to `start + count` of an axis.
Value Writer::part_of(const Value& array, int axis, Reg start, Reg count) {
  At where;
  for (int k = 0; k < array.rank; ++k) whole_axis(array, k, where);
  const auto at = 3 * static_cast<std::size_t>(axis);
  where.args[at] = start;
  where.args[at + 2] = count;
  return view(array, where);
}

// np.roll(x, shift), of one axis: what is pushed out at the end comes first.
Value Writer::rolled(const std::vector<Value>& given) {
  if (!is_array(given[0]) || given[0].rank == 0 || !given[1].is_int() || given.size() > 3)
    fail("`np.roll` of something else than an array by a number");
  if (given.size() < 3 && given[0].rank > 1) fail("`np.roll` of several axes at once");
  const Value array = as_numpy_lays_out(given[0]);
  const int axis = given.size() < 3 ? 0 : axis_of(given[2], array.rank);
  const Reg all = length(array, axis);
  guard(compute(Op::Greater, DType::Bool, {all, integer(0)}));
  const Reg last = primitive(Primitive::Remainder, DType::Int64, {given[1].reg, all});
  const Reg first = compute(Op::Subtract, DType::Int64, {all, last});
  return behind_each_other(
      {part_of(array, axis, first, last), part_of(array, axis, integer(0), first)}, axis);
}

// np.arange of integers of Python's, in steps of one.
Value Writer::counted_up(const std::vector<Value>& given) {
  const bool are_integers = std::ranges::all_of(given, &Value::is_int);
  if (!are_integers || given.size() > 2) fail("`np.arange` of something else than two integers");
  const Reg first = given.size() == 2 ? given[0].reg : integer(0);
  const Reg count = compute_primitive(
      Primitive::MaximumFirst, DType::Int64,
      {primitive(Primitive::SubtractChecked, DType::Int64, {given.back().reg, first}), integer(0)});
  const Value made = new_array(DType::Int64, {count});
  for_each_below(count, [&](Reg index) {
    store(made, {index}, compute(Op::Add, DType::Int64, {first, index}));
  });
  return made;
}

// np.cumsum of a vector: each element added to the sum before it.
Value Writer::summed_up(const Value& v) {
  if (!is_array(v) || v.rank != 1) fail("`np.cumsum` of something else than a vector");
  const bool is_small = is_in(v.dtype, ir::kInt) && v.dtype != DType::Int64;
  const Value array = in_memory(v);
  const DType dtype = v.dtype == DType::Bool || is_small ? DType::Int64 : v.dtype;
  if (!is_plain(dtype) || is_in(dtype, ir::kUInt)) fail("`np.cumsum` of such elements");
  const Value made = new_array(dtype, {length(array, 0)});
  const Reg sum = fresh(dtype);
  // Whatever is added to it stays what it is.
  copy(sum, is_in(dtype, ir::kInexact) ? compute(Op::Negative, dtype, {cast_to(integer(0), dtype)})
                                       : cast_to(integer(0), dtype));
  for_each_below(length(array, 0), [&](Reg index) {
    const Reg element = cast_to(load(array, {index}).reg, dtype);
    const Reg next = compute(Op::Add, dtype, {sum, element});
    if (is_in(dtype, ir::kInexact)) finite(next, {sum, element});
    copy(sum, next);
    store(made, {index}, sum);
  });
  return made;
}

// np.diff of a vector.
Value Writer::differences(const Value& v) {
  if (!is_array(v) || v.rank != 1 || v.dtype == DType::Bool)
    fail("`np.diff` of something else than a vector of numbers");
  const Value array = in_memory(v);
  const Reg all = length(array, 0);
  guard(compute(Op::Greater, DType::Bool, {all, integer(0)}));
  const Reg count = compute(Op::Subtract, DType::Int64, {all, integer(1)});
  return elementwise(world_.ufunc("subtract"),
                     {part_of(array, 0, integer(1), count), part_of(array, 0, integer(0), count)});
}

// np.triu and np.tril of a matrix: zeros below or above a diagonal.
Value Writer::triangle(bool upper, const std::vector<Value>& given) {
  if (given.empty() || given.size() > 2 || !is_array(given[0]) || given[0].rank != 2)
    fail("a triangle of something else than a matrix");
  const Value diagonal = given.size() == 2 ? given[1] : python_int(0);
  if (!diagonal.is_int()) fail("a diagonal whose number is no integer of Python's");
  const Value made = copied(given[0]);
  const Reg rows = length(made, 0), columns = length(made, 1);
  // The first column of the diagonal in the row at hand.
  const Reg first = fresh(DType::Int64);
  copy(first, upper ? diagonal.reg
                    : primitive(Primitive::AddChecked, DType::Int64, {diagonal.reg, integer(1)}));
  primitive(Primitive::AddChecked, DType::Int64, {first, rows});
  for_each_below(rows, [&](Reg row) {
    const Reg at = compute_primitive(
        Primitive::MinimumFirst, DType::Int64,
        {compute_primitive(Primitive::MaximumFirst, DType::Int64, {first, integer(0)}), columns});
    At where;
    where.axes = {ir::program::Axis::Index, ir::program::Axis::Slice};
    where.left = 1;
    where.args = {row, integer(0), integer(1), at};
    if (!upper) {
      where.args[1] = at;
      where.args[3] = compute(Op::Subtract, DType::Int64, {columns, at});
    }
    Value zeros;
    zeros.kind = Value::Kind::Elements;
    zeros.dtype = made.dtype;
    zeros.elements =
        std::make_shared<Elements>(Elements{{}, {}, {}, cast_to(integer(0), made.dtype), false});
    assign_elements(view(made, where).array, zeros, true);
    copy(first, compute(Op::Add, DType::Int64, {first, integer(1)}));
  });
  return made;
}

}  // namespace ufuse::numpy_shim::program
