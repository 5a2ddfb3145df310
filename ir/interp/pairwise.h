// NumPy's pairwise summation of one run, as its inner loops `@TYPE@_pairwise_sum` add
// (numpy/core/src/umath/loops_utils.h.src).
#pragma once

#include <cstdint>

#include "ir/dtype.h"
#include "ir/interp/pulse.h"

namespace ufuse::ir::interp {

// Adds the pairwise sum of `n` contiguous elements to the accumulator: *acc = *acc + pairwise(run).
// Inexact dtypes only.
void add_pairwise(DType dtype, char* acc, const char* run, std::int64_t n, const Pulse& pulse);

}  // namespace ufuse::ir::interp
