// Which inner loop does NumPy run? Its legacy type resolution (ufunc_type_resolution.c) with NEP
// 50's weak scalars: a linear search for the first loop that all operands can be cast to safely,
// and the special resolvers of arithmetic, division and comparison. NumPy 2's promoters give the
// same dtypes; tests/numpy_shim compares every ufunc with every combination.
#include <algorithm>
#include <array>

#include "numpy_shim/promote.h"
#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim {

using ir::Op;

namespace {

enum class Rule { Search, Uniform, Comparison, Logical, TrueDivide };

// The ufuncs of NumPy that have a resolver of their own (generate_umath.py names them).
Rule rule_of(const Ufunc& ufunc) {
  constexpr std::array<std::string_view, 12> kUniform = {
      "add",     "subtract", "multiply", "negative", "positive", "sign",
      "maximum", "minimum",  "fmax",     "fmin",     "clip",     "gcd"};
  constexpr std::array<std::string_view, 6> kComparison = {
      "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"};
  constexpr std::array<std::string_view, 3> kLogical = {"logical_and", "logical_or", "logical_xor"};
  if (!ufunc.of_numpy) return Rule::Search;
  if (std::ranges::count(kUniform, ufunc.name) || ufunc.name == "lcm") return Rule::Uniform;
  if (std::ranges::count(kComparison, ufunc.name)) return Rule::Comparison;
  if (std::ranges::count(kLogical, ufunc.name)) return Rule::Logical;
  return ufunc.name == "divide" ? Rule::TrueDivide : Rule::Search;
}

// NumPy's can_cast_pyscalar_scalar_to: whether a weak scalar fits a dtype depends on the kinds
// only.
bool weak_fits(const WeakScalar& weak, DType to) {
  if (ir::is_in(to, ir::kComplex)) return true;
  if (ir::is_in(to, ir::kFloat)) return weak.kind != WeakScalar::Kind::Complex;
  return ir::is_in(to, ir::kInteger) && weak.kind == WeakScalar::Kind::Int;
}

// Are Python scalars weak in a linear search? Only when some array is of their kind or a higher
// one; else they count as int64, float64 or complex128 (should_use_min_scalar_weak_literals).
bool scalars_are_weak(std::span<const Operand> operands) {
  const auto order = [](DType t) {
    return ir::is_in(t, ir::kBool) ? 0 : ir::is_in(t, ir::kInteger) ? 1 : 2;
  };
  int scalar = -1, array = -1;
  for (const Operand& x : operands) {
    int& highest = x.weak ? scalar : array;
    highest = std::max(highest, order(x.weak ? default_dtype(*x.weak) : x.layout.dtype));
  }
  return array >= 0 && array >= scalar;
}

// Can the operand be cast safely to a dtype that has no DTypes row? Says only what decides a search
// in NumPy's lists.
bool fits_foreign(DType from, char code) {
  switch (code) {
    case 'q':
      return can_cast_safely(from, DType::Int64);
    case 'Q':
      return can_cast_safely(from, DType::UInt64);
    case 'm':
      return can_cast_safely(from, DType::Int64);
    default:
      return false;
  }
}

struct Search {
  const Ufunc& ufunc;
  std::span<const Operand> operands;
  bool weak;                                    // Python scalars are weak
  std::vector<std::optional<DType>> specified;  // inputs, outputs

  bool input_fits(const UfuncLoop& loop, std::size_t i) const {
    const char code = loop.types[i];
    const Operand& x = operands[i];
    const std::optional<DType> to = ir::dtype_from_code(code);
    if (x.weak && weak) return to && weak_fits(*x.weak, *to);
    if (code == 'O') return ufunc.loops.size() == 1;
    const DType from = x.weak ? default_dtype(*x.weak) : x.layout.dtype;
    return to ? can_cast_safely(from, *to) : fits_foreign(from, code);
  }

  bool fits(const UfuncLoop& loop) const {
    for (std::size_t i = 0; i < loop.types.size(); ++i) {
      if (specified[i]) {
        if (loop.types[i] != ir::info(*specified[i]).code) return false;
      } else if (i < operands.size() && !input_fits(loop, i)) {
        return false;
      }
    }
    return true;
  }

  // A loop of the very dtypes comes before the search. It is only other packages' ufuncs, whose
  // loops do not all stand smallest first, where that makes a difference.
  std::optional<std::size_t> exact() const {
    std::string inputs;
    for (const Operand& x : operands) inputs += x.weak ? ' ' : ir::info(x.layout.dtype).code;
    for (std::size_t i = 0; i < ufunc.loops.size(); ++i)
      if (ufunc.loops[i].types.starts_with(inputs)) return i;
    return std::nullopt;
  }

