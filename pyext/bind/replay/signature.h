// What two calls must have in common to be the same work: types, dtypes, shapes, strides,
// writeability, which arguments are one object, and the values of Python numbers, through tuples,
// lists, dicts and the attributes of objects. Built anew for each call, so it is flat and does not
// allocate twice.
#pragma once

#include <cstdint>
#include <vector>

#include "pyext/bind/common.h"
#include "pyext/bind/replay/objects.h"
#include "tracer/storage.h"

namespace ufuse::pyext {

// Which arguments are known to be operands and nothing else: Python numbers there are told apart by
// their types only.
struct NumberPlaces {
  std::vector<bool> positions;
  std::vector<py::object> names;  // of keywords

  bool has_position(Py_ssize_t position) const;
  bool has_name(PyObject* name) const;
};

struct Signature {
  std::vector<std::uint64_t> words;  // all that is compared by value
  std::vector<PyObject*> objects;  // borrowed; compared by identity (None, strings, keyword names)
  std::vector<PyObject*>
      arguments;  // borrowed; arrays and NumPy scalars in the order in which a session numbers them
  std::vector<PyObject*> numbers;  // borrowed; those at NumberPlaces, and in attributes
  // Which of the numbers are attributes: of an owner, by name (borrowed).
  struct AttributeNumber {
    std::size_t owner;
    PyObject* name;
    int number;
  };
  std::vector<AttributeNumber> attribute_numbers;
  std::vector<PyObject*> owners;  // borrowed; objects with attributes
  std::vector<int> flags;  // of each array; compared only where the recorded call asked for them
  std::uint64_t hash = 0;

  // False when there is no plan for such arguments: other types, overlapping memory.
  // Of objects it has what `schemas` says of their classes.
  bool read(PyObject* const* args, Py_ssize_t count, PyObject* keywords, const NumberPlaces& places,
            ObjectSchemas& schemas);
  void clear();
  // Borrowed; the tuples, lists and dicts that were looked into.
  const std::vector<PyObject*>& containers() const { return containers_; }

 private:
  bool add(PyObject* object, int depth = 0);
  void add_number(PyObject* number);
  bool add_container(PyObject* object, int depth);
  bool add_owner(PyObject* object, int depth);
  bool add_array(PyArrayObject* array);
  bool arrays_are_apart();

  struct Range {
    tracer::ByteRange bytes;
    bool writeable;
  };

  ObjectSchemas* schemas_ = nullptr;
  int inside_ = 0;  // how many objects
  // Items of lists and dicts, and attributes, which another thread may take away while a loop runs.
  std::vector<py::object> held_;
  std::vector<PyObject*> containers_;
  std::vector<Range> ranges_;  // of the arrays' memory
};

// Calls of one kind take about as long: the same types of arguments, dtypes, and sizes to a factor
// of two, whatever the values. The hash is 0 where there is too much to look at.
struct CallKind {
  std::uint64_t hash = 0;
  std::size_t bytes = 0;  // of the arrays
  bool objects = false;   // there are others, which may hold arrays of any size
};
CallKind kind_of_call(PyObject* const* args, Py_ssize_t count, PyObject* keywords);

}  // namespace ufuse::pyext
