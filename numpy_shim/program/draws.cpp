// See draws.h. What does a call of a generator's method draw?
//
// The numbers come from the generator itself, so that it always stands where Python's own calls
// would have left it. What has been drawn cannot be taken back, and Python does a statement from
// its beginning: behind a draw a statement must not need Python any more. The text of a loop is
// changed so that most draws are statements of their own (ufuse/source/draws.py).
#include "numpy_shim/program/draws.h"

#include <algorithm>
#include <array>

#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {
namespace {

enum class Draw : std::uint8_t { Real, Uniform, Integer };
struct Row {
  std::string_view of, method;
  Draw draw;
};
constexpr std::string_view kGenerator = "Generator", kRandomState = "RandomState",
                           kRandom = "Random";
constexpr std::array kRows = {
    Row{kGenerator, "random", Draw::Real},
    Row{kGenerator, "uniform", Draw::Uniform},
    Row{kGenerator, "integers", Draw::Integer},
    Row{kRandomState, "random", Draw::Real},
    Row{kRandomState, "random_sample", Draw::Real},
    Row{kRandomState, "rand", Draw::Real},
    Row{kRandomState, "uniform", Draw::Uniform},
    Row{kRandomState, "randint", Draw::Integer},
    Row{kRandom, "random", Draw::Real},
    Row{kRandom, "uniform", Draw::Uniform},
    Row{kRandom, "randint", Draw::Integer},
    Row{kRandom, "randrange", Draw::Integer},
};

const Row* method_of(std::string_view of, std::string_view method) {
  const auto is_it = [&](const Row& row) { return row.of == of && row.method == method; };
  const auto* const row = std::ranges::find_if(kRows, is_it);
  return row == kRows.end() ? nullptr : row;
}

}  // namespace

bool draws(std::string_view of, std::string_view method) {
  return method_of(of, method) != nullptr;
}

std::vector<std::string> names_of_draws() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.method);
  return names;
}

// The register with a generator's address.
Reg Writer::generator(const Given& given) {
  const auto [known, is_new] = generators_.try_emplace(given.object, kNone);
  if (!is_new) return known->second;
  Value address = python_number(DType::UInt64, fresh(DType::UInt64));
  known->second = address.reg;
  program_.inputs.push_back({ir::program::Input::From::Outside, given.object, where(address)});
  return known->second;
}

Reg Writer::draw(Primitive p, DType dtype, std::vector<Reg> args) {
  if (scope_.instance != 0 && !jumps_.empty())
    fail("a random number is drawn in a loop of a function that it calls");
  const Reg drawn = compute_primitive(p, dtype, std::move(args));
  has_drawn_ = true;
  return drawn;
}

Value Writer::drawn(const Given& of, const std::string& method, const Expr& e) {
  const Row* const row = method_of(of.name, method);
  if (row == nullptr) fail("`" + method + "` is called");
  Arguments given = arguments(e);
  for (const char* bound : {"low", "high"})
    if (const auto named = given.keywords.find(bound);
        row->of != kRandom && row->draw != Draw::Real && named != given.keywords.end() &&
        given.places.size() == (bound == std::string_view("high") ? 1 : 0)) {
      given.places.push_back(named->second);
      given.keywords.erase(named);
    }
  const Reg from = generator(of);
  const auto takes = [&](std::size_t least, std::size_t most) {
    const std::size_t count = given.places.size();
    if (count < least || count > most || !given.keywords.empty())
      fail("`" + method + "` is called with other arguments than numbers");
  };
  switch (row->draw) {
    case Draw::Real:
      takes(0, 0);
      return python_number(DType::Float64, draw(Primitive::DrawReal, DType::Float64, {from}));
    case Draw::Uniform:
      takes(row->of == kRandom ? 2 : 0, 2);
      if (row->of != kRandom) return drawn_between(row->of == kGenerator, from, given.places);
      return drawn_by_python(from, given.places[0], given.places[1]);
    case Draw::Integer:
      break;
  }
  bool has_end = row->method == "randint" && row->of == kRandom;
  if (const auto named = given.keywords.find("endpoint");
      row->of == kGenerator && named != given.keywords.end() && named->second.known) {
    has_end = *named->second.known != 0;
    given.keywords.erase(named);
  }
  takes(has_end && row->of == kRandom ? 2 : 1, 2);
  const Primitive p = row->of == kGenerator     ? Primitive::DrawWithin
                      : row->of == kRandomState ? Primitive::DrawMasked
                                                : Primitive::DrawBelow;
  Value made = drawn_integer(p, from, given.places, has_end);
  if (row->of == kGenerator) made.box = Box::NumPy;
  return made;
}

