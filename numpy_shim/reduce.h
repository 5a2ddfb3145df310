// ufunc.reduce, argmin and argmax as NumPy runs them: dtype of the accumulator, axes, order of
// combination, layout of the result. Throws Unsupported for what NumPy would reject or what has no
// native form.
#pragma once

#include <string_view>

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

struct ReduceOptions {
  std::optional<Dims> axes;  // unset: all axes (axis=None); may be negative, must not repeat
  bool in_tuple = false;     // they are given as a tuple
  bool keepdims = false;
  std::optional<DType> dtype;      // dtype= argument
  std::optional<DType> out;        // dtype of the out= argument
  std::optional<Operand> initial;  // 0-d or weak
  std::optional<Operand> where;    // bool, broadcasts to the operand
};
Result reduce(Context& context, std::string_view ufunc, const Operand& x,
              const ReduceOptions& options);

// np.argmin / np.argmax; axis unset: the flattened array. Operands of one dtype int, float or bool;
// 0-d results are scalars.
Result arg_reduce(Context& context, bool largest, const Operand& x,
                  std::optional<std::int64_t> axis, bool keepdims);

// The dtype in which a ufunc's reduce and accumulate combine elements: the dtype= argument, else
// the operand's, but for sums and products of small integers and bool.
DType accumulator_dtype(std::string_view ufunc, DType operand, std::optional<DType> asked);
// NumPy casts their operand unsafely; what would warn on the way is Unsupported.
void check_accumulator_cast(DType from, DType to);

// The order in which NumPy combines the elements of `x` over `axes` (sorted, non-negative). `x` has
// the operand's shape and strides and the accumulator's dtype. `cast`: they differ in dtype, so
// that NumPy buffers the operand. `mask`: the where= argument.
struct Combination {
  Dims axes;  // outermost first
  ir::ReduceOrder order;
};
Combination combination(ir::Reduction r, const Layout& x, const Dims& axes, bool cast,
                        const NumpyVersion& version, const Layout* mask = nullptr);
// How NumPy lays the result out; with keepdims the reduced axes stay, with one element.
Layout reduced_layout(const Layout& x, const Dims& axes, DType dtype, bool keepdims = false,
                      const Layout* mask = nullptr);

}  // namespace ufuse::numpy_shim
