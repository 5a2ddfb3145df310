// See copies.h.
#include "pyext/bind/call/copies.h"

#include <algorithm>

#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {
namespace {

void check(int status) {
  if (status < 0) throw py::error_already_set();
}

// Whether a container holds these very objects, in this order.
bool holds(PyObject* container, const auto& items) {
  if (PyList_CheckExact(container)) {
    if (static_cast<std::size_t>(PyList_GET_SIZE(container)) != items.size()) return false;
    Py_ssize_t at = 0;
    return std::ranges::all_of(items, [&](const auto& item) {
      return item.second.ptr() == PyList_GET_ITEM(container, at++);
    });
  }
  if (!PyDict_CheckExact(container)) return true;  // a tuple stays what it is
  if (static_cast<std::size_t>(PyDict_GET_SIZE(container)) != items.size()) return false;
  PyObject *key, *value;
  Py_ssize_t at = 0;
  return std::ranges::all_of(items, [&](const auto& item) {
    return PyDict_Next(container, &at, &key, &value) && item.first.ptr() == key &&
           item.second.ptr() == value;
  });
}

bool has_keys(PyObject* dict, const auto& items) {
  if (static_cast<std::size_t>(PyDict_GET_SIZE(dict)) != items.size()) return false;
  PyObject* key;
  Py_ssize_t at = 0;
  return std::ranges::all_of(items, [&](const auto& item) {
    return PyDict_Next(dict, &at, &key, nullptr) && item.first.ptr() == key;
  });
}

}  // namespace

Copies::Items Copies::items_of(PyObject* container) {
  Items items;
  if (PyList_CheckExact(container) || PyTuple_CheckExact(container)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
      items.emplace_back(py::object(), borrow(PySequence_Fast_GET_ITEM(container, i)));
  } else if (PyDict_CheckExact(container)) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &key, &value);)
      items.emplace_back(borrow(key), borrow(value));
  }
  return items;
}

void Copies::fill(PyObject* container, const Items& items) {
  if (PyList_CheckExact(container)) {
    py::list values;
    for (const auto& item : items) values.append(item.second);
    return check(PyList_SetSlice(container, 0, PyList_GET_SIZE(container), values.ptr()));
  }
  // Not cleared where the keys are the same: a loop may be iterating over the dict.
  if (!has_keys(container, items)) PyDict_Clear(container);
  for (const auto& [key, value] : items) check(PyDict_SetItem(container, key.ptr(), value.ptr()));
}

bool Copies::Row::is_changed() const { return !holds(copy.ptr(), ours); }
bool Copies::Row::is_as_given() const { return holds(original.ptr(), theirs); }

void Copies::add(PyObject* copy, PyObject* original) {
  by_copy_.emplace(copy, rows_.size());
  by_original_.emplace(original, rows_.size());
  rows_.push_back({borrow(copy), borrow(original), items_of(copy), items_of(original)});
}

PyObject* Copies::original_of(PyObject* object) const {
  const auto found = by_copy_.find(object);
  return found == by_copy_.end() ? object : rows_[found->second].original.ptr();
}

PyObject* Copies::copy_of(PyObject* object) const {
  const auto found = by_original_.find(object);
  return found == by_original_.end() ? object : rows_[found->second].copy.ptr();
}

py::dict Copies::originals() const {
  py::dict found;
  for (const Row& row : rows_) found[steal(PyLong_FromVoidPtr(row.copy.ptr()))] = row.original;
  return found;
}

py::object Copies::real(PyObject* object) const {
  return is_lazy(object) ? real_of(object) : borrow(original_of(object));
}

bool Copies::stands_for_original(PyObject* copy) const {
  if (!by_copy_.contains(copy)) return false;
  std::vector<PyObject*> inside{copy};  // all copies in it, which may hold each other
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const Row& row = rows_[by_copy_.at(inside[i])];
    if (row.is_changed()) return false;
    for (const auto& item : row.ours)
      if (by_copy_.contains(item.second.ptr()) &&
          std::ranges::find(inside, item.second.ptr()) == inside.end())
        inside.push_back(item.second.ptr());
  }
  return true;
}

std::vector<py::object> Copies::changed() const {
  std::vector<py::object> found;
  for (const Row& row : rows_)
    if (row.is_changed()) found.push_back(row.copy);
  return found;
}

References Copies::references_inside() const {
  References found;
  for (const Row& row : rows_)
    for (const Items& items : {items_of(row.copy.ptr()), row.ours})
      for (const auto& item : items)
        if (by_copy_.contains(item.second.ptr())) ++found[item.second.ptr()];
  return found;
}

void Copies::note_references() {
  if (rows_.empty()) return;
  References inside = references_inside();
  for (Row& row : rows_) row.held_to_the_end = Py_REFCNT(row.copy.ptr()) - inside[row.copy.ptr()];
}

bool Copies::are_all_found(const References& elsewhere) const {
  References found = references_inside();
  for (const auto& [object, count] : elsewhere) found[object] += count;
  return std::ranges::all_of(rows_, [&](const Row& row) {
    return Py_REFCNT(row.copy.ptr()) <= row.held_to_the_end + found[row.copy.ptr()];
  });
}

void Copies::clear() {
  by_copy_.clear();
  by_original_.clear();
  const auto rows = std::exchange(rows_, {});  // objects that die may run Python code
}

void Copies::update_originals() {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!rows_[i].is_changed()) continue;
    // Computing may run code that calls this function again.
    Items ours = items_of(rows_[i].copy.ptr()), theirs;
    for (const auto& [key, value] : ours) {
      const py::object given = real(value.ptr());
      theirs.emplace_back(key, given.is(value) ? unwrap(value.ptr()) : given);
    }
    fill(rows_[i].original.ptr(), theirs);
    rows_[i].ours = std::move(ours);
    rows_[i].theirs = std::move(theirs);
  }
}

}  // namespace ufuse::pyext
