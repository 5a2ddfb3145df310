// How a graph is cut into kernels: which values get memory, which loops share a nest, what runs
// after what. Called by compile.cpp; asks loop/lower for one nest at a time and gives memory to
// whatever a nest says it needs.
#pragma once

#include <vector>

#include "codegen/loop/ir.h"
#include "ir/backend.h"
#include "ir/graph.h"

namespace ufuse::codegen {

struct Temp {
  ir::DType dtype;
  std::int64_t elements;
};

struct Plan {
  std::vector<loop::Kernel> kernels;  // in order
  std::vector<Temp> temps;            // live for one run
};

// Throws Unsupported for a buffer whose strides are no multiples of its item size.
Plan make_plan(ir::Graph graph, const ir::LoopTable& loops, const ir::RunArgs& layouts);

}  // namespace ufuse::codegen
