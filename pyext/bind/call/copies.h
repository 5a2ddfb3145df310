// Which copies of the caller's lists, dicts and tuples does traced code use? The copies hold lazy
// arrays. By whatever name traced code reaches the caller's own object, it gets the copy. Before
// untraced code runs, the originals are given what traced code has put into the copies; afterwards
// the copies are given what was changed in the originals.
#pragma once

#include <unordered_map>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// How many references to objects there are in certain places.
using References = std::unordered_map<PyObject*, Py_ssize_t>;

class Copies {
 public:
  // `copy` is used in the place of `original`, a list, dict or tuple.
  void add(PyObject* copy, PyObject* original);
  // The original of a copy, and the copy of an original; any other object itself.
  PyObject* original_of(PyObject* object) const;
  PyObject* copy_of(PyObject* object) const;
  // The originals of all copies, by the copies' addresses.
  py::dict originals() const;
  // What untraced code uses in the place of an object: the real array of a lazy one, which is
  // computed if need be, or the original of a copy.
  py::object real(PyObject* object) const;
  // Whether an object is a copy that holds the same as its original.
  bool stands_for_original(PyObject* copy) const;

  // The copies that traced code has changed since they were made or updated.
  std::vector<py::object> changed() const;
  // Changes the originals as the copies were changed.
  void update_originals();
  bool empty() const { return rows_.empty(); }
  // All that holds a copy now, apart from other copies, holds it until the call ends.
  void note_references();
  // Whether nothing but that and other copies holds a copy, and what `elsewhere` counts.
  bool are_all_found(const References& elsewhere) const;
  // Forgets all copies; when the call has ended.
  void clear();
  // Changes the copies as the originals were changed. `traced(object)` gives what traced code uses
  // in the place of an object that was put into an original.
  template <class Traced>
  void update_copies(Traced traced) {
    for (Row& row : rows_)
      if (!row.is_as_given()) row.take_over(traced);
  }

 private:
  using Items = std::vector<std::pair<py::object, py::object>>;  // keys, unset in lists, and values
  struct Row {
    py::object copy, original;
    Items ours, theirs;              // what both held when they were the same
    Py_ssize_t held_to_the_end = 0;  // references, see note_references

    bool is_changed() const;
    bool is_as_given() const;
    template <class Traced>
    void take_over(Traced traced) {
      theirs = items_of(original.ptr());
      ours.clear();
      for (const auto& [key, value] : theirs) ours.emplace_back(key, traced(value));
      fill(copy.ptr(), ours);
    }
  };
  static Items items_of(PyObject* container);
  static void fill(PyObject* container, const Items& items);
  // How many references to copies there are in other copies.
  References references_inside() const;

  std::vector<Row> rows_;
  std::unordered_map<PyObject*, std::size_t> by_copy_, by_original_;
};

}  // namespace ufuse::pyext
