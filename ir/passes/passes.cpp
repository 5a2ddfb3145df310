// The passes in their order, and the loop that runs them.
#include "ir/passes/passes.h"

#include <algorithm>
#include <utility>

#include "ir/build.h"
#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

// Each pass goes over the nodes once, operands first, so a rewrite sees rewritten operands. Index
// maps come first because fold and simplify look through them; dce comes last because the others
// leave nodes behind.
constexpr Pass kPasses[] = {
    {"index_maps", index_maps, Accuracy::Exact,
     "compose broadcasts, transposes, slices and reshapes"},
    {"fold", fold, Accuracy::Exact, "compute what depends on constants only"},
    {"simplify", simplify, Accuracy::Exact, "rewrites that hold for every value"},
    {"dce", dce, Accuracy::Exact, "remove what no output needs"},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Graph run_all(Graph graph, const PassOptions& options) {
  for (const std::string& name : options.disable)
    if (std::ranges::find(kPasses, name, &Pass::name) == std::end(kPasses))
      throw InternalError("there is no pass '" + name + "'");
  for (const Pass& pass : kPasses) {
    if (pass.accuracy == Accuracy::Fast && !options.fast) continue;
    if (std::ranges::find(options.disable, pass.name) != options.disable.end()) continue;
    graph = pass.run(graph);
    if (options.verify) verify(graph, options.loops);
    if (options.dump_after) options.dump_after(pass.name, graph);
  }
  return graph;
}

}  // namespace ufuse::ir
