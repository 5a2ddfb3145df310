// Which Python code runs during a traced call, and what must be done before it does? Code with call
// sites records; everything else of the user's or of other packages (an operator's method, a
// generator that goes on, a callback, a finalizer) reads and writes the caller's memory by itself.
// So before such code runs all that is pending is computed and written, and afterwards nothing is
// taken for known. Python tells of each frame before it runs (PEP 523) while a call is open.
#pragma once

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// While there is one, Python tells of each frame.
class FrameWatch {
 public:
  FrameWatch();
  ~FrameWatch();
  FrameWatch(const FrameWatch&) = delete;
  FrameWatch& operator=(const FrameWatch&) = delete;
};

// While one lives, nobody is told of this thread's frames: the package works for itself.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  const bool before_;
};

// Whether a code object has call sites.
bool is_traced(PyObject* code);

void bind_frames(py::module_& m);

}  // namespace ufuse::pyext
