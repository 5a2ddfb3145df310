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

constexpr std::string_view kGenerator = "Generator", kRandomState = "RandomState",
                           kRandom = "Random";
enum class Draw : std::uint8_t { Real, Uniform, Integer, Normal, Exponential };
struct Row {
  std::string_view of, method;
  Draw draw;
  std::size_t numbers = 0;  // the most numbers that it takes
  // Of which one draw makes it, where there are several ways.
  Primitive by = Primitive::DrawReal;
};
constexpr std::array kRows = {
    Row{kGenerator, "random", Draw::Real},
    Row{kGenerator, "uniform", Draw::Uniform, 2},
    Row{kGenerator, "integers", Draw::Integer, 2, Primitive::DrawWithin},
    Row{kGenerator, "standard_normal", Draw::Normal, 0, Primitive::DrawNormal},
    Row{kGenerator, "normal", Draw::Normal, 2, Primitive::DrawNormal},
    Row{kGenerator, "standard_exponential", Draw::Exponential, 0, Primitive::DrawExponential},
    Row{kGenerator, "exponential", Draw::Exponential, 1, Primitive::DrawExponential},
    Row{kRandomState, "random", Draw::Real},
    Row{kRandomState, "random_sample", Draw::Real},
    Row{kRandomState, "rand", Draw::Real},
    Row{kRandomState, "uniform", Draw::Uniform, 2},
    Row{kRandomState, "randint", Draw::Integer, 2, Primitive::DrawMasked},
    Row{kRandomState, "standard_normal", Draw::Normal, 0, Primitive::DrawPolar},
    Row{kRandomState, "randn", Draw::Normal, 0, Primitive::DrawPolar},
    Row{kRandomState, "normal", Draw::Normal, 2, Primitive::DrawPolar},
    Row{kRandomState, "standard_exponential", Draw::Exponential, 0, Primitive::DrawLogarithm},
    Row{kRandomState, "exponential", Draw::Exponential, 1, Primitive::DrawLogarithm},
    Row{kRandom, "random", Draw::Real},
    Row{kRandom, "uniform", Draw::Uniform, 2},
    Row{kRandom, "randint", Draw::Integer, 2, Primitive::DrawBelow},
    Row{kRandom, "randrange", Draw::Integer, 2, Primitive::DrawBelow},
    Row{kRandom, "gauss", Draw::Normal, 2, Primitive::DrawGauss},
};

// Methods of both of NumPy's classes that the program calls as Python would, with real numbers.
struct Called {
  std::string_view method;
  std::size_t least, most;  // arguments
  bool gives_integer = false;
};
constexpr std::array kCalled = {
    Called{"standard_cauchy", 0, 0},
    Called{"standard_gamma", 1, 1},
    Called{"standard_t", 1, 1},
    Called{"gamma", 1, 2},
    Called{"beta", 2, 2},
    Called{"lognormal", 0, 2},
    Called{"laplace", 0, 2},
    Called{"logistic", 0, 2},
    Called{"gumbel", 0, 2},
    Called{"rayleigh", 0, 1},
    Called{"weibull", 1, 1},
    Called{"pareto", 1, 1},
    Called{"power", 1, 1},
    Called{"chisquare", 1, 1},
    Called{"f", 2, 2},
    Called{"vonmises", 2, 2},
    Called{"wald", 2, 2},
    Called{"poisson", 0, 1, true},
    Called{"geometric", 1, 1, true},
    Called{"zipf", 1, 1, true},
    Called{"logseries", 1, 1, true},
};

const Called* called_method(std::string_view of, std::string_view method) {
  const auto* const row = std::ranges::find(kCalled, method, &Called::method);
  return of == kRandom || row == kCalled.end() ? nullptr : row;
}

const Row* method_of(std::string_view of, std::string_view method) {
  const auto is_it = [&](const Row& row) { return row.of == of && row.method == method; };
  const auto* const row = std::ranges::find_if(kRows, is_it);
  return row == kRows.end() ? nullptr : row;
}

}  // namespace

bool draws(std::string_view of, std::string_view method) {
  return method_of(of, method) != nullptr || called_method(of, method) != nullptr;
}

std::vector<std::string> names_of_draws() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.method);
  for (const Called& row : kCalled) names.emplace_back(row.method);
  return names;
}

const char* called_draw(int number) {
  return kCalled.at(static_cast<std::size_t>(number)).method.data();
}

