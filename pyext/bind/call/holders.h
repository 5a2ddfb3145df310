// Where has traced code put lazy arrays? Attributes of the user's objects, lists and dicts that
// were given one are noted here, so that real arrays can take their places before untraced code
// looks there, and when the call ends.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pyext/bind/call/copies.h"

namespace ufuse::pyext {

class Holders {
 public:
  // Whether an object may hold others, in ways that are known or not.
  static bool may_hold(PyObject* object);
  // A list, or a dict with one of its keys, that may hold a lazy array, also inside other
  // containers. Without a key: any value of the dict may. Into any other object, such as a deque,
  // module escape looks.
  void add(PyObject* container, PyObject* key = nullptr);
  // An object that untraced code is about to get: noted if a lazy array is, or may be, in it.
  void add_if_lazy(PyObject* object);
  // Adds the references that this has to objects.
  void count(References& found) const {
    for (const Holder& holder : holders_) ++found[holder.container.ptr()];
  }
  // The lazy arrays there.
  py::list lazies() const;
  // Containers that nobody else refers to any more are forgotten, and what is in them with them.
  void forget_dead();
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
  // By address: weak references, which keep no object alive longer than plain Python would; or the
  // object itself where there can be none.
  std::unordered_map<PyObject*, py::object> others_;
  std::set<std::pair<PyObject*, PyObject*>> known_;
};

// Whether there may be something in a value that only traced code may see: a lazy array, or in a
// named tuple, into which walks do not look, also a copy of a container of the caller's.
bool needs_unwrapping(PyObject* value);

// Puts real arrays into the places of lazy ones, and originals into those of copies, in Python's
// own containers among some objects.
void make_real_inside(const py::list& objects, const Copies& copies);

void bind_holders(py::module_& m);

}  // namespace ufuse::pyext
