// The passes in their order, and the loop that runs them.
#include "codegen/loop/passes/passes.h"

#include <algorithm>

#include "codegen/loop/verify.h"
#include "ir/support/error.h"

namespace ufuse::codegen::loop {
namespace {

// First the loops as they are to be, then what happens inside the innermost ones: `stream` says
// which of them need blocks, `segment` and `rows` work on blocks.
constexpr Pass kPasses[] = {
    {"collapse", collapse, "nested loops whose addresses advance as one become one"},
    {"parallelise", parallelise, "the loop that the schedule chose is shared out over the threads"},
    {"stream", stream, "large results go past the caches"},
    {"block", block, "lanes run in blocks where something is done for many of them at once"},
    {"segment", segment, "blocks are cut at calls and reductions into loops that vectorise"},
    {"rows", rows, "accumulators beside lanes take whole rows, as they lie in memory"},
};

}  // namespace

std::span<const Pass> passes() { return kPasses; }

Kernel run_passes(Kernel kernel, const PassOptions& options) {
  for (const std::string& name : options.leave_out)
    if (std::ranges::find(kPasses, name, &Pass::name) == std::end(kPasses))
      throw InternalError("there is no pass '" + name + "'");
  if (options.verify) verify(kernel, "lower");
  if (options.dump_after) options.dump_after("lower", kernel);
  for (const Pass& pass : kPasses) {
    if (std::ranges::find(options.leave_out, pass.name) != options.leave_out.end()) continue;
    pass.run(kernel);
    if (options.verify) verify(kernel, pass.name);
    if (options.dump_after) options.dump_after(pass.name, kernel);
  }
  return kernel;
}

}  // namespace ufuse::codegen::loop
