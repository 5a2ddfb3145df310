// How many threads may a kernel use now?
//
// Asked once per launch by codegen, with the kernel's estimated work. libomp does the threading;
// this only decides, and sees to it that libomp is never asked for what would end the process:
// openmp.h knows what that is. It knows nothing of kernels or graphs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <utility>

#include "ir/backend.h"

namespace ufuse::codegen {

// Whether teams lose time because other processes take the cores that their threads need: who waits
// for a core, for some milliseconds, makes the whole loop wait. Then loops run on one thread for a
// while, the longer the more often that was tried in vain. Thread-safe, as far as it matters.
class Contention {
 public:
  // Of all teams of this process; each loop on one is told to it.
  static Contention& here();

  // A loop took so long on a team, whose threads worked on their parts for so long together.
  void ran(std::int64_t taken_ns, std::int64_t parts_ns, std::int64_t now_ns);
  bool rests(std::int64_t now_ns) const {
    return now_ns < rests_until_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> balance_ns_ = 0;  // gained beside one thread
  std::atomic<std::int64_t> rest_ns_ = 0, rests_until_ = 0;
};

class Threads {
 public:
  // Nanoseconds since some moment; tests have a clock of their own.
  using Clock = std::int64_t (*)();
  static std::int64_t now_ns();  // of the steady clock

  // OMP_NUM_THREADS where it is set and makes sense; else the CPUs this process may run on, cut to
  // the cgroup's quota.
  // `taken`: how many cores compilers use just now.
  explicit Threads(std::function<int()> taken, Clock clock = now_ns,
                   const Contention& contention = Contention::here());

  int limit() const { return std::min(limit_.load(std::memory_order_relaxed), own_limit_); }
  void set_limit(int threads);  // below 1: back to the default
  // The most for loops that the calling thread starts, one of a pool of whom each computes; gives
  // what was set before.
  static int set_own_limit(int threads) { return std::exchange(own_limit_, threads); }

  // The count for rt::Threads: limit() when `work_ns` (estimate for one thread) outweighs waking
  // the team, else 1; fewer where the system gives no more, or where cores are taken: a thread that
  // has to wait for a core makes all others wait. Always 1 inside a parallel region of
  // the caller's. A team that ran a moment ago is still awake, and cheap. `host`: as in RunArgs.
  int choose(double work_ns, ir::Watch* host = nullptr);

  // Somebody else computes between loops, perhaps with threads of its own, as BLAS has: for a
  // second from the next loop on, teams sleep almost at once instead of keeping cores awake.
  static void leave_cores() { others_compute_.store(true, std::memory_order_relaxed); }

  // Why the system gives loops fewer threads than limit(); empty: it does not, as far as is known.
  std::string note() const;

 private:
  int granted(int wanted, ir::Watch* host);
  void choose_wait();

  static inline thread_local int own_limit_ = std::numeric_limits<int>::max();
  static inline std::atomic<bool> others_compute_ = false;  // since a team was last asked for

  const std::function<int()> taken_;
  const Clock clock_;
  const Contention& contention_;
  const int default_limit_;
  std::atomic<int> limit_;
  std::atomic<std::int64_t> last_parallel_ns_, others_ns_;
  std::atomic<int> wait_ms_;  // of teams, from the last loop on
  mutable std::mutex note_mutex_;
  std::string note_;
};

}  // namespace ufuse::codegen
