// The two ways to answer an operation on lazy arrays: natively, as nodes of the graph, or by
// NumPy's own call on real arrays. Every operation goes through `native_or`, which takes the second
// way where there is no first one, and in untraced code, which may write to the same memory at any
// time without our notice. All errors are NumPy's own.
#pragma once

#include <span>
#include <string>

#include "pyext/bind/lazy/lazy_array.h"

namespace ufuse::pyext {

// A Python object as an operand; throws Unsupported with the reason why it is none.
tracer::Operand to_operand(Call& call, PyObject* object);
// The lazy array behind an object, captured where it is an ndarray; throws Unsupported for anything
// else.
LazyArray to_array(Call& call, PyObject* object);
// Where NumPy promotes by values, throws Unsupported when that changes the dtype of the result of
// these operands, which the objects stand for.
void check_promotion(Call& call, std::span<PyObject* const> objects,
                     std::span<const tracer::Operand> operands);

// Results of an operation as Python objects; computed at once where a captured array needs that
// (Call::capture).
py::object to_python(Call& call, LazyArray array);
py::object to_python(Call& call, std::vector<LazyArray> arrays);

// A real array on memory that the call knows, as a lazy one; unset for any other.
py::object view_of_known(Call& call, PyArrayObject* array);

// Whether an object is a real array on memory that the call knows.
bool is_shared_array(const Call& call, PyObject* object);

// Whether an object of a type like this one's may give its holder another way to the memory of
// arrays: an array of a class of its own, an iterator, a data frame.
bool gives_memory(PyObject* object);

// The object with real ones in the place of lazy ones, also inside tuples, lists and dicts. All are
// computed in one request.
py::object unwrap(PyObject* object);
// The same for who only reads them, and does not keep them.
py::object unwrap_to_read(PyObject* object);

// A ufunc or a method of one.
bool is_of_ufunc(PyObject* func);

// A row of reasons.def by its id; throws Python's ValueError where there is none.
Reason reason_of(std::string_view id);

// func(*args, **kwargs) on real objects, noted with its reason. Arrays in the result that nobody
// else holds are lazy ones. `pure`: unset where the call may change memory, before which all that
// is pending is computed; so it is for a call with `out=`, whatever `pure` says.
py::object numpy_call(PyObject* func, PyObject* args, PyObject* kwargs, Reason reason, bool pure);
py::object numpy_call(PyObject* func, std::initializer_list<PyObject*> args, Reason reason,
                      bool pure);

// Whether InternalErrors are raised, where NumPy would answer otherwise: UFUSE_DEBUG is set, or
// jit's `debug`.
bool is_debugging();

template <class Native, class Numpy>
py::object native_or(Call* call, Native native, Numpy numpy) {
  Reason reason = Reason::UserCall;
  const auto stopped = call ? call->stop_if_slow() : std::nullopt;
  if (stopped || (call && call->in_untraced_code())) call = nullptr;
  if (call != nullptr) {
    const std::size_t mark = call->session().mark();
    try {
      const AtWork building;
      return native(*call);
    } catch (const Unsupported& unsupported) {
      reason = unsupported.reason();
    } catch (const UserError&) {
      reason = Reason::Arguments;
    } catch (const InternalError&) {
      if (is_debugging()) throw;
      reason = Reason::InternalError;
    }
    call->session().disown_since(mark);
    call->take_immediate();
  }
  return numpy(reason);
}

}  // namespace ufuse::pyext
