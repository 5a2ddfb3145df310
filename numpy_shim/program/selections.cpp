// Arrays as indices: which elements do `x[i]`, `x[i, j]` and `x[:, mask]` name, and how does NumPy
// lay out what is read of them?
//
// As in advanced_index.h: slices, new axes and single integers of the key leave a view, whose other
// axes are indexed by arrays of integers, or by one mask. Here lengths and strides are known at run
// time only, so the program exits where NumPy's layout or order of writing would be another one.
#include <algorithm>

#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

bool Writer::has_arrays(const std::vector<Value>& key) {
  return std::ranges::any_of(key, is_array);
}

Writer::Selection Writer::select(const Value& array, const std::vector<Value>& key) {
  Selection found;
  std::vector<Value> basic;
  const Value whole = whole_slice();
  // Arrays and single integers that are no neighbours put their axes first.
  enum class Indexed { Not, Now, Before } indexed = Indexed::Not;
  for (const Value& part : key) {
    if (part.is_number() || is_array(part)) {
      if (indexed == Indexed::Before) fail("index arrays with a slice between them");
      indexed = Indexed::Now;
    } else if (indexed == Indexed::Now) {
      indexed = Indexed::Before;
    }
    if (!is_array(part)) {
      basic.push_back(part);
      if (indexed == Indexed::Not) ++found.first;
      continue;
    }
    if (part.rank == 0) fail("an index array without axes");
    const bool is_mask = part.dtype == DType::Bool;
    if (!is_mask && (!is_in(part.dtype, ir::kInteger) || part.dtype == DType::UInt64))
      fail("an array of something else than signed integers or truths as an index");
    if (is_mask) found.mask_axes = part.rank;
    found.arrays.push_back(part);
    basic.insert(basic.end(), is_mask ? static_cast<std::size_t>(part.rank) : 1, whole);
  }
  if (found.mask_axes != 0 && found.arrays.size() > 1) fail("a mask beside other index arrays");
  found.view = view(array, at(array, basic));
  int rank = 0;
  for (Value& index : found.arrays) {
    if (found.arrays.size() > 1) index = as_elements_of(index, DType::Int64);
    index = index.rank > 1 ? as_numpy_lays_out(index) : in_memory(index);
    rank = std::max(rank, index.rank);
  }
  if (found.mask_axes != 0)
    found.lengths = {count_true(found)};
  else
    for (int axis = 0; axis < rank; ++axis)
      found.lengths.push_back(broadcast_length(found.arrays, rank, axis));
  return found;
}

// How long an axis is of what some arrays of up to `rank` axes broadcast to.
Reg Writer::broadcast_length(const std::vector<Value>& arrays, int rank, int axis) {
  Reg all = kNone;
  for (const Value& array : arrays) {
    const int missing = rank - array.rank;
    if (axis < missing) continue;
    const Reg one = length(array, axis - missing);
    all = all == kNone ? one : primitive(Primitive::Broadcast, DType::Int64, {all, one});
  }
  return all;
}

Step Writer::at_positions(Step::Kind kind, const Selection& selection) {
  Step step;
  step.kind = kind;
  step.axis = selection.first;
  for (const Value& index : selection.arrays) step.arrays.push_back(index.array);
  step.args = selection.lengths;
  if (kind != Step::Kind::Scatter) step.array = selection.view.array;
  if (kind != Step::Kind::Scatter) step.exit = exit();
  return step;
}

Reg Writer::count_true(const Selection& selection) {
  Step step = at_positions(Step::Kind::CountTrue, selection);
  step.result = fresh(DType::Int64);
  return emit(std::move(step)).result;
}

// The lengths of x[key]: of the axes before those that are indexed, of the positions, and behind.
std::vector<Reg> Writer::lengths_of(const Selection& selection) {
  std::vector<Reg> lengths;
  for (int axis = 0; axis < selection.first; ++axis)
    lengths.push_back(length(selection.view, axis));
  lengths.insert(lengths.end(), selection.lengths.begin(), selection.lengths.end());
  for (int axis = selection.first + selection.indexed(); axis < selection.view.rank; ++axis)
    lengths.push_back(length(selection.view, axis));
  return lengths;
}

