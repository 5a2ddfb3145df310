// See containers.h.
#include "pyext/bind/call/containers.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "pyext/bind/lazy/lazy_array.h"

namespace ufuse::pyext {
namespace {

constexpr std::size_t kFew = 16;

bool is_sequence(PyObject* object) {
  return PyList_CheckExact(object) || PyTuple_CheckExact(object);
}
bool is_container(PyObject* object, Into into) {
  return is_sequence(object) ||
         (into == Into::All && (PyDict_CheckExact(object) || PySlice_Check(object)));
}

// The item at `at`, which is moved to the next one; null at the end.
PyObject* next_item(PyObject* container, Py_ssize_t& at) {
  if (is_sequence(container)) {
    if (at >= PySequence_Fast_GET_SIZE(container)) return nullptr;
    return PySequence_Fast_GET_ITEM(container, at++);
  }
  if (PyDict_CheckExact(container)) {
    PyObject *key, *value;
    return PyDict_Next(container, &at, &key, &value) ? value : nullptr;
  }
  auto* slice = reinterpret_cast<PySliceObject*>(container);
  PyObject* const parts[] = {slice->start, slice->stop, slice->step};
  return at < 3 ? parts[at++] : nullptr;
}

template <class Visit>
void each_item(PyObject* container, const Visit& visit) {
  Py_ssize_t at = 0;
  while (PyObject* item = next_item(container, at)) visit(item);
}

// The caller's own list or dict of which an object is an unchanged copy; null for anything else.
PyObject* original_of(PyObject* copy) {
  const Call* call = Call::active();
  if (call == nullptr || !call->copies().stands_for_original(copy)) return nullptr;
  return call->copies().original_of(copy);
}

// In four steps: finds the containers that have to be copied; makes lists and dicts without their
// items; makes tuples and slices, which can hold themselves only through a list or dict; fills
// lists and dicts.
class Replacement {
 public:
  explicit Replacement(py::object (*real)(PyObject* lazy)) : real_(real) {}

  py::object of(PyObject* root) {
    find(root);
    for (PyObject* container : changing_) {
      if (PyObject* original = original_of(container)) {
        made_[container] = borrow(original);
        originals_.insert(container);
      } else if (PyList_CheckExact(container))
        made_[container] = steal(PyList_New(0));
      else if (PyDict_CheckExact(container))
        made_[container] = steal(PyDict_New());
    }
    make_immutable();
    for (PyObject* container : changing_)
      if (!originals_.contains(container)) fill(container);
    return value_of(root);
  }

 private:
  void find(PyObject* root) {
    std::vector<PyObject*> containers;
    ContainerWalk walk(root, Into::All);
    while (PyObject* object = walk.next())
      if (is_container(object, Into::All)) containers.push_back(object);
    std::unordered_map<PyObject*, std::vector<PyObject*>> holders;
    const auto change = [&](PyObject* container) {
      if (made_.try_emplace(container).second) changing_.push_back(container);
    };
    for (PyObject* container : containers)
      each_item(container, [&](PyObject* item) {
        if (is_lazy(item)) change(container);
        if (is_container(item, Into::All)) holders[item].push_back(container);
      });
    for (std::size_t i = 0; i < changing_.size(); ++i)
      for (PyObject* holder : holders[changing_[i]]) change(holder);
  }

  void make_immutable() {
    std::vector<PyObject*> waiting = changing_;  // each until those in it are made
    while (!waiting.empty()) {
      PyObject* container = waiting.back();
      const std::size_t before = waiting.size();
      if (!made_.at(container))
        each_item(container, [&](PyObject* item) {
          if (made_.contains(item) && !made_.at(item)) waiting.push_back(item);
        });
      if (waiting.size() > before) continue;
      waiting.pop_back();
      if (!made_.at(container)) made_.at(container) = immutable(container);
    }
  }

  py::object immutable(PyObject* container) const {
    if (PySlice_Check(container)) {
      auto* slice = reinterpret_cast<PySliceObject*>(container);
      return steal(PySlice_New(value_of(slice->start).ptr(), value_of(slice->stop).ptr(),
                               value_of(slice->step).ptr()));
    }
    py::tuple made(static_cast<std::size_t>(PyTuple_GET_SIZE(container)));
    std::size_t i = 0;
    each_item(container, [&](PyObject* item) { made[i++] = value_of(item); });
    return made;
  }

  void fill(PyObject* container) const {
    const py::object& made = made_.at(container);
    const auto check = [](int status) {
      if (status != 0) throw py::error_already_set();
    };
    if (PyList_CheckExact(container))
      each_item(container,
                [&](PyObject* item) { check(PyList_Append(made.ptr(), value_of(item).ptr())); });
    if (!PyDict_CheckExact(container)) return;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(container, &at, &key, &value);)
      check(PyDict_SetItem(made.ptr(), key, value_of(value).ptr()));
  }

  py::object value_of(PyObject* item) const {
    if (is_lazy(item)) return real_(item);
    const auto it = made_.find(item);
    return it == made_.end() ? borrow(item) : it->second;
  }

  py::object (*const real_)(PyObject* lazy);
  std::vector<PyObject*> changing_;
  std::unordered_set<PyObject*> originals_;         // those in whose places the caller's own go
  std::unordered_map<PyObject*, py::object> made_;  // unset: not yet
};

}  // namespace

PyObject* ContainerWalk::next() {
  ++walked_;
  if (root_ != nullptr) {
    PyObject* root = std::exchange(root_, nullptr);
    enter(root);
    return root;
  }
  while (!open_.empty()) {
    PyObject* item = next_item(open_.back().container, open_.back().at);
    if (item == nullptr) {
      open_.pop_back();
      continue;
    }
    enter(item);
    return item;
  }
  return nullptr;
}

void ContainerWalk::enter(PyObject* object) {
  if (is_container(object, into_) && is_new(object)) open_.push_back({object});
}

bool ContainerWalk::is_new(PyObject* container) {
  if (std::ranges::find(first_seen_, container) != first_seen_.end()) return false;
  if (first_seen_.size() == kFew) return seen_.insert(container).second;
  first_seen_.push_back(container);
  return true;
}

py::object replaced(PyObject* root, py::object (*real)(PyObject* lazy)) {
  return Replacement(real).of(root);
}

}  // namespace ufuse::pyext