// low + (high - low) * a number from 0 on below 1. `is_up`: low is below high.
Value Writer::drawn_between(bool is_up, Reg from, const std::vector<Value>& bounds) {
#if defined(__aarch64__)
  fail("NumPy's compiler may have made one operation of `uniform`'s two");
#endif
  std::vector<Reg> ends;
  for (const Value& each : bounds) {
    const Value v = each.kind == Value::Kind::Mixed ? as_float(each) : each;
    if (!v.is_number() || is_in(v.dtype, ir::kComplex))
      fail("`uniform` of something else than real numbers");
    ends.push_back(cast_to(v.reg, DType::Float64));
  }
  for (double usual : {0.0, 1.0})
    if (ends.size() <= static_cast<std::size_t>(usual)) ends.push_back(python_float(usual).reg);
  const Reg range = compute(Op::Subtract, DType::Float64, {ends[1], ends[0]});
  guard(compute_primitive(Primitive::MathIsFinite, DType::Bool, {range}));
  if (is_up) guard(compute(Op::Greater, DType::Bool, {range, python_float(0).reg}));
  const Reg real = draw(Primitive::DrawReal, DType::Float64, {from});
  const Reg above = compute(Op::Multiply, DType::Float64, {range, real});
  return python_number(DType::Float64, compute(Op::Add, DType::Float64, {ends[0], above}));
}

// The same, with Python's operators.
Value Writer::drawn_by_python(Reg from, const Value& low, const Value& high) {
  const Value range = binary(Operator::Subtract, high, low);
  const Value real =
      python_number(DType::Float64, draw(Primitive::DrawReal, DType::Float64, {from}));
  return binary(Operator::Add, low, binary(Operator::Multiply, range, real));
}

// An integer from low on, below high or up to it (`has_end`); of one bound from 0 on.
Value Writer::drawn_integer(Primitive p, Reg from, const std::vector<Value>& bounds, bool has_end) {
  std::vector<Reg> ends;
  if (bounds.size() == 1) ends.push_back(integer(0));
  for (const Value& each : bounds) {
    const bool is_integer = each.is_number() && is_in(each.dtype, ir::kInteger) &&
                            each.dtype != DType::UInt64 && each.box != Box::Either;
    if (!is_integer || (p == Primitive::DrawBelow && !each.is_int()))
      fail("an integer is drawn between something else than integers");
    ends.push_back(cast_to(each.reg, DType::Int64));
  }
  guard(compute(has_end ? Op::LessEqual : Op::Less, DType::Bool, {ends[0], ends[1]}));
  Reg largest = compute(Op::Subtract, DType::Int64, {ends[1], ends[0]});
  if (!has_end) largest = compute(Op::Subtract, DType::Int64, {largest, integer(1)});
  const Reg above = draw(p, DType::UInt64, {from, cast_to(largest, DType::UInt64)});
  Value made = python_number(
      DType::Int64, compute(Op::Add, DType::Int64, {ends[0], cast_to(above, DType::Int64)}));
  made.non_negative =
      bounds.size() == 1 || bounds[0].non_negative || (bounds[0].known && *bounds[0].known >= 0);
  return made;
}

}  // namespace ufuse::numpy_shim::program
