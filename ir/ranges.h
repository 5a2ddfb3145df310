// What is known of integers before anything is computed: positions that are made of positions or
// counted need no check.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace ufuse::ir {

struct Range {
  std::int64_t low, high;  // both are in it
};
// Holds all elements of the node, whatever the inputs are; unset where nothing is known.
std::optional<Range> known_range(const Graph& g, NodeId node);

}  // namespace ufuse::ir
