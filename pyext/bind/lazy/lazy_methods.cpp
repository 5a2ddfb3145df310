// Methods of lazy arrays that are native: views, copies, reductions and the protocols that NumPy
// and Python look for.
#include <array>

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/view.h"
#include "pyext/bind/call/session.h"
#include "pyext/bind/lazy/methods.h"
#include "pyext/bind/numpy/ufunc_registry.h"

namespace ufuse::pyext {
namespace {

using numpy_shim::View;

char order_of(PyObject* object, char missing) {
  if (object == nullptr || object == Py_None) return missing;
  if (!PyUnicode_Check(object) || PyUnicode_GET_LENGTH(object) != 1)
    throw Unsupported(Reason::Arguments);
  const auto letter = static_cast<char>(PyUnicode_READ_CHAR(object, 0));
  if (letter != 'C' && letter != 'F' && letter != 'A' && letter != 'K')
    throw Unsupported(Reason::Arguments);
  return letter;
}

py::object view_of(Call& call, const LazyArray& array, const View& view) {
  if (array.scalar) throw Unsupported(Reason::Arguments);
  return make_lazy(call.session().view(array, view));
}

// A scalar's method gives a scalar also where it has written the result into an array.
void check_out_of_scalar(PyObject* self, PyObject* out) {
  if (as_lazy(self)->array.scalar && out != nullptr && out != Py_None)
    throw Unsupported(Reason::Arguments);
}

// Reductions: the positional order is that of the ndarray method, which differs from ufunc.reduce
// only in its default axis.
PyObject* reduce(PyObject* self, const char* name, const char* ufunc, PyObject* args,
                 PyObject* kwargs, bool has_dtype, const char* python_name) {
  return guard([&] {
    ReduceArgs given;
    try {
      if (has_dtype) {
        const auto a =
            parse<6>({"axis", "dtype", "out", "keepdims", "initial", "where"}, args, kwargs);
        given = {a[0], a[1], a[2], a[3], a[4], a[5], python_name, name};
      } else {
        const auto a = parse<5>({"axis", "out", "keepdims", "initial", "where"}, args, kwargs);
        given = {a[0], nullptr, a[1], a[2], a[3], a[4], python_name, name};
      }
      check_out_of_scalar(self, given.out);
    } catch (const Unsupported& unsupported) {
      return numpy_method(self, name, args, kwargs, unsupported.reason()).release().ptr();
    }
    return call_reduce(numpy_ufunc(ufunc), self, given).release().ptr();
  });
}
PyObject* sum(PyObject* self, PyObject* args, PyObject* kwargs) {
  return reduce(self, "sum", "add", args, kwargs, true, "_sum");
}
PyObject* prod(PyObject* self, PyObject* args, PyObject* kwargs) {
  return reduce(self, "prod", "multiply", args, kwargs, true, "_prod");
}
PyObject* max(PyObject* self, PyObject* args, PyObject* kwargs) {
  return reduce(self, "max", "maximum", args, kwargs, false, "_amax");
}
PyObject* min(PyObject* self, PyObject* args, PyObject* kwargs) {
  return reduce(self, "min", "minimum", args, kwargs, false, "_amin");
}

// any and all take no `initial`; keepdims and where only by keyword.
PyObject* truth_reduce(PyObject* self, const char* name, const char* ufunc, PyObject* args,
                       PyObject* kwargs) {
  return guard([&] {
    try {
      const auto a = parse<4>({"axis", "out", "keepdims", "where"}, args, kwargs);
      check_out_of_scalar(self, a[1]);
      return call_reduce(numpy_ufunc(ufunc), self, {a[0], nullptr, a[1], a[2], nullptr, a[3]})
          .release()
          .ptr();
    } catch (const Unsupported& unsupported) {
      return numpy_method(self, name, args, kwargs, unsupported.reason()).release().ptr();
    }
  });
}
PyObject* any(PyObject* self, PyObject* args, PyObject* kwargs) {
  return truth_reduce(self, "any", "logical_or", args, kwargs);
}
PyObject* all(PyObject* self, PyObject* args, PyObject* kwargs) {
  return truth_reduce(self, "all", "logical_and", args, kwargs);
}

PyObject* arg_reduce(PyObject* self, bool largest, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    try {
      const auto a = parse<3>({"axis", "out", "keepdims"}, args, kwargs);
      return call_arg_reduce(largest, self, a[0], a[1], a[2]).release().ptr();
    } catch (const Unsupported& unsupported) {
      return numpy_method(self, largest ? "argmax" : "argmin", args, kwargs, unsupported.reason())
          .release()
          .ptr();
    }
  });
}
PyObject* argmin(PyObject* self, PyObject* args, PyObject* kwargs) {
  return arg_reduce(self, false, args, kwargs);
}
PyObject* argmax(PyObject* self, PyObject* args, PyObject* kwargs) {
  return arg_reduce(self, true, args, kwargs);
}

