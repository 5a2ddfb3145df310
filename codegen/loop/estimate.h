// Roughly how long does a kernel take on one thread? From this it is chosen how many threads run
// it, and whether it runs in pieces.
#pragma once

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// In nanoseconds, of a kernel as it is lowered: passes change neither what is computed nor how
// often.
double estimate(const Kernel& kernel);

}  // namespace ufuse::codegen::loop
