// ufunc.accumulate as a scan node. NumPy's loops run along the axis in order (PyUFunc_Accumulate):
// each call gets the element before as its first operand, so that nothing but the order of the
// elements matters to the bits. The operand is cast as a whole beforehand.
#include "numpy_shim/accumulate.h"

#include "numpy_shim/layout.h"
#include "numpy_shim/reduce.h"

namespace ufuse::numpy_shim {

namespace {

// What is carried along the axis.
struct Carrier {
  DType dtype;
  ir::Op combine;
};

Carrier carrier_of(const Ufunc& ufunc, DType operand, std::optional<DType> asked) {
  if (ufunc.nin != 2 || ufunc.nout != 1) throw Unsupported(Reason::NoLoop, ufunc.name);
  // NumPy's loop raises at the first negative exponent.
  if (ufunc.name == "power" && ir::is_in(operand, ir::kInt))
    throw Unsupported(Reason::IntegerPower);
  DType dtype = accumulator_dtype(ufunc.name, operand, asked);
  // Truth of the elements, whatever their dtype.
  if (ufunc.name.starts_with("logical_")) {
    if (asked.value_or(DType::Bool) != DType::Bool)
      throw Unsupported(Reason::NoLoop, "dtype of a logical ufunc");
    dtype = DType::Bool;
  }
  Operand element;
  element.layout.dtype = dtype;
  const Operand both[] = {element, element};
  const UfuncOptions options{asked, false};
  const Resolved& resolved = resolve(ufunc, both, options);
  const DType carried = resolved.outputs.front();
  if (resolved.inputs[0] != carried || resolved.inputs[1] != carried)
    throw Unsupported(Reason::NoLoop, ufunc.name + " does not give what it takes");
  // NumPy's loop may give other bits for many elements than for one at a time.
  if (!resolved.op) throw Unsupported(Reason::NoLoop, ufunc.name);
  // A loop waits longer for a step that keeps NaN and flags apart than NumPy's takes.
  const bool is_extremum = *resolved.op == ir::Op::Maximum || *resolved.op == ir::Op::Minimum;
  if (is_extremum && ir::is_in(carried, ir::kInexact))
    throw Unsupported(Reason::NoLoop, ufunc.name);
  return {carried, *resolved.op};
}

}  // namespace

Operand flattened(ir::Graph& graph, const Operand& x) {
  if (x.layout.shape.size() == 1) return x;
  Operand flat = x;
  std::int64_t elements = 1;
  for (std::int64_t n : x.layout.shape) elements *= n;
  flat.layout.shape = {elements};
  flat.layout.strides = c_strides(flat.layout.shape, ir::size_of(x.layout.dtype));
  flat.node = ir::reshape(graph, x.node, flat.layout.shape);
  flat.scalar = false;
  return flat;
}

Result accumulate(Context& context, const Ufunc& ufunc, const Operand& x, std::int64_t axis,
                  std::optional<DType> dtype) {
  if (x.weak) throw Unsupported(Reason::Arguments, "a Python number");
  const Layout& layout = x.layout;
  const auto ndim = static_cast<std::int64_t>(layout.shape.size());
  if (axis < -ndim || axis >= ndim) throw Unsupported(Reason::Shape, "axis out of range");
  const Carrier carrier = carrier_of(ufunc, layout.dtype, dtype);
  check_accumulator_cast(layout.dtype, carrier.dtype);

  ir::Graph& g = context.graph();
  const NodeId node = ir::scan(g, carrier.combine, ir::cast(g, x.node, carrier.dtype),
                               axis < 0 ? axis + ndim : axis);
  // Along its only axis NumPy needs no iterator, and allocates in C order.
  const std::size_t itemsize = ir::size_of(carrier.dtype);
  const Layout* operands[] = {&layout};
  Dims strides = ndim == 1 ? c_strides(layout.shape, itemsize)
                           : result_strides(operands, layout.shape, itemsize, false);
  return {node, {carrier.dtype, layout.shape, std::move(strides)}, false};
}

}  // namespace ufuse::numpy_shim
