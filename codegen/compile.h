// The compiled backend: graph -> plan -> loops -> C++ text -> machine code -> run. pyext creates
// one; tracer runs through it as an ir::Backend. This folder sees neither Python nor tracer.
#pragma once

#include <memory>

#include "codegen/jit/jit.h"
#include "codegen/runtime/threads.h"
#include "ir/backend.h"

namespace ufuse::codegen {

class Compiler : public ir::Backend {
 public:
  // `loops` must outlive it and everything it prepares.
  explicit Compiler(const ir::LoopTable& loops, Numerics numerics = Numerics::Exact);
  ~Compiler() override;

  std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph,
                                                const ir::RunArgs& layouts) override;

  // The same without waiting for the compiler where `meanwhile`, which must give the same bits,
  // takes less time than that: it answers until the loops are compiled in the background.
  std::shared_ptr<const ir::Executable> prepare_or_defer(const ir::Graph& graph,
                                                         const ir::RunArgs& layouts,
                                                         ir::Backend& meanwhile);

  // What would be compiled, without compiling it: for golden files and explain.
  ir::Report describe(const ir::Graph& graph, const ir::RunArgs& layouts) const;

  Threads& threads();
  Jit& jit();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ufuse::codegen
