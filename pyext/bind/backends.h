// Which backends compute graphs, in which order they are tried. One set for the process, chosen by
// `_core.set_backend`.
#pragma once

#include <memory>
#include <string>

#include "codegen/jit/jit.h"
#include "ir/backend.h"

namespace ufuse::pyext {

// The first backend that has a form for the graph: compiled loops, then the interpreter; null:
// NumPy, node by node. `note`: the first line of why an earlier one could not.
std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph, const ir::RunArgs& layouts,
                                              bool fast, std::string& note);
// What the compiler and its caches did in this process, and where they are.
codegen::JitStats jit_stats();
// "compiled" (the default), "interpreted" or "numpy": the first backend that is tried.
void set_backend(const std::string& name);
std::string current_backend();
void set_num_threads(int threads);
int get_num_threads();

}  // namespace ufuse::pyext
