// The pthread_atfork handlers.
#include "codegen/jit/fork.h"

#include <pthread.h>

#include <atomic>

namespace ufuse::codegen {
namespace {

// One per process by nature: fork() copies the process, not an object. Never destroyed, because
// handlers outlive main.
struct ForkWatch {
  std::atomic<unsigned> generation{0};
  pthread_rwlock_t loading = PTHREAD_RWLOCK_INITIALIZER;

  static ForkWatch& get() {
    static ForkWatch* const watch = [] {
      auto* made = new ForkWatch;
      pthread_atfork([] { pthread_rwlock_wrlock(&get().loading); },
                     [] { pthread_rwlock_unlock(&get().loading); },
                     [] {
                       // The child's only thread is the one that took the lock, under another
                       // thread id: make it anew.
                       get().loading = PTHREAD_RWLOCK_INITIALIZER;
                       get().generation.fetch_add(1);
                     });
      return made;
    }();
    return *watch;
  }
};

}  // namespace

unsigned fork_generation() { return ForkWatch::get().generation.load(); }

NoFork::NoFork() { pthread_rwlock_rdlock(&ForkWatch::get().loading); }
NoFork::~NoFork() { pthread_rwlock_unlock(&ForkWatch::get().loading); }

}  // namespace ufuse::codegen
