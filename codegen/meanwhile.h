// What answers until loops are compiled, and is it worth waiting for them?
#pragma once

#include <chrono>
#include <memory>

#include "ir/backend.h"
#include "ir/graph.h"

namespace ufuse::codegen {

// Roughly what a graph takes without compiled loops: a pass over memory for each node.
class Uncompiled {
 public:
  explicit Uncompiled(const ir::Graph& graph);
  // The interpreter takes hardly any time.
  bool is_quick() const;
  // NumPy takes longer than the compiler, or much memory.
  bool is_worse_than_waiting() const;
  // How long one waits then: no longer than NumPy takes, but where it takes much memory.
  std::chrono::nanoseconds longest_wait() const;
  double numpy_ns() const { return numpy_; }

 private:
  double interpreted_ = 0, numpy_ = 0;  // nanoseconds
  double largest_ = 0;                  // value, bytes
  double worth_waiting_;
};

// Leaves each run to NumPy, by way of the caller.
std::shared_ptr<const ir::Executable> left_to_numpy(ir::Report report);

}  // namespace ufuse::codegen
