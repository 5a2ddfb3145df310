// Where has traced code put lazy arrays? Attributes of the user's objects, lists and dicts that
// were given one are noted here, so that real arrays can take their places before untraced code
// looks there, and when the call ends.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "pyext/bind/call/copies.h"

namespace ufuse::pyext {

class Holders {
 public:
  // A list, or a dict with one of its keys, that may hold a lazy array, also inside other
  // containers. Without a key: any value of the dict may.
  void add(PyObject* container, PyObject* key = nullptr);
  // The lazy arrays there, except in containers that nobody else refers to any more.
  py::list lazies();
  // Replaces them by real arrays, which are computed if need be, and copies of the caller's
  // containers by the caller's own. The containers themselves stay the same objects.
  void make_real(const Copies& copies);

 private:
  struct Holder {
    py::object container, key;
    // What is looked into: the container, or one value of it; null where that is gone.
    PyObject* root() const;
  };
  std::vector<Holder> holders_;
  std::set<std::pair<PyObject*, PyObject*>> known_;
};

}  // namespace ufuse::pyext
