// How much work with a program's text is worth the compiler's time?
//
// Where each round of each loop computes whole arrays, the time passes in the short functions that
// do so, and all else is bookkeeping, of which there is a lot.
#pragma once

#include "codegen/jit/toolchain.h"
#include "ir/program/program.h"

namespace ufuse::codegen {

Effort effort_for(const ir::program::Program& program);

}  // namespace ufuse::codegen
