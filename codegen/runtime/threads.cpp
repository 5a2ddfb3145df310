// The measured costs of waking libomp's team, and the limits that a container sets.
#include "codegen/runtime/threads.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>

extern "C" {
int omp_get_max_threads();
int omp_in_parallel();
}

namespace ufuse::codegen {
namespace {

// Measured with libomp: an empty region of a team that spins costs below a microsecond; one that
// sleeps must be woken.
constexpr double kWorthAwake = 20e3, kWorthAsleep = 150e3;  // ns of work on one thread
constexpr std::int64_t kAwake = 20'000'000;  // ns after a region; libomp's threads spin for 200 ms

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

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

// Whether libomp can start in this process. It registers itself in a file of shared memory that is
// named after the process, and ends the process where it cannot write there; an empty file, which a
// process of the same number left behind when it was killed at that very point, is a bus error.
bool openmp_can_start() {
  constexpr std::uint64_t kRoom = 4096;
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < kRoom) return false;
  struct statvfs memory {};
  if (access("/dev/shm", W_OK) != 0 || statvfs("/dev/shm", &memory) != 0) return false;
  if (memory.f_bavail * memory.f_frsize < kRoom) return false;
  const std::string left =
      "/dev/shm/__KMP_REGISTERED_LIB_" + std::to_string(getpid()) + "_" + std::to_string(getuid());
  struct stat file {};
  if (stat(left.c_str(), &file) == 0 && file.st_size == 0) unlink(left.c_str());
  return true;
}

int threads_by_default() {
  const int openmp = std::max(1, omp_get_max_threads());  // OMP_NUM_THREADS, else the affinity mask
  if (std::getenv("OMP_NUM_THREADS")) return openmp;
  const double cpus = cgroup_cpus();
  return cpus > 0 ? std::clamp(static_cast<int>(std::ceil(cpus)), 1, openmp) : openmp;
}

}  // namespace

Threads::Threads()
    : can_start_(openmp_can_start()),
      default_limit_(can_start_ ? threads_by_default() : 1),
      limit_(default_limit_),
      last_parallel_ns_(-kAwake) {}

void Threads::set_limit(int threads) {
  const int limit = threads < 1 || !can_start_ ? default_limit_ : threads;
  limit_.store(limit, std::memory_order_relaxed);
}

int Threads::choose(double work_ns) {
  const int most = limit();
  if (most <= 1 || work_ns < kWorthAwake || omp_in_parallel()) return 1;
  const std::int64_t now = now_ns();
  if (work_ns < kWorthAsleep && now - last_parallel_ns_.load(std::memory_order_relaxed) > kAwake)
    return 1;
  last_parallel_ns_.store(now, std::memory_order_relaxed);
  return most;
}

}  // namespace ufuse::codegen
