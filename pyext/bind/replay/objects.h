// Which attributes of the user's objects does a function read, and which does it assign? Attributes
// that recorded calls have read of objects of a class are part of the signature of all later calls.
// Values that a recorded call has assigned are kept beside its result, and a replay assigns them.
#pragma once

#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// What goes into a signature of each object of one class.
struct ObjectSchema {
  py::object type;       // a weak reference: classes that functions make can go
  unsigned version = 0;  // of the class, which changes with any attribute of it, and no two share
  bool usable = true;    // objects are nothing but attributes, their own and the class's
  std::vector<py::object> names;
};

// The schemas of all classes of which a function has met objects.
class ObjectSchemas {
 public:
  // Null for an object that is more than its attributes.
  const ObjectSchema* of(PyObject* object);
  // An attribute that was read of an object with a schema.
  void add(PyObject* object, PyObject* name);
  // Grows with each change of a schema.
  std::uint64_t generation() const { return generation_; }
  int traverse(visitproc visit, void* arg) const;
  void clear() { rows_.clear(); }

 private:
  ObjectSchema* row_of(PyObject* object);

  std::vector<ObjectSchema> rows_;
  std::uint64_t generation_ = 0;
};

// The dictionary of attributes of an object that has a schema.
py::object attributes_of(PyObject* object);

// Objects in an order, kept alive.
class Places {
 public:
  void add(PyObject* object) {
    index_.emplace(object, static_cast<int>(objects_.size()));
    objects_.push_back(borrow(object));
  }
  // Below 0 for an object that is not among them.
  int of(PyObject* object) const {
    const auto found = index_.find(object);
    return found == index_.end() ? -1 : found->second;
  }
  PyObject* operator[](int at) const { return objects_[static_cast<std::size_t>(at)].ptr(); }
  bool empty() const { return objects_.empty(); }

 private:
  std::vector<py::object> objects_;
  std::unordered_map<PyObject*, int> index_;
};

// What a call that is being recorded does with the objects in its signature.
class ObjectWatch {
 public:
  // `containers`: tuples, lists and dicts that the signature has looked into.
  void begin(ObjectSchemas& schemas, std::span<PyObject* const> objects,
             std::span<PyObject* const> containers);
  // At the end of the call: forgets everything but what was assigned and called.
  void end();

  // The call reads or assigns an attribute: whether it can still be replayed.
  bool may_read(PyObject* object, PyObject* name);
  bool may_assign(PyObject* object, PyObject* name);
  // The call runs a function, which has to be the same in a replay.
  void called(PyObject* function);

  bool any() const { return !objects_.empty(); }
  // The number of the call's history that an attribute holds; below 0: none. Set when the attribute
  // is read for the signature, and when it is assigned.
  int number_at(PyObject* object, PyObject* name) const;
  void set_number(PyObject* object, PyObject* name, int number);

  // The place of an object, or of a container, among those of the signature; below 0 for any other.
  int index_of(PyObject* object) const { return objects_.of(object); }
  int container_at(PyObject* container) const { return containers_.of(container); }

  struct Store {
    int object;
    py::object name;
  };
  const std::vector<Store>& stores() const { return stores_; }
  // All that a replay has to make: what the call returned, or where it has assigned attributes, a
  // tuple of that and their values. Recorded numbers among these are given by
  // `make_number(number)`. Unset where anything else has changed.
  template <class MakeNumber>
  py::object outcome(PyObject* returned, MakeNumber make_number) const {
    py::object values = outcome(returned);
    if (values && !stores_.empty())
      for (std::size_t i = 0; i < stores_.size(); ++i)
        if (const int number = number_of(stores_[i]); number >= 0) {
          PyObject** place = &PyTuple_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i + 1));
          py::reinterpret_steal<py::object>(
              std::exchange(*place, make_number(number).release().ptr()));
        }
    return values;
  }
  std::vector<py::object> take_functions() { return std::exchange(functions_, {}); }

 private:
  bool as_before() const;
  py::object outcome(PyObject* returned) const;
  int number_of(const Store& store) const;

  ObjectSchemas* schemas_ = nullptr;
  Places objects_, containers_;
  std::vector<std::pair<py::object, py::object>> copies_;  // a dict or list, and what was in it
  std::set<std::pair<PyObject*, PyObject*>> assigned_;
  std::vector<Store> stores_;
  std::map<std::pair<PyObject*, PyObject*>, int> numbers_;
  std::set<PyObject*> known_functions_;
  std::vector<py::object> functions_;
};

}  // namespace ufuse::pyext
