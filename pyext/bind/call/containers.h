// What is in Python's own containers? Walks through tuples, lists, dicts and slices. These may be
// nested to any depth and hold themselves, so each is looked into once, without recursion. Used
// wherever lazy arrays are looked for among the arguments of a call.
#pragma once

#include <unordered_set>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

enum class Into : std::uint8_t {
  Sequences,  // lists and tuples
  All,        // and the values of dicts, and the parts of slices
};

// Whether an object is a container that a ContainerWalk goes into, but for slices.
inline bool is_plain_container(PyObject* object) {
  return PyList_CheckExact(object) || PyDict_CheckExact(object) || PyTuple_CheckExact(object);
}

// Gives the object itself and all that is in it, in order. No Python code may run between two
// steps.
class ContainerWalk {
 public:
  // How many objects all walks of the process have come to.
  static std::int64_t walked() { return walked_; }
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

  inline static std::int64_t walked_ = 0;
  PyObject* root_;
  const Into into_;
  std::vector<Open> open_;
  std::vector<PyObject*> first_seen_;  // in a vector, for mostly there are few
  std::unordered_set<PyObject*> seen_;
};

template <class Predicate>
bool any_inside(PyObject* root, Into into, Predicate predicate) {
  ContainerWalk walk(root, into);
  while (PyObject* object = walk.next())
    if (predicate(object)) return true;
  return false;
}

// Whether an object is a number or a text, which no lazy array can be in or come from.
inline bool holds_nothing(PyObject* object) {
  return object == Py_None || PyLong_Check(object) || PyFloat_Check(object) ||
         PyComplex_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object);
}

// The object with every lazy array in it replaced by the real one, which `real` gives. Containers
// without lazy arrays stay the same objects; the others are copied, and the copies hold each other
// as the originals do.
py::object replaced(PyObject* root, py::object (*real)(PyObject* lazy));

}  // namespace ufuse::pyext
