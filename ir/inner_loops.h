// The rows of ops.def and the casts as inner loops over strided memory, in the form of NumPy's own
// (graph.h, InnerLoop): inputs first, output last. Instantiated from the scalar expressions of the
// table, so they mean what the generated code means. The interpreter runs whole arrays through
// them.
#pragma once

#include <span>

#include "ir/graph.h"

namespace ufuse::ir {

// `dtype` is the operands' (of `where`: of the two values). Null when the row does not accept it.
InnerLoop elementwise_loop(Op op, DType dtype);
InnerLoop cast_loop(DType from, DType to);

// Floating-point flags as NumPy's NPY_FPE_* (backend.h), of this thread: cleared, and read.
void clear_fp_flags();
std::uint32_t read_fp_flags();

}  // namespace ufuse::ir
