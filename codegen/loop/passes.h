// Loop -> Loop: rewrites that only make a kernel faster. Called by schedule/plan.cpp after
// lowering.
#pragma once

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// Merges two nested loops into one where every address advances as if they were one (contiguous
// arrays become 1-d).
void collapse(Kernel& kernel);

// Lets a buffer be written past the caches, where each loop over lanes stores a row of it once and
// does not read it; a `large` one with long rows is. What is known before the loops begin is not in
// the kernel's text; for rows, of which each would have to ask, it is.
void stream(Kernel& kernel, int buffer, bool large);

// The extent of the innermost loop over lanes, 0 when there is none.
std::int64_t lane_extent(const Kernel& kernel);

}  // namespace ufuse::codegen::loop
