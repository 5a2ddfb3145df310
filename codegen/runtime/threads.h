// How many threads may a kernel use now?
//
// Asked once per launch by codegen, with the kernel's estimated work. libomp does the threading;
// this only decides. It knows nothing of kernels or graphs.
#pragma once

#include <atomic>
#include <cstdint>

namespace ufuse::codegen {

class Threads {
 public:
  // OMP_NUM_THREADS where it is set; else the CPUs this process may run on, cut to the cgroup's
  // quota.
  Threads();

  int limit() const { return limit_.load(std::memory_order_relaxed); }
  void set_limit(int threads);  // below 1: back to the default

  // The `threads` for rt::Args: limit() when `work_ns` (estimate for one thread) outweighs waking
  // the team, else 1. Always 1 inside a parallel region of the caller's. A team that ran in the
  // last few milliseconds is still awake, and cheap.
  int choose(double work_ns);

 private:
  const bool can_start_;  // whether libomp can; without it there is one thread
  const int default_limit_;
  std::atomic<int> limit_;
  std::atomic<std::int64_t> last_parallel_ns_;  // steady clock
};

}  // namespace ufuse::codegen
