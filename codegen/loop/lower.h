// From a group of nodes to one loop nest: where each value is computed.
//
// Starting at the targets, every node is wanted at an index over loop variables. Elementwise nodes
// pass the index through, index maps rewrite it, a reduction adds variables of its own; a value
// stands at the outermost loop in which all its variables are bound. What cannot stand in this nest
// without being computed more often than it has elements is reported as a need: the plan gives it
// memory of its own, in an earlier kernel, and asks again. Called by schedule/plan.cpp only.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/loop/ir.h"
#include "codegen/schedule/views.h"
#include "ir/graph.h"

namespace ufuse::codegen::loop {

struct Target {
  ir::NodeId node;
  Place place;  // Output or Temp
};

struct LowerRequest {
  ir::Graph& graph;  // grows by rewritten nodes
  const ir::LoopTable& loops;
  const Places& places;
  std::vector<Target> targets;  // of one shape and one order of axes
  // Inputs overwritten in place by a target: input -> position in targets.
  std::unordered_map<int, std::size_t> overwritten;
  bool lanes = true;        // the innermost loop may run in blocks
  bool defer_roots = true;  // compare square roots by their squares where nothing else needs them
  bool unroll_inner =
      false;  // a short innermost axis becomes part of the text, the next one runs in lanes
};

struct Lowered {
  Kernel kernel;
  std::vector<ir::NodeId>
      needs;                 // values that need memory first; not empty: `kernel` is not to be used
  bool conflict = false;     // an input would be overwritten before all of it is read
  bool want_scalar = false;  // asks to be lowered again with lanes = false
  bool want_roots = false;   // asks to be lowered again with defer_roots = false
};

Lowered lower(const LowerRequest& request);

}  // namespace ufuse::codegen::loop
