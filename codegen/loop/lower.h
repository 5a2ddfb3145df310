// From a group of the schedule to one loop nest: every value becomes statements, which stand where
// all its variables are bound. All is decided: lowering follows the schedule, once.
#pragma once

#include "codegen/loop/ir.h"
#include "codegen/schedule/schedule.h"
#include "ir/graph.h"

namespace ufuse::codegen::loop {

Kernel lower(const Schedule& schedule, const Group& group, const ir::LoopTable& loops);

}  // namespace ufuse::codegen::loop
