// See openmp.h.
#include "codegen/runtime/openmp.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "codegen/jit/fork.h"

extern "C" {
int omp_get_max_threads();
int omp_get_thread_num();
int omp_get_num_threads();
int omp_in_parallel();
void GOMP_parallel(void (*part)(void*), void* data, unsigned threads, unsigned flags);
std::size_t kmp_get_stacksize_s();
void kmp_set_blocktime(int milliseconds);
}

namespace ufuse::codegen {
namespace {

// Address space for what libomp and malloc keep: at the start, and for each thread. malloc takes
// 64 MiB for each thread's first memory, and has threads share from eight a CPU on.
constexpr std::size_t kForStart = std::size_t{16} << 20, kForThread = std::size_t{1} << 20,
                      kArena = std::size_t{64} << 20;

std::size_t space_for(int threads) {
  const int arenas = std::min<int>(threads, 8 * static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
  return kForStart + static_cast<std::size_t>(threads) * kForThread +
         static_cast<std::size_t>(arenas + 1) * kArena;
}

bool has_address_space(std::size_t bytes) {
  void* room = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  munmap(room, bytes);
  return true;
}

// For the shared memory, and for what libomp reads of the machine.
bool has_descriptors() {
  std::array<int, 4> files{};
  std::size_t count = 0;
  while (count < files.size() && (files[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
    ++count;
  for (std::size_t i = 0; i < count; ++i) close(files[i]);
  return count == files.size();
}

// libomp registers itself in a file of shared memory that is named after the process. An empty one,
// which a process of the same number left behind when it was killed at that very point, is a bus
// error.
void remove_empty_registration() {
  const std::string left =
      "/dev/shm/__KMP_REGISTERED_LIB_" + std::to_string(getpid()) + "_" + std::to_string(getuid());
  struct stat file {};
  if (stat(left.c_str(), &file) == 0 && file.st_size == 0) unlink(left.c_str());
}

// libomp ends the process where it cannot write that file.
bool can_register() {
  constexpr std::uint64_t kRoom = 4096;
  rlimit files{};
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur < kRoom) return false;
  struct statvfs memory {};
  if (access("/dev/shm", W_OK) != 0 || statvfs("/dev/shm", &memory) != 0) return false;
  if (memory.f_bavail * memory.f_frsize < kRoom) return false;
  remove_empty_registration();
  return true;
}

// Threads that exist until all have been created, as libomp's would.
class Trial {
 public:
  Trial() {
    pthread_attr_init(&attributes_);
    pthread_attr_setstacksize(&attributes_,
                              std::max<std::size_t>(kmp_get_stacksize_s(), PTHREAD_STACK_MIN));
    pthread_mutex_lock(&mutex_);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &signals_);  // those are for other threads
  }
  ~Trial() {
    pthread_mutex_unlock(&mutex_);
    for (const pthread_t thread : threads_) pthread_join(thread, nullptr);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    pthread_attr_destroy(&attributes_);
    pthread_mutex_destroy(&mutex_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  int create(int wanted) {
    threads_.reserve(static_cast<std::size_t>(wanted));
    for (int i = 0; i < wanted; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, &attributes_, wait, &mutex_) != 0) break;
      threads_.push_back(thread);
    }
    return static_cast<int>(threads_.size());
  }

 private:
  static void* wait(void* mutex) {
    auto* shared = static_cast<pthread_mutex_t*>(mutex);
    pthread_mutex_lock(shared);
    pthread_mutex_unlock(shared);
    return nullptr;
  }

  pthread_attr_t attributes_;
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  sigset_t signals_;
  std::vector<pthread_t> threads_;
};

void run_a_loop() {
  alarm(5);
  [[maybe_unused]] int threads = 0;  // with nothing to do, no threads would be started
#pragma omp parallel num_threads(2) reduction(+ : threads)
  ++threads;
}

// All that the child of openmp_survives does. libomp starts once more in a child of its own, which
// says so when it is through.
[[noreturn]] void run_in_child(int result) {
  const rlimit none{};
  setrlimit(RLIMIT_CORE, &none);
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {0, 1, 2}) dup2(nowhere, stream);
  run_a_loop();
  const pid_t child = fork();
  if (child == 0) {
    run_a_loop();
    const char good = 1;
    _exit(write(result, &good, 1) == 1 ? 0 : 1);
  }
  if (child > 0) waitpid(child, nullptr, 0);
  _exit(0);
}

bool is_libomp(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libomp") || name.starts_with("libiomp");
}

// The libomp of this process, which holds one because we link to it.
std::string path_of_libomp() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&omp_get_max_threads), &info) != 0 && info.dli_fname &&
      is_libomp(info.dli_fname))
    return info.dli_fname;
  std::string found = UFUSE_LIBOMP;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        if (!is_libomp(object->dlpi_name)) return 0;
        *static_cast<std::string*>(result) = object->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

