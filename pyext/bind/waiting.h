// How does a call wait for a compiler? Without Python's lock, so that other threads go on, and with
// an eye on signals: Ctrl-C ends the wait, not what is waited for.
#pragma once

#include <chrono>
#include <memory>

#include "ir/backend.h"
#include "pyext/bind/gil.h"

namespace ufuse::pyext {

// Python's lock is free while this lives. Made with the lock.
class Waiting {
 public:
  // Where `patience` is not positive, the handlers of signals do not run here.
  explicit Waiting(std::chrono::nanoseconds patience);
  // How long to wait, and what to do meanwhile. An exception that a signal's handler raises comes
  // out of look_around as a py::error_already_set.
  const ir::Patience& patience() const { return patience_; }

 private:
  WithoutGil released_;
  const ir::Patience patience_;
};

// Before a replay runs loops. In a forked child whose parent was still building them they are
// waited for: children often end soon, and without giving a background build time to end.
void await_in_child(const ir::Executable& executable);

}  // namespace ufuse::pyext
