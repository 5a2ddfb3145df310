// Arrays that are made from numbers alone.
#pragma once

#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

// np.arange of integers: `elements` numbers from `start` on, `step` apart, which fit int64 and wrap
// around in smaller dtypes.
Result arange(Context& context, std::int64_t start, std::int64_t step, std::int64_t elements,
              DType dtype);

}  // namespace ufuse::numpy_shim
