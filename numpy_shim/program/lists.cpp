// Python's lists: of numbers, of tuples of these, or of such lists. A list is what Python has at
// that time: it is read and written in place, and each item that is read is looked at again, since
// it may be another one by then. Items that are of another type than the first one was when the
// program was entered, and NaNs, are left to Python.
#include <algorithm>

#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

// Whether the items of two lists are of one type.
bool Writer::holds_the_same(const Value& a, const Value& b) {
  return std::ranges::equal(a.parts, b.parts, [](const Value& x, const Value& y) {
    return x.kind == y.kind && x.dtype == y.dtype && x.box == y.box && holds_the_same(x, y);
  });
}

// `variable`: whose it is, or -1.
Value Writer::list_given(const Given& given, int variable) {
  program_.uses_lists = true;
  Value v;
  v.kind = Value::Kind::List;
  v.dtype = DType::UInt64;
  v.reg = variable < 0 ? fresh(v.dtype) : register_of(variable, v.dtype);
  for (const Given& item : given.parts) v.parts.push_back(item_given(item));
  return v;
}

// What is known of all items, of which there is no register.
Value Writer::item_given(const Given& given) {
  Value v = numpy_number(given.dtype, kNone);
  v.box = given.box;
  if (given.kind == Given::Kind::Number) return v;
  v.kind = given.kind == Given::Kind::List ? Value::Kind::List : Value::Kind::Tuple;
  v.dtype = DType::UInt64;
  for (const Given& part : given.parts) v.parts.push_back(item_given(part));
  return v;
}

Step Writer::list_step(Step::Kind kind, std::vector<Reg> args) {
  Step step;
  step.kind = kind;
  step.args = std::move(args);
  return step;
}

Value Writer::list_item(const Value& list, Reg index) {
  if (list.parts.empty()) fail("an item of a list that is empty at first");
  return read_item(list.parts[0], list.reg, index);
}

// A tuple in a list is read as a whole.
Value Writer::read_item(const Value& like, Reg from, Reg index) {
  Value v = like;
  Step step = list_step(Step::Kind::ListItem, {from, index});
  step.result = fresh(v.dtype);
  step.of_numpy = v.is_number() && v.box == Box::NumPy;
  step.exit = exit();
  if (v.kind != Value::Kind::Tuple) {
    v.reg = emit(std::move(step)).result;
    return v;
  }
  step.axis = static_cast<int>(v.parts.size());
  const Reg tuple = emit(std::move(step)).result;
  for (std::size_t i = 0; i < v.parts.size(); ++i)
    v.parts[i] = read_item(like.parts[i], tuple, integer(static_cast<std::int64_t>(i)));
  return v;
}

Value Writer::list_length(const Value& list) {
  Step step = list_step(Step::Kind::ListLength, {list.reg});
  step.result = fresh(DType::Int64);
  Value v = python_number(DType::Int64, emit(std::move(step)).result);
  v.non_negative = true;
  return v;
}

// What a statement of the loop's own text does to a list comes last. What functions do that it
// calls is taken back where something behind it is left to Python.
bool Writer::is_noted() {
  const bool noted = scope_.instance != 0;
  notes_items_ |= noted;
  return noted;
}

// The item that is to become this number. `before`: what the statement assigns before it.
Writer::Target Writer::list_target(const Value& list, Reg at, const Value& v,
                                   const std::vector<Target>& before) {
  if (list.parts.empty() || !list.parts[0].is_number())
    fail("an item that is a list or a tuple is replaced");
  check_storable(v);
  Target made;
  made.value = own_copy(v);
  made.list = {own_register(list), at, made.value.reg};
  Step step = list_step(Step::Kind::ObjectFor, made.list);
  // It may be one of those, and may be no float of Python's then. What is noted stays as it is.
  step.aside = is_noted() || std::ranges::any_of(before, [](const Target& each) {
                 return !each.list.empty() &&
                        !(each.value.is_python() && each.value.dtype == DType::Float64);
               });
  made.list.push_back(object_of(std::move(step), made.value));
  return made;
}

// The object that a number becomes, Python's or NumPy's.
Reg Writer::object_of(Step step, const Value& v) {
  step.result = fresh(DType::UInt64);
  step.exit = exit();
  const Reg result = step.result;
  const auto make = [&](bool of_numpy) {
    step.of_numpy = of_numpy;
    emit(step);
  };
  if (v.box != Box::Either) {
    make(v.box == Box::NumPy);
    return result;
  }
  Step whose;
  whose.kind = Step::Kind::If;
  whose.args = {v.numpy};
  whose.body = written([&] { make(true); });
  whose.other = written([&] { make(false); });
  emit(std::move(whose));
  return result;
}

void Writer::check_storable(const Value& v) const {
  if (!v.is_number() || v.dtype == DType::UInt64)
    fail("something else than a number is put into a list");
}

Value Writer::list_method(const Value& list, const std::string& name, const Expr& e) {
  if (name != "append" || e.parts.size() != 2) fail("`" + name + "` of a list");
  if (whole_ != &e) fail("`append` in an expression");
  const Value v = value(e.parts[1]);
  check_storable(v);
  const Reg made = object_of(list_step(Step::Kind::NewObject, {v.reg}), v);
  for (const auto kind : {Step::Kind::NoteEnd, Step::Kind::AppendItem}) {
    if (kind == Step::Kind::NoteEnd && !is_noted()) continue;
    Step step = list_step(kind, {list.reg, made});
    step.exit = exit();
    emit(std::move(step));
  }
  Value nothing;
  nothing.kind = Value::Kind::Nothing;
  return nothing;
}

void Writer::note_item(const std::vector<Reg>& operands) {
  if (!is_noted()) return;
  Step note = list_step(Step::Kind::NoteItem, operands);
  note.exit = exit();
  emit(std::move(note));
}

}  // namespace ufuse::numpy_shim::program
