// From a graph, and the layout of the memory it will run on, to the C++ text of its kernels.
// Called by compiler.cpp, which has the texts built and keeps what came of them.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch.h"
#include "codegen/schedule/schedule.h"
#include "ir/backend.h"
#include "ir/graph.h"

namespace ufuse::codegen {

// For those who look for a mistake of ours.
struct CompileOptions {
  std::vector<std::string> leave_out = {};  // passes over loops, by name
  bool tells_passes = false;                // the report shows the loops after each pass
  // $UFUSE_LEAVE_OUT (names that do not exist are ignored), and whether $UFUSE_LOGS has `passes`.
  static CompileOptions from_environment();
};

// A graph as kernels that are not built yet.
struct Compiled {
  std::vector<BoundKernel> kernels;  // without code
  std::vector<Temp> temps;
  ir::Report report;  // with the kernels' texts
};
Compiled compile(const ir::Graph& graph, const ir::LoopTable& loops, const ir::RunArgs& layouts,
                 const CompileOptions& options);

}  // namespace ufuse::codegen
