// A ufunc call as graph nodes: casts, broadcasts, and either an inline op (a row of ops.def) or a
// block call of NumPy's own loop.
#include "numpy_shim/ufunc.h"

#include <array>

#include "numpy_shim/layout.h"
#include "numpy_shim/placement.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim {

namespace {

// NumPy raises ValueError at the first negative exponent of an integer power, which its loop finds
// only while it runs.
void check_integer_power(const Ufunc& ufunc, std::span<const Operand> operands,
                         const Resolved& resolved) {
  if (ufunc.name != "power" || !ir::is_in(resolved.inputs.front(), ir::kInt)) return;
  const Operand& exponent = operands[1];
  const bool never_negative = exponent.weak
                                  ? !exponent.weak->negative
                                  : ir::is_in(exponent.layout.dtype, ir::kBool | ir::kUInt);
  if (!never_negative) throw Unsupported(Reason::IntegerPower);
}

// Casts that lose more than precision warn (NaN to int) or discard the imaginary part with a
// warning.
void check_input_cast(const Operand& x, DType to) {
  const DType from = x.layout.dtype;
  if (x.weak || from == to || to == DType::Bool) return;
  const bool to_integer = ir::is_in(from, ir::kInexact) && ir::is_in(to, ir::kInteger);
  const bool to_real = ir::is_in(from, ir::kComplex) && !ir::is_in(to, ir::kComplex);
  if (to_integer || to_real) throw Unsupported(Reason::UnsafeCast, std::string(ir::info(to).name));
}

}  // namespace

bool is_block_call(const Ufunc& ufunc, std::span<const Operand> operands,
                   const UfuncOptions& options) {
  return !resolve(ufunc, operands, options).op;
}

std::vector<std::string> error_messages(std::string_view ufunc, std::uint32_t flags) {
  constexpr std::array kWords = {"divide by zero", "overflow", "underflow", "invalid value"};
  std::vector<std::string> messages;
  for (std::size_t bit = 0; bit < kWords.size(); ++bit)
    if (flags >> bit & 1)
      messages.push_back(std::string(kWords[bit]) + " encountered in " + std::string(ufunc));
  return messages;
}

std::vector<Result> call(Context& context, const Ufunc& ufunc, std::span<const Operand> operands,
                         const UfuncOptions& options) {
  const Resolved& resolved = resolve(ufunc, operands, options);
  check_integer_power(ufunc, operands, resolved);
  ir::SmallVector<const Layout*, 4> layouts;
  bool direct = ufunc.nout == 1;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check_input_cast(operands[i], resolved.inputs[i]);
    if (operands[i].weak) continue;
    const Layout& layout = operands[i].layout;
    layouts.push_back(&layout);
    // NumPy casts small operands beforehand, so that they do not keep it from its short way.
    direct &= layout.dtype == resolved.inputs[i] || layout.shape.size() <= 1;
  }
  const Dims shape = broadcast_shapes(layouts);

  ir::NodeIds nodes;
  for (std::size_t i = 0; i < operands.size(); ++i)
    nodes.push_back(ir::broadcast_to(context.graph(),
                                     as_dtype(context, operands[i], resolved.inputs[i]), shape));

  const auto result = [&](NodeId node, DType dtype) {
    Layout layout{dtype, shape, result_strides(layouts, shape, ir::size_of(dtype), direct)};
    if (options.overwritten) layout.strides = operands[*options.overwritten].layout.strides;
    return Result{node, std::move(layout), shape.empty()};
  };
  if (resolved.op)
    return {
        result(ir::elementwise(context.graph(), *resolved.op, nodes), resolved.outputs.front())};

  const UfuncLoop& loop = ufunc.loops[resolved.loop];
  const std::uint32_t row =
      context.loops().add({ufunc.name,
                           {resolved.inputs.begin(), resolved.inputs.end()},
                           {resolved.outputs.begin(), resolved.outputs.end()},
                           loop.loop,
                           loop.data,
                           repeated_inputs(context.version, ufunc, operands, resolved, shape)});
  std::vector<Result> results;
  for (std::uint32_t slot = 0; slot < resolved.outputs.size(); ++slot)
    results.push_back(result(ir::ufunc(context.graph(), context.loops(), row, slot, nodes),
                             resolved.outputs[slot]));
  return results;
}

}  // namespace ufuse::numpy_shim
