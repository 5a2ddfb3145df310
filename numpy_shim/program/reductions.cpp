// Reductions: what do `x.sum()`, `np.max(x, axis=0)` and the like mean, and in which order does
// NumPy combine the elements?
//
// NumPy's own inner loops do it, along runs of elements as its iterator hands them out. Where it
// would copy elements for that, the program exits (codegen/runtime/arrays.h).
#include <algorithm>
#include <functional>

#include "numpy_shim/program/writer.h"
#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim::program {
namespace {

struct ReductionName {
  std::string_view name;
  ir::Reduction reduction;
  bool is_arithmetic;
};
constexpr ReductionName kReductions[] = {
    {"sum", ir::Reduction::Sum, true},   {"mean", ir::Reduction::Sum, true},
    {"prod", ir::Reduction::Prod, true}, {"min", ir::Reduction::Min, false},
    {"max", ir::Reduction::Max, false},  {"amin", ir::Reduction::Min, false},
    {"amax", ir::Reduction::Max, false}, {"any", ir::Reduction::Any, false},
    {"all", ir::Reduction::All, false},  {"var", ir::Reduction::Sum, true},
    {"std", ir::Reduction::Sum, true},
};

// Larger arrays are left to NumPy: as in codegen/runtime/arrays.h.
constexpr std::int64_t kMostBytes = (std::int64_t{256} << 10) - 1;

constexpr int kBuffer = 8192;  // elements: np.getbufsize()

}  // namespace

bool Writer::is_reduction(const std::string& name) {
  return std::ranges::find(kReductions, name, &ReductionName::name) != std::end(kReductions);
}

// What stands behind the array in a call: `axis`, by place or by name, and `keepdims`.
Writer::Reduced Writer::reduced_axes(const std::string& name, const Value& v,
                                     const Arguments& rest) const {
  Reduced reduced;
  Value axis;
  axis.kind = Value::Kind::Nothing;
  if (rest.places.size() > 1) fail("`" + name + "` is called with more arguments than `axis`");
  if (!rest.places.empty()) axis = rest.places[0];
  for (const auto& [keyword, given] : rest.keywords) {
    if (keyword == "axis" && rest.places.empty()) {
      axis = given;
    } else if (keyword == "keepdims" && given.is_python() && given.dtype == DType::Bool &&
               given.known) {
      reduced.stay = *given.known != 0;
    } else {
      fail("`" + name + "` is called with the keyword `" + keyword + "`");
    }
  }
  const auto rank = static_cast<std::size_t>(v.rank);
  reduced.axes.assign(rank, axis.kind == Value::Kind::Nothing);
  std::vector<Value> axes = {axis};
  if (axis.kind == Value::Kind::Nothing) axes.clear();
  if (axis.kind == Value::Kind::Tuple) axes = axis.parts;
  if (axes.empty() && axis.kind == Value::Kind::Tuple) fail("a reduction along no axis");
  for (const Value& each : axes) {
    const auto at = static_cast<std::size_t>(axis_of(each, v.rank));
    if (reduced.axes[at]) fail("an axis that is there twice");
    reduced.axes[at] = true;
  }
  return reduced;
}

// From the identity on where the reduction has one.
Value Writer::reduction(const std::string& name, const Value& v, const Arguments& rest) {
  if (!is_array(v) || v.rank == 0) fail("`" + name + "` of something else than an array");
  return reduced_by(name, v, reduced_axes(name, v, rest));
}

