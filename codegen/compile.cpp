// The whole compiler on one page: schedule, lower, rewrite, print.
#include "codegen/compile.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "codegen/emit/printer.h"
#include "codegen/jit/process.h"
#include "codegen/loop/estimate.h"
#include "codegen/loop/lower.h"
#include "codegen/loop/passes/passes.h"
#include "codegen/meanwhile.h"
#include "ir/print.h"

namespace ufuse::codegen {
namespace {

std::int64_t bytes_of(const ir::Buffer& b) {
  return element_count(b.shape) * static_cast<std::int64_t>(ir::size_of(b.dtype));
}

// What a kernel reads and writes.
std::int64_t bytes_moved(const loop::Kernel& kernel, const std::vector<Temp>& temps,
                         const ir::RunArgs& layouts) {
  std::int64_t bytes = 0;
  for (const loop::Buffer& b : kernel.buffers) {
    const auto i = static_cast<std::size_t>(b.index);
    switch (b.role) {
      case loop::Buffer::Role::Input:
        bytes += bytes_of(layouts.inputs[i]);
        break;
      case loop::Buffer::Role::Output:
        bytes += bytes_of(layouts.outputs[i]);
        break;
      case loop::Buffer::Role::Temp:
        bytes += temps[i].elements * static_cast<std::int64_t>(ir::size_of(temps[i].dtype));
        break;
      case loop::Buffer::Role::Row:
        break;
    }
  }
  return bytes;
}

// What launches need of a kernel; the rest was for the text.
BoundKernel bound(loop::Kernel printed, const ir::LoopTable& loops) {
  BoundKernel result;
  for (std::uint32_t row : printed.calls)
    result.calls.push_back({loops[row].loop, loops[row].data});
  loop::Kernel& k = result.loops;
  k.buffers = std::move(printed.buffers);
  k.sizes = std::move(printed.sizes);
  k.params = std::move(printed.params);
  k.cost_ns = printed.cost_ns;
  k.streams = printed.streams;
  return result;
}

// The words of a list that is separated by commas.
std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> found(1);
  for (char c : list)
    if (c == ',')
      found.emplace_back();
    else if (c != ' ')
      found.back() += c;
  return found;
}

}  // namespace

Compiled compile(const ir::Graph& graph, const ir::LoopTable& loops, const ir::RunArgs& layouts,
                 const CompileOptions& options) {
  Compiled made;
  made.report.graph = ir::print(graph, &loops);
  made.report.numpy_ns = Uncompiled(graph).numpy_ns();
  for (const ir::Buffer& b : layouts.inputs) made.report.bytes_minimum += bytes_of(b);
  for (const ir::Buffer& b : layouts.outputs) made.report.bytes_minimum += bytes_of(b);

  Schedule planned = schedule(graph, layouts);
  for (const Group& group : planned.groups) {
    ir::GroupReport report;
    report.schedule = print(planned, group, loops);

    loop::Kernel kernel = loop::lower(planned, group, loops);
    kernel.cost_ns = loop::estimate(kernel);

    std::string passes, before;
    loop::PassOptions rewriting{.leave_out = options.leave_out};
    if (options.tells_passes)
      rewriting.dump_after = [&](std::string_view pass, const loop::Kernel& after) {
        std::string text = loop::print(after);
        if (text != before) passes += "after " + std::string(pass) + ":\n" + text;
        before = std::move(text);
      };
    kernel = loop::run_passes(std::move(kernel), rewriting);
    report.passes = std::move(passes);
    report.loops = loop::print(kernel);

    report.source = print_cpp(kernel, loops);
    report.ops = std::move(kernel.ops);
    made.report.bytes_moved += bytes_moved(kernel, planned.temps, layouts);
    made.report.groups.push_back(std::move(report));
    made.kernels.push_back(bound(std::move(kernel), loops));
  }
  made.temps = std::move(planned.temps);
  return made;
}

CompileOptions CompileOptions::from_environment() {
  const Environment environment = Environment::now();
  CompileOptions options;
  for (std::string& name : words(environment.get("UFUSE_LEAVE_OUT"))) {
    const auto known = loop::passes();
    if (std::ranges::find(known, name, &loop::Pass::name) != known.end())
      options.leave_out.push_back(std::move(name));
  }
  const std::vector<std::string> logs = words(environment.get("UFUSE_LOGS"));
  options.tells_passes = std::ranges::any_of(
      logs, [](const std::string& word) { return word == "passes" || word == "all"; });
  return options;
}

}  // namespace ufuse::codegen
