// The loop that the schedule chose becomes the kernel's range. A loop over lanes is cut between
// blocks, so that no thread has a part of one.
#include "codegen/loop/passes/passes.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {

void parallelise(Kernel& kernel) {
  walk(kernel.body, [&](const Stmt& s) {
    if (s.kind != Stmt::Kind::Loop || !s.parallel) return;
    kernel.parallel = s.vars[0];
    kernel.grain = s.lanes ? cost::kBlock : 1;
  });
}

}  // namespace ufuse::codegen::loop