Value Writer::reduced_by(const std::string& name, const Value& given, const Reduced& reduced) {
  if (!is_plain(given.dtype)) fail("an array of " + std::string(ir::info(given.dtype).name));
  const bool is_spread = name == "var" || name == "std";
  const bool is_mean = name == "mean" || is_spread;
  const auto& row = *std::ranges::find(kReductions, name, &ReductionName::name);
  const Value v = name == "any" || name == "all" ? truths(given) : given;
  if (is_mean && !is_in(v.dtype, ir::kFloat))
    fail("`" + name + "` of " + std::string(ir::info(v.dtype).name));
  // NumPy adds small integers up in larger ones.
  if (row.is_arithmetic && ir::size_of(v.dtype) < sizeof(std::int64_t) &&
      !is_in(v.dtype, ir::kInexact)) {
    const DType sums = is_in(v.dtype, ir::kUInt) ? DType::UInt64 : DType::Int64;
    return reduced_by(name, as_elements_of(v, sums), reduced);
  }
  if (is_spread) return variance(name, v, reduced);
  const Ufunc& f = world_.ufunc(std::string(ir::reduction_info(row.reduction).name));
  const std::string types(3, ir::info(v.dtype).code);
  const auto loop = std::ranges::find(f.loops, types, &UfuncLoop::types);
  if (loop == f.loops.end()) fail("`" + name + "` of " + std::string(ir::info(v.dtype).name));
  Step step;
  step.kind = Step::Kind::Reduce;
  step.row = world_.loops().add({f.name, {v.dtype, v.dtype}, {v.dtype}, loop->loop, loop->data});
  if (ir::reduction_info(row.reduction).identity != ir::Identity::None)
    step.args = {constant(v.dtype, ir::identity_bits(row.reduction, v.dtype))};
  step.exit = exit();
  if (!reduced.all() || reduced.stay) {
    const Value made = along_axes(std::move(step), v, reduced);
    return is_mean ? mean_of(made, lengths_of(v), reduced) : made;
  }
  const Value array = as_numpy_lays_out(v);
  step.arrays = {array.array};
  if (world_.version.cuts_sums_at_buffers()) step.run = kBuffer;
  step.result = fresh(v.dtype);
  const Value made = numpy_number(v.dtype, emit(std::move(step)).result);
  return is_mean ? mean_of(made, lengths_of(array), reduced) : made;
}

// Sums of elements that have not been computed yet are added up as these are. NumPy adds them one
// after the other where the last axis stays; runs along the last axis it adds in another order.
Value Writer::along_axes(Step step, const Value& v, const Reduced& reduced) {
  const std::vector<Reg> all = lengths_of(v);
  std::vector<Reg> lengths;
  for (std::size_t axis = 0; axis < all.size(); ++axis) {
    if (!reduced.axes[axis])
      lengths.push_back(all[axis]);
    else if (reduced.stay)
      lengths.push_back(integer(1));
  }
  const bool is_sum = world_.loops()[step.row].ufunc == "add";
  const bool adds_up = is_sum && v.kind == Value::Kind::Elements && !reduced.axes.back();
  const Value made = adds_up ? filled(v.dtype, lengths, 0) : new_array(v.dtype, lengths);
  const auto in_memory = [&] {
    const Value array = as_numpy_lays_out(v);
    step.arrays = {array.array};
    step.target = with_reduced_axes(made, reduced, nullptr).array;
    program_.computes_arrays = true;
    emit(std::move(step));
  };
  if (!adds_up) {
    in_memory();
    return made;
  }
  for (ArrayReg a : v.elements->arrays) in_rows(a);
  Step way;
  way.kind = Step::Kind::If;
  const Reg most = integer(kMostBytes / static_cast<std::int64_t>(ir::size_of(v.dtype)));
  way.args = {compute(Op::LogicalAnd, DType::Bool,
                      {compute(Op::NotEqual, DType::Bool, {all.back(), integer(1)}),
                       compute(Op::LessEqual, DType::Bool, {product_of(all), most})})};
  way.body = written([&] { add_up(with_reduced_axes(made, reduced, &all), v); });
  way.other = written(in_memory);
  emit(std::move(way));
  return made;
}

