// How the results of a recorded call stand in what it returned: through tuples, lists and dicts,
// with what is the same in each call. Read while the results are lazy arrays, of which each is an
// object of its own; NumPy has only one np.True_.
#pragma once

#include <optional>
#include <vector>

#include "pyext/bind/common.h"
#include "pyext/bind/replay/objects.h"

namespace ufuse::pyext {

// The nest of a returned value: which result of the plan stands where, and what is always the same.
struct Shape {
  enum class Kind { Result, Object, Number, Constant, Tuple, List, Dict } kind = Kind::Constant;
  int at = -1;          // of a Result among the plan's, of an Object among the signature's
  py::object constant;  // Constant; of a Dict: the keys, as a tuple
  std::vector<Shape> items;
};

// The shape of what a call returned; unset where another call's cannot be built like it. `results`
// are the lazy arrays in it, `arguments` what stands for the caller's own objects, `objects` those
// of the call's signature.
std::optional<Shape> shape_of(PyObject* object, const py::list& results, const py::list& arguments,
                              const ObjectWatch& objects);

// A nest of this shape. Two places of one result are one object again.
py::object build(const Shape& shape, const std::vector<py::object>& results,
                 const std::vector<PyObject*>& objects, const std::vector<py::object>& numbers);

}  // namespace ufuse::pyext
