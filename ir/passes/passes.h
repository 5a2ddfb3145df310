// Graph -> Graph, in one named array. A pass is a function that keeps what a graph means: `exact`
// ones to the bit, the warnings included; `fast` ones only as far as numerics="fast" promises.
// tracer calls run_all before a graph goes to a backend.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace ufuse::ir {

enum class Accuracy : std::uint8_t { Exact, Fast };

struct Pass {
  std::string_view name;
  Graph (*run)(const Graph&);
  Accuracy accuracy;
  std::string_view about;  // one sentence for the logs
};

struct PassOptions {
  bool fast = false;                      // run the passes marked Fast, too
  std::vector<std::string> disable = {};  // names to leave out; InternalError for an unknown one
  bool verify = false;                    // after each pass
  const LoopTable* loops = nullptr;       // for verify
  std::function<void(std::string_view pass, const Graph& after)> dump_after = {};
};

std::span<const Pass> passes();  // in the order in which run_all runs them
Graph run_all(Graph graph, const PassOptions& options);

// Removes what no output needs. Inputs and params keep their numbers.
Graph dce(const Graph& graph);
// Composes index maps (broadcast of broadcast, slice of slice ...) and removes those that change
// nothing.
Graph index_maps(const Graph& graph);
// Computes what depends on constants only, unless a floating-point flag would be raised: NumPy
// warns at each call.
Graph fold(const Graph& graph);
// Rewrites that hold for every value, NaN and -0.0 included.
Graph simplify(const Graph& graph);

}  // namespace ufuse::ir