// An array with axes for those that have been reduced: of one element, or of so many that are the
// same one.
Value Writer::with_reduced_axes(const Value& made, const Reduced& reduced,
                                const std::vector<Reg>* lengths) {
  At where;
  int own = 0;
  for (std::size_t axis = 0; axis < reduced.axes.size(); ++axis) {
    if (!reduced.axes[axis] || (reduced.stay && lengths == nullptr)) {
      whole_axis(made, own++, where);
      continue;
    }
    if (reduced.stay) {
      ++own;
      where.axes.push_back(ir::program::Axis::Index);
      where.args.push_back(integer(0));
    }
    where.axes.push_back(lengths == nullptr ? ir::program::Axis::New : ir::program::Axis::Repeat);
    if (lengths != nullptr) where.args.push_back((*lengths)[axis]);
    ++where.left;
  }
  return view(made, where);
}

// target += v, where target repeats its elements.
void Writer::add_up(const Value& target, const Value& v) {
  const bool keeps = std::exchange(keeps_, false);  // it is no array that NumPy would make
  const Value sums = elements(target);
  keeps_ = keeps;
  auto work = std::make_shared<Elements>(*sums.elements);
  take_in(*work, v);
  write_to(work->body, [&] {
    work->result = compute(Op::Add, v.dtype, {sums.elements->result, v.elements->result});
  });
  work->raises |= ir::may_raise(Op::Add, v.dtype, v.dtype);
  Value added = v;
  added.elements = std::move(work);
  assign_elements(target.array, added, true);
}

Reg Writer::product_of(const std::vector<Reg>& lengths) {
  Reg product = integer(1);
  for (Reg each : lengths) product = compute(Op::Multiply, DType::Int64, {product, each});
  return product;
}

// As numpy's own Python does it: divided by an integer scalar, and back to the array's dtype. The
// quotient of two doubles rounds to the one that floats would have.
Value Writer::mean_of(const Value& sums, const std::vector<Reg>& lengths, const Reduced& reduced) {
  std::vector<Reg> along;
  for (std::size_t axis = 0; axis < lengths.size(); ++axis)
    if (reduced.axes[axis]) along.push_back(lengths[axis]);
  const Reg count = product_of(along);
  guard(compute(Op::Greater, DType::Bool, {count, integer(0)}));
  const Reg divisor = cast_to(count, DType::Float64);
  if (sums.is_number()) {
    const std::vector<Reg> parts = {cast_to(sums.reg, DType::Float64), divisor};
    const Reg mean = compute(Op::Divide, DType::Float64, parts);
    finite(mean, parts);
    return numpy_number(sums.dtype, cast_to(mean, sums.dtype));
  }
  Value means = as_elements_of(sums, DType::Float64);
  auto work = std::make_shared<Elements>(*means.elements);
  write_to(work->body, [&] {
    const Reg mean = compute(Op::Divide, DType::Float64, {work->result, divisor});
    work->result = cast_to(mean, sums.dtype);
  });
  means.dtype = sums.dtype;
  means.elements = std::move(work);
  return means;
}

// As numpy's own Python does it, in two passes.
Value Writer::variance(const std::string& name, const Value& v, const Reduced& reduced) {
  const Value array = as_numpy_lays_out(v);
  Reduced around = reduced;
  around.stay = !reduced.all();
  const Value mean = reduced_by("mean", array, around);
  const Value apart = elementwise(world_.ufunc("subtract"), {array, mean});
  const Value made = reduced_by("mean", squares(apart), reduced);
  return name == "var" ? made : root(made);
}

// NumPy multiplies each by itself, which gives the same.
Value Writer::squares(const Value& v) { return elementwise(world_.ufunc("square"), {v}); }

// Of numbers that are not negative.
Value Writer::root(const Value& v) {
  if (!v.is_number()) return elementwise(world_.ufunc("sqrt"), {v});
  return numpy_number(v.dtype, compute(Op::Sqrt, v.dtype, {v.reg}));
}

