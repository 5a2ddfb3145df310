// See assign.h.
#include "numpy_shim/assign.h"

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"

namespace ufuse::numpy_shim {

void check_assignable(const Operand& value, DType target) {
  const DType from = value.weak ? default_dtype(*value.weak) : value.layout.dtype;
  if (ir::is_in(from, ir::kComplex) && !ir::is_in(target, ir::kComplex))
    throw Unsupported(Reason::Arguments);
}

void check_item(const Operand& value, DType target) {
  if (value.scalar && !value.weak && ir::is_in(target, ir::kInt) &&
      !can_cast_safely(value.layout.dtype, target))
    throw Unsupported(Reason::UnsafeCast);
}

void check_copied_number(const NumpyVersion& version, const WeakScalar& number, DType target) {
  if (!can_cast_same_kind(default_dtype(number), target)) throw Unsupported(Reason::Arguments);
  // An assignment makes a float32 of a Python integer by way of a double, which rounds. NumPy 1
  // copies the number as the int64 that it is.
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const auto value = static_cast<std::int64_t>(number.magnitude);
  if (version.promotes_by_value() && number.kind == WeakScalar::Kind::Int &&
      ir::real_part(target) == DType::Float32 && (value > kExact || value < -kExact))
    throw Unsupported(Reason::Arguments);
}

NodeId assigned(Context& context, const Operand& value, const Layout& target) {
  Dims shape = value.weak ? Dims{} : value.layout.shape;
  const std::size_t ndim = target.shape.size();
  while (shape.size() > ndim && shape.front() == 1) shape.erase(shape.begin());
  bool fits = shape.size() <= ndim;
  for (std::size_t i = 0; fits && i < shape.size(); ++i)
    fits = shape[i] == 1 || shape[i] == target.shape[ndim - shape.size() + i];
  if (!fits) throw Unsupported(Reason::Shape);
  ir::Graph& g = context.graph();
  NodeId node = as_dtype(context, value, target.dtype);
  if (shape != g[node].shape) node = ir::reshape(g, node, shape);
  return ir::broadcast_to(g, node, target.shape);
}

NodeId assigned_where(Context& context, NodeId old, const Layout& target, const Operand& mask,
                      const Operand& value) {
  const Layout* both[] = {&mask.layout, &target};
  if (mask.weak || mask.layout.dtype != DType::Bool || broadcast_shapes(both) != target.shape)
    throw Unsupported(Reason::AdvancedAssignment);
  // NumPy casts, and warns about, only what it writes.
  const DType from = value.weak ? target.dtype : value.layout.dtype;
  if (!value.weak && !value.layout.shape.empty() && from != target.dtype &&
      ir::cast_may_raise(from, target.dtype))
    throw Unsupported(Reason::UnsafeCast);
  const NodeId fresh = assigned(context, value, target);
  const NodeId where = ir::broadcast_to(context.graph(), mask.node, target.shape);
  return ir::elementwise(context.graph(), ir::Op::Where, {where, fresh, old});
}

Result where(Context& context, const Operand& condition, const Operand& x, const Operand& y) {
  const Operand values[] = {x, y};
  const DType dtype = result_type(values);
  ir::SmallVector<const Layout*, 3> layouts;
  for (const Operand* operand : {&condition, &x, &y})
    if (!operand->weak) layouts.push_back(&operand->layout);
  const Dims shape = broadcast_shapes(layouts);
  const auto as = [&](const Operand& operand, DType type) {
    return ir::broadcast_to(context.graph(), as_dtype(context, operand, type), shape);
  };
  const NodeId node = ir::elementwise(context.graph(), ir::Op::Where,
                                      {as(condition, DType::Bool), as(x, dtype), as(y, dtype)});
  return {node, {dtype, shape, result_strides(layouts, shape, ir::size_of(dtype))}, false};
}

// Elements of a single axis are copied one after another. NumPy takes care where both have the same
// stride, and for opposite ones it copies the source first.
bool depends_on_order(const Layout& target, std::int64_t source_stride) {
  if (target.shape.size() != 1 || source_stride == 0) return false;
  const std::int64_t written = target.strides[0];
  return source_stride != written && (source_stride > 0) == (written > 0);
}

}  // namespace ufuse::numpy_shim
