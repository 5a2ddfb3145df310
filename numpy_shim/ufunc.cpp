// A ufunc call as graph nodes: casts, broadcasts, and either an inline op (a row of ops.def) or a
// block call of NumPy's own loop.
#include "numpy_shim/ufunc.h"

#include <algorithm>
#include <array>

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim {

using ir::Op;

namespace {

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
#define OP(id, name, arity, accepts, result, traits, cpp) Op::id,
#include "ir/ops.def"
#undef OP
};

DType result_dtype(Op op, DType operand) {
  switch (ir::op_info(op).result) {
    case ir::ResultRule::Same:
      return operand;
    case ir::ResultRule::Bool:
      return DType::Bool;
    case ir::ResultRule::Real:
      return ir::real_part(operand);
  }
  throw InternalError("op of unknown result rule");
}

// The op that does what the chosen loop does; unset: no row, the loop itself is called.
std::optional<Op> inline_op(const Ufunc& ufunc, const Resolved& resolved) {
  const DType dtype = resolved.inputs.front();
  const bool one_dtype = std::ranges::all_of(resolved.inputs, [&](DType t) { return t == dtype; });
  if (!ufunc.of_numpy || ufunc.nout != 1 || !one_dtype) return std::nullopt;
  const auto does = [&](Op op) {
    return ir::op_info(op).arity == ufunc.nin && ir::is_accepted(dtype, ir::op_info(op).accepts) &&
           result_dtype(op, dtype) == resolved.outputs.front();
  };
  for (const InlineRow& row : kOtherNames)
    if (row.name == ufunc.name && ir::is_in(dtype, row.kinds) && does(row.op)) return row.op;
  for (Op op : kOps)
    if (ir::op_info(op).name == ufunc.name && does(op)) return op;
  return std::nullopt;
}

// NumPy raises ValueError at the first negative exponent of an integer power, which its loop finds
// only while it runs.
void check_integer_power(const Ufunc& ufunc, std::span<const Operand> operands,
                         const Resolved& resolved) {
  if (ufunc.name != "power" || !ir::is_in(resolved.inputs.front(), ir::kInt)) return;
  const Operand& exponent = operands[1];
  const bool never_negative = exponent.weak
                                  ? !exponent.weak->negative
                                  : ir::is_in(exponent.layout.dtype, ir::kBool | ir::kUInt);
  if (!never_negative) throw Unsupported("integer_power");
}

// Casts that lose more than precision warn (NaN to int) or discard the imaginary part with a
// warning.
void check_input_cast(const Operand& x, DType to) {
  const DType from = x.layout.dtype;
  if (x.weak || from == to || to == DType::Bool) return;
  const bool to_integer = ir::is_in(from, ir::kInexact) && ir::is_in(to, ir::kInteger);
  const bool to_real = ir::is_in(from, ir::kComplex) && !ir::is_in(to, ir::kComplex);
  if (to_integer || to_real) throw Unsupported("unsafe_cast", std::string(ir::info(to).name));
}

}  // namespace

bool is_block_call(const Ufunc& ufunc, std::span<const Operand> operands,
                   const UfuncOptions& options) {
  return !inline_op(ufunc, resolve(ufunc, operands, options));
}

std::vector<Result> call(Context& context, const Ufunc& ufunc, std::span<const Operand> operands,
                         const UfuncOptions& options) {
  const Resolved resolved = resolve(ufunc, operands, options);
  check_integer_power(ufunc, operands, resolved);
  std::vector<Layout> layouts;
  std::vector<Dims> shapes;
  bool direct = ufunc.nout == 1;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_input_cast(operands[i], resolved.inputs[i]);
    if (operands[i].weak) continue;
    layouts.push_back(operands[i].layout);
    shapes.push_back(operands[i].layout.shape);
    // NumPy casts small operands beforehand, so that they do not keep it from its short way.
    direct &= operands[i].layout.dtype == resolved.inputs[i] || shapes.back().size() <= 1;
  }
  const Dims shape = broadcast_shapes(shapes);

  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < operands.size(); ++i)
    nodes.push_back(ir::broadcast_to(context.graph(),
                                     as_dtype(context, operands[i], resolved.inputs[i]), shape));

  const auto result = [&](NodeId node, DType dtype) {
    Layout layout{dtype, shape, result_strides(layouts, shape, ir::size_of(dtype), direct)};
    if (options.overwritten) layout.strides = operands[*options.overwritten].layout.strides;
    return Result{node, layout, shape.empty()};
  };
  if (const std::optional<Op> op = inline_op(ufunc, resolved))
    return {result(ir::elementwise(context.graph(), *op, nodes), resolved.outputs.front())};

  const UfuncLoop& loop = ufunc.loops[resolved.loop];
  const std::uint32_t row =
      context.loops().add({ufunc.name, resolved.inputs, resolved.outputs, loop.loop, loop.data});
  std::vector<Result> results;
  for (std::uint32_t slot = 0; slot < resolved.outputs.size(); ++slot)
    results.push_back(result(ir::ufunc(context.graph(), context.loops(), row, slot, nodes),
                             resolved.outputs[slot]));
  return results;
}

}  // namespace ufuse::numpy_shim
