// The measured costs of waking libomp's team, and the limits that a container sets.
#include "codegen/runtime/threads.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/jit/fork.h"
#include "codegen/runtime/openmp.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen {
namespace {

// How long teams wait for the next loop: a core of a virtual machine that has slept for longer than
// some milliseconds takes as long to wake; BLAS's threads want the cores at once.
constexpr int kWaitMs = 25, kShortWaitMs = 1;
constexpr std::int64_t kOthersStay = 1'000'000'000;  // ns
constexpr std::int64_t kAskAgain = 10'000'000'000;   // ns after threads could not be created
constexpr int kMostThreads = 1 << 16;
// ns: what teams may lose before they rest, what they gain at most towards that, and how long they
// rest. Linux lets a thread wait for a core for about 4 ms.
constexpr std::int64_t kMostLost = 2'000'000, kMostGained = 2'000'000;
constexpr std::int64_t kShortestRest = 16'000'000, kLongestRest = 1'000'000'000;

// CPUs' worth of time that the container may use: "quota period" in cgroup v2's cpu.max, two files
// in v1. 0: no limit is known.
double cgroup_cpus() {
  // Not by C++ streams, which ask the library's locale: a process may hold two such libraries.
  const auto scan = [](const char* path, const char* form, auto*... numbers) {
    std::FILE* const file = std::fopen(path, "re");
    if (!file) return;
    std::ignore = std::fscanf(file, form, numbers...);
    std::fclose(file);
  };
  long quota = 0, period = 0;
  scan("/sys/fs/cgroup/cpu.max", "%ld %ld", &quota, &period);  // no number in "max 100000"
  if (period == 0) {
    scan("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "%ld", &quota);
    scan("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "%ld", &period);
  }
  return quota > 0 && period > 0 ? static_cast<double>(quota) / static_cast<double>(period) : 0;
}

// The first number of OMP_NUM_THREADS, which is for the outermost loops. 0: it is no such list.
int threads_by_environment() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  if (text == nullptr) return 0;
  std::string_view rest = text;
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  int count = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const bool good = error == std::errc() && count > 0 && (rest.empty() || rest.front() == ',');
  return good ? std::min(count, kMostThreads) : 0;
}

int cpus_of_process() {
  for (std::size_t most = CPU_SETSIZE; most <= kMostThreads; most *= 2) {
    std::vector<unsigned char> set(CPU_ALLOC_SIZE(most));
    auto* mask = reinterpret_cast<cpu_set_t*>(set.data());
    if (sched_getaffinity(0, set.size(), mask) == 0)
      return std::max(1, CPU_COUNT_S(set.size(), mask));
  }
  return 1;
}

int threads_by_default() {
  if (const int wanted = threads_by_environment()) return wanted;
  const int available = cpus_of_process();
  const double cpus = cgroup_cpus();
  return cpus > 0 ? std::clamp(static_cast<int>(std::ceil(cpus)), 1, available) : available;
}

// The team that libomp keeps for a thread that has run loops.
struct Team {
  unsigned generation = 0;  // a forked child has none of its threads
  int wait_ms = 0;          // as libomp has been told
  int size = 1;
  std::int64_t refused_ns = -kAskAgain;  // when it was found that it cannot grow
};

bool starts_openmp(ir::Watch* host) {
  if (openmp_runs() || host == nullptr) return start_openmp();
  bool started = false;
  host->without_forks([&] { started = start_openmp(); });
  return started;
}

}  // namespace

std::int64_t Threads::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Contention::ran(std::int64_t taken_ns, std::int64_t parts_ns, std::int64_t now_ns) {
  const std::int64_t before = balance_ns_.load(std::memory_order_relaxed);
  const std::int64_t balance = std::min(before + parts_ns - taken_ns, kMostGained);
  if (balance == before) return;
  balance_ns_.store(balance, std::memory_order_relaxed);
  if (balance == kMostGained) rest_ns_.store(0, std::memory_order_relaxed);
  if (balance > -kMostLost) return;
  const std::int64_t rest =
      std::clamp(2 * rest_ns_.load(std::memory_order_relaxed), kShortestRest, kLongestRest);
  rest_ns_.store(rest, std::memory_order_relaxed);
  rests_until_.store(now_ns + rest, std::memory_order_relaxed);
  balance_ns_.store(0, std::memory_order_relaxed);
}

Contention& Contention::here() {
  static Contention of_all;
  return of_all;
}

Threads::Threads(std::function<int()> taken, Clock clock, const Contention& contention)
    : taken_(std::move(taken)),
      clock_(clock),
      contention_(contention),
      default_limit_(threads_by_default()),
      limit_(default_limit_),
      last_parallel_ns_(-kAskAgain),
      others_ns_(-kAskAgain),
      wait_ms_(kWaitMs) {}

void Threads::set_limit(int threads) {
  limit_.store(threads < 1 ? default_limit_ : threads, std::memory_order_relaxed);
}

int Threads::choose(double work_ns, ir::Watch* host) {
  if (work_ns < cost::kWorthAwake) return 1;
  int most = limit();
  if (work_ns < cost::kWorthTakenCores) most = contention_.rests(clock_()) ? 1 : most - taken_();
  if (most <= 1) return 1;
  const std::int64_t awake = wait_ms_.load(std::memory_order_relaxed) * 1'000'000;  // after a loop
  if (work_ns < cost::kWorthAsleep &&
      clock_() - last_parallel_ns_.load(std::memory_order_relaxed) > awake)
    return 1;
  choose_wait();
  const int count = granted(most, host);
  if (count > 1) last_parallel_ns_.store(clock_(), std::memory_order_relaxed);
  return count;
}

void Threads::choose_wait() {
  const std::int64_t now = clock_();
  if (others_compute_.load(std::memory_order_relaxed) &&
      others_compute_.exchange(false, std::memory_order_relaxed))
    others_ns_.store(now, std::memory_order_relaxed);
  const bool alone = now - others_ns_.load(std::memory_order_relaxed) > kOthersStay;
  wait_ms_.store(alone ? kWaitMs : kShortWaitMs, std::memory_order_relaxed);
}

int Threads::granted(int wanted, ir::Watch* host) {
  thread_local Team team;
  if (team.generation != fork_generation()) team = {fork_generation()};
  if (team.size == 1 && !starts_openmp(host)) {
    const std::lock_guard lock(note_mutex_);
    note_ = "OpenMP cannot be started: no shared memory, file or memory is left for it";
    return 1;
  }
  const int wait = wait_ms_.load(std::memory_order_relaxed);
  if (std::exchange(team.wait_ms, wait) != wait) set_wait(wait);
  if (in_parallel_region()) return 1;
  if (wanted <= team.size || clock_() - team.refused_ns < kAskAgain)
    return std::min(wanted, team.size);
  team.size += creatable_threads(wanted - team.size);
  if (team.size < wanted) {
    team.refused_ns = clock_();
    const std::lock_guard lock(note_mutex_);
    note_ =
        "of " + std::to_string(limit()) + " threads the system gives " + std::to_string(team.size);
  }
  return std::min(wanted, team.size);
}

std::string Threads::note() const {
  const std::lock_guard lock(note_mutex_);
  return note_;
}

}  // namespace ufuse::codegen
