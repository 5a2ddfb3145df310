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

}  // namespace ufuse::pyext
