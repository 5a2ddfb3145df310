// What must two calls have in common, so that a recording of one can answer the other? Types,
// dtypes, shapes, strides, writeability, which arguments are one object, and the values of Python
// numbers; also inside tuples, lists, dicts and the attributes of objects. A signature is made for
// each call, so it consists of flat vectors, whose memory is used again.
#pragma once

#include <cstdint>
#include <vector>

#include "pyext/bind/common.h"
#include "pyext/bind/replay/objects.h"
#include "tracer/byte_range.h"

namespace ufuse::pyext {

// Which arguments may be Python numbers that are used as operands only: of these the signature has
// the type, and not the value.
struct NumberPlaces {
  std::vector<bool> positions;
  std::vector<py::object> names;  // of keywords

  bool has_position(Py_ssize_t position) const;
  bool has_name(PyObject* name) const;
};

// So many containers inside one another and side by side; telling more apart would take longer than
// many a function.
constexpr std::size_t kMaxContainers = 256;

struct Signature {
  std::vector<std::uint64_t> words;  // all that is compared by value
  std::vector<PyObject*> objects;  // borrowed; compared by identity (None, strings, keyword names)
  std::vector<PyObject*>
      arguments;  // borrowed; arrays and NumPy scalars in the order in which a session numbers them
  std::vector<PyObject*> numbers;  // borrowed; those whose values are not in the signature
  // Which of these are attributes of an owner; the name is borrowed.
  struct AttributeNumber {
    std::size_t owner;
    PyObject* name;
    int number;
  };
  std::vector<AttributeNumber> attribute_numbers;
  std::vector<PyObject*> owners;  // borrowed; objects with attributes
  std::vector<int> flags;  // of each array; compared only where the recorded call asked for them
  std::uint64_t hash = 0;

  // False where such a call cannot be recorded: arguments of other types, or with overlapping
  // memory. `schemas`: which attributes of objects are part of it.
  bool read(PyObject* const* args, Py_ssize_t count, PyObject* keywords, const NumberPlaces& places,
            ObjectSchemas& schemas);
  void clear();
  // After the call: what has been read is borrowed from here on. Plain Python keeps no item of a
  // list and no attribute until the next call.
  void let_go();
  // Borrowed; the tuples, lists and dicts that were looked into.
  const std::vector<PyObject*>& containers() const { return containers_; }
  // About how long the last read() has taken, nanoseconds.
  std::int64_t reading_ns() const { return kWordTime * static_cast<std::int64_t>(words.size()); }

 private:
  static constexpr std::int64_t kWordTime = 8;

  bool add(PyObject* object, int depth = 0);
  bool add_argument(PyObject* argument);
  std::uint32_t& place_of(PyObject* argument);
  void add_number(PyObject* number);
  bool add_container(PyObject* object, int depth);
  bool add_owner(PyObject* object, int depth);
  bool add_array(PyArrayObject* array);
  bool arrays_are_apart();

  ObjectSchemas* schemas_ = nullptr;
  Py_ssize_t items_ = 0;  // in all containers
  int inside_ = 0;        // of so many objects the attributes are being read
  // Items of lists and dicts, and attributes. Another thread may remove them while a loop runs.
  std::vector<py::object> held_;
  std::vector<PyObject*> containers_;
  // Where among the arguments each is, by their addresses; empty as long as they are few.
  std::vector<std::uint32_t> places_;
  std::vector<tracer::Reach> reaches_;  // of the arrays
};

// Calls of one kind are expected to take about the same time: arguments of the same types and
// dtypes, and of the same sizes up to a factor of two. `hash` is 0 where the arguments hold too
// many objects to look at; `many`: they hold more than a signature does, or many of which those
// that were looked at are numbers or strings.
struct CallKind {
  std::uint64_t hash = 0;
  bool many = false;
  std::size_t bytes = 0;  // of the arrays
  bool objects = false;   // there are objects, which may hold arrays of any size
};
CallKind kind_of_call(PyObject* const* args, Py_ssize_t count, PyObject* keywords);

}  // namespace ufuse::pyext
