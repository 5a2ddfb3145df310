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
  // Where `patience` is not positive, signals are left to whoever looks for them next.
  explicit Waiting(std::chrono::nanoseconds patience);
  // For as long as the patience lasts. What a handler of a signal raises comes out of look_around
  // as a py::error_already_set.
  const ir::Patience& patience() const { return patience_; }

 private:
  WithoutGil released_;
  const ir::Patience patience_;
};

// Before a replay runs it: in a forked child, whose parent was still building, the loops are waited
// for, because children end without a word, often, and soon.
void await_in_child(const ir::Executable& executable);

}  // namespace ufuse::pyext
