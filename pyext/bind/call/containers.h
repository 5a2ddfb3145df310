// What stands in Python's own containers? Tuples, lists, dicts and slices, nested as deep as they
// may be, also in themselves: each is looked into once, and nothing recurses. Used wherever lazy
// arrays are looked for among the arguments of a call.
#pragma once

#include <unordered_set>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

enum class Into : std::uint8_t {
  Sequences,  // lists and tuples
  All,        // and the values of dicts, and the parts of slices
};

// The object itself and all that stands in it, in order. No Python may run between two steps.
class ContainerWalk {
 public:
  ContainerWalk(PyObject* root, Into into) : root_(root), into_(into) {}
  // Borrowed; null at the end.
  PyObject* next();

 private:
  struct Open {
    PyObject* container;
    Py_ssize_t at = 0;
  };
  void enter(PyObject* object);
  bool is_new(PyObject* container);

  PyObject* root_;
  const Into into_;
  std::vector<Open> open_;
  std::vector<PyObject*> first_seen_;  // there are few, mostly
  std::unordered_set<PyObject*> seen_;
};

template <class Predicate>
bool any_inside(PyObject* root, Into into, Predicate predicate) {
  ContainerWalk walk(root, into);
  while (PyObject* object = walk.next())
    if (predicate(object)) return true;
  return false;
}

// Whether an object is nothing that lazy arrays could be in or come from: a number or a text.
inline bool holds_nothing(PyObject* object) {
  return object == Py_None || PyLong_Check(object) || PyFloat_Check(object) ||
         PyComplex_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object);
}

// The object with every lazy array in it replaced by `real_of` it. Containers without any stay what
// they are; the others are made anew, and hold each other as they did.
py::object replaced(PyObject* root);

}  // namespace ufuse::pyext