// The register with a generator's address.
Reg Writer::generator(const Given& given) {
  const auto [known, is_new] = generators_.try_emplace(given.object, kNone);
  if (!is_new) return known->second;
  Value address = python_number(DType::UInt64, fresh(DType::UInt64));
  known->second = address.reg;
  program_.inputs.push_back({ir::program::Input::From::Generator, given.object, where(address)});
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
  Arguments given = arguments(e);
  if (const Called* const row = called_method(of.name, method)) {
    if (given.places.size() < row->least || given.places.size() > row->most ||
        !given.keywords.empty())
      fail("`" + method + "` is called with other arguments than so many numbers");
    const auto number = static_cast<std::int64_t>(row - kCalled.begin());
    return drawn_by_call(generator(of), number, given.places, row->gives_integer);
  }
  const Row* const row = method_of(of.name, method);
  if (row == nullptr) fail("`" + method + "` is called");
  const bool of_numpy = row->of != kRandom, is_new = row->of == kGenerator;
  const auto take = [&](const char* name, std::size_t place) {
    const auto named = given.keywords.find(name);
    if (!of_numpy || named == given.keywords.end() || given.places.size() > place) return;
    if (given.places.size() < place) given.places.push_back(python_float(0));
    given.places.push_back(named->second);
    given.keywords.erase(named);
  };
  if (row->draw == Draw::Uniform || row->draw == Draw::Integer) {
    take("low", 0);
    take("high", 1);
  } else if (row->numbers > 0) {
    if (row->draw == Draw::Normal) take("loc", 0);
    take("scale", row->numbers - 1);
  }
  std::vector<Reg> lengths;
  const auto take_size = [&](const Value& size) {
    if (size.kind != Value::Kind::Nothing) lengths = shape(size);
  };
  const auto sized = given.keywords.find("size");
  if (row->method == "rand" || row->method == "randn") {
    if (!given.places.empty()) {
      Value all;
      all.kind = Value::Kind::Tuple;
      all.parts = std::exchange(given.places, {});
      take_size(all);
    }
  } else if (of_numpy && sized != given.keywords.end() && given.places.size() <= row->numbers) {
    take_size(sized->second);
    given.keywords.erase(sized);
  } else if (of_numpy && given.places.size() == row->numbers + 1) {
    take_size(given.places.back());
    given.places.pop_back();
  }
  bool has_end = row->method == "randint" && !of_numpy;
  if (const auto named = given.keywords.find("endpoint"); is_new && row->draw == Draw::Integer &&
                                                          named != given.keywords.end() &&
                                                          named->second.known) {
    has_end = *named->second.known != 0;
    given.keywords.erase(named);
  }
  const bool needs_both = !of_numpy && (row->draw == Draw::Uniform || has_end);
  const std::size_t least = needs_both ? 2 : row->draw == Draw::Integer ? 1 : 0;
  if (given.places.size() < least || given.places.size() > row->numbers || !given.keywords.empty())
    fail("`" + method + "` is called with other arguments than numbers and a size");

  const Reg from = generator(of);
  const Drawing real = [this, from, by = row->by] {
    return python_number(DType::Float64, draw(by, DType::Float64, {from}));
  };
  if (!of_numpy && row->draw != Draw::Real && row->draw != Draw::Integer)
    return drawn_by_python(row->draw == Draw::Uniform, real, given.places);
  Drawing draws = real;
  if (row->draw == Draw::Integer)
    draws = drawn_integer(row->by, from, given.places, has_end);
  else if (row->draw == Draw::Uniform)
    draws = drawn_between(is_new, real, given.places);
  else if (row->numbers > 0)
    draws = scaled(row->draw == Draw::Normal, real, given.places);
  const DType dtype = row->draw == Draw::Integer ? DType::Int64 : DType::Float64;
  if (!lengths.empty()) return filled_by(draws, dtype, lengths);
  Value made = draws();
  if (is_new && row->draw == Draw::Integer) made.box = Box::NumPy;
  return made;
}

// a + (b - a) * x, or mu + x * sigma, with Python's operators.
Value Writer::drawn_by_python(bool is_between, const Drawing& draws, std::vector<Value> given) {
  for (double usual : {0.0, 1.0})
    if (given.size() <= static_cast<std::size_t>(usual)) given.push_back(python_float(usual));
  if (is_between) given[1] = binary(Operator::Subtract, given[1], given[0]);
  const Value drawn = draws();
  return binary(Operator::Add, given[0],
                is_between ? binary(Operator::Multiply, given[1], drawn)
                           : binary(Operator::Multiply, drawn, given[1]));
}

