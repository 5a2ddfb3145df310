// Where has traced code put lazy arrays? The dictionaries of the user's objects, and lists and
// dicts that values were put into, are remembered, so that real arrays stand there before anybody
// else looks, and when the call ends.
#pragma once

#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

class Holders {
 public:
  // A list, or a dict, of which the items or values may be lazy arrays, or hold some.
  void add(PyObject* container);
  bool empty() const { return containers_.empty(); }
  // The lazy arrays there, which are kept by somebody else than the holders.
  py::list lazies();
  // Real arrays in their places, computed if need be. The containers stay the objects they are.
  void make_real();

 private:
  std::vector<py::object> containers_;
};

}  // namespace ufuse::pyext
