// How do threads of ours give Python's lock away and get it back, also while Python ends?
//
// A thread that asks for the lock when the interpreter has begun to end never gets it: Python up to
// 3.13 ends such a thread on the spot, by unwinding its stack, and that must not go through frames
// of C++: their destructors would touch Python's objects without the lock, and the first noexcept
// would abort the process. So a late thread stays where it is, for ever, as threads do from Python
// 3.14 on. The module takes and gives the lock by these classes only; gil.cpp also stops threads
// that Python ends at other places.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Whether the interpreter has begun to end. Any thread may ask, with or without the lock.
bool is_ending() noexcept;

// Python's lock is free while this lives.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

  // Whether the interpreter has begun to end meanwhile: this thread will not get the lock.
  bool is_late() const noexcept { return !ends_python_ && is_ending(); }
  // Has the lock again for as long as body() runs.
  template <class Body>
  auto within(Body body) {
    struct Taken {
      explicit Taken(WithoutGil& outer) : outer(outer) { outer.take(); }
      ~Taken() { outer.give(); }
      WithoutGil& outer;
    } taken(*this);
    return body();
  }

 private:
  void give();
  void take();

  PyThreadState* state_ = nullptr;
  const bool ends_python_;  // the one thread that may still have the lock
};

// Python's lock for a thread that may have it already. Without effect when there is no interpreter
// any more: `taken()` says so.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  bool taken() const { return taken_; }

 private:
  const bool taken_;
  PyGILState_STATE state_{};
};

}  // namespace ufuse::pyext
