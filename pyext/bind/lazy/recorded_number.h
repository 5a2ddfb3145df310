// The Python type `ufuse.number`: a Python number of a call that is being recorded. It notes in the
// call's NumberHistory what is calculated from it and which of its values are looked at. Code gets
// one in the place of a number only where its text shows that it is used as an operand and for
// nothing else (ufuse/tracing/parameters.py): the type has operators, and little more.
#pragma once

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

struct NumberObject {
  PyObject_HEAD PyObject* value;
  int number;                // in the call's history
  std::weak_ptr<Call> call;  // that is being recorded
};

PyTypeObject* number_type();
inline bool is_number(PyObject* object) { return Py_TYPE(object) == number_type(); }
inline NumberObject* as_number(PyObject* object) { return reinterpret_cast<NumberObject*>(object); }

// Whether an object is a recorded number, or Python's own int, float, complex or bool.
bool is_operand(PyObject* object);

// A recorded number for the next one among the arguments of the active call. Any other object, or
// any where no call is recorded, is returned as it is.
py::object wrap_number(PyObject* object);
// The recorded number for a number in the call's history.
py::object make_number(Call& call, int number);
// A number that the running code has read from an attribute: a recorded one where the code uses it
// as an operand only; else the number itself, whose value is then noted as seen.
py::object number_in_attribute(Call& call, int number);
// The Python number behind a recorded one, whose value is noted as seen; any other object itself.
PyObject* seen_number(PyObject* object);
// The Python number behind a recorded one, without a note; any other object itself.
inline PyObject* plain_number(PyObject* object) {
  return is_number(object) ? as_number(object)->value : object;
}

void bind_number(py::module_& m);

}  // namespace ufuse::pyext
