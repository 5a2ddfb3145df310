// Operations on lazy arrays that Python code, ufuncs and F's shims all come through.
#pragma once

#include <array>

#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {

// ufunc(*args, **kwargs); `numpy` is what is called when there is no native form (null: the ufunc
// itself). `temporaries`: which operands of a binary operator is_temporary.
py::object call_ufunc(PyObject* ufunc, std::span<PyObject* const> args, PyObject* kwargs = nullptr,
                      PyObject* numpy = nullptr, std::array<bool, 2> temporaries = {});
// The same for what NumPy hands to __array_ufunc__: a ufunc that is called, or what an operator of
// NumPy's scalars comes down to. They differ, so that which ufunc is called by its name is noted.
py::object answer_ufunc(PyObject* ufunc, std::span<PyObject* const> args, PyObject* kwargs);
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
// An axis argument: None, an integer or a tuple; throws Unsupported.
std::optional<ir::Dims> to_axes(PyObject* object);
std::int64_t to_integer(PyObject* object);
// A dtype argument as dtype_from_object reads it; an array is none, although it has a dtype.
std::optional<DType> dtype_argument(PyObject* object);
ir::Dims to_dims(PyObject* object);
// Throws Unsupported where writing into `out` changes the bits: NumPy's inner loops round
// differently where they run backwards, and those of complex numbers where memory has gaps; before
// 2.0 it also matters where the memory is. The loop of a block call writes forwards into memory of
// its own.
void check_target(Call& call, const LazyArray& result, PyObject* out);
// The result goes into `out`, a lazy array, which is returned; throws Unsupported where a ufunc
// would not write there.
py::object write_into(Call& call, LazyArray result, PyObject* out, bool same_kind);
// NumPy's loops for products of complex numbers fuse one product with the sum, but not for one
// number in its own memory, where `square` of a NumPy scalar also takes place: throws Unsupported.
void check_complex_product(const numpy_shim::Ufunc& ufunc,
                           std::span<const tracer::Operand> operands, bool in_place);
// What NumPy's own loop is about to be called on, in memory as NumPy would have it; throws
// Unsupported where it would write to reversed or spaced elements.
void prepare_block_call(Call& call, const numpy_shim::Ufunc& ufunc,
                        std::span<PyObject* const> inputs, std::vector<tracer::Operand>& operands,
                        const numpy_shim::UfuncOptions& options, std::span<PyObject* const> outs);
// A NumPy scalar as an array.
LazyArray zero_d(Call& call, const LazyArray& scalar);
// A NumPy scalar, lazy or not, as the 0-d array that NumPy's conversions make of it; anything else
// as it is.
py::object as_array(PyObject* object);
// target[...] = value
void assign(Call& call, const LazyArray& target, PyObject* value);

}  // namespace ufuse::pyext
