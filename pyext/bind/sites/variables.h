// Where tracing stops in the middle of a call, real arrays take the places of lazy ones in the
// variables of the functions that are running.
#pragma once

#include <span>
#include <vector>

#include "pyext/bind/call/copies.h"

namespace ufuse::pyext {

// After the variables of a function that runs have been looked at (PyFrame_GetLocals): where Python
// has made copies of them, these go, for they would keep old values alive.
void drop_copies(PyObject* locals);
// Whether the Python code that runs now has call sites: then no function of the package is between
// it and the operation that asks.
bool is_at_traced_code();
// While one lives, a Python function runs that was called with these arguments at a call site, or
// an operation with these operands. The frame of its caller holds them for nothing else.
class Passed {
 public:
  Passed(PyObject* const* args, std::size_t count);
  ~Passed();
  Passed(const Passed&) = delete;
  Passed& operator=(const Passed&) = delete;

 private:
  friend References references_of_running_code(const Copies&, std::span<PyObject* const>);
  friend class Search;
  const std::span<PyObject* const> args_;
  const Passed* const before_;
};

// Where a loop of traced code holds what it goes over: what stands there is replaced like the value
// of a variable.
class Place {
 public:
  explicit Place(PyObject*& at);
  ~Place();
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

 private:
  PyObject*& at_;
};

// How often the variables of running code with call sites hold each of the copies, and the
// arguments of the calls that it is in, of which `given` are the last ones.
References references_of_running_code(const Copies& copies, std::span<PyObject* const> given);
// Replaces lazy arrays of ended calls in the variables of all running code with call sites, and
// wherever the garbage collector finds them; copies by their originals in the variables. Those that
// only Python's stack or a generator holds stay; they hand on to the real array what they are
// asked. Gives the lazy arrays, to be kept by callers that may have been handed one.
std::vector<py::object> make_variables_real(const Copies& copies);

void bind_variables(py::module_& m);

}  // namespace ufuse::pyext