// A new array, whose elements are drawn one after the other.
Value Writer::filled_by(const Drawing& draws, DType dtype, const std::vector<Reg>& lengths) {
  const Value made = new_array(dtype, lengths);
  std::vector<Reg> at;
  const std::function<void()> fill = [&] {
    if (at.size() == lengths.size()) return store(made, at, draws().reg);
    for_each_below(lengths[at.size()], [&](Reg index) {
      at.push_back(index);
      fill();
      at.pop_back();
    });
  };
  fill();
  return made;
}

// What Python's call of the method gives, which is made.
Value Writer::drawn_by_call(Reg from, std::int64_t method, const std::vector<Value>& given,
                            bool gives_integer) {
  const auto count = static_cast<std::int64_t>(given.size());
  const auto word = [&](std::int64_t value) { return cast_to(integer(value), DType::UInt64); };
  std::vector<Reg> args = {from, word(method), word(count)};
  for (const Reg real : reals(given))
    args.push_back(compute_primitive(Primitive::BitsOf, DType::UInt64, {real}));
  while (args.size() < 5) args.push_back(word(0));
  const DType dtype = gives_integer ? DType::Int64 : DType::Float64;
  // Arguments that NumPy refuses are refused before anything is drawn.
  const int at = exit();
  const Reg drawn = draw(Primitive::DrawCalled, dtype, std::move(args));
  out_->back().exit = at;
  return python_number(dtype, drawn);
}

// Real numbers as doubles.
std::vector<Reg> Writer::reals(const std::vector<Value>& given) {
  std::vector<Reg> made;
  for (const Value& each : given) {
    const Value v = each.kind == Value::Kind::Mixed ? as_float(each) : each;
    if (!v.is_number() || is_in(v.dtype, ir::kComplex))
      fail("a random number is drawn with something else than real numbers");
    made.push_back(cast_to(v.reg, DType::Float64));
  }
  return made;
}

// low + (high - low) * a number from 0 on below 1. `is_up`: low is below high.
Writer::Drawing Writer::drawn_between(bool is_up, const Drawing& real,
                                      const std::vector<Value>& bounds) {
  std::vector<Reg> ends = reals(bounds);
  for (double usual : {0.0, 1.0})
    if (ends.size() <= static_cast<std::size_t>(usual)) ends.push_back(python_float(usual).reg);
  const Reg range = compute(Op::Subtract, DType::Float64, {ends[1], ends[0]});
  guard(compute_primitive(Primitive::MathIsFinite, DType::Bool, {range}));
  if (is_up) guard(compute(Op::Greater, DType::Bool, {range, python_float(0).reg}));
  return scaled_from(ends[0], range, real);
}

// loc + scale * a number, or scale * a number. NumPy refuses negative scales.
Writer::Drawing Writer::scaled(bool has_place, const Drawing& number,
                               const std::vector<Value>& given) {
  std::vector<Reg> by = reals(given);
  if (has_place && by.empty()) by.push_back(python_float(0).reg);
  if (by.size() == (has_place ? 1 : 0)) by.push_back(python_float(1).reg);
  guard(compute(Op::Greater, DType::Bool, {by.back(), python_float(0).reg}));
  if (has_place) return scaled_from(by[0], by[1], number);
  return [this, number, scale = by[0]] {
    return python_number(DType::Float64,
                         compute(Op::Multiply, DType::Float64, {scale, number().reg}));
  };
}

Writer::Drawing Writer::scaled_from(Reg low, Reg range, const Drawing& number) {
#if defined(__aarch64__)
  fail("NumPy's compiler may have made one operation of a product and a sum");
#endif
  return [this, low, range, number] {
    const Reg above = compute(Op::Multiply, DType::Float64, {range, number().reg});
    return python_number(DType::Float64, compute(Op::Add, DType::Float64, {low, above}));
  };
}

// An integer from low on, below high or up to it (`has_end`); of one bound from 0 on.
Writer::Drawing Writer::drawn_integer(Primitive p, Reg from, const std::vector<Value>& bounds,
                                      bool has_end) {
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
  largest = cast_to(largest, DType::UInt64);
  const bool non_negative =
      bounds.size() == 1 || bounds[0].non_negative || (bounds[0].known && *bounds[0].known >= 0);
  return [this, p, from, largest, non_negative, low = ends[0]] {
    const Reg above = cast_to(draw(p, DType::UInt64, {from, largest}), DType::Int64);
    Value made = python_number(DType::Int64, compute(Op::Add, DType::Int64, {low, above}));
    made.non_negative = non_negative;
    return made;
  };
}

}  // namespace ufuse::numpy_shim::program
