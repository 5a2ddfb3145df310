// Loop -> Loop: rewrites that only make a kernel faster. Called by schedule/plan.cpp after
// lowering.
#pragma once

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// Merges two nested loops into one where every address advances as if they were one (contiguous
// arrays become 1-d).
void collapse(Kernel& kernel);

// Writes a large buffer past the caches, where that is a long row of each loop over lanes that is
// stored once and not read.
void stream(Kernel& kernel, int buffer);

// The extent of the innermost loop over lanes, 0 when there is none.
std::int64_t lane_extent(const Kernel& kernel);

}  // namespace ufuse::codegen::loop
