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

constexpr std::array kNames = {"compiled", "interpreted", "numpy"};
std::atomic<int>& first_tried() {
  static std::atomic<int> index{0};
  return index;
}

codegen::Compiler& compiler(bool fast) {
  static auto* exact = new codegen::Compiler(loop_table());
  static auto* contracting = new codegen::Compiler(loop_table(), codegen::Numerics::Fast);
  return fast ? *contracting : *exact;
}

ir::Backend* backend(int index, bool fast) {
  static auto* interpreter = new ir::Interpreter(&loop_table());
  if (index == 0) return &compiler(fast);
  return index == 1 ? interpreter : nullptr;
}

}  // namespace

std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph, const ir::RunArgs& layouts,
                                              bool fast, std::string& note) {
  for (int i = first_tried(); i < 2; ++i) {
    ir::Backend* tried = backend(i, fast);
    try {
      return tried->prepare(graph, layouts);
    } catch (const Unsupported& error) {
      note = error.what();
    } catch (const CompileError& error) {
      note = error.what();
    }
  }
  return nullptr;
}

codegen::JitStats jit_stats() { return compiler(false).jit().stats(); }

void set_backend(const std::string& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (name != kNames[i]) continue;
    first_tried() = static_cast<int>(i);
    return;
  }
  throw py::value_error("backend must be 'compiled', 'interpreted' or 'numpy', not '" + name + "'");
}
std::string current_backend() { return kNames[static_cast<std::size_t>(first_tried().load())]; }

void set_num_threads(int threads) {
  compiler(false).threads().set_limit(threads);
  compiler(true).threads().set_limit(threads);
}
int get_num_threads() { return compiler(false).threads().limit(); }

}  // namespace ufuse::pyext
