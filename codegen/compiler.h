// The compiled backend: from a graph to machine code that runs it. pyext creates one; tracer runs
// through it as an ir::Backend. This folder sees neither Python nor tracer.
#pragma once

#include <chrono>
#include <memory>

#include "codegen/compile.h"
#include "codegen/jit/jit.h"
#include "codegen/runtime/threads.h"
#include "ir/backend.h"

namespace ufuse::codegen {

class Compiler : public ir::Backend {
 public:
  // `loops` must outlive it and everything it prepares. Several may share a Jit.
  explicit Compiler(const ir::LoopTable& loops, Numerics numerics = Numerics::Exact,
                    std::shared_ptr<Jit> jit = default_jit(), CompileOptions options = {});
  ~Compiler() override;
  // One that knows the text every kernel starts with.
  static std::shared_ptr<Jit> default_jit();

  // A call waits no longer than this for the compiler, whatever the compiler does:
  // $UFUSE_PATIENCE in seconds, or 5 s. What it is when it is first asked for, it stays.
  static std::chrono::milliseconds longest_wait();

  // Waits for the compiler, however long it takes.
  std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph,
                                                const ir::RunArgs& layouts) override;

  // The same, but until the loops are compiled in the background `meanwhile` answers where there is
  // little to do, and else each run is left to NumPy (RunStatus::redo). `meanwhile` must give the
  // same bits, or better ones where these numerics are not exact. Where NumPy would take longer
  // than the compiler, and `always`, the compiler is waited for first, as patiently as the caller
  // is; otherwise no longer than `brief`.
  std::shared_ptr<const ir::Executable> prepare_or_defer(const ir::Graph& graph,
                                                         const ir::RunArgs& layouts,
                                                         ir::Backend& meanwhile, bool always,
                                                         const ir::Patience& patience,
                                                         std::chrono::nanoseconds brief);
  // What prepare_or_defer would give, if it would give it at once; else null.
  std::shared_ptr<const ir::Executable> find(const ir::Graph& graph, const ir::RunArgs& layouts,
                                             bool always) const;

  // What would be compiled, without compiling it: for golden files and explain.
  ir::Report describe(const ir::Graph& graph, const ir::RunArgs& layouts) const;

  Threads& threads();
  Jit& jit();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ufuse::codegen
