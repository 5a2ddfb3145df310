// The Python type `ufuse.number`: a Python number of a call that is being recorded, so that what is
// worked out of it and seen of it is known. Handed to user code only where its text shows that
// the number is an operand and nothing else (ufuse/tracing/parameters.py): the type answers
// operators.
#pragma once

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

struct NumberObject {
  PyObject_HEAD PyObject* value;
  int number;                // among those of the call
  std::weak_ptr<Call> call;  // that it belongs to
};

PyTypeObject* number_type();
inline bool is_number(PyObject* object) { return Py_TYPE(object) == number_type(); }
inline NumberObject* as_number(PyObject* object) { return reinterpret_cast<NumberObject*>(object); }

// A number, recorded or not.
bool is_operand(PyObject* object);

// The next number among the arguments of the active call; the object itself where it is no Python
// number, or where nobody records.
py::object wrap_number(PyObject* object);
// What is recorded of one of the call's numbers.
py::object make_number(Call& call, int number);
// The number that an attribute holds, for the place in the code that has read it: where it is an
// operand only, what is recorded of it; anywhere else it is seen.
py::object number_in_attribute(Call& call, int number);
// The Python number behind an object, which is seen from now on; any other object is itself.
PyObject* seen_number(PyObject* object);
// The Python number for an operation that is not recorded.
inline PyObject* plain_number(PyObject* object) {
  return is_number(object) ? as_number(object)->value : object;
}

void bind_number(py::module_& m);

}  // namespace ufuse::pyext
