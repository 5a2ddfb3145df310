// What does a `for` go over, as Python's objects: what an iterator that nothing else knows will
// hand out, and an iterator over what is left of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program/program.h"
#include "numpy_shim/program/typing.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

struct Walk {
  ir::program::Over::Kind kind = ir::program::Over::Kind::Range;
  py::object items;                             // an array, perhaps lazy, a list or a tuple
  std::int64_t start = 0, step = 0, count = 0;  // of a range; enumerate: start
  std::vector<Walk> parts;
  bool strict = false;  // zip: parts of different lengths are an error

  // How many rounds there are at this time.
  std::int64_t rounds() const;
  // Whether no error of Python's is due behind the last one.
  bool is_even() const;
  // `given_of`: what an object is for a program.
  numpy_shim::program::Walked walked(numpy_shim::program::Given (*given_of)(PyObject*)) const;
  // Whether it goes over lazy arrays, and puts real ones in their places, once tracing has stopped.
  bool is_lazy() const;
  void make_real();
  // An iterator from a round on.
  py::object rest(std::int64_t position) const;
  // Its arrays and lists.
  void add_items(std::vector<PyObject*>& to) const;
};

// Of a range whose numbers have 64 bits.
std::optional<Walk> walk_of_range(PyObject* range);
// Of what zip, enumerate and reversed have made in the head of a loop, over ranges, arrays and
// lists. Nothing where somebody else may have the iterator, or one inside of it, or where it has
// begun.
std::optional<Walk> walk_of_iterator(PyObject* iterator);

}  // namespace ufuse::pyext
