// What do the strides of a block call's operand say? The interpreter and the compiled loops must
// hand NumPy's inner loops the same operands, so both ask here.
#pragma once

#include "ir/graph.h"

namespace ufuse::ir {

// All elements lie at one distance from each other, in some order of the axes; strides in any unit.
// NumPy hands its inner loops such an operand as it is, also backwards, and any other in packed
// buffers; the loops choose their code by stride, so that shows in bits.
bool has_one_stride(const Dims& shape, const Dims& strides);

}  // namespace ufuse::ir
