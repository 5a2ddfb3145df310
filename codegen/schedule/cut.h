// Where is a long graph cut into parts? Compilers take more than twice as long for twice the text,
// and lowering recurses through what it lowers: so no group of loops is to span more than a few
// hundred nodes. Called by schedule.cpp. It knows nodes and their sizes, not memory.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace ufuse::codegen {

// One part: what it has to leave in memory, operands first.
struct Part {
  std::vector<ir::NodeId> kept;      // for later parts
  std::vector<std::size_t> written;  // positions in graph.outputs
};

// The parts in which to compute the outputs; one, that keeps nothing, for a graph of moderate
// length. `last`: the outputs that may be written only when all else is computed.
std::vector<Part> cut(const ir::Graph& graph, const std::vector<bool>& last);

}  // namespace ufuse::codegen
