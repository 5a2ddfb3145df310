// Functions of NumPy's that put new arrays together: parts of others one behind the other, and
// triangles of a matrix.
#include <algorithm>

#include "numpy_shim/program/writer.h"

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
  if (given.size() == 2) {
    if (!given[1].is_int() || !given[1].known) fail("an axis that is not written in the text");
    const std::int64_t known = *given[1].known;
    if (known < -parts[0].rank || known >= parts[0].rank) fail("an axis that is not there");
    axis = static_cast<int>(known < 0 ? known + parts[0].rank : known);
  }
  return behind_each_other(parts, axis);
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

// np.triu and np.tril of a matrix: zeros below or above a diagonal.
Value Writer::triangle(bool upper, const std::vector<Value>& given) {
  if (given.empty() || given.size() > 2 || !is_array(given[0]) || given[0].rank != 2)
    fail("a triangle of something else than a matrix");
  const Value diagonal = given.size() == 2 ? given[1] : python_int(0);
  if (!diagonal.is_int()) fail("a diagonal whose number is no integer of Python's");
  const bool keeps = std::exchange(keeps_, false);  // it is laid out in rows, whatever this is
  const Value made = in_memory(elements(given[0]));
  keeps_ = keeps;
  const Reg rows = length(made, 0), columns = length(made, 1);
  // The first column of the diagonal in the row at hand.
  const Reg first = fresh(DType::Int64);
  copy(first, upper ? diagonal.reg
                    : primitive(Primitive::AddChecked, DType::Int64, {diagonal.reg, integer(1)}));
  primitive(Primitive::AddChecked, DType::Int64, {first, rows});
  Step each;
  each.kind = Step::Kind::Count;
  each.result = fresh(DType::Int64);
  each.args = {rows};
  copy(each.result, integer(0));
  ++nesting_;
  each.body = written([&] {
    const Reg at = compute_primitive(
        Primitive::MinimumFirst, DType::Int64,
        {compute_primitive(Primitive::MaximumFirst, DType::Int64, {first, integer(0)}), columns});
    At where;
    where.axes = {ir::program::Axis::Index, ir::program::Axis::Slice};
    where.left = 1;
    where.args = {each.result, integer(0), integer(1), at};
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
  --nesting_;
  emit(std::move(each));
  return made;
}

}  // namespace ufuse::numpy_shim::program
