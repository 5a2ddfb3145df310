// See backends.h.
#include "pyext/bind/backends.h"

#include <array>
#include <atomic>

#include "codegen/compile.h"
#include "ir/interp/interpreter.h"
#include "ir/support/error.h"
#include "pyext/bind/common.h"
#include "pyext/bind/ufunc_registry.h"

namespace ufuse::pyext {
namespace {

enum Choice { kDeferred, kCompiled, kInterpreted, kNumPy };
constexpr std::array kNames = {"deferred", "compiled", "interpreted", "numpy"};
std::atomic<int>& first_tried() {
  static std::atomic<int> index{kDeferred};
  return index;
}

codegen::Compiler& compiler(bool fast) {
  static auto* exact = new codegen::Compiler(loop_table());
  static auto* contracting = new codegen::Compiler(loop_table(), codegen::Numerics::Fast);
  return fast ? *contracting : *exact;
}

ir::Interpreter& interpreter() {
  static auto* one = new ir::Interpreter(&loop_table());
  return *one;
}

std::shared_ptr<const ir::Executable> prepare_by(int choice, const ir::Graph& graph,
                                                 const ir::RunArgs& layouts, bool fast) {
  switch (choice) {
    case kDeferred:
      return compiler(fast).prepare_or_defer(graph, layouts, interpreter());
    case kCompiled:
      return compiler(fast).prepare(graph, layouts);
    default:
      return interpreter().prepare(graph, layouts);
  }
}

}  // namespace

std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph, const ir::RunArgs& layouts,
                                              bool fast, std::string& note) {
  const int first = first_tried();
  for (int choice = first; choice < kNumPy; ++choice) {
    // What cannot be deferred cannot be compiled.
    if (choice == kCompiled && first == kDeferred) continue;
    try {
      return prepare_by(choice, graph, layouts, fast);
    } catch (const Unsupported& error) {
      note = error.what();
    } catch (const CompileError& error) {
      note = error.what();
    }
  }
  return nullptr;
}

void finish_builds(std::chrono::milliseconds patience) {
  for (const bool fast : {false, true}) compiler(fast).jit().finish(patience);
}

codegen::JitStats jit_stats() { return compiler(false).jit().stats(); }

void set_backend(const std::string& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name != kNames[i]) continue;
    first_tried() = static_cast<int>(i);
    return;
  }
  throw py::value_error("backend must be 'deferred', 'compiled', 'interpreted' or 'numpy', not '" +
                        name + "'");
}
std::string current_backend() { return kNames[static_cast<std::size_t>(first_tried().load())]; }

void set_num_threads(int threads) {
  compiler(false).threads().set_limit(threads);
  compiler(true).threads().set_limit(threads);
}
int get_num_threads() { return compiler(false).threads().limit(); }
std::string threads_note() { return compiler(false).threads().note(); }

}  // namespace ufuse::pyext
