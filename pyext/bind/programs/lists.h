// How do the programs of loops read and write Python's lists? By the functions of `rt::Lists`,
// which a ListAccess hands to one run of a program.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "codegen/runtime/lists.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

class ListAccess {
 public:
  ListAccess();
  ~ListAccess() { take_back(); }
  ListAccess(const ListAccess&) = delete;
  ListAccess& operator=(const ListAccess&) = delete;

  const rt::Lists& functions() const { return functions_; }
  // The program begins, and has been given nothing yet.
  void begin();
  // It has been given an object, which may be a list.
  void given(PyObject* object);
  // Other code may change lists from here on. A program holds no references, so the lists inside of
  // those that it has been given are kept alive, whatever becomes of them.
  void hold_inner();
  // The program has left a statement before its end: the objects that it has made for it are
  // nobody's, and lists that functions have changed get their items back.
  void take_back();

  // A change of a list: an item that became another one, or, where there is none, that one is new.
  struct Change {
    PyObject* list;
    Py_ssize_t index;
    py::object before, now;
  };
  struct Made {
    std::array<PyObject*, 16> objects;
    std::size_t count = 0;
    std::vector<Change> changes;
  };

 private:
  struct Nested {
    PyObject* list;
    int levels;  // of lists inside of it
  };
  void hold_inside(Nested outer);

  rt::Lists functions_;
  Made made_;
  std::vector<Nested> roots_;
  // Of each list that has some its lists, as they were the last time; and those that had been there
  // before.
  std::unordered_map<PyObject*, std::vector<py::object>> inner_;
  std::vector<std::vector<py::object>> before_;
};

}  // namespace ufuse::pyext
