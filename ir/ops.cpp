// The tables as arrays, and the questions that a row answers.
#include "ir/ops.h"

#include <array>
#include <iterator>
#include <string>

#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

// The expression column as `OpInfo` shows it: x0 -> {0}, T -> {T}.
struct Expression {
  char text[64] = {};
  std::size_t size = 0;
};
consteval bool is_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
consteval Expression with_holes(std::string_view source) {
  Expression e;
  const auto put = [&e](std::string_view piece) {
    for (char c : piece) e.text[e.size++] = c;
  };
  for (std::size_t i = 0; i < source.size();) {
    std::size_t end = i + 1;
    while (is_name(source[i]) && end < source.size() && is_name(source[end])) ++end;
    const std::string_view token = source.substr(i, end - i);
    const bool is_hole = token == "T" || token == "x0" || token == "x1" || token == "x2";
    put(is_hole ? "{" : "");
    put(is_hole && token != "T" ? token.substr(1) : token);
    put(is_hole ? "}" : "");
    i = end;
  }
  return e;
}
constexpr Expression kExpressions[] = {
#define OP(id, name, arity, accepts, result, flags, cpp) with_holes(#cpp),
#include "ir/ops.def"
#undef OP
};

constexpr auto kOps = [] {
  std::array rows = {
#define KIND(id, name, group, arity, optional, accepts, result, shape, attributes, flags)          \
  OpInfo{name,       Group::group, arity, optional, accepts, ResultRule::result, ShapeRule::shape, \
         attributes, Flags::flags, {}},
#include "ir/kinds.def"
#undef KIND
#define OP(id, name, arity, accepts, result, flags, cpp)                                       \
  OpInfo{name,        Group::Computed, arity, 0, accepts, ResultRule::result, ShapeRule::Same, \
         kHasNothing, Flags::flags,    {}},
#include "ir/ops.def"
#undef OP
  };
  constexpr auto kFirst = static_cast<std::size_t>(NodeKind::Elementwise);
  for (std::size_t i = kFirst; i < rows.size(); ++i)
    rows[i].expression = {kExpressions[i - kFirst].text, kExpressions[i - kFirst].size};
  return rows;
}();

constexpr std::array kReductions = {
#define REDUCTION(id, name, combine, accepts, identity) \
  ReductionInfo{name, Op::combine, accepts, Identity::identity},
#include "ir/reductions.def"
#undef REDUCTION
};

template <class Id, class Rows>
std::optional<Id> named(const Rows& rows, std::string_view name) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].name == name) return static_cast<Id>(i);
  return std::nullopt;
}

}  // namespace

const OpInfo& op_info(Op op) {
  const auto i = static_cast<std::size_t>(op);
  if (i >= kOps.size()) throw InternalError("op_info: not an op");
  return kOps[i];
}

std::string_view expression(Op op, DType operand, bool raises) {
  if (!raises && (operand == DType::Float32 || operand == DType::Float64)) {
    if (op == Op::Less) return "{0} < {1}";
    if (op == Op::LessEqual) return "{0} <= {1}";
    if (op == Op::Greater) return "{0} > {1}";
    if (op == Op::GreaterEqual) return "{0} >= {1}";
  }
  return op_info(op).expression;
}

std::optional<Op> op_named(std::string_view name) { return named<Op>(kOps, name); }

DType result_dtype(Op op, DType operand) {
  switch (op_info(op).result) {
    case ResultRule::Same:
      return operand;
    case ResultRule::Bool:
      return DType::Bool;
    case ResultRule::Real:
      return real_part(operand);
    case ResultRule::Int64:
      return DType::Int64;
    case ResultRule::Own:
    case ResultRule::Loop:
      break;
  }
  throw InternalError("result_dtype: an operand does not tell it of " +
                      std::string(op_info(op).name));
}

bool may_raise(Op op, DType operand, DType result) {
  switch (op_info(op).flags) {
    case Flags::Quiet:
      return false;
    case Flags::Fp:
      return is_in(operand, kInexact);
    case Flags::Cast:
      return cast_may_raise(operand, result);
    case Flags::Any:
      return true;
    case Flags::Combine:
      break;
  }
  throw InternalError("may_raise: " + std::string(op_info(op).name) + " is asked of a node");
}

const ReductionInfo& reduction_info(Reduction r) {
  const auto i = static_cast<std::size_t>(r);
  if (i >= kReductions.size()) throw InternalError("reduction_info: not a reduction");
  return kReductions[i];
}

std::optional<Reduction> reduction_named(std::string_view name) {
  return named<Reduction>(kReductions, name);
}

}  // namespace ufuse::ir
