// See shape.h.
#include "pyext/bind/replay/shape.h"

#include <unordered_set>

#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/lazy/recorded_number.h"

namespace ufuse::pyext {
namespace {

// Whether an object is the same in each call, and cannot be changed.
bool is_constant(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || PyBool_Check(object) ||
         PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
         PyUnicode_CheckExact(object) ||
         (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) == 0);
}

// Deeper results are traced each time.
constexpr int kMaxDepth = 64;

class ShapeReader {
 public:
  ShapeReader(const py::list& results, const py::list& arguments, const ObjectWatch& objects)
      : results_(results), objects_(objects) {
    for (py::handle each : arguments)
      if (!is_lazy(each.ptr())) met_.insert(each.ptr());
  }

  std::optional<Shape> of(PyObject* object, int depth = 0) {
    Shape shape;
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (PyList_GET_ITEM(results_.ptr(), static_cast<Py_ssize_t>(i)) == object) {
        shape.kind = Shape::Kind::Result;
        shape.at = static_cast<int>(i);
        return shape;
      }
    if (is_constant(object)) {
      shape.constant = borrow(object);
      return shape;
    }
    if (const int at = objects_.index_of(object); at >= 0) {
      shape.kind = Shape::Kind::Object;
      shape.at = at;
      return shape;
    }
    if (is_number(object)) {
      shape.kind = Shape::Kind::Number;
      shape.at = as_number(object)->number;
      return shape;
    }
    // Not built: lists of the caller's own, and containers that stand in two places or in
    // themselves.
    if (depth == kMaxDepth || !met_.insert(object).second) return std::nullopt;
    py::object items;
    if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      shape.kind = PyTuple_CheckExact(object) ? Shape::Kind::Tuple : Shape::Kind::List;
      items = borrow(object);
    } else if (PyDict_CheckExact(object)) {
      shape.kind = Shape::Kind::Dict;
      shape.constant = steal(PySequence_Tuple(object));
      for (py::handle key : shape.constant)
        if (!is_constant(key.ptr())) return std::nullopt;
      items = steal(PyDict_Values(object));
    } else {
      return std::nullopt;
    }
    for (py::handle item : items) {
      std::optional<Shape> inner = of(item.ptr(), depth + 1);
      if (!inner) return std::nullopt;
      shape.items.push_back(std::move(*inner));
    }
    return shape;
  }

 private:
  const py::list& results_;
  const ObjectWatch& objects_;
  std::unordered_set<PyObject*> met_;
};

}  // namespace

std::optional<Shape> shape_of(PyObject* object, const py::list& results, const py::list& arguments,
                              const ObjectWatch& objects) {
  return ShapeReader(results, arguments, objects).of(object);
}

py::object build(const Shape& shape, const std::vector<py::object>& results,
                 const std::vector<PyObject*>& objects, const std::vector<py::object>& numbers) {
  switch (shape.kind) {
    case Shape::Kind::Result:
      return results[static_cast<std::size_t>(shape.at)];
    case Shape::Kind::Object:
      return borrow(objects[static_cast<std::size_t>(shape.at)]);
    case Shape::Kind::Number:
      return numbers[static_cast<std::size_t>(shape.at)];
    case Shape::Kind::Constant:
      return shape.constant;
    case Shape::Kind::Tuple:
    case Shape::Kind::List: {
      const bool is_list = shape.kind == Shape::Kind::List;
      const auto size = static_cast<Py_ssize_t>(shape.items.size());
      py::object made = steal(is_list ? PyList_New(size) : PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size; ++i) {
        const Shape& inner = shape.items[static_cast<std::size_t>(i)];
        PyObject* item = build(inner, results, objects, numbers).release().ptr();
        is_list ? PyList_SET_ITEM(made.ptr(), i, item) : PyTuple_SET_ITEM(made.ptr(), i, item);
      }
      return made;
    }
    case Shape::Kind::Dict: {
      py::dict made;
      std::size_t i = 0;
      for (py::handle key : shape.constant)
        made[key] = build(shape.items[i++], results, objects, numbers);
      return made;
    }
  }
  return py::none();
}

}  // namespace ufuse::pyext
