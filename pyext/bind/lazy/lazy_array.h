// The Python type `ufuse.ndarray`: a lazy array or scalar of the session that made it. When the
// session has ended, it only hands on to a real array or scalar what it is asked.
#pragma once

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

struct LazyObject {
  PyObject_HEAD PyObject* weakrefs;
  PyObject* real;  // the ndarray or NumPy scalar that it stands for, once there is one
  LazyArray array;
  // All lazy objects that are alive, in a ring, which is looked through when a call ends.
  LazyObject *next, *previous;
  bool left_behind;  // its call has ended, and it has been told of as still alive
  // Its call, where that stopped tracing while this lay on Python's stack, and still runs.
  const Call* stacked;
};

// The base of all types of lazy objects. There is one type for arrays, and one for the scalars of
// each dtype: a lazy object has the slots of its real type, and Python's error messages name that
// type.
PyTypeObject* lazy_type();
inline bool is_lazy(PyObject* object) { return Py_TYPE(object)->tp_base == lazy_type(); }
inline LazyObject* as_lazy(PyObject* object) { return reinterpret_cast<LazyObject*>(object); }

// The lazy objects of ended calls that are still alive and have not been told of as such: what was
// left to the frames of an exception that is kept is not looked for again.
std::vector<py::object> lazies_of_ended_calls();
// `call` has stopped tracing, and all references to these lazy objects were replaced but for those
// on Python's stack. From there they may be put elsewhere, so they are to be told of when the
// function of the call has ended.
void leave_on_stack(const std::vector<py::object>& lazies, const Call* call);
// That function has ended.
void take_from_stack(const Call* call);
// Whether there is such a lazy object.
bool any_on_stack();
// `real`: the object that it stands for, where that exists already (an argument, a result of
// NumPy's); else null.
// Whether there is a lazy array anywhere.
bool any_lazy();
py::object make_lazy(LazyArray array, PyObject* real = nullptr);

// The call that can record an operation on this object: the active one, if it has made the object;
// else null.
Call* tracing_call(PyObject* lazy);
// Those of the objects that are traced.
std::vector<LazyArray> lazies_in(const py::list& objects);

// Takes over what code that has the real array may have done to it: made it read-only, given it
// another shape or dtype. False: it is nothing now that operations could be recorded for.
bool follow_real(LazyObject* lazy);

// Whether this is the only reference to an array, lazy or real, which owns its memory: then nobody
// will use it after the operator that it is an operand of.
bool is_temporary(PyObject* object);

// The real ndarray or NumPy scalar, computed if need be. Does not record the force. Somebody else
// may hold it from here on, so later writes to it go to its memory.
py::object real_of(PyObject* lazy);
// The same for who only reads it, and does not keep it.
py::object real_to_read(PyObject* lazy);
// The same for a value of one element of which Python uses the truth, or the value itself: what it
// then does may depend on it, so a recording is good only where the value comes out the same.
py::object force_outcome(PyObject* lazy, Reason reason, bool truth);
// The same, recorded as a force for this reason.
py::object force(PyObject* lazy, Reason reason, const char* detail = "");

// The slots of the type, by topic.
void add_number_slots(std::vector<PyType_Slot>& slots);    // lazy_operators.cpp
PyType_Slot index_slot();                                  // of arrays and integers
void add_index_slots(std::vector<PyType_Slot>& slots);     // lazy_index.cpp
void add_sequence_slots(std::vector<PyType_Slot>& slots);  // of arrays
void init_elements();                                      // lazy_index.cpp
// What an iterator over a lazy array's elements goes over that has handed out none yet; null for
// any other object.
PyObject* array_of_elements(PyObject* iterator);  // lazy_index.cpp
std::vector<PyMethodDef> lazy_methods();          // lazy_methods.cpp
void bind_lazy_array(py::module_& m);

}  // namespace ufuse::pyext
