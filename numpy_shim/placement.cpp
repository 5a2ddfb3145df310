// See placement.h.
#include "numpy_shim/placement.h"

#include <algorithm>
#include <array>

#include "numpy_shim/layout.h"
#include "numpy_shim/value_promotion.h"

namespace ufuse::numpy_shim {

namespace {

bool is_one_element(const Layout& layout) {
  return std::ranges::all_of(layout.shape, [](std::int64_t n) { return n == 1; });
}

// Whether NumPy's iterator goes through all elements along one axis.
bool is_one_row(const Layout& x) {
  std::optional<std::int64_t> next;
  for (std::int64_t axis : iteration_axes(std::array{&x})) {
    if (x.shape[axis] == 1) continue;
    if (next && *next != x.strides[axis]) return false;
    next = x.strides[axis] * x.shape[axis];
  }
  return true;
}

// A vector of one element keeps its stride on the way to NumPy's loop, although the stride has no
// meaning there.
void check_one_element(std::span<const Operand> operands) {
  bool odd = false;
  for (const Operand& x : operands) {
    if (x.weak) continue;
    if (!is_one_element(x.layout)) return;
    odd |= x.layout.shape.size() == 1 && ir::is_in(x.layout.dtype, ir::kInexact) &&
           x.layout.strides[0] != static_cast<std::int64_t>(ir::size_of(x.layout.dtype));
  }
  if (odd) throw Unsupported(Reason::Arguments);
}

// NumPy turns an axis around where no array lies forwards along it. Elsewhere its loops are given
// steps of both signs, for which some leave their vector code, which rounds otherwise.
void check_directions(std::span<const Operand> operands, std::span<const Layout* const> outputs) {
  std::uint64_t forwards = 0, backwards = 0;  // axes, a bit each, from the last one on
  const auto look = [&](const Layout& layout) {
    const std::size_t rank = layout.shape.size();
    for (std::size_t axis = 0; axis < rank; ++axis) {
      if (layout.shape[axis] == 1 || layout.strides[axis] == 0) continue;
      const std::uint64_t bit = std::uint64_t{1} << (rank - 1 - axis);
      (layout.strides[axis] > 0 ? forwards : backwards) |= bit;
    }
  };
  for (const Operand& x : operands)
    if (!x.weak) look(x.layout);
  for (const Layout* output : outputs) look(*output);
  if ((forwards & backwards) != 0) throw Unsupported(Reason::Arguments);
}

}  // namespace

void check_complex_product(const NumpyVersion& version, std::string_view ufunc,
                           std::span<const Operand> operands, bool in_place) {
  const bool square = ufunc == "square";
  const Operand& x = operands.front();
  if ((!square && ufunc != "multiply") || x.weak || !ir::is_in(x.layout.dtype, ir::kComplex))
    return;
  const bool one = is_one_element(x.layout);
  if ((square && x.scalar) || (one && (in_place || version.rounds_complex_by_place())))
    throw Unsupported(Reason::ScalarOperator);
}

bool rounds_by_place(const NumpyVersion& version, DType dtype) {
  return version.rounds_complex_by_place() && ir::is_in(dtype, ir::kComplex);
}

void check_block_call(const NumpyVersion& version, const Ufunc& ufunc,
                      std::span<const Operand> operands, const UfuncOptions& options,
                      std::span<const Layout* const> outputs) {
  const Resolved& resolved = resolve(ufunc, operands, options);
  check_search(version, operands, resolved);
  check_one_element(operands);
  if (ir::is_in(resolved.inputs.front(), ir::kInexact)) check_directions(operands, outputs);
  for (const Layout* output : outputs)
    if (ir::is_in(output->dtype, ir::kInexact) && !is_packed_inside(*output))
      throw Unsupported(Reason::Arguments);
}

std::optional<std::uint32_t> repeated_inputs(const NumpyVersion& version, const Ufunc& ufunc,
                                             std::span<const Operand> operands,
                                             const Resolved& resolved, const Dims& shape) {
  if (ufunc.name != "power" || !ufunc.of_numpy || !version.powers_by_stride() ||
      !ir::is_in(resolved.inputs.front(), ir::kInexact))
    return std::nullopt;
  constexpr std::uint32_t kExponent = 1 << 1;
  const Operand &base = operands[0], &exponent = operands[1];
  const Layout& layout = exponent.layout;
  const bool is_number = exponent.weak || is_one_element(layout);
  const bool is_array = !exponent.weak && !layout.shape.empty();
  const bool is_cast =
      layout.dtype != resolved.inputs[1] || (!base.weak && base.layout.dtype != resolved.inputs[0]);
  if (is_number && is_array && is_cast) throw Unsupported(Reason::PowersOfRows);
  if (is_number && !(is_array && layout.shape == shape)) {
    if (!version.repeats_exponents() && !base.weak && !is_one_row(base.layout))
      throw Unsupported(Reason::PowersOfRows);
    return kExponent;
  }
  const std::size_t new_axes = shape.size() - layout.shape.size();
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const bool repeats = axis < new_axes || layout.shape[axis - new_axes] == 1 ||
                         layout.strides[axis - new_axes] == 0;
    if (shape[axis] > 1 && repeats) throw Unsupported(Reason::PowersOfRows);
  }
  return 0;
}

void check_output(Context& context, NodeId node, const Layout& fresh, const Layout& output) {
  const ir::Graph& graph = context.graph();
  if (graph[node].op != ir::Op::Ufunc) return;
  const auto is_complex = [&](NodeId id) { return ir::is_in(graph[id].dtype, ir::kComplex); };
  const bool complex = is_complex(node) || std::ranges::any_of(graph[node].inputs, is_complex);
  const bool backwards = std::ranges::any_of(output.strides, [](std::int64_t s) { return s < 0; });
  const bool elsewhere = output.strides != fresh.strides;
  const bool one_row = !context.version.repeats_exponents() &&
                       context.loops()[graph[node].id].repeated.value_or(0) != 0;
  if (backwards || (complex && (elsewhere || context.version.rounds_complex_by_place())) ||
      (one_row && elsewhere))
    throw Unsupported(Reason::Arguments);
}

}  // namespace ufuse::numpy_shim
