// Traced code has copies of the caller's lists and dicts, with lazy arrays in them. Whoever has the
// caller's own by another name gets the copy, too; before others look, the caller's own hold what
// traced code has put into the copies, and what others have changed there is in the copies
// afterwards.
#pragma once

#include <unordered_map>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

class Copies {
 public:
  // A list, dict or tuple and a copy of it.
  void add(PyObject* copy, PyObject* original);
  // What an object is a copy of, and what it is itself in traced code; the object itself where
  // there is none.
  PyObject* original_of(PyObject* object) const;
  PyObject* copy_of(PyObject* object) const;
  // What others have in its place: the real array of a lazy one, computed if need be, or the
  // original.
  py::object real(PyObject* object) const;
  // Whether others may have the original in the place of this copy: it holds the same.
  bool stands_for_original(PyObject* copy) const;

  // The copies that traced code has changed since the originals had the same.
  std::vector<py::object> changed() const;
  // Real objects in the originals.
  void update_originals();
  bool empty() const { return rows_.empty(); }
  // Lets go of all, when the call has ended.
  void clear();
  // `traced(object)` gives what traced code has in the place of an object that others have put in.
  template <class Traced>
  void update_copies(Traced traced) {
    for (Row& row : rows_)
      if (!row.is_as_given()) row.take_over(traced);
  }

 private:
  using Items = std::vector<std::pair<py::object, py::object>>;  // keys, unset in lists, and values
  struct Row {
    py::object copy, original;
    Items ours, theirs;  // when both held the same

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

  std::vector<Row> rows_;
  std::unordered_map<PyObject*, std::size_t> by_copy_, by_original_;
};

}  // namespace ufuse::pyext
