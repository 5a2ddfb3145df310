// Operations on lazy arrays: ufunc calls, reductions, assignments. Operators, methods, NumPy's
// protocols and the stand-ins for NumPy's functions all come here.
#pragma once

#include <array>

#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {

// ufunc(*args, **kwargs). `numpy`: what is called where there is no native form; null: the ufunc
// itself. It is given for operators only. `temporaries`: which operands of a binary operator
// is_temporary.
py::object call_ufunc(PyObject* ufunc, std::span<PyObject* const> args, PyObject* kwargs = nullptr,
                      PyObject* numpy = nullptr, std::array<bool, 2> temporaries = {});
// The operator that a ufunc call stands for where a NumPy scalar has made it, as in
// `np.float64(2) + x` with a lazy scalar or recorded number x; `function` is null for any other
// call. Such operators come to __array_ufunc__ as ufunc calls, but warn and round in another way;
// they are told apart by the call site, which notes the ufunc that it calls.
struct ScalarOperator {
  PyObject* function = nullptr;  // of module operator
  py::object scalar;             // the first operand
};
ScalarOperator operator_of_scalars(PyObject* ufunc, std::span<PyObject* const> args,
                                   PyObject* kwargs);
// call_ufunc for what NumPy hands to __array_ufunc__.
py::object answer_ufunc(PyObject* ufunc, std::span<PyObject* const> args, PyObject* kwargs);
// While one lives, this ufunc is called by its name.
class NamedUfunc {
 public:
  explicit NamedUfunc(PyObject* called);
  ~NamedUfunc();
  NamedUfunc(const NamedUfunc&) = delete;
  NamedUfunc& operator=(const NamedUfunc&) = delete;

 private:
  PyObject* before_;
};
// ufunc.reduce(x, axis=0, dtype=None, out=None, keepdims=False, initial, where). Null pointers: not
// given. `axis` null: all axes.
struct ReduceArgs {
  PyObject *axis = nullptr, *dtype = nullptr, *out = nullptr, *keepdims = nullptr,
           *initial = nullptr, *where = nullptr;
  const char* method = nullptr;  // the function of NumPy's _methods.py that the ndarray method
                                 // runs; its line is named in warnings
  const char* name = nullptr;    // the ndarray method itself
};
py::object call_reduce(PyObject* ufunc, PyObject* x, const ReduceArgs& args);
// argmin (or argmax) of x.
py::object call_arg_reduce(bool largest, PyObject* x, PyObject* axis, PyObject* out,
                           PyObject* keepdims);
// ufunc.accumulate(array, axis=0, dtype=None, out=None). Null pointers: not given. Throws
// Unsupported.
struct AccumulateArgs {
  PyObject *array = nullptr, *axis = nullptr, *dtype = nullptr, *out = nullptr;
};
py::object accumulate(Call& call, PyObject* ufunc, const AccumulateArgs& args, bool flat = false);
// ufunc.at(x, key, value); throws Unsupported.
py::object combine_at(Call& call, PyObject* ufunc, PyObject* args, PyObject* kwargs);

// Whether arrays or masks stand in the key of x[key].
bool has_arrays(PyObject* key);
using Key = std::vector<tracer::Session::KeyItem>;
Key key_of(Call& call, PyObject* key);
// x[key] for such a key; throws Unsupported.
py::object gather(Call& call, const LazyArray& x, PyObject* key);
// A value that is assigned to elements of this dtype; throws Unsupported where NumPy looks at what
// a number is.
tracer::Operand assigned_value(Call& call, DType dtype, PyObject* value);

// An axis argument: None, an integer or a tuple; throws Unsupported.
std::optional<ir::Dims> to_axes(PyObject* object);
std::int64_t to_integer(PyObject* object);
// A dtype argument as dtype_from_object reads it. An array is none, although it has a dtype.
std::optional<DType> dtype_argument(PyObject* object);
ir::Dims to_dims(PyObject* object);
// The same for a shape, which may be an array, too.
ir::Dims to_shape(PyObject* object);
// Throws Unsupported where writing into `out` changes the bits (numpy_shim::check_output).
void check_target(Call& call, const LazyArray& result, PyObject* out);
// Writes the result into `out`, a lazy array, and returns that; throws Unsupported where a ufunc
// would not write there. `alone`: the function has no other output.
py::object write_into(Call& call, LazyArray result, PyObject* out, bool same_kind,
                      bool alone = true);
// Gives the operands of a call of NumPy's own loop the strides with which NumPy would hand them to
// the loop; throws Unsupported where the loop would do something else in NumPy
// (numpy_shim::check_block_call). Does nothing for other calls.
void prepare_block_call(Call& call, const numpy_shim::Ufunc& ufunc,
                        std::span<PyObject* const> inputs, std::vector<tracer::Operand>& operands,
                        const numpy_shim::UfuncOptions& options, std::span<PyObject* const> outs);
// A NumPy scalar as an array without axes.
LazyArray zero_d(Call& call, const LazyArray& scalar);
// A NumPy scalar, lazy or not, as the 0-d array that NumPy's conversions make of it; anything else
// as it is.
py::object as_array(PyObject* object);
// target[...] = value
void assign(Call& call, const LazyArray& target, PyObject* value);
// Whether NumPy puts a value into one element as it is. Sequences and arrays with axes it refuses,
// or converts with a warning, even where they have one element.
bool is_single(PyObject* value);

}  // namespace ufuse::pyext
