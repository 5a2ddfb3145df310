// A kernel as C++ text: one range function and one extern "C" entry. It decides nothing: what runs
// in blocks, in lanes, in parallel stands in the loop IR. The text goes to codegen/jit behind the
// runtime preamble, and to people who ask for it.
#pragma once

#include <string>

#include "codegen/loop/ir.h"
#include "ir/graph.h"

namespace ufuse::codegen {

std::string print_cpp(const loop::Kernel& kernel, const ir::LoopTable& loops);

}  // namespace ufuse::codegen
