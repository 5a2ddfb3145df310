// What does a `for` go over, how many rounds are there, and what does each begin with?
//
// Ranges, arrays, lists and tuples, and what Python makes of them: enumerate, zip, and a range in
// reverse. A list may become longer or shorter in the meantime. Where a loop goes over nothing
// else, it looks how many items there are before each round; inside of zip and the like, Python
// goes on once their number has changed.
#include <algorithm>
#include <utility>

#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

using ir::program::Over;

namespace {

constexpr const char* kNotIterable =
    "it goes over something else than a range, an array, or a list or tuple of numbers";

bool is_iterable(const Value& v) {
  return v.kind == Value::Kind::List || (v.kind == Value::Kind::Array && v.rank > 0);
}

// Whether no number of a range is negative, as far as the text tells.
bool counts_up(const Value& start, const Value& stop, const Value& step) {
  return step.known && ((*step.known > 0 && start.non_negative) ||
                        (*step.known < 0 && stop.known && *stop.known >= -1));
}

}  // namespace

Writer::Iteration Writer::iteration(const Expr& e, Place place) {
  if (e.kind == Expr::Kind::Call) {
    if (is_builtin(e.parts[0], "range")) return over_range(e);
    if (is_builtin(e.parts[0], "zip")) return zipped(e);
    if (is_builtin(e.parts[0], "reversed") && e.parts.size() == 2)
      return reversed(iteration(e.parts[1], Place::Inside));
    if (is_builtin(e.parts[0], "enumerate") && (e.parts.size() == 2 || e.parts.size() == 3)) {
      Iteration part = iteration(e.parts[1], Place::Inside);
      if (e.parts.size() == 2) return counted(std::move(part), integer(0), true);
      const bool is_named = e.parts[2].kind == Expr::Kind::Keyword && e.parts[2].name == "start";
      const Value start = value(is_named ? e.parts[2].parts[0] : e.parts[2]);
      const Reg first = whole_index(start);
      return counted(std::move(part), own_register(python_number(DType::Int64, first)),
                     start.non_negative);
    }
  }
  const Value items = argument(e);  // of a list that is written here nobody else knows
  if (items.kind == Value::Kind::Tuple) return over_tuple(items);
  if (!is_iterable(items)) fail(kNotIterable);
  Iteration it = over_items(own_copy(items), place);
  if (it.count == kNone) it.count = length(it.items, 0);
  return it;
}

// With strict=True Python goes on where the parts have different lengths.
Writer::Iteration Writer::zipped(const Expr& e) {
  std::vector<Iteration> parts;
  bool strict = false;
  for (std::size_t i = 1; i < e.parts.size(); ++i) {
    const Expr& part = e.parts[i];
    if (part.kind != Expr::Kind::Keyword) {
      parts.push_back(iteration(part, Place::Inside));
      continue;
    }
    if (part.name != "strict" || part.parts[0].kind != Expr::Kind::Bool)
      fail("zip() with another keyword than strict=True");
    strict = part.parts[0].integer != 0;
  }
  if (parts.empty()) fail("zip() of nothing");
  for (std::size_t i = 1; strict && i < parts.size(); ++i)
    guard(compute(Op::Equal, DType::Bool, {parts[i].count, parts[0].count}));
  Iteration it = side_by_side(std::move(parts));
  it.over.strict = strict;
  return it;
}

