// See holders.h.
#include "pyext/bind/call/holders.h"

#include "pyext/bind/call/containers.h"
#include "pyext/bind/lazy/lazy_array.h"

namespace ufuse::pyext {
namespace {

// Replaces an item by what untraced code uses in its place; false where that is the item itself.
bool put(PyObject* container, Py_ssize_t at, PyObject* key, PyObject* item, const Copies& copies) {
  const py::object before = borrow(item);  // its destructor runs when all is done
  const py::object real = copies.real(item);
  if (real.is(before)) return false;
  if (PyDict_CheckExact(container)) {
    if (PyDict_SetItem(container, key, real.ptr()) < 0) throw py::error_already_set();
    return true;
  }
  if (PyList_CheckExact(container)) {
    // Computing may have run code that changed the list.
    if (at >= PyList_GET_SIZE(container) || PyList_GET_ITEM(container, at) != item) return true;
    PyList_SET_ITEM(container, at, py::object(real).release().ptr());
  } else {
    PyTuple_SET_ITEM(container, at, py::object(real).release().ptr());
  }
  Py_DECREF(item);  // the reference that the container had
  return true;
}

void fill(PyObject* container, const Copies& copies) {
  if (PyDict_CheckExact(container)) {
    std::vector<std::pair<py::object, py::object>> found;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &key, &value);)
      found.emplace_back(borrow(key), borrow(value));
    for (const auto& [name, item] : found) put(container, 0, name.ptr(), item.ptr(), copies);
    return;
  }
  if (!PyList_CheckExact(container) && !PyTuple_CheckExact(container)) return;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(container); ++i)
    put(container, i, nullptr, PySequence_Fast_GET_ITEM(container, i), copies);
}

}  // namespace

PyObject* Holders::Holder::root() const {
  if (!key) return container.ptr();
  PyObject* value = PyDict_GetItemWithError(container.ptr(), key.ptr());
  if (value == nullptr) PyErr_Clear();
  return value;
}

void Holders::add(PyObject* container, PyObject* key) {
  if (known_.insert({container, key}).second)
    holders_.push_back({borrow(container), key ? borrow(key) : py::object()});
}

py::list Holders::lazies() {
  py::list found;
  for (const Holder& holder : holders_) {
    PyObject* root = Py_REFCNT(holder.container.ptr()) > 1 ? holder.root() : nullptr;
    if (root == nullptr) continue;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (is_lazy(object)) found.append(borrow(object));
  }
  return found;
}

// Computing may run code that puts values elsewhere: those places are kept for the next time.
void Holders::make_real(const Copies& copies) {
  known_.clear();
  for (const Holder& holder : std::exchange(holders_, {})) {
    PyObject* root = holder.root();
    if (root == nullptr) continue;
    if (holder.key && put(holder.container.ptr(), 0, holder.key.ptr(), root, copies)) continue;
    std::vector<py::object> inside;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (PyDict_CheckExact(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object))
        inside.push_back(borrow(object));
    for (const py::object& each : inside)
      if (copies.original_of(each.ptr()) == each.ptr()) fill(each.ptr(), copies);
  }
}

}  // namespace ufuse::pyext