// x[key], a new array whose axes are first those of the positions.
Value Writer::gathered(const Selection& selection) {
  const std::size_t own = selection.lengths.size();
  const bool turns = selection.first != 0;
  std::vector<Reg> lengths = lengths_of(selection);
  if (own > 1)
    for (const Value& index : selection.arrays) in_rows(index.array);
  if (turns && lengths.size() != 2)
    fail("an index array behind a slice, in an array of more than two axes");
  if (turns) std::ranges::reverse(lengths);
  const Value made = new_array(selection.view.dtype, lengths);
  Step step = at_positions(Step::Kind::Gather, selection);
  step.target = made.array;
  emit(std::move(step));
  return turns ? transposed(made) : made;
}

// What is written to x[key], after everything that may fail: numbers, or an array that broadcasts.
Writer::Written Writer::written_to(const Selection& selection, const Value& v) {
  const Value& view = selection.view;
  mark_written(view);
  Written written{selection, {}, kNone};
  Step apart;
  apart.kind = Step::Kind::Apart;
  apart.target = view.array;
  for (const Value& index : selection.arrays) apart.arrays.push_back(index.array);
  if (v.is_number()) {
    written.number = assigned_number(v, view.dtype);
  } else {
    const bool is_as_it_is = v.kind == Value::Kind::Array && v.dtype == view.dtype && v.rank > 0;
    written.values = is_as_it_is ? v : in_memory(assigned_elements(v, view.dtype));
    check_broadcast(written.values, lengths_of(selection));
    if (is_as_it_is) apart.arrays.push_back(v.array);
  }
  apart.exit = exit();
  emit(std::move(apart));
  if (selection.mask_axes != 0) return written;
  emit(at_positions(Step::Kind::Within, selection));
  // Where positions are the same the last one counts, in an order that depends on strides.
  if (selection.arrays.size() > 1 || selection.lengths.size() > 1) {
    for (const Value& index : selection.arrays) in_rows(index.array);
    if (written.values.rank > 1) in_rows(written.values.array);
  }
  return written;
}

// Exits where an array does not broadcast to these lengths.
void Writer::check_broadcast(const Value& v, const std::vector<Reg>& lengths) {
  const std::size_t rank = static_cast<std::size_t>(v.rank);
  if (rank > lengths.size()) fail("an array of more axes is assigned");
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const Reg own = length(v, static_cast<int>(axis));
    const Reg is_one = compute(Op::Equal, DType::Bool, {own, integer(1)});
    const Reg fits = compute(Op::Equal, DType::Bool, {own, lengths[lengths.size() - rank + axis]});
    guard(compute(Op::LogicalOr, DType::Bool, {is_one, fits}));
  }
}

void Writer::scatter(const Written& written) {
  Step step = at_positions(Step::Kind::Scatter, written.selection);
  step.target = written.selection.view.array;
  step.array = written.values.array;
  if (written.number != kNone) step.args.push_back(written.number);
  emit(std::move(step));
}

// `x[key] op= v`: NumPy reads the elements, changes what it has read, and writes it.
void Writer::augment_selection(const Statement& s, const Value& array,
                               const std::vector<Value>& key) {
  if (may_change(s.value)) fail("a function that changes arrays, beside an index array");
  const Selection selection = select(array, key);
  const Value old = gathered(selection);
  if (s.op == Operator::MatrixMultiply) fail("such an array is changed");
  const Value made = elements(array_operator(s.op, {old, value(s.value)}));
  if (made.dtype != array.dtype)
    fail("the result is of another kind than the array that is changed");
  fit(old.array, made);
  assign_elements(old.array, made, true);
  scatter(written_to(selection, old));
}

}  // namespace ufuse::numpy_shim::program
