// See backends.h.
#include "pyext/bind/call/backends.h"

#include <array>
#include <atomic>

#include "codegen/compiler.h"
#include "ir/interp/interpreter.h"
#include "ir/support/error.h"
#include "pyext/bind/common.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/waiting.h"

namespace ufuse::pyext {
namespace {

enum Choice { kDeferred, kCompiled, kInterpreted, kNumPy };
constexpr std::array kNames = {"deferred", "compiled", "interpreted", "numpy"};
std::atomic<int>& first_tried() {
  static std::atomic<int> index{kDeferred};
  return index;
}

// Both use one Jit, so what is known of the compiler is known to both.
codegen::Compiler& compiler(bool fast) {
  static auto* jit = new auto(codegen::Compiler::default_jit());
  static const codegen::CompileOptions options = codegen::CompileOptions::from_environment();
  static auto* exact = new codegen::Compiler(loop_table(), codegen::Numerics::Exact, *jit, options);
  static auto* contracting =
      new codegen::Compiler(loop_table(), codegen::Numerics::Fast, *jit, options);
  return fast ? *contracting : *exact;
}

ir::Interpreter& interpreter() {
  static auto* one = new ir::Interpreter(&loop_table());
  return *one;
}

}  // namespace

std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph, const ir::RunArgs& layouts,
                                              bool fast, bool waits,
                                              std::chrono::nanoseconds patience,
                                              std::chrono::nanoseconds brief, std::string& note) {
  const int first = first_tried();
  if (first == kNumPy) return nullptr;
  if (first == kInterpreted) return interpreter().prepare(graph, layouts);
  const bool always = waits || first == kCompiled;
  codegen::Compiler& loops = compiler(fast);
  // To find a known one takes less time than giving the lock away.
  if (auto known = loops.find(graph, layouts, always)) return known;
  try {
    const Waiting waiting(patience);
    return loops.prepare_or_defer(graph, layouts, interpreter(), always, waiting.patience(), brief);
  } catch (const Unsupported& error) {
    note = error.what();
  }
  return interpreter().prepare(graph, layouts);
}

std::shared_future<codegen::Built> build_program(const std::string& text, codegen::Effort effort) {
  return compiler(false).jit().get_async(text, {.effort = effort}, codegen::Urgency::Running);
}

void finish_builds(std::chrono::milliseconds patience) { compiler(false).jit().finish(patience); }

CacheFacts cache_facts(bool clear) {
  const std::uint64_t most = codegen::default_cache_bytes();
  codegen::EntryStore store(codegen::default_cache_folder(), most);
  return {store.folder(), store.note(), most, clear ? store.clear() : store.content()};
}

codegen::EntryStore& kept_entries() { return compiler(false).jit().store(); }

codegen::JitStats jit_stats() { return compiler(false).jit().stats(); }

std::string set_backend(const std::string& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i])
      return kNames[static_cast<std::size_t>(first_tried().exchange(static_cast<int>(i)))];
  throw py::value_error("backend must be 'deferred', 'compiled', 'interpreted' or 'numpy', not '" +
                        name + "'");
}
std::string current_backend() { return kNames[static_cast<std::size_t>(first_tried().load())]; }

bool waits_for_loops() { return first_tried() == kCompiled; }

void set_num_threads(int threads) {
  compiler(false).threads().set_limit(threads);
  compiler(true).threads().set_limit(threads);
}
int get_num_threads() { return compiler(false).threads().limit(); }
std::string threads_note() { return compiler(false).threads().note(); }

}  // namespace ufuse::pyext
