// Which Python code runs during a traced call, and what has to be done before it does? Code with
// call sites is recorded. Other code of the user's or of other packages (an operator's method, a
// generator that goes on, a callback, a finalizer) is untraced: it reads and writes the caller's
// memory by itself. Before it runs, all that is pending is computed and written; afterwards, what
// was known of memory is forgotten. While a call is traced, Python tells of each frame before it
// runs (PEP 523).
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// While one lives, Python tells of each frame.
class FrameWatch {
 public:
  FrameWatch();
  ~FrameWatch();
  FrameWatch(const FrameWatch&) = delete;
  FrameWatch& operator=(const FrameWatch&) = delete;
};

// While one lives, this thread's frames are not looked at: they are the package's own.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  const bool before_;
};

// While one lives, NumPy computes a value of the arrays that it was given, and of nothing else.
class NumPyComputes {
 public:
  explicit NumPyComputes(bool does);
  ~NumPyComputes();
  NumPyComputes(const NumPyComputes&) = delete;
  NumPyComputes& operator=(const NumPyComputes&) = delete;

 private:
  const bool before_;
};

// Whether a code object has call sites.
bool is_traced(PyObject* code);

void bind_frames(py::module_& m);

}  // namespace ufuse::pyext