  std::optional<std::size_t> first() const {
    for (std::size_t i = 0; i < ufunc.loops.size(); ++i)
      if (fits(ufunc.loops[i])) return i;
    return std::nullopt;
  }
};

struct InlineRow {
  std::string_view name;
  ir::Kinds kinds;  // of the loop's inputs
  Op op;
};

// Where NumPy's loop is an op of another name: bool `+` and `*` are logical, and the rest is the
// same on integers.
constexpr std::array kOtherNames = {
    InlineRow{"add", ir::kBool, Op::LogicalOr},
    InlineRow{"multiply", ir::kBool, Op::LogicalAnd},
    InlineRow{"fmax", ir::kBool | ir::kInteger, Op::Maximum},
    InlineRow{"fmin", ir::kBool | ir::kInteger, Op::Minimum},
    InlineRow{"floor", ir::kInteger, Op::Positive},
    InlineRow{"ceil", ir::kInteger, Op::Positive},
    InlineRow{"trunc", ir::kInteger, Op::Positive},
};
constexpr std::array kOps = {
#define OP(id, name, arity, accepts, result, flags, cpp) Op::id,
#include "ir/ops.def"
#undef OP
};

// The op that does what the chosen loop does; unset: no row, the loop itself is called.
std::optional<Op> inline_op(const Ufunc& ufunc, const Resolved& resolved) {
  const DType dtype = resolved.inputs.front();
  const bool one_dtype = std::ranges::all_of(resolved.inputs, [&](DType t) { return t == dtype; });
  if (!ufunc.of_numpy || ufunc.nout != 1 || !one_dtype) return std::nullopt;
  const auto does = [&](Op op) {
    return ir::op_info(op).arity == ufunc.nin && ir::is_accepted(dtype, ir::op_info(op).accepts) &&
           ir::result_dtype(op, dtype) == resolved.outputs.front();
  };
  for (const InlineRow& row : kOtherNames)
    if (row.name == ufunc.name && ir::is_in(dtype, row.kinds) && does(row.op)) return row.op;
  for (Op op : kOps)
    if (ir::op_info(op).name == ufunc.name && does(op)) return op;
  return std::nullopt;
}

[[noreturn]] void no_loop(const Ufunc& ufunc) { throw Unsupported(Reason::NoLoop, ufunc.name); }

// The dtypes of a loop; `q` and `Q` stand for the int64 and uint64 of the mixed comparisons, which
// have no loop of `l` and `L`.
Resolved as_resolved(const Ufunc& ufunc, std::size_t loop, bool long_long = false) {
  Resolved result{loop, {}, {}, std::nullopt};
  for (std::size_t i = 0; i < ufunc.loops[loop].types.size(); ++i) {
    const char code = ufunc.loops[loop].types[i];
    std::optional<DType> dtype = ir::dtype_from_code(code);
    if (long_long && code == 'q') dtype = DType::Int64;
    if (long_long && code == 'Q') dtype = DType::UInt64;
    if (!dtype) throw Unsupported(Reason::Dtype, ufunc.name + " of type " + code);
    (i < static_cast<std::size_t>(ufunc.nin) ? result.inputs : result.outputs).push_back(*dtype);
  }
  result.op = inline_op(ufunc, result);
  return result;
}

std::optional<std::size_t> find_loop(const Ufunc& ufunc, std::string_view types) {
  for (std::size_t i = 0; i < ufunc.loops.size(); ++i)
    if (ufunc.loops[i].types == types) return i;
  return std::nullopt;
}
std::size_t loop_of_types(const Ufunc& ufunc, std::string_view types) {
  if (const std::optional<std::size_t> loop = find_loop(ufunc, types)) return *loop;
  no_loop(ufunc);
}

// Whether each operand may be cast to the loop's dtype under the casting= argument.
void check_casting(const Ufunc& ufunc, std::span<const Operand> operands, const Resolved& resolved,
                   bool same_kind) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Operand& x = operands[i];
    const DType to = resolved.inputs[i];
    const bool ok =
        !same_kind || (x.weak ? weak_fits(*x.weak, to) : can_cast_same_kind(x.layout.dtype, to));
    if (!ok) throw Unsupported(Reason::NoLoop, ufunc.name + ": operand cannot be cast");
  }
}

