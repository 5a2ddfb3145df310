// See guards.h.
#include "pyext/bind/replay/guards.h"

#include <algorithm>

namespace ufuse::pyext {

bool Guards::Place::holds() const {
  if (PyCell_Check(where.ptr())) {
    PyObject* content = PyCell_GET(where.ptr());
    return std::ranges::all_of(names, [&](const Name& each) { return each.is(content); });
  }
#if PY_VERSION_HEX < 0x030C0000
  // Python 3.11 gives dictionaries a new version at each change. Most do not change between calls.
  const auto current = reinterpret_cast<PyDictObject*>(where.ptr())->ma_version_tag;
  if (current == version) return true;
#endif
  for (const Name& each : names)
    if (!each.is(PyDict_GetItemWithError(where.ptr(), each.name.ptr()))) return false;
#if PY_VERSION_HEX < 0x030C0000
  version = current;
#endif
  return true;
}

void Guards::add(const py::object& rows) {
  for (py::handle row : rows) {
    const auto words = row.cast<py::tuple>();
    if ((words.size() != 3 && words.size() != 4) ||
        (!PyDict_Check(words[0].ptr()) && !PyCell_Check(words[0].ptr())))
      throw py::type_error("a guard is (dict or cell, name, value)");
    auto place =
        std::ranges::find_if(places_, [&](const Place& each) { return each.where.is(words[0]); });
    if (place == places_.end()) {
      places_.push_back({words[0], {}});
      place = places_.end() - 1;
    }
    place->names.push_back({words[1], words[2], words.size() == 4 && words[3].cast<bool>()});
#if PY_VERSION_HEX < 0x030C0000
    place->version = 0;
#endif
  }
}

bool Guards::hold() const { return std::ranges::all_of(places_, &Place::holds); }

int Guards::traverse(visitproc visit, void* arg) const {
  for (const Place& place : places_) {
    Py_VISIT(place.where.ptr());
    for (const Name& each : place.names) Py_VISIT(each.value.ptr());
  }
  return 0;
}

void Codes::add(const py::object& rows) {
  for (py::handle row : rows) {
    const auto parts = row.cast<py::tuple>();
    if (parts.size() != 4 || !PyFunction_Check(parts[0].ptr()))
      throw py::type_error("a code is (function, code, defaults, keyword defaults)");
    rows_.push_back({parts[0], parts[1], parts[2], parts[3]});
  }
}

bool Codes::Row::holds() const {
  const auto is = [](PyObject* held, const py::object& known) {
    return held == (known.is_none() ? nullptr : known.ptr()) || held == known.ptr();
  };
  PyObject* f = function.ptr();
  return PyFunction_GET_CODE(f) == code.ptr() && is(PyFunction_GET_DEFAULTS(f), defaults) &&
         is(PyFunction_GET_KW_DEFAULTS(f), named);
}

bool Codes::hold() const { return std::ranges::all_of(rows_, &Row::holds); }

int Codes::traverse(visitproc visit, void* arg) const {
  for (const Row& row : rows_) {
    Py_VISIT(row.function.ptr());
    Py_VISIT(row.defaults.ptr());
    Py_VISIT(row.named.ptr());
  }
  return 0;
}

}  // namespace ufuse::pyext