Writer::Iteration Writer::over_range(const Expr& e) {
  std::vector<Value> given;
  for (std::size_t i = 1; i < e.parts.size(); ++i) {
    given.push_back(value(e.parts[i]));
    if (!given.back().is_number() || !is_in(given.back().dtype, ir::kInteger))
      fail("range() of something else than integers");
    given.back().reg = cast_to(given.back().reg, DType::Int64);
  }
  if (given.empty() || given.size() > 3) fail("range() of so many numbers");
  const Value start = given.size() > 1 ? given[0] : python_int(0);
  const Value stop = given.size() > 1 ? given[1] : given[0];
  const Value step = given.size() > 2 ? given[2] : python_int(1);
  if (!step.known) guard(compute(Op::NotEqual, DType::Bool, {step.reg, integer(0)}));
  if (step.known && *step.known == 0) fail("range() with a step of 0");
  Iteration it;
  it.over.start = own_register(start);
  it.over.step = own_register(step);
  it.over.count =
      primitive(Primitive::Rounds, DType::Int64, {it.over.start, stop.reg, it.over.step});
  it.count = it.over.count;
  it.counts_up = counts_up(start, stop, step);
  it.step_known = step.known;
  return it;
}

// An array or a list that nobody assigns to. How many rounds there are is not said of an array.
Writer::Iteration Writer::over_items(const Value& items, Place place) {
  Iteration it;
  it.items = items;
  if (items.kind == Value::Kind::Array) {
    it.over.kind = Over::Kind::Array;
    it.over.array = items.array;
    return it;
  }
  it.over.kind = Over::Kind::List;
  it.over.list = items.reg;
  it.count = place == Place::Alone ? items.reg : own_register(list_length(items));
  return it;
}

// Of a few numbers, or of tuples of these, of one type.
Writer::Iteration Writer::over_tuple(const Value& tuple) {
  Iteration it;
  it.items = own_copy(tuple);
  it.over.kind = Over::Kind::Tuple;
  for (const Value& item : it.items.parts) it.over.items.push_back(where(item));
  it.count = integer(static_cast<std::int64_t>(tuple.parts.size()));
  return it;
}

// The one at a position.
Value Writer::chosen(const std::vector<Value>& parts, Reg position) {
  if (parts.empty()) fail("it goes over an empty tuple");
  Value made = parts[0];
  for (const Value& part : parts) {
    if (part.kind != made.kind || part.parts.size() != made.parts.size() ||
        (part.is_number() && (part.dtype != made.dtype || part.box != made.box)))
      fail("it goes over a tuple of several types");
    made.non_negative &= part.non_negative;
  }
  if (made.kind == Value::Kind::Tuple) {
    for (std::size_t i = 0; i < made.parts.size(); ++i) {
      std::vector<Value> column;
      for (const Value& part : parts) column.push_back(part.parts[i]);
      made.parts[i] = chosen(column, position);
    }
    return made;
  }
  if (!made.is_number() || made.box == Box::Either) fail("it goes over a tuple of several types");
  made.known.reset();
  made.reg = own_register(parts[0]);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Step step;
    step.kind = Step::Kind::If;
    step.args = {
        compute(Op::Equal, DType::Bool, {position, integer(static_cast<std::int64_t>(i))})};
    step.body = written([&] { copy(made.reg, parts[i].reg); });
    emit(std::move(step));
  }
  return made;
}

Writer::Iteration Writer::counted(Iteration part, Reg start, bool counts_up) {
  Iteration it;
  it.over.kind = Over::Kind::Enumerate;
  it.over.start = start;
  it.over.parts = {part.over};
  it.count = part.count;
  it.counts_up = counts_up;
  it.parts.push_back(std::move(part));
  return it;
}

Writer::Iteration Writer::side_by_side(std::vector<Iteration> parts) {
  Iteration it;
  it.over.kind = Over::Kind::Zip;
  it.count = parts[0].count;
  for (Iteration& part : parts) {
    it.over.parts.push_back(part.over);
    if (&part != &parts[0])
      it.count = compute_primitive(Primitive::MinimumFirst, DType::Int64, {it.count, part.count});
  }
  it.parts = std::move(parts);
  return it;
}

// The last number comes first.
Writer::Iteration Writer::reversed(const Iteration& range) {
  if (range.over.kind != Over::Kind::Range) fail("reversed() of something else than a range");
  Iteration it = range;
  const Reg before = compute(Op::Subtract, DType::Int64, {range.count, integer(1)});
  const Reg way = compute(Op::Multiply, DType::Int64, {before, range.over.step});
  it.over.start = compute(Op::Add, DType::Int64, {range.over.start, way});
  it.over.step = compute(Op::Negative, DType::Int64, {range.over.step});
  if (it.step_known) it.step_known = -*it.step_known;
  return it;
}

