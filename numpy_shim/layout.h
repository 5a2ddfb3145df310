// Memory order as NumPy chooses it: broadcasting of shapes, the layout of a ufunc's result
// (order='K' over all operands, as nditer decides), C and F order, `like`.
#pragma once

#include <span>

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

// Unsupported where the bytes cannot be counted, even if one extent is 0: NumPy raises.
void check_size(const Dims& shape);
// Of operands that lie so.
using Layouts = std::span<const Layout* const>;
Dims broadcast_shapes(Layouts operands);  // Unsupported when they do not fit
// Strides of new memory (all 0 when it is empty), and of a view on packed memory (where an empty
// axis does not count).
Dims c_strides(const Dims& shape, std::size_t itemsize);
Dims f_strides(const Dims& shape, std::size_t itemsize);
Dims packed_strides(const Dims& shape, std::size_t itemsize, bool fortran);
// Of its elements alone, without gaps between them.
std::size_t bytes_of(const Layout& layout);
bool is_c_contiguous(const Layout& layout);
bool is_f_contiguous(const Layout& layout);
// Strides of an output NumPy allocates for operands that broadcast to `shape`. `direct`: one output
// and no operand is cast, so that NumPy may go around its iterator; it makes a difference only to
// the strides of size-1 and empty axes.
Dims result_strides(Layouts operands, const Dims& shape, std::size_t itemsize, bool direct = true);
// Strides of np.empty_like(layout, order='K') / copy(order='K').
Dims like_strides(const Layout& layout, std::size_t itemsize);
// What order= of NumPy's copies means for an array: 'C', 'F', 'A' (F for an array that lies so, and
// not in C order as well) or 'K' (like_strides).
bool is_fortran_order(const Layout& layout, char order);
Dims ordered_strides(const Layout& layout, std::size_t itemsize, char order);
// Do the elements lie packed along the axis of the shortest steps? NumPy's inner loops choose their
// code, and with it bits, by stride, so reversed or spaced operands must come to them as they are.
bool is_packed_inside(const Layout& layout);
// Axes, innermost first, in the order in which NumPy's iterator walks operands that all have `ndim`
// axes.
Dims iteration_axes(Layouts operands);
// The same outermost first, and which of them it walks from their end: those along which no step is
// forward. That is where it allocates nothing.
struct Walk {
  Dims axes;
  std::vector<bool> backwards;  // of each
};
Walk iteration_walk(Layouts operands);

}  // namespace ufuse::numpy_shim