// np.linalg.norm of all elements, or of those along one or two axes.
Value Writer::norm(const Value& given, const Arguments& rest) {
  if (!is_array(given) || given.rank == 0) fail("`norm` of something else than an array");
  if (is_in(given.dtype, ir::kComplex) || !is_plain(given.dtype))
    fail("`norm` of " + std::string(ir::info(given.dtype).name));
  if (!rest.places.empty()) fail("`norm` of an order");
  const Value v = is_in(given.dtype, ir::kInexact) ? given : as_elements_of(given, DType::Float64);
  if (rest.keywords.empty()) {
    if (v.rank != 1) fail("`norm` of all elements of an array of several axes");
    const Value row = in_memory(v);
    return root(product("dot", row, row));
  }
  const Reduced reduced = reduced_axes("norm", v, rest);
  const auto axis = rest.keywords.find("axis");
  if (axis == rest.keywords.end() || axis->second.kind == Value::Kind::Nothing ||
      std::ranges::count(reduced.axes, true) > 2)
    fail("`norm` of all elements, or along more than two axes");
  return root(reduced_by("sum", squares(v), reduced));
}

bool Writer::is_position(const std::string& name) { return name == "argmin" || name == "argmax"; }

// np.argmin and np.argmax of a vector, or along an axis.
Value Writer::positions(const std::string& name, const Value& v, const Arguments& rest) {
  if (!is_array(v) || v.rank == 0) fail("`" + name + "` of something else than an array");
  if (is_in(v.dtype, ir::kComplex) || !is_plain(v.dtype))
    fail("`" + name + "` of " + std::string(ir::info(v.dtype).name));
  const Reduced reduced = reduced_axes(name, v, rest);
  if (reduced.stay || std::ranges::count(reduced.axes, true) != 1)
    fail("`" + name + "` along several axes");
  const bool largest = name == "argmax";
  const auto along = std::ranges::find(reduced.axes, true) - reduced.axes.begin();
  const Value array = in_memory(v);
  std::vector<Reg> lengths = lengths_of(array);
  const Reg most = integer(kMostBytes / static_cast<std::int64_t>(ir::size_of(v.dtype)));
  guard(compute(Op::LessEqual, DType::Bool, {product_of(lengths), most}));
  guard(compute(Op::Greater, DType::Bool, {lengths[static_cast<std::size_t>(along)], integer(0)}));
  lengths.erase(lengths.begin() + along);
  if (lengths.empty())
    return numpy_number(DType::Int64, position_of_extreme(largest, array, {}, along));
  const Value made = new_array(DType::Int64, lengths);
  std::vector<Reg> index;
  const std::function<void()> deeper = [&] {
    if (index.size() < lengths.size())
      return for_each_below(lengths[index.size()], [&](Reg i) {
        index.push_back(i);
        deeper();
        index.pop_back();
      });
    Step store;
    store.kind = Step::Kind::Store;
    store.array = made.array;
    store.args = index;
    store.args.push_back(position_of_extreme(largest, array, index, along));
    emit(std::move(store));
  };
  deeper();
  return made;
}

// The first one along an axis, or the first NaN. `index`: of the other axes.
Reg Writer::position_of_extreme(bool largest, const Value& array, const std::vector<Reg>& index,
                                std::ptrdiff_t axis) {
  const Reg at = fresh(DType::Int64), best = fresh(array.dtype);
  const auto element = [&](Reg i) {
    std::vector<Reg> place = index;
    place.insert(place.begin() + axis, i);
    return load(array, place).reg;
  };
  copy(at, integer(0));
  copy(best, element(at));
  for_each_below(length(array, static_cast<int>(axis)), [&](Reg i) {
    const Reg next = element(i);
    Reg wins = compute(largest ? Op::Greater : Op::Less, DType::Bool, {next, best});
    if (is_in(array.dtype, ir::kInexact)) {
      const Reg is_nan = compute(Op::NotEqual, DType::Bool, {next, next});
      const Reg none_before = compute(Op::Equal, DType::Bool, {best, best});
      const Reg is_first = compute(Op::LogicalAnd, DType::Bool, {is_nan, none_before});
      wins = compute(Op::LogicalOr, DType::Bool, {wins, is_first});
    }
    Step way;
    way.kind = Step::Kind::If;
    way.args = {wins};
    way.body = written([&] {
      copy(best, next);
      copy(at, i);
    });
    emit(std::move(way));
  });
  return at;
}

}  // namespace ufuse::numpy_shim::program
