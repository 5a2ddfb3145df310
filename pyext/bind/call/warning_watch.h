// Which warnings are given while a call is traced? Not only the session's: NumPy's scalars, and
// everything that runs at once, warn immediately. Then the warnings of pending operations, which
// stand before in the program, have to come first, and the call cannot be replayed, for a replay
// would not warn. Warnings are noticed before any filter decides about them, by a row at the front
// of the filters whose pattern looks at the message and never matches.
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

// While one lives, the session is at work on this thread, and warnings do not make it compute what
// is pending.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};
bool is_at_work();

// While one lives, warnings on this thread are the session's own.
class OwnWords {
 public:
  OwnWords();
  ~OwnWords();
  OwnWords(const OwnWords&) = delete;
  OwnWords& operator=(const OwnWords&) = delete;
};

// Whether some filter may turn warnings into exceptions.
bool warnings_may_raise();

}  // namespace ufuse::pyext