ir::Dims strides_for(const LazyArray& array, DType dtype, char order) {
  return numpy_shim::ordered_strides(array.layout, ir::size_of(dtype), order);
}

PyObject* copy(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "copy", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [order] = parse<1>({"order"}, args, kwargs);
    return make_lazy(call.session().copy(
        array, array.layout.dtype, strides_for(array, array.layout.dtype, order_of(order, 'C'))));
  });
}

PyObject* astype(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "astype", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [type, order, casting, subok, copy] =
        parse<5>({"dtype", "order", "casting", "subok", "copy"}, args, kwargs);
    if (!type || (subok && !PyBool_Check(subok))) throw Unsupported(Reason::Arguments);
    const std::optional<DType> dtype = dtype_argument(type);
    if (!dtype) throw Unsupported(Reason::Dtype);
    const DType from = array.layout.dtype;
    if (casting &&
        (!PyUnicode_Check(casting) || !numpy_shim::can_cast(from, *dtype, text_of(casting))))
      throw Unsupported(Reason::Arguments);
    // NumPy warns that the imaginary part is lost.
    if (ir::is_in(from, ir::kComplex) && !ir::is_in(*dtype, ir::kComplex | ir::kBool))
      throw Unsupported(Reason::Arguments);
    const bool must_copy = !copy || PyObject_IsTrue(copy) != 0;
    const char letter = order_of(order, 'K');
    const ir::Dims strides = strides_for(array, *dtype, letter);
    if (!must_copy && from == *dtype && !array.scalar &&
        (letter == 'K' || strides == array.layout.strides))
      return borrow(self);
    return make_lazy(call.session().copy(array, *dtype, strides));
  });
}

PyObject* transpose(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "transpose", args, kwargs, [&](Call& call, const LazyArray& array) {
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) throw Unsupported(Reason::Arguments);
    PyObject* axes = args;
    if (PyTuple_GET_SIZE(args) == 1 && !PyIndex_Check(PyTuple_GET_ITEM(args, 0)))
      axes = PyTuple_GET_ITEM(args, 0);
    const bool reversed = axes == Py_None || (axes == args && PyTuple_GET_SIZE(args) == 0);
    return view_of(call, array,
                   numpy_shim::transpose(array.layout,
                                         reversed ? std::nullopt : std::optional(to_dims(axes))));
  });
}

PyObject* swapaxes(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "swapaxes", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [a, b] = parse<2>({"axis1", "axis2"}, args, nullptr);
    if (!a || !b || (kwargs && PyDict_GET_SIZE(kwargs) > 0)) throw Unsupported(Reason::Arguments);
    return view_of(call, array, numpy_shim::swapaxes(array.layout, to_integer(a), to_integer(b)));
  });
}

PyObject* squeeze(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "squeeze", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [axis] = parse<1>({"axis"}, args, kwargs);
    const View view = numpy_shim::squeeze(array.layout, to_axes(axis));
    if (view.layout == array.layout && !array.scalar) return borrow(self);  // as NumPy does
    return view_of(call, array, view);
  });
}

// A reshaped view of an array without gaps. Where NumPy has to copy, it gives a view of the copy.
py::object reshaped_view(Call& call, const LazyArray& array, const ir::Dims& shape, bool fortran) {
  const std::optional<View> view = numpy_shim::reshape_view(array.layout, shape, fortran);
  if (!view) throw Unsupported(Reason::Arguments);
  return make_lazy(call.session().view(array, *view));
}

