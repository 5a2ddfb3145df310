// Where has traced code put lazy arrays? The dictionaries of the user's objects, and lists and
// dicts that values were put into, are remembered, so that real arrays stand there before anybody
// else looks, and when the call ends.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "pyext/bind/call/copies.h"

namespace ufuse::pyext {

class Holders {
 public:
  // A list, or a dict with one of its keys, where a lazy array may stand, or what holds some.
  // Without a key: any value of the dict.
  void add(PyObject* container, PyObject* key = nullptr);
  // The lazy arrays there, where somebody else than the holders keeps the container.
  py::list lazies();
  // Real arrays in their places, computed if need be, and the caller's containers in those of
  // copies. The containers stay the objects they are.
  void make_real(const Copies& copies);

 private:
  struct Place {
    py::object container, key;
    // What is looked into: the container, or one value of it; null where that is gone.
    PyObject* root() const;
  };
  std::vector<Place> places_;
  std::set<std::pair<PyObject*, PyObject*>> known_;
};

}  // namespace ufuse::pyext
