// How is what a recorded call returned made of the plan's results? A tree of tuples, lists and
// dicts, with results and constants in it. It is read while the results are lazy arrays, for each
// of those is an object of its own, while NumPy has only one np.True_.
#pragma once

#include <optional>
#include <vector>

#include "pyext/bind/common.h"
#include "pyext/bind/replay/objects.h"
#include "pyext/bind/replay/signature.h"

namespace ufuse::pyext {

// Such a tree: which result of the plan stands where, and what is the same in each call.
struct ResultTree {
  // Container: one of the caller's own; Tuple, List, Dict: a new one.
  enum class Kind {
    Result,
    Object,
    Container,
    Number,
    Constant,
    Tuple,
    List,
    Dict
  } kind = Kind::Constant;
  int at = -1;  // of a Result among the plan's, of an Object or a Container among the signature's
  py::object constant;  // Constant; of a Dict: the keys, as a tuple
  std::vector<ResultTree> items;
};

// The tree of what a call returned; unset where what other calls return cannot be built like it.
// `results`: the lazy arrays in it. `arguments`: what stands for the caller's own objects.
// `objects`: those of the call's signature, and its containers.
std::optional<ResultTree> result_tree_of(PyObject* object, const py::list& results,
                                         const py::list& arguments, const ObjectWatch& objects);

// A value like this tree. A result that stands in two places is one object.
py::object build(const ResultTree& tree, const std::vector<py::object>& results,
                 const Signature& signature, const std::vector<py::object>& numbers);

}  // namespace ufuse::pyext