// What loops call: libomp's, also where another OpenMP library stands in front in the global scope.
struct Calls {
  decltype(&GOMP_parallel) parallel = GOMP_parallel;
  decltype(&omp_get_thread_num) thread = omp_get_thread_num;
  decltype(&omp_get_num_threads) threads = omp_get_num_threads;
  decltype(&omp_get_max_threads) most_threads = omp_get_max_threads;
  decltype(&omp_in_parallel) in_parallel = omp_in_parallel;

  Calls() {
    void* const libomp = dlopen(path_of_libomp().c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (libomp == nullptr) return;
    const auto find = [&](auto& call, const char* name) {
      if (void* const found = dlsym(libomp, name))
        call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(found);
    };
    find(parallel, "GOMP_parallel");
    find(thread, "omp_get_thread_num");
    find(threads, "omp_get_num_threads");
    find(most_threads, "omp_get_max_threads");
    find(in_parallel, "omp_in_parallel");
    dlclose(libomp);  // it is in the process as long as this module
  }
};

const Calls& calls() {
  static const Calls found;
  return found;
}

// The fork_generation() in which libomp was started last: it starts anew in a child.
std::atomic<std::uint64_t> started{std::numeric_limits<std::uint64_t>::max()};

}  // namespace

bool openmp_runs() { return started == fork_generation(); }

bool start_openmp() {
  if (openmp_runs()) return true;
  if (!can_register() || !has_descriptors() || !has_address_space(kForStart)) return false;
  // Once libomp runs, it starts anew in each forked child, before fork() returns. Handlers are
  // called in the order in which they were added.
  [[maybe_unused]] static const int added =
      pthread_atfork(nullptr, nullptr, remove_empty_registration);
  calls().most_threads();
  started = fork_generation();
  return true;
}

void set_wait(int milliseconds) {
  if (std::getenv("KMP_BLOCKTIME") || std::getenv("OMP_WAIT_POLICY")) return;
  kmp_set_blocktime(milliseconds);
}

bool in_parallel_region() { return calls().in_parallel() != 0; }

void run_on_team(int threads, void (*part)(void* data, int thread, int team), void* data) {
  struct Task {
    decltype(part) run;
    void* data;
  } task{part, data};
  calls().parallel(
      [](void* given) {
        const Task& own = *static_cast<const Task*>(given);
        own.run(own.data, calls().thread(), calls().threads());
      },
      &task, static_cast<unsigned>(threads), 0);
}

int creatable_threads(int wanted) {
  for (int tried = wanted; tried > 0;) {
    Trial trial;
    const int created = trial.create(tried);
    // Where that was all, half of it is left to the rest of the process.
    if (has_address_space(space_for(created))) return created < wanted ? created / 2 : created;
    tried = std::min(created, tried / 2);
  }
  return 0;
}

bool openmp_survives() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  const pid_t child = fork();
  if (child == 0) run_in_child(ends[1]);
  close(ends[1]);
  char good = 0;
  if (child > 0) {
    while (read(ends[0], &good, 1) < 0 && errno == EINTR) {
    }
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close(ends[0]);
  return good == 1;
}

}  // namespace ufuse::codegen
