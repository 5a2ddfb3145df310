// See create.h. NumPy works each number out of the first two (fill in arraytypes.c.src).
#include "numpy_shim/create.h"

#include "numpy_shim/layout.h"

namespace ufuse::numpy_shim {

Result arange(Context& context, std::int64_t start, std::int64_t step, std::int64_t elements,
              DType dtype) {
  ir::Graph& g = context.graph();
  const Dims shape{elements};
  const auto number = [&](std::int64_t value) {
    const ir::Scalar bits{{static_cast<std::uint64_t>(value)}};
    return ir::broadcast_to(g, ir::constant(g, DType::Int64, bits), shape);
  };
  NodeId node = ir::iota(g, elements);
  if (step != 1) node = ir::elementwise(g, ir::Op::Multiply, {node, number(step)});
  if (start != 0) node = ir::elementwise(g, ir::Op::Add, {node, number(start)});
  return {ir::cast(g, node, dtype), {dtype, shape, c_strides(shape, ir::size_of(dtype))}, false};
}

}  // namespace ufuse::numpy_shim
