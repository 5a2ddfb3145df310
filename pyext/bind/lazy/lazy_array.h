// The Python type `ufuse.ndarray`: a lazy array of the session that made it; once that has ended, a
// name for a real array.
#pragma once

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

struct LazyObject {
  PyObject_HEAD PyObject* weakrefs;
  PyObject* real;  // the ndarray or NumPy scalar that it stands for, once there is one
  LazyArray array;
  // All that are alive, in a ring; it is looked at when a call ends.
  LazyObject *next, *previous;
  bool left_behind;  // by a call that has ended, and found since
};

// The base of all their types: one for arrays, and one for the scalars of each dtype, so that a
// lazy object has the slots that its real type has, and errors of Python name that type.
PyTypeObject* lazy_type();
inline bool is_lazy(PyObject* object) { return Py_TYPE(object)->tp_base == lazy_type(); }
inline LazyObject* as_lazy(PyObject* object) { return reinterpret_cast<LazyObject*>(object); }

// All that are alive of calls that have ended.
std::vector<py::object> lazies_of_ended_calls();
// `real`: the object it stands for when that exists already (an argument, a result of NumPy's); may
// be null.
py::object make_lazy(LazyArray array, PyObject* real = nullptr);

// The call that can trace an operation on this object: the active one, if it is the one that made
// it.
Call* tracing_call(PyObject* lazy);

// Before it is written to: what others have done to the flags of the real array.
void update_flags(LazyObject* lazy);

// Whether this is the only reference to an array, lazy or real, which owns its memory: nobody will
// look at it after the operator that it is an operand of.
bool is_temporary(PyObject* object);

// The real ndarray or NumPy scalar, computed if need be. Does not record the force.
py::object real_of(PyObject* lazy);
// The same for a value of one element that Python goes one way or another for, by its truth or by
// all of it.
py::object force_outcome(PyObject* lazy, Reason reason, bool truth);
// The same, recorded as a force for this reason.
py::object force(PyObject* lazy, Reason reason, const char* detail = "");

// The slots of the type, by topic.
void add_number_slots(std::vector<PyType_Slot>& slots);    // lazy_numbers.cpp
PyType_Slot index_slot();                                  // of arrays and integers
void add_index_slots(std::vector<PyType_Slot>& slots);     // lazy_index.cpp
void add_sequence_slots(std::vector<PyType_Slot>& slots);  // of arrays
void init_elements();                                      // lazy_index.cpp
std::vector<PyMethodDef> lazy_methods();                   // lazy_methods.cpp
void bind_lazy_array(py::module_& m);

}  // namespace ufuse::pyext
