// What does a call compute, told without computing it? For functions that are to be run on blocks
// of arrays: ir::Dimensions says along which axes these may be cut.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace ufuse::tracer {

struct Description {
  // The inputs are first the call's arguments, in their order, then arrays that it met elsewhere.
  ir::Graph graph;
  std::size_t arguments = 0;
  std::vector<std::string> elsewhere;  // elements of these, in C order
  std::vector<ir::Scalar> params;
  std::vector<ir::NodeId> origins;  // of each node, the one in the session's graph

  // Whether all that the graph does not say is equal.
  bool has_values_of(const Description& other) const {
    return arguments == other.arguments && elsewhere == other.elsewhere && params == other.params;
  }
};

}  // namespace ufuse::tracer
