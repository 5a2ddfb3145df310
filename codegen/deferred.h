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
  // Makes the compiled executable of its kernels, in the order of the report's groups.
  using Bind = std::function<std::shared_ptr<const ir::Executable>(std::vector<Built>)>;

  // Begins to build the source of each group of `report`, which is what can be said of them now;
  // before those that nobody waits for if `awaited`. `jit` must outlive it. `meanwhile` may be null
  // where it is never run before wait() has returned.
  Deferred(Jit& jit, Numerics numerics, bool awaited, Bind bind,
           std::shared_ptr<const ir::Executable> meanwhile, ir::Report report);
  ~Deferred() override;
  Deferred(const Deferred&) = delete;
  Deferred& operator=(const Deferred&) = delete;

  // Waits until the loops are built or cannot be; not for a compiler that is known to be slow.
  void await(const ir::Patience& patience) const override;
  // The same, but only for loops that may be on the disk.
  void await_load(const ir::Patience& patience) const;
  // Waits however long it takes. Throws CompileError when they cannot be built.
  void wait() const;

  ir::RunStatus run(const ir::RunArgs& args) const override;
  const ir::Report& report() const override;
  bool is_final() const override;
  double expected_ns() const override;

 private:
  using Clock = std::chrono::steady_clock;

  // How far it is. Each follows from the one before, which is kept, since others may look at it.
  // No locks: a fork may copy them locked.
  struct Stage {
    enum { Building, Compiled, Failed } state = Building;
    unsigned generation = 0;  // the process that builds: a forked child has no thread that does
    std::vector<std::shared_future<Built>> builds;
    std::shared_ptr<const ir::Executable> executable;    // who answers
    ir::Report report;                                   // what is said until it is compiled
    bool slow = false;                                   // somebody gave up waiting
    std::exception_ptr error;                            // why it failed
    Clock::time_point again = Clock::time_point::max();  // when it is tried once more
    Clock::duration pause{0};                            // how long after the failure that is
    const Stage* before = nullptr;
  };

  const Stage& look() const;
  bool may_be_near() const;
  std::unique_ptr<Stage> next(const Stage& now) const;
  std::unique_ptr<Stage> begun(Clock::duration pause, bool awaited) const;
  std::unique_ptr<Stage> over(const Stage& now) const;
  std::unique_ptr<Stage> slow(const Stage& now) const;
  const Stage& advance(const Stage& from, std::unique_ptr<Stage> to) const;
  const ir::Report& without_loops() const;

  Jit& jit_;
  const Numerics numerics_;
  const Bind bind_;
  const std::shared_ptr<const ir::Executable> meanwhile_;
  const ir::Report report_;
  mutable std::atomic<const Stage*> stage_{nullptr};
};

}  // namespace ufuse::codegen