py::object reshaped(Call& call, const LazyArray& array, const ir::Dims& shape, char order) {
  const bool fortran = numpy_shim::is_fortran_order(array.layout, order);
  if (array.scalar) {
    // NumPy makes an array of a scalar first, and a scalar of a result without axes.
    if (numpy_shim::reshape_shape(array.layout, shape).empty()) return make_lazy(array.another());
    return reshaped_view(call, zero_d(call, array), shape, fortran);
  }
  if (order == 'K') throw Unsupported(Reason::Arguments);
  if (const std::optional<View> view = numpy_shim::reshape_view(array.layout, shape, fortran))
    return make_lazy(call.session().view(array, *view));
  const DType dtype = array.layout.dtype;
  return reshaped_view(
      call, call.session().copy(array, dtype, strides_for(array, dtype, fortran ? 'F' : 'C')),
      shape, fortran);
}

PyObject* reshape(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "reshape", args, kwargs, [&](Call& call, const LazyArray& array) {
    PyObject* order = nullptr;
    PyObject* shape = args;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
      if (PyUnicode_CompareWithASCIIString(key, "order") == 0)
        order = value;
      else
        throw Unsupported(Reason::Arguments);
    }
    if (PyTuple_GET_SIZE(args) == 0) throw Unsupported(Reason::Arguments);
    if (PyTuple_GET_SIZE(args) == 1) shape = PyTuple_GET_ITEM(args, 0);
    return reshaped(call, array, to_shape(shape), order_of(order, 'C'));
  });
}

PyObject* ravel(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "ravel", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [order] = parse<1>({"order"}, args, kwargs);
    const char letter = order_of(order, 'C');
    const bool view = letter != 'F' && numpy_shim::is_c_contiguous(array.layout);
    if (array.scalar || (!view && letter != 'C')) throw Unsupported(Reason::Arguments);
    if (view) return reshaped(call, array, {-1}, 'C');
    return make_lazy(call.session().reshaped_copy(array, {-1}, false));
  });
}

PyObject* flatten(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "flatten", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [order] = parse<1>({"order"}, args, kwargs);
    const char letter = order_of(order, 'C');
    if (letter == 'A' || letter == 'K') throw Unsupported(Reason::Arguments);
    return make_lazy(call.session().reshaped_copy(array, {-1}, letter == 'F'));
  });
}

PyObject* fill(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    return native_or(
               tracing_call(self),
               [&](Call& call) -> py::object {
                 call.enter();
                 const auto [value] = parse<1>({"value"}, args, kwargs);
                 if (!value || as_lazy(self)->array.scalar) throw Unsupported(Reason::Arguments);
                 if (!is_single(value)) throw Unsupported(Reason::Arguments);
                 assign(call, as_lazy(self)->array, value);
                 return py::none();
               },
               [&](Reason reason) {
                 return numpy_method(self, "fill", args, kwargs, reason, false);
               })
        .release()
        .ptr();
  });
}

PyObject* conjugate(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    if (PyTuple_GET_SIZE(args) || (kwargs && PyDict_GET_SIZE(kwargs)))
      return numpy_method(self, "conjugate", args, kwargs, Reason::Arguments).release().ptr();
    // As in ndarray.conj, a real array is its own conjugate; the ufunc would make int8 of bool.
    const LazyArray& array = as_lazy(self)->array;
    if (!ir::is_in(array.layout.dtype, ir::kComplex))
      return (array.scalar ? make_lazy(array.another()) : borrow(self)).release().ptr();
    PyObject* operands[] = {self};
    return call_ufunc(numpy_ufunc("conjugate"), operands).release().ptr();
  });
}

