// See walk.h.
#include "pyext/bind/programs/walk.h"

#include <algorithm>

#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/native_call.h"
#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/programs/boxes.h"

namespace ufuse::pyext {

using Kind = ir::program::Over::Kind;
using numpy_shim::program::Given;
using numpy_shim::program::Walked;

namespace {

// start + count * step, which may have more than 64 bits.
py::object sum(std::int64_t start, std::int64_t count, std::int64_t step) {
  return py::int_(start) + py::int_(count) * py::int_(step);
}

}  // namespace

std::int64_t Walk::rounds() const {
  switch (kind) {
    case Kind::Range:
      return count;
    case Kind::Array:
      if (pyext::is_lazy(items.ptr())) return as_lazy(items.ptr())->array.layout.shape[0];
      return PyArray_DIM(reinterpret_cast<PyArrayObject*>(items.ptr()), 0);
    case Kind::List:
    case Kind::Tuple:
      return Py_SIZE(items.ptr());
    case Kind::Enumerate:
    case Kind::Zip:
      break;
  }
  std::int64_t fewest = parts[0].rounds();
  for (const Walk& part : parts) fewest = std::min(fewest, part.rounds());
  return fewest;
}

bool Walk::is_even() const {
  return std::ranges::all_of(parts, [&](const Walk& part) {
    return part.is_even() && (!strict || part.rounds() == parts[0].rounds());
  });
}

bool Walk::is_lazy() const {
  return (items && pyext::is_lazy(items.ptr())) || std::ranges::any_of(parts, &Walk::is_lazy);
}

void Walk::make_real() {
  if (items && pyext::is_lazy(items.ptr())) items = unwrap_to_read(items.ptr());
  for (Walk& part : parts) part.make_real();
}

Walked Walk::walked(Given (*given_of)(PyObject*)) const {
  Walked made;
  switch (kind) {
    case Kind::Range:
      made.kind = Walked::Kind::Range;
      made.counts_up = start >= 0 && (count == 0 || start + (count - 1) * step >= 0);
      break;
    case Kind::Array:
    case Kind::List:
    case Kind::Tuple:
      made.kind = Walked::Kind::Items;
      made.items = given_of(items.ptr());
      break;
    case Kind::Enumerate:
      made.kind = Walked::Kind::Enumerate;
      made.counts_up = start >= 0;
      break;
    case Kind::Zip:
      made.kind = Walked::Kind::Zip;
      break;
  }
  for (const Walk& part : parts) made.parts.push_back(part.walked(given_of));
  return made;
}

py::object Walk::rest(std::int64_t position) const {
  const auto iterator = [](const py::object& of) { return steal(PyObject_GetIter(of.ptr())); };
  const auto type = [](PyTypeObject& of) { return borrow(reinterpret_cast<PyObject*>(&of)); };
  switch (kind) {
    case Kind::Range:
      return iterator(type(PyRange_Type)(sum(start, std::min(position, count), step),
                                         sum(start, count, step), step));
    case Kind::Array:
    case Kind::Tuple:
      return iterator(steal(PySequence_GetSlice(items.ptr(), position, rounds())));
    case Kind::List: {
      py::object made = iterator(items);
      made.attr("__setstate__")(position);
      return made;
    }
    case Kind::Enumerate:
      return type(PyEnum_Type)(parts[0].rest(position), sum(start, position, 1));
    case Kind::Zip: {
      py::tuple all(parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) all[i] = parts[i].rest(position);
      return type(PyZip_Type)(*all, py::arg("strict") = strict);
    }
  }
  throw InternalError("a loop over something unknown");
}

void Walk::add_items(std::vector<PyObject*>& to) const {
  if (items) to.push_back(items.ptr());
  for (const Walk& part : parts) part.add_items(to);
}

std::optional<Walk> walk_of_range(PyObject* range) {
  std::int64_t parts[3];
  const char* names[] = {"start", "stop", "step"};
  for (int i = 0; i < 3; ++i) {
    const py::object part = steal(PyObject_GetAttrString(range, names[i]));
    int overflow = 0;
    parts[i] = PyLong_AsLongLongAndOverflow(part.ptr(), &overflow);
    if (overflow != 0) return {};
  }
  Walk walk;
  walk.start = parts[0];
  walk.step = parts[2];
  walk.count = PyObject_Size(range);
  if (walk.count >= 0) return walk;
  PyErr_Clear();
  return {};
}

namespace {

std::optional<Walk> walk_of_items(PyObject* items) {
  const Given given = given_of_traced(items);
  Walk walk;
  walk.items = borrow(items);
  if (given.kind == Given::Kind::List)
    walk.kind = Kind::List;
  else if (given.kind == Given::Kind::Array && given.rank > 0)
    walk.kind = Kind::Array;
  else
    return {};
  return walk;
}

// `owners`: who has a reference, if nobody else has.
std::optional<Walk> walk_of_owned(PyObject* iterator, Py_ssize_t owners) {
  const PyTypeObject* type = Py_TYPE(iterator);
  if (PyObject* array = array_of_elements(iterator))
    return Py_REFCNT(iterator) == owners ? walk_of_items(array) : std::nullopt;
  const bool is_known = type == &PyZip_Type || type == &PyEnum_Type || type == &PyRangeIter_Type ||
                        type == &PyListIter_Type || type == &PySeqIter_Type;
  if (!is_known || Py_REFCNT(iterator) != owners) return {};
  // Pickling says what an iterator consists of.
  const auto reduced =
      steal(PyObject_CallMethod(iterator, "__reduce__", nullptr)).cast<py::tuple>();
  const auto inside = py::reinterpret_borrow<py::tuple>(reduced[1]);
  if (type == &PyZip_Type) {
    if (inside.empty()) return {};
    Walk walk;
    walk.kind = Kind::Zip;
    walk.strict = reduced.size() > 2;
    for (py::handle part : inside) {
      std::optional<Walk> known = walk_of_owned(part.ptr(), 1);
      if (!known) return {};
      walk.parts.push_back(std::move(*known));
    }
    return walk;
  }
  if (type == &PyEnum_Type) {
    PyObject* part = PyTuple_GET_ITEM(inside.ptr(), 0);
    int overflow = 0;
    Walk walk;
    walk.kind = Kind::Enumerate;
    walk.start = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(inside.ptr(), 1), &overflow);
    if (overflow != 0) return {};
    std::optional<Walk> known = walk_of_owned(part, 2);  // the tuple here is another one
    if (!known) return {};
    walk.parts.push_back(std::move(*known));
    return walk;
  }
  const bool has_begun =
      reduced.size() > 2 && !reduced[2].is_none() && !py::object(reduced[2]).equal(py::int_(0));
  if (has_begun || inside.size() != 1) return {};
  PyObject* items = PyTuple_GET_ITEM(inside.ptr(), 0);
  return PyRange_Check(items) ? walk_of_range(items) : walk_of_items(items);
}

}  // namespace

std::optional<Walk> walk_of_iterator(PyObject* iterator) {
  return is_only_on_stack(iterator) ? walk_of_owned(iterator, 1) : std::nullopt;
}

}  // namespace ufuse::pyext
