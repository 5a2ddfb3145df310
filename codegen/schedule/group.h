// One group of targets as one loop nest: where is each value that it needs? Called by schedule.cpp,
// which gives memory, in an earlier group, to whatever cannot stand in this nest without being
// computed more often than it has elements, and asks again.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/schedule/schedule.h"

namespace ufuse::codegen {

// Inputs overwritten in place by a target: input -> position in the targets.
using Overwritten = std::unordered_map<int, std::size_t>;

struct GroupRequest {
  ir::Graph& graph;  // grows by rewritten nodes
  const Places& places;
  const std::vector<Target>& targets;
  const Overwritten& overwritten;
};

struct Proposal {
  Group group;
  std::vector<ir::NodeId> needs;  // what has to be in memory first; not empty: there is no group
  bool conflict = false;          // an input would be overwritten before all of it is read
};

Proposal propose(const GroupRequest& request);

}  // namespace ufuse::codegen