PyObject* on_real(PyObject* self, const char* name, Reason reason, PyObject* args,
                  PyObject* kwargs) {
  return guard([&] {
    const py::object real = force(self, reason);
    const py::object bound = steal(PyObject_GetAttrString(real.ptr(), name));
    return PyObject_Call(bound.ptr(), unwrap(args).ptr(), kwargs ? unwrap(kwargs).ptr() : nullptr);
  });
}
PyObject* item(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) > 0) return on_real(self, "item", Reason::Item, args, kwargs);
  return guard([&] {
    return PyObject_CallMethod(force_outcome(self, Reason::Item, false).ptr(), "item", nullptr);
  });
}
PyObject* tolist(PyObject* self, PyObject* args, PyObject* kwargs) {
  return on_real(self, "tolist", Reason::Tolist, args, kwargs);
}
PyObject* format(PyObject* self, PyObject* args, PyObject* kwargs) {
  return on_real(self, "__format__", Reason::Print, args, kwargs);
}
// Called as complex(x): not every NumPy scalar has a method __complex__.
PyObject* to_complex(PyObject* self, PyObject*, PyObject*) {
  return guard([&] {
    const py::object real = force_outcome(self, Reason::Complex, false);
    return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyComplex_Type), real.ptr());
  });
}
PyObject* to_bytes(PyObject* self, PyObject*, PyObject*) {
  return guard([&] {
    const py::object real = force(self, Reason::Array);
    return PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyBytes_Type), real.ptr());
  });
}
PyObject* round_scalar(PyObject* self, PyObject* args, PyObject* kwargs) {
  return on_real(self, "__round__", Reason::Float, args, kwargs);
}
PyObject* bytes_of_object(PyObject* self, PyObject* args, PyObject* kwargs) {
  return on_real(self, "__sizeof__", Reason::UnknownAttribute, args, kwargs);
}
PyObject* reduce_pickle(PyObject* self, PyObject* args, PyObject* kwargs) {
  return on_real(self, "__reduce__", Reason::Pickle, args, kwargs);
}

// Module `copy` keeps the order of the elements in memory; the default of the method is C order.
PyObject* module_copy(PyObject* self, PyObject*, PyObject*) {
  return copy(self, py::make_tuple("K").ptr(), nullptr);
}

PyObject* to_ndarray(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    force(self, Reason::Array);
    const py::object real = real_of(self);
    py::object array = PyArray_Check(real.ptr()) ? real : steal(PyArray_FROM_O(real.ptr()));
    const auto [dtype, copy] = parse<2>({"dtype", "copy"}, args, kwargs);
    if (dtype && dtype != Py_None)
      array = array.attr("astype")(borrow(dtype), py::arg("copy") = false);
    if (copy == Py_True && array.is(real)) array = array.attr("copy")();
    return array.release().ptr();
  });
}

PyObject* array_ufunc(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    if (PyTuple_GET_SIZE(args) < 3) {
      PyErr_SetString(PyExc_TypeError, "__array_ufunc__ takes a ufunc, a method and inputs");
      throw py::error_already_set();
    }
    PyObject* ufunc = PyTuple_GET_ITEM(args, 0);
    const std::string name = text_of(PyTuple_GET_ITEM(args, 1));
    const py::object inputs = steal(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
    PyObject** first = &PyTuple_GET_ITEM(inputs.ptr(), 0);
    if (name == "__call__")
      return answer_ufunc(ufunc, {first, static_cast<std::size_t>(PyTuple_GET_SIZE(inputs.ptr()))},
                          kwargs)
          .release()
          .ptr();
    const auto numpy_way = [&](Reason reason) {
      const py::object bound = steal(PyObject_GetAttr(ufunc, PyTuple_GET_ITEM(args, 1)));
      return numpy_call(bound.ptr(), inputs.ptr(), kwargs, reason, name != "at").release().ptr();
    };
    if (!tracing_call(self)) return numpy_way(Reason::NotNative);
    if (name == "at" || name == "accumulate") {
      const auto native = [&](Call& call) -> py::object {
        call.enter();
        if (name == "at") return combine_at(call, ufunc, inputs.ptr(), kwargs);
        const auto a = parse<4>({"array", "axis", "dtype", "out"}, inputs.ptr(), kwargs);
        return accumulate(call, ufunc, {a[0], a[1], a[2], a[3]});
      };
      return native_or(Call::active(), native,
                       [&](Reason reason) { return steal(numpy_way(reason)); })
          .release()
          .ptr();
    }
    if (name != "reduce") return numpy_way(Reason::NotNative);
    try {
      const auto a = parse<7>({"array", "axis", "dtype", "out", "keepdims", "initial", "where"},
                              inputs.ptr(), kwargs);
      const py::int_ zero(0);
      PyObject* axis = a[1] ? a[1] : zero.ptr();
      return call_reduce(ufunc, a[0], {axis, a[2], a[3], a[4], a[5], a[6]}).release().ptr();
    } catch (const Unsupported& unsupported) {
      return numpy_way(unsupported.reason());
    }
  });
}

