// What changes when the process forks?
//
// A forked child has one thread and a copy of everything, locks held by other threads included. So
// whatever has threads or locks compares `fork_generation()` and starts anew in a child, and what
// must not be half done at a fork holds a NoFork. Used by the Jit.
#pragma once

namespace ufuse::codegen {

// Grows by one in each forked child.
unsigned fork_generation();

// While one exists, fork() waits. For loading and unloading code, where the child would inherit a
// loader in disorder.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

}  // namespace ufuse::codegen
