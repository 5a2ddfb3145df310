// What is warned of while a call is traced, by whom? NumPy's scalars, and all that runs at once,
// warn where they stand: then what is pending and stands before warns first, and the call is not
// one to be replayed, which would not say it again. Python's warnings are heard before any filter
// decides about them, by a row in front of the filters that never matches.
#pragma once

#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

class WarningWatch {
 public:
  ~WarningWatch() { stop(); }
  // Puts the row in front of the filters that hold now, unless it stands there.
  void listen();
  void stop();

 private:
  std::vector<py::object> lists_;  // that hold the row
};

// While one lives, what is heard on this thread computes nothing: the session is at work.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};
bool is_at_work();

// While one lives, what is said on this thread is the session's own.
class OwnWords {
 public:
  OwnWords();
  ~OwnWords();
  OwnWords(const OwnWords&) = delete;
  OwnWords& operator=(const OwnWords&) = delete;
};

// Whether some filter makes exceptions of warnings.
bool warnings_may_raise();

}  // namespace ufuse::pyext
