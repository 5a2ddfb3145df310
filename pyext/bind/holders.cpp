// See holders.h.
#include "pyext/bind/holders.h"

#include "pyext/bind/containers.h"
#include "pyext/bind/lazy_array.h"

namespace ufuse::pyext {
namespace {

// The real array in the place of a lazy one; what stood there dies afterwards.
void put(PyObject* container, Py_ssize_t at, PyObject* key, PyObject* lazy) {
  const py::object real = real_of(lazy);
  as_lazy(lazy)->array.storage->shown = true;
  if (PyDict_CheckExact(container)) {
    if (PyDict_SetItem(container, key, real.ptr()) < 0) throw py::error_already_set();
    return;
  }
  const py::object before = borrow(lazy);
  if (PyList_CheckExact(container)) {
    // Computing may have run code that changed the list.
    if (at >= PyList_GET_SIZE(container) || PyList_GET_ITEM(container, at) != lazy) return;
    PyList_SET_ITEM(container, at, py::object(real).release().ptr());
  } else {
    PyTuple_SET_ITEM(container, at, py::object(real).release().ptr());
  }
  Py_DECREF(lazy);  // the container's
}

void fill(PyObject* container) {
  if (PyDict_CheckExact(container)) {
    std::vector<std::pair<py::object, py::object>> found;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &key, &value);)
      if (is_lazy(value)) found.emplace_back(borrow(key), borrow(value));
    for (const auto& [name, lazy] : found) put(container, 0, name.ptr(), lazy.ptr());
    return;
  }
  if (!PyList_CheckExact(container) && !PyTuple_CheckExact(container)) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
    if (PyObject* item = PySequence_Fast_GET_ITEM(container, i); is_lazy(item))
      put(container, i, nullptr, item);
}

}  // namespace

PyObject* Holders::Place::root() const {
  if (!key) return container.ptr();
  PyObject* value = PyDict_GetItemWithError(container.ptr(), key.ptr());
  if (value == nullptr) PyErr_Clear();
  return value;
}

void Holders::add(PyObject* container, PyObject* key) {
  if (known_.insert({container, key}).second)
    places_.push_back({borrow(container), key ? borrow(key) : py::object()});
}

py::list Holders::lazies() {
  py::list found;
  for (const Place& place : places_) {
    PyObject* root = Py_REFCNT(place.container.ptr()) > 1 ? place.root() : nullptr;
    if (root == nullptr) continue;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (is_lazy(object)) found.append(borrow(object));
  }
  return found;
}

// What is computed may run code that puts values somewhere: those are for the next time.
void Holders::make_real() {
  known_.clear();
  for (const Place& place : std::exchange(places_, {})) {
    PyObject* root = place.root();
    if (root == nullptr) continue;
    if (is_lazy(root)) {
      put(place.container.ptr(), 0, place.key.ptr(), root);
      continue;
    }
    std::vector<py::object> inside;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (PyDict_CheckExact(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object))
        inside.push_back(borrow(object));
    for (const py::object& each : inside) fill(each.ptr());
  }
}

}  // namespace ufuse::pyext