// Registers for what the loop itself goes over. `items`: how many arrays and lists stand before it.
Writer::Iteration Writer::entered(const Walked& walked, int& items, Place place) {
  std::vector<Iteration> parts;
  switch (walked.kind) {
    case Walked::Kind::Range: {
      Iteration it;
      it.count = it.over.count = fresh(DType::Int64);
      it.over.start = fresh(DType::Int64);
      it.over.step = fresh(DType::Int64);
      it.counts_up = walked.counts_up;
      return it;
    }
    case Walked::Kind::Items: {
      const Reg count = fresh(DType::Int64);
      const Value v = value_of(walked.items, -1);
      if (!is_iterable(v)) fail(kNotIterable);
      program_.inputs.push_back({ir::program::Input::From::Iterable, items++, where(v)});
      Iteration it = over_items(v, place);
      if (it.count != kNone) return it;
      it.count = place == Place::Alone ? count : length(v, 0);
      return it;
    }
    case Walked::Kind::Enumerate:
      return counted(entered(walked.parts[0], items, Place::Inside), fresh(DType::Int64),
                     walked.counts_up);
    case Walked::Kind::Zip:
      for (const Walked& part : walked.parts) parts.push_back(entered(part, items, Place::Inside));
      return side_by_side(std::move(parts));
    case Walked::Kind::Nothing:
      break;
  }
  fail(kNotIterable);
}

// ---- Rounds ----

Value Writer::element(const Iteration& over, Reg position) {
  switch (over.over.kind) {
    case Over::Kind::Range: {
      Reg moved = position;
      if (!over.step_known || *over.step_known != 1)
        moved = compute(Op::Multiply, DType::Int64, {position, over.over.step});
      Value v =
          python_number(DType::Int64, compute(Op::Add, DType::Int64, {over.over.start, moved}));
      v.non_negative = over.counts_up;
      return v;
    }
    case Over::Kind::List:
      return list_item(over.items, position);
    case Over::Kind::Tuple:
      return chosen(over.items.parts, position);
    case Over::Kind::Array:
      break;
    case Over::Kind::Enumerate:
    case Over::Kind::Zip: {
      Value v;
      v.kind = Value::Kind::Tuple;
      if (over.over.kind == Over::Kind::Enumerate) {
        v.parts.push_back(python_number(DType::Int64, primitive(Primitive::AddChecked, DType::Int64,
                                                                {over.over.start, position})));
        v.parts[0].non_negative = over.counts_up;
      }
      for (const Iteration& part : over.parts) v.parts.push_back(element(part, position));
      return v;
    }
  }
  return row_of(over.items, position);
}

// What an array has at a position along its first axis: an element, or a view.
Value Writer::row_of(const Value& array, Reg position) {
  if (array.rank == 1) return load(array, {position});
  At at;
  at.args = {position};
  at.axes = {ir::program::Axis::Index};
  for (int axis = 1; axis < array.rank; ++axis) whole_axis(array, axis, at);
  return view(array, at);
}

// Before a round, and behind the last one: whether there are as many items as at the beginning.
void Writer::check_lengths(const Iteration& over) {
  for (const Iteration& part : over.parts) {
    check_lengths(part);
    if (part.over.kind == Over::Kind::List)
      guard(compute(Op::Equal, DType::Bool, {list_length(part.items).reg, part.count}));
  }
}

// How many there are at this time.
Reg Writer::rounds_of(const Rounds& rounds) {
  if (dtype_of(rounds.count) == DType::Int64) return rounds.count;
  Value list;
  list.reg = rounds.count;
  return list_length(list).reg;
}

}  // namespace ufuse::numpy_shim::program
