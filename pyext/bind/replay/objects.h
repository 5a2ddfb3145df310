// Which attributes of the user's objects does a function read, and which does it assign? What
// recorded calls have read of the objects of a class is part of the signature of all later calls;
// what a call assigned stands beside its result, so that a replay assigns it too.
#pragma once

#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// What a signature has of each object of one class.
struct ObjectSchema {
  py::object type;
  unsigned version = 0;  // of the class, when its attributes were read: methods and all
  bool usable = true;    // objects are nothing but a dictionary and what the class has
  std::vector<py::object> names;
};

// Of all classes of which a function has met objects.
class ObjectSchemas {
 public:
  // Null where the attributes of an object do not say all there is to it.
  const ObjectSchema* of(PyObject* object);
  // An attribute that was read of an object with a schema.
  void add(PyObject* object, PyObject* name);
  // Counts the attributes that have been added.
  std::uint64_t generation() const { return generation_; }
  int traverse(visitproc visit, void* arg) const;
  void clear() { rows_.clear(); }

 private:
  ObjectSchema* row_of(PyObject* object);

  std::vector<ObjectSchema> rows_;
  std::uint64_t generation_ = 0;
};

// The attributes of an object that has a schema, as its dictionary.
py::object attributes_of(PyObject* object);

// Objects of the signature of a call that is being recorded, and what the call does with them.
class ObjectWatch {
 public:
  // `containers`: lists and dicts that the signature has looked into.
  void begin(ObjectSchemas& schemas, std::span<PyObject* const> objects,
             std::span<PyObject* const> containers);
  // The call lets go of everything but what it assigned and called.
  void end();

  // Whether the call can still be repeated after it has read or assigned an attribute, or called
  // `function` (a new one is noted, for it has to stay what it is).
  bool may_read(PyObject* object, PyObject* name);
  bool may_assign(PyObject* object, PyObject* name);
  void called(PyObject* function);

  bool any() const { return !index_.empty(); }
  // The recorded number that an attribute is; below 0: it is none. `set_number` after it has been
  // read for the signature, or assigned.
  int number_at(PyObject* object, PyObject* name) const;
  void set_number(PyObject* object, PyObject* name, int number);

  // The place of an object among those of the signature; below 0: it is none of them.
  int index_of(PyObject* object) const;

  struct Store {
    int object;
    py::object name;
  };
  const std::vector<Store>& stores() const { return stores_; }
  // What a replay has to make: what the call returned; where it assigned attributes, a tuple of
  // that and their values, of recorded numbers what `make_number(number)` gives. Unset where more
  // than that has changed.
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
  std::vector<py::object> objects_;
  std::unordered_map<PyObject*, int> index_;
  std::vector<std::pair<py::object, py::object>> copies_;  // a dict or list, and what was in it
  std::set<std::pair<PyObject*, PyObject*>> assigned_;
  std::vector<Store> stores_;
  std::map<std::pair<PyObject*, PyObject*>, int> numbers_;
  std::set<PyObject*> known_functions_;
  std::vector<py::object> functions_;
};

}  // namespace ufuse::pyext
