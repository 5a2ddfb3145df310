// Operators and indices of objects of other packages and of the user's classes: see others.cpp.
#pragma once

#include <span>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// Stands in the place of an object while traced code applies an operator or an index to it. Its
// type says what that does.
struct StandIn {
  PyObject_HEAD PyObject* object;
};
inline PyObject* object_of(PyObject* stand_in) {
  return reinterpret_cast<StandIn*>(stand_in)->object;
}
// A new reference; null where there is no memory.
PyObject* stand_in(PyTypeObject* type, PyObject* object);
void dealloc_stand_in(PyObject* self);

// Whether an object's class is that of another package.
bool is_other(PyObject* object);
// Whether an object is an array or a number, lazy or not. What it does with a recorded number is
// known; other objects may do anything.
bool is_array_or_number(PyObject* object);
// What is put in the place of an object at the left of an operator or an index; a new reference.
PyObject* operand_of(PyObject* object);
// What is put in the place of the value in `object += value`.
py::object value_beside(PyObject* object, PyObject* value);

// What untraced code may read of objects of others: memory of arrays that the call knows, perhaps
// later, by a memoryview, an iterator over a data frame or the like. From here on nothing is
// pending there, if one of the objects is such a one. Nothing happens outside of traced calls.
void note_lookers(std::span<PyObject* const> objects);
// Whether one stands in an object, such as the arguments of a call. `keywords` may be null.
bool shows_memory(PyObject* object, PyObject* keywords = nullptr);

// Whether an object that may answer a ufunc itself (`__array_ufunc__`) stands beside a lazy array.
bool are_others_asked(std::span<PyObject* const> args);
// f(*args[:count], **keywords) on real arrays, where f may write to them.
py::object on_real_arrays(PyObject* f, PyObject* const* args, std::size_t count,
                          PyObject* keywords);

void bind_others(py::module_& m);

}  // namespace ufuse::pyext
