// See holders.h.
#include "pyext/bind/call/holders.h"

#include "pyext/bind/call/containers.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/sites/frames.h"

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

PyObject* the_filler = nullptr;  // escape.make_real_inside

// What a weak reference leads to; any other object itself.
PyObject* referent(PyObject* object) {
  return PyWeakref_CheckRef(object) ? PyWeakref_GET_OBJECT(object) : object;
}

}  // namespace

PyObject* Holders::Holder::root() const {
  if (!key) return container.ptr();
  PyObject* value = PyDict_GetItemWithError(container.ptr(), key.ptr());
  if (value == nullptr) PyErr_Clear();
  return value;
}

bool Holders::may_hold(PyObject* object) {
  return PyObject_IS_GC(object) && !is_lazy(object) && !PyArray_Check(object) &&
         !PyFunction_Check(object) && !PyCFunction_Check(object) && !PyType_Check(object) &&
         !PyModule_Check(object) && !PySlice_Check(object);
}

void Holders::add(PyObject* container, PyObject* key) {
  if (is_plain_container(container)) {
    if (known_.insert({container, key}).second)
      holders_.push_back({borrow(container), key ? borrow(key) : py::object()});
    return;
  }
  const auto known = others_.find(container);
  if (known != others_.end() && referent(known->second.ptr()) == container) return;
  // Made first: whatever Python makes may begin a garbage collection, which may run code that
  // comes here.
  auto reference = py::reinterpret_steal<py::object>(PyWeakref_NewRef(container, nullptr));
  if (!reference) {
    PyErr_Clear();
    reference = borrow(container);
  }
  std::swap(others_[container], reference);
}

void Holders::add_if_lazy(PyObject* object) {
  bool has_lazies = false;
  std::vector<py::object> others;  // added afterwards: see ContainerWalk
  ContainerWalk walk(object, Into::All);
  while (PyObject* inside = walk.next()) {
    has_lazies |= is_lazy(inside);
    if (may_hold(inside) && !is_plain_container(inside)) others.push_back(borrow(inside));
  }
  for (const py::object& other : others) add(other.ptr());
  if (has_lazies && !is_lazy(object)) add(object);
}

void Holders::forget_dead() {
  // Without one of them, nobody else may refer to one inside it.
  for (bool found = true; found;) {
    References ours;
    count(ours);
    std::vector<Holder> dead;  // whose destructors may add holders
    std::erase_if(holders_, [&](Holder& holder) {
      PyObject* container = holder.container.ptr();
      if (Py_REFCNT(container) > ours[container]) return false;
      known_.erase({container, holder.key.ptr()});
      dead.push_back(std::move(holder));
      return true;
    });
    found = !dead.empty();
  }
}

py::list Holders::lazies() const {
  py::list found;
  for (const Holder& holder : holders_) {
    PyObject* root = holder.root();
    if (root == nullptr) continue;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (is_lazy(object)) found.append(borrow(object));
  }
  return found;
}

// Computing may run code that puts values elsewhere: those places are kept for the next time.
void Holders::make_real(const Copies& copies) {
  forget_dead();
  known_.clear();
  for (const Holder& holder : std::exchange(holders_, {})) {
    PyObject* root = holder.root();
    if (root == nullptr) continue;
    if (holder.key && put(holder.container.ptr(), 0, holder.key.ptr(), root, copies)) continue;
    std::vector<py::object> inside;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (PyTuple_Check(object) || is_plain_container(object)) inside.push_back(borrow(object));
    for (const py::object& each : inside)
      if (!is_plain_container(each.ptr()))
        add(each.ptr());  // a named tuple
      else if (copies.original_of(each.ptr()) == each.ptr())
        fill(each.ptr(), copies);
  }
  if (others_.empty()) return;
  py::list others;
  for (const auto& [address, known] : std::exchange(others_, {}))
    if (referent(known.ptr()) == address) others.append(borrow(address));
  make_real_inside(others, copies);
}

bool needs_unwrapping(PyObject* value) {
  return any_inside(value, Into::All, [](PyObject* each) {
    return is_lazy(each) || (PyTuple_Check(each) && !PyTuple_CheckExact(each));
  });
}

void make_real_inside(const py::list& objects, const Copies& copies) {
  const Unwatched filling;
  py::handle{the_filler}(objects, copies.originals());
}

void bind_holders(py::module_& m) {
  bind_hand_over(
      m, "set_filler", "filler", the_filler,
      "filler(objects, originals) puts real arrays into the places of lazy ones in these "
      "objects, and originals into those of what has their addresses.");
}

}  // namespace ufuse::pyext
