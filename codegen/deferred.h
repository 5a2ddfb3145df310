// An Executable that another one answers for until its loops are compiled in the background.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "codegen/jit/jit.h"
#include "ir/backend.h"

namespace ufuse::codegen {

class Deferred : public ir::Executable {
 public:
  // Makes the compiled executable of its kernels, in the order of `sources`.
  using Bind = std::function<std::shared_ptr<const ir::Executable>(std::vector<Built>)>;

  // Begins to build `sources`; `report` is what is said until they are built. Throws CompileError
  // when nothing can be built in the background. `jit` must outlive it.
  Deferred(Jit& jit, std::vector<std::string> sources, Numerics numerics, Bind bind,
           std::shared_ptr<const ir::Executable> meanwhile, ir::Report report);
  ~Deferred() override { delete outcome_.load(); }
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;

  // Waits until the loops are built or cannot be, at most so long.
  void wait_for(std::chrono::milliseconds patience) const;
  // Waits however long it takes. Throws CompileError when they cannot be built.
  void wait() const;

  ir::RunStatus run(const ir::RunArgs& args) const override;
  const ir::Report& report() const override;
  bool settled() const override { return outcome_.load(std::memory_order_acquire) != nullptr; }
  double expected_ns() const override;

 private:
  // What answers from now on.
  struct Outcome {
    std::shared_ptr<const ir::Executable> executable;
    std::exception_ptr error;  // why these are not the compiled loops
    ir::Report without_loops;  // what is said then
  };

  // Null: not known yet.
  const Outcome* look() const;
  const Outcome& settle() const;

  Jit& jit_;
  const std::vector<std::string> sources_;
  const Numerics numerics_;
  const Bind bind_;
  const std::shared_ptr<const ir::Executable> meanwhile_;
  const ir::Report pending_report_;
  const unsigned generation_;  // a forked child has no thread that builds
  std::vector<std::shared_future<Built>> builds_;
  mutable std::atomic<const Outcome*> outcome_{nullptr};  // no lock, which a fork may copy locked
};

}  // namespace ufuse::codegen
