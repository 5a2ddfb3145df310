// The reference backend: computes a graph node by node, without a compiler. It answers while a
// kernel is not compiled yet or cannot be, runs the drop-in module op by op, says which node raised
// a floating-point flag, and is what the compiled code is tested against.
#pragma once

#include <vector>

#include "ir/backend.h"

namespace ufuse::ir {

class Interpreter : public Backend {
 public:
  // `loops` is where the graph's block calls point; it must outlive prepare() and node_flags(), not
  // what they return.
  explicit Interpreter(const LoopTable* loops = nullptr) : loops_(loops) {}

  std::shared_ptr<const Executable> prepare(const Graph& graph, const RunArgs& layouts) override;

  // The flags (as in RunStatus) that each node of the graph raises by itself, in the order of the
  // nodes: whose warning is it? Outputs are not written.
  std::vector<std::uint32_t> node_flags(const Graph& graph, const RunArgs& args) const;

 private:
  const LoopTable* loops_;
};

}  // namespace ufuse::ir