Resolved search(const Ufunc& ufunc, std::span<const Operand> operands,
                std::optional<DType> output) {
  const std::size_t count = static_cast<std::size_t>(ufunc.nin + ufunc.nout);
  Search search{ufunc, operands, ufunc.nin > 1 && scalars_are_weak(operands),
                std::vector<std::optional<DType>>(count)};
  std::optional<std::size_t> loop;
  if (!output) loop = search.exact();
  for (std::size_t i = operands.size(); i < count; ++i) search.specified[i] = output;
  if (!loop) loop = search.first();
  if (!loop && output) {  // dtype= means the inputs too where no loop with this output takes them
    std::ranges::fill(search.specified, output);
    loop = search.first();
  }
  if (!loop) no_loop(ufunc);
  return as_resolved(ufunc, *loop);
}

Resolved uniform(const Ufunc& ufunc, DType dtype) {
  const std::size_t count = static_cast<std::size_t>(ufunc.nin + ufunc.nout);
  return as_resolved(ufunc, loop_of_types(ufunc, std::string(count, ir::info(dtype).code)));
}

Resolved comparison(const Ufunc& ufunc, std::span<const Operand> operands, bool logical) {
  const DType common = result_type(operands);
  const bool integers =
      is_integer(operands[0], ir::kInteger) && is_integer(operands[1], ir::kInteger);
  if (!logical && integers && !ir::is_in(common, ir::kInteger)) {
    const bool signed_first = ir::is_in(operands[0].layout.dtype, ir::kInt);
    // NumPy 1.24 has no such loop and compares as float64.
    if (const auto loop = find_loop(ufunc, signed_first ? "qQ?" : "Qq?"))
      return as_resolved(ufunc, *loop, true);
  }
  const char code = ir::info(common).code;
  return as_resolved(ufunc, loop_of_types(ufunc, std::string{code, code, '?'}));
}

Resolved resolve_anew(const Ufunc& ufunc, std::span<const Operand> operands,
                      const UfuncOptions& options) {
  if (!ufunc.elementwise) throw Unsupported(Reason::GeneralizedUfunc, ufunc.name);
  if (ufunc.foreign) throw Unsupported(Reason::ForeignUfunc, ufunc.name);
  if (operands.size() != static_cast<std::size_t>(ufunc.nin)) no_loop(ufunc);
  const auto checked = [&](Resolved resolved) {
    check_casting(ufunc, operands, resolved, options.same_kind);
    return resolved;
  };
  switch (rule_of(ufunc)) {
    case Rule::Uniform:
      return checked(uniform(ufunc, options.dtype.value_or(result_type(operands))));
    case Rule::Comparison:
    case Rule::Logical:
      if (options.dtype.value_or(DType::Bool) != DType::Bool) no_loop(ufunc);
      return comparison(ufunc, operands, rule_of(ufunc) == Rule::Logical);
    case Rule::TrueDivide: {
      const bool integers = std::ranges::all_of(
          operands, [](const Operand& x) { return is_integer(x, ir::kBool | ir::kInteger); });
      const std::optional<DType> output =
          integers && !options.dtype ? DType::Float64 : options.dtype;
      return checked(search(ufunc, operands, output));
    }
    case Rule::Search:
      return checked(search(ufunc, operands, options.dtype));
  }
  throw InternalError("ufunc of unknown rule");
}

// All that a resolution depends on, a character each: dtypes, kinds of Python numbers, options.
std::string key_of(std::span<const Operand> operands, const UfuncOptions& options) {
  constexpr char kNone = '0', kWeak = '1';  // before the dtypes, and the kinds of numbers
  std::string key(operands.size() + 2, kNone);
  const auto dtype = [](DType t) { return static_cast<char>('A' + static_cast<int>(t)); };
  for (std::size_t i = 0; i < operands.size(); ++i)
    key[i] = operands[i].weak ? static_cast<char>(kWeak + static_cast<int>(operands[i].weak->kind))
                              : dtype(operands[i].layout.dtype);
  if (options.dtype) key[operands.size()] = dtype(*options.dtype);
  if (options.same_kind) key.back() = kWeak;
  return key;
}

}  // namespace

const Resolved& resolve(const Ufunc& ufunc, std::span<const Operand> operands,
                        const UfuncOptions& options) {
  std::string key = key_of(operands, options);
  const auto known = ufunc.known.find(key);
  if (known != ufunc.known.end()) return known->second;
  return ufunc.known.emplace(std::move(key), resolve_anew(ufunc, operands, options)).first->second;
}

}  // namespace ufuse::numpy_shim