// What NumPy's dispatchers call. Calls in any other form are left to NumPy, which words the error.
PyObject* array_function(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    const bool plain = (kwargs == nullptr || PyDict_GET_SIZE(kwargs) == 0) &&
                       PyTuple_GET_SIZE(args) == 4 && PyTuple_Check(PyTuple_GET_ITEM(args, 2)) &&
                       PyDict_Check(PyTuple_GET_ITEM(args, 3));
    PyObject* handler = array_function_handler();
    if (!plain || handler == nullptr)
      return numpy_method(self, "__array_function__", args, kwargs, Reason::Arguments, false)
          .release()
          .ptr();
    return PyObject_CallFunctionObjArgs(handler, PyTuple_GET_ITEM(args, 0),
                                        PyTuple_GET_ITEM(args, 1), PyTuple_GET_ITEM(args, 2),
                                        PyTuple_GET_ITEM(args, 3), nullptr);
  });
}

}  // namespace

std::vector<PyMethodDef> lazy_methods() {
  std::vector<PyMethodDef> rows = {
      row<sum>("sum", "As np.ndarray.sum."),
      row<prod>("prod", "As np.ndarray.prod."),
      row<min>("min", "As np.ndarray.min."),
      row<max>("max", "As np.ndarray.max."),
      row<any>("any", "As np.ndarray.any."),
      row<all>("all", "As np.ndarray.all."),
      row<argmin>("argmin", "As np.ndarray.argmin."),
      row<argmax>("argmax", "As np.ndarray.argmax."),
      row<copy>("copy", "As np.ndarray.copy."),
      row<astype>("astype", "As np.ndarray.astype."),
      row<transpose>("transpose", "As np.ndarray.transpose."),
      row<swapaxes>("swapaxes", "As np.ndarray.swapaxes."),
      row<squeeze>("squeeze", "As np.ndarray.squeeze."),
      row<reshape>("reshape", "As np.ndarray.reshape."),
      row<ravel>("ravel", "As np.ndarray.ravel."),
      row<flatten>("flatten", "As np.ndarray.flatten."),
      row<fill>("fill", "As np.ndarray.fill."),
      row<conjugate>("conj", "As np.ndarray.conj."),
      row<conjugate>("conjugate", "As np.ndarray.conjugate."),
      row<item>("item", "The element as a Python number; computes it."),
      row<tolist>("tolist", "Nested lists of Python numbers; computes them."),
      row<format>("__format__", "Format the value."),
      row<to_complex>("__complex__", "The value as a Python complex."),
      row<to_bytes>("__bytes__", "The memory as bytes."),
      row<round_scalar>("__round__", "Round the value, as its real type does."),
      row<bytes_of_object>("__sizeof__", "Bytes of the real object, as sys.getsizeof tells."),
      row<reduce_pickle>("__reduce__", "Pickle the value."),
      row<module_copy>("__copy__", "A copy."),
      row<module_copy>("__deepcopy__", "A copy."),
      row<to_ndarray>("__array__", "The value as np.ndarray; computes it."),
      row<array_ufunc>("__array_ufunc__", "NumPy's ufuncs come here."),
      row<array_function>("__array_function__", "NumPy's functions come here.")};
  const std::vector<PyMethodDef> others = position_methods();
  rows.insert(rows.end(), others.begin(), others.end());
  rows.push_back({nullptr, nullptr, 0, nullptr});
  return rows;
}

}  // namespace ufuse::pyext
