// Attributes: what is known of those of arrays and numbers, and what becomes of those of objects?
//
// An attribute that the program assigns is in registers from the beginning to the end, always of
// one type. The object gets it where Python goes on, and whenever somebody may look at it (Poll).
#include <algorithm>

#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {
namespace {

bool has_calls(const Expr& e) {
  return e.kind == Expr::Kind::Call || std::ranges::any_of(e.parts, has_calls);
}

}  // namespace

Value Writer::attribute(const Expr& e) {
  const Value base = in_memory(value(e.parts[0]));
  const std::string& name = e.name;
  if (base.kind == Value::Kind::Given) {
    const Given given = world_.attribute(base.given, name);
    const Assigned* assigned = assigned_attribute(given.object);
    return assigned ? own_copy(assigned->place) : outside(given, name);
  }
  const auto dimension = [&](int axis) {
    Value v = python_number(DType::Int64, length(base, axis));
    v.non_negative = true;
    return v;
  };
  if (base.kind == Value::Kind::Array) {
    if (name == "shape") {
      Value v;
      v.kind = Value::Kind::Tuple;
      for (int axis = 0; axis < base.rank; ++axis) v.parts.push_back(dimension(axis));
      return v;
    }
    if (name == "ndim") return python_int(base.rank);
    if (name == "T") return transposed(base);
    if (name == "size") {
      Value v = python_int(1);
      for (int axis = 0; axis < base.rank; ++axis)
        v = integer_binary(Operator::Multiply, v, dimension(axis));
      v.non_negative = true;
      return v;
    }
    fail("the attribute `" + name + "` of an array");
  }
  if (base.is_number() && (name == "real" || name == "imag")) {
    if (!is_in(base.dtype, ir::kComplex)) fail("the parts of a real number");
    Value v = base;
    v.dtype = ir::real_part(base.dtype);
    v.reg = compute(name == "real" ? Op::RealPart : Op::ImagPart, v.dtype, {base.reg});
    return v;
  }
  fail("the attribute `" + name + "`");
}

// ---- Attributes that are assigned ----

// Registers for those that the program has been found to assign.
void Writer::begin_attributes() {
  for (const auto& [object, attribute] : marks_.assigned) {
    Assigned made;
    made.object = object;
    made.place = value_of(attribute.given, -1);
    set_origin(made.place, 0, kElsewhere);
    if (attribute.is_tagged) {
      made.place.box = Box::Either;
      made.place.numpy = fresh(DType::Bool);
      world_.accept_either(object);
    }
    made.aside = made.place;
    const Where at = where(made.place);
    program_.variables.push_back("." + attribute.given.name);
    program_.attributes.push_back({object, at});
    program_.inputs.push_back({ir::program::Input::From::Outside, object, at});
    assigned_.push_back(std::move(made));
  }
}

const Writer::Assigned* Writer::assigned_attribute(int object) const {
  const auto it = std::ranges::find(assigned_, object, &Assigned::object);
  return it == assigned_.end() ? nullptr : &*it;
}

// Which attribute a target is; all is written anew where nobody knew that it is assigned.
int Writer::attribute_target(const Expr& target) {
  const Value base = value(target.parts[0]);
  if (base.kind != Value::Kind::Given || !world_.is_assignable(base.given, target.name))
    fail("the attribute `" + target.name + "` is assigned, for which code may run");
  const Given given = world_.attribute(base.given, target.name);
  if (given.kind != Given::Kind::Number && given.kind != Given::Kind::Array)
    fail("the attribute `" + target.name + "`, which is no number or array, is assigned");
  const auto [it, is_new] =
      marks_.assigned.try_emplace(given.object, Marks::Attribute{given, false});
  const bool in_function = scope_.instance != 0;
  if (is_new || (in_function && !it->second.in_function)) {
    it->second.in_function |= in_function;
    throw Restart();
  }
  return given.object;
}

// It is this from now on.
void Writer::set_attribute(int object, const Value& v) {
  const Value kept = in_memory(likely(v));
  const Value& place = assigned_attribute(object)->place;
  if (kept.kind != place.kind || kept.dtype != place.dtype || kept.rank != place.rank)
    throw TypesChange(line_);
  if (kept.is_number()) {
    if (place.box == Box::Either) {
      copy(place.numpy, is_numpys(kept));
    } else if (kept.box != place.box) {
      if (!has_twin(place.dtype)) throw TypesChange(line_);
      marks_.assigned.at(object).is_tagged = true;
      throw Restart();
    }
    return copy(place.reg, kept.reg);
  }
  if (place.writeable && !kept.writeable) fail("an attribute becomes an array for reading only");
  copy_array(place.array, kept.array);
}

// At the beginning of a statement of the loop's own text: what Python finds where the program exits
// before its end, though functions that it calls have assigned attributes.
void Writer::put_attributes_aside(const Statement& s) {
  if (assigned_.empty()) return;
  const bool has_call = has_calls(s.value) || std::ranges::any_of(s.targets, has_calls);
  for (Assigned& each : assigned_) {
    const bool changes = has_call && marks_.assigned.at(each.object).in_function;
    each.aside = changes ? own_copy(each.place) : each.place;
  }
}

}  // namespace ufuse::numpy_shim::program
