// How do the kernels of a graph run on the memory of one call? In their order, each with as many
// threads as it is worth, and so that a run can be given up for as long as nothing that lasts has
// been written. Made by the Compiler.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "codegen/jit/loader.h"
#include "codegen/loop/ir.h"
#include "codegen/runtime/memory.h"
#include "codegen/runtime/threads.h"
#include "codegen/schedule/schedule.h"
#include "ir/backend.h"

namespace ufuse::codegen {

struct BoundKernel {
  std::shared_ptr<const Kernel> code;
  loop::Kernel loops;  // what is left of it once it is printed
  std::vector<rt::Loop> calls;
};

class CompiledGraph : public ir::Executable {
 public:
  // `alias`: which input each output overwrites, as in ir::RunArgs.
  CompiledGraph(std::vector<BoundKernel> kernels, std::vector<Temp> temps, std::vector<int> alias,
                ir::Report report, Threads& threads, ScratchPool& pool);

  ir::RunStatus run(const ir::RunArgs& args) const override;
  double expected_ns() const override { return cost_ns_; }
  const ir::Report& report() const override { return report_; }

 private:
  struct Run;
  struct Detour;

  void share_memory();
  std::size_t slot_for(std::size_t bytes, std::vector<std::size_t>& idle);
  std::pair<loop::Buffer::Role, std::size_t> memory_of(const loop::Buffer& b,
                                                       const std::vector<int>& alias) const;
  bool must_follow(const loop::Kernel& later, const loop::Kernel& earlier,
                   const std::vector<int>& alias) const;
  bool writes_lasting(const BoundKernel& kernel, const ir::RunArgs& args) const;
  std::vector<char> after_lasting(const ir::RunArgs& args) const;
  bool launch(const BoundKernel& kernel, Run& run) const;
  std::vector<Detour> detours(const BoundKernel& kernel, const Run& run, int threads) const;

  const std::vector<BoundKernel> kernels_;
  const std::vector<Temp> temps_;
  const ir::Report report_;
  std::vector<std::size_t> slots_;               // bytes of each piece of memory for temporaries
  std::vector<std::size_t> slot_of_;             // where each temporary lies
  std::vector<std::vector<std::size_t>> needs_;  // per kernel: earlier ones that it stands behind
  std::vector<int> writers_;                     // per output: how many kernels write to it
  double cost_ns_ = 0;
  Threads& threads_;
  ScratchPool& pool_;
};

}  // namespace ufuse::codegen
