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
  Threads();

  // Of all threads, set_limit()'s or by default OMP_NUM_THREADS where it is set; else the CPUs this
  // process may run on, cut to the cgroup's quota. The default starts libomp, which takes a
  // millisecond, so it is asked only when there is work for more than one thread.
  int limit();
  void set_limit(int threads);  // below 1: back to the default

  // The `threads` for rt::Args: limit() when `work_ns` (estimate for one thread) outweighs waking
  // the team, else 1. Always 1 inside a parallel region of the caller's. A team that ran in the
  // last few milliseconds is still awake, and cheap.
  int choose(double work_ns);

 private:
  std::atomic<int> limit_{0};                   // 0: the default, which nobody has asked for yet
  std::atomic<std::int64_t> last_parallel_ns_;  // steady clock
};

}  // namespace ufuse::codegen
