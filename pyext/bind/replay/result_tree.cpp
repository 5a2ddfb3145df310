// See result_tree.h.
#include "pyext/bind/replay/result_tree.h"

#include <algorithm>
#include <span>
#include <unordered_set>

#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/lazy/recorded_number.h"

namespace ufuse::pyext {
namespace {

// Deeper results are traced each time.
constexpr int kMaxDepth = 64;

bool is_plain_constant(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || PyBool_Check(object) ||
         PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
         PyUnicode_CheckExact(object);
}

class TreeReader {
 public:
  TreeReader(const py::list& results, const py::list& arguments, const ObjectWatch& objects)
      : results_(results), objects_(objects) {
    for (py::handle each : arguments)
      if (!is_lazy(each.ptr())) met_.insert(each.ptr());
  }

  std::optional<ResultTree> of(PyObject* object, int depth = 0) {
    if (++objects_met_ > kMostObjects) return std::nullopt;
    ResultTree tree;
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (PyList_GET_ITEM(results_.ptr(), static_cast<Py_ssize_t>(i)) == object) {
        tree.kind = ResultTree::Kind::Result;
        tree.at = static_cast<int>(i);
        return tree;
      }
    if (const int at = objects_.container_at(object); at >= 0) {
      tree.kind = ResultTree::Kind::Container;
      tree.at = at;
      return tree;
    }
    if (is_constant(object, depth)) {
      tree.constant = borrow(object);
      return tree;
    }
    if (const int at = objects_.index_of(object); at >= 0) {
      tree.kind = ResultTree::Kind::Object;
      tree.at = at;
      return tree;
    }
    if (is_number(object)) {
      tree.kind = ResultTree::Kind::Number;
      tree.at = as_number(object)->number;
      return tree;
    }
    // Not built: what stands for the caller's own, and containers that stand in two places or in
    // themselves.
    if (depth == kMaxDepth || !met_.insert(object).second) return std::nullopt;
    py::object items;
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      tree.kind = PyTuple_CheckExact(object) ? ResultTree::Kind::Tuple : ResultTree::Kind::List;
      items = borrow(object);
    } else if (PyDict_CheckExact(object)) {
      tree.kind = ResultTree::Kind::Dict;
      tree.constant = steal(PySequence_Tuple(object));
      for (py::handle key : tree.constant)
        if (!is_constant(key.ptr(), depth)) return std::nullopt;
      items = steal(PyDict_Values(object));
    } else {
      return std::nullopt;
    }
    for (py::handle item : items) {
      std::optional<ResultTree> inner = of(item.ptr(), depth + 1);
      if (!inner) return std::nullopt;
      tree.items.push_back(std::move(*inner));
    }
    return tree;
  }

 private:
  // Whether an object is the same in each call, and cannot be changed. A tuple of such objects may
  // be the value of a global name or a default, and is that same object then. Where Python would
  // make it anew in each call, nobody can rely on that: it may be one that is there already.
  bool is_constant(PyObject* object, int depth) const {
    if (is_plain_constant(object)) return true;
    if (!PyTuple_CheckExact(object) || depth >= kMaxDepth || objects_.container_at(object) >= 0)
      return false;
    const std::span items(&PyTuple_GET_ITEM(object, 0),
                          static_cast<std::size_t>(PyTuple_GET_SIZE(object)));
    return std::ranges::all_of(items, [&](PyObject* each) { return is_constant(each, depth + 1); });
  }

  const py::list& results_;
  const ObjectWatch& objects_;
  std::unordered_set<PyObject*> met_;
  // To build more again would hardly be faster than the call.
  static constexpr std::int64_t kMostObjects = 1 << 16;
  std::int64_t objects_met_ = 0;
};

}  // namespace

std::optional<ResultTree> result_tree_of(PyObject* object, const py::list& results,
                                         const py::list& arguments, const ObjectWatch& objects) {
  return TreeReader(results, arguments, objects).of(object);
}

py::object build(const ResultTree& tree, const std::vector<py::object>& results,
                 const Signature& signature, const std::vector<py::object>& numbers) {
  switch (tree.kind) {
    case ResultTree::Kind::Result:
      return results[static_cast<std::size_t>(tree.at)];
    case ResultTree::Kind::Object:
      return borrow(signature.owners[static_cast<std::size_t>(tree.at)]);
    case ResultTree::Kind::Container:
      return borrow(signature.containers()[static_cast<std::size_t>(tree.at)]);
    case ResultTree::Kind::Number:
      return numbers[static_cast<std::size_t>(tree.at)];
    case ResultTree::Kind::Constant:
      return tree.constant;
    case ResultTree::Kind::Tuple:
    case ResultTree::Kind::List: {
      const bool is_list = tree.kind == ResultTree::Kind::List;
      const auto size = static_cast<Py_ssize_t>(tree.items.size());
      py::object made = steal(is_list ? PyList_New(size) : PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size; ++i) {
        const ResultTree& inner = tree.items[static_cast<std::size_t>(i)];
        PyObject* item = build(inner, results, signature, numbers).release().ptr();
        is_list ? PyList_SET_ITEM(made.ptr(), i, item) : PyTuple_SET_ITEM(made.ptr(), i, item);
      }
      return made;
    }
    case ResultTree::Kind::Dict: {
      py::dict made;
      std::size_t i = 0;
      for (py::handle key : tree.constant)
        made[key] = build(tree.items[i++], results, signature, numbers);
      return made;
    }
  }
  return py::none();
}

}  // namespace ufuse::pyext
