// See holders.h.
#include "pyext/bind/holders.h"

#include <algorithm>

#include "pyext/bind/containers.h"
#include "pyext/bind/lazy_array.h"

namespace ufuse::pyext {
namespace {

// The real array in the place of a lazy one; what stood there dies afterwards.
void put(PyObject* container, Py_ssize_t at, PyObject* key, PyObject* lazy) {
  const py::object real = real_of(lazy);
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

void Holders::add(PyObject* container) {
  for (const py::object& known : containers_)
    if (known.ptr() == container) return;
  containers_.push_back(borrow(container));
}

py::list Holders::lazies() {
  std::erase_if(containers_, [](const py::object& held) { return Py_REFCNT(held.ptr()) == 1; });
  py::list found;
  for (const py::object& container : containers_) {
    ContainerWalk walk(container.ptr(), Into::All);
    while (PyObject* object = walk.next())
      if (is_lazy(object)) found.append(borrow(object));
  }
  return found;
}

void Holders::make_real() {
  for (const py::object& container : std::vector<py::object>(containers_)) {
    std::vector<py::object> inside;
    ContainerWalk walk(container.ptr(), Into::All);
    while (PyObject* object = walk.next())
      if (PyDict_CheckExact(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object))
        inside.push_back(borrow(object));
    for (const py::object& each : inside) fill(each.ptr());
  }
}

}  // namespace ufuse::pyext
