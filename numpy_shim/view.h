// Views: basic indexing, newaxis, transpose, reshape, squeeze, broadcast_to ... as maps on layouts,
// computed without any memory. Throws Unsupported where NumPy would raise (the caller runs NumPy,
// which words it) or where the result is no affine view.
#pragma once

#include <span>

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

struct IndexItem {
  enum class Kind : std::uint8_t { Integer, Slice, NewAxis, Ellipsis } kind = Kind::Integer;
  std::int64_t integer = 0;
  std::optional<std::int64_t> start, stop, step;
};
View basic_index(const Layout& x, std::span<const IndexItem> items);
View transpose(const Layout& x, const std::optional<Dims>& axes);  // unset: reversed
View swapaxes(const Layout& x, std::int64_t a, std::int64_t b);
View squeeze(const Layout& x, const std::optional<Dims>& axes);
View expand_dims(const Layout& x, const Dims& axes);
View broadcast_to(const Layout& x, const Dims& shape);
View part(const Layout& x, ir::Op op);  // RealPart or ImagPart of complex numbers
// reshape: one -1 allowed. A view where NumPy gives one (unset: NumPy copies).  fortran: order='F'.
Dims reshape_shape(const Layout& x, const Dims& shape);
std::optional<View> reshape_view(const Layout& x, const Dims& shape, bool fortran);
// The copy in C or F order that NumPy makes elsewhere; `node`: the value of `x`.
Result reshaped_copy(ir::Graph& g, NodeId node, const Layout& x, const Dims& shape, bool fortran);

}  // namespace ufuse::numpy_shim
