// See placement.h.
#include "numpy_shim/placement.h"

#include <algorithm>

#include "numpy_shim/layout.h"
#include "numpy_shim/value_promotion.h"

namespace ufuse::numpy_shim {

namespace {

bool is_one_element(const Layout& layout) {
  return std::ranges::all_of(layout.shape, [](std::int64_t n) { return n == 1; });
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
  check_search(version, operands, resolve(ufunc, operands, options));
  check_one_element(operands);
  for (const Layout* output : outputs)
    if (ir::is_in(output->dtype, ir::kInexact) && !is_packed_inside(*output))
      throw Unsupported(Reason::Arguments);
}

void check_output(const NumpyVersion& version, const ir::Graph& graph, NodeId node,
                  const Layout& fresh, const Layout& output) {
  if (graph[node].op != ir::Op::Ufunc) return;
  const auto is_complex = [&](NodeId id) { return ir::is_in(graph[id].dtype, ir::kComplex); };
  const bool complex = is_complex(node) || std::ranges::any_of(graph[node].inputs, is_complex);
  const bool backwards = std::ranges::any_of(output.strides, [](std::int64_t s) { return s < 0; });
  const bool elsewhere = output.strides != fresh.strides || version.rounds_complex_by_place();
  if (backwards || (complex && elsewhere)) throw Unsupported(Reason::Arguments);
}

}  // namespace ufuse::numpy_shim
