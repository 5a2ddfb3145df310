// Methods of lazy arrays, and of ufuncs on them, that pick elements by positions or masks, write at
// positions, or carry values along an axis.
#include <optional>

#include "numpy_shim/take.h"
#include "pyext/bind/lazy/methods.h"
#include "pyext/bind/numpy/ufunc_registry.h"

namespace ufuse::pyext {
namespace {

using ir::Bounds;
using tracer::Operand;

std::optional<std::int64_t> axis_of(PyObject* axis) {
  if (axis == nullptr || axis == Py_None) return std::nullopt;
  return to_integer(axis);
}

Bounds mode_of(PyObject* mode) {
  if (mode == nullptr) return Bounds::Signed;
  if (!PyUnicode_Check(mode)) throw Unsupported(Reason::Arguments);
  const std::string name = text_of(mode);
  if (name == "raise") return Bounds::Signed;
  if (name == "wrap") return Bounds::Wrap;
  if (name == "clip") return Bounds::Clip;
  throw Unsupported(Reason::Arguments);
}

void reject_out(PyObject* out) {
  if (out && out != Py_None) throw Unsupported(Reason::Arguments);
}

// Positions as NumPy's C functions take them.
Operand positions_of(Call& call, PyObject* object) {
  if (!object) throw Unsupported(Reason::Arguments);
  return to_operand(call, object);
}

PyObject* take(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "take", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [indices, axis, out, mode] =
        parse<4>({"indices", "axis", "out", "mode"}, args, kwargs);
    reject_out(out);
    const Operand positions = positions_of(call, indices);
    return to_python(call, call.session().take(call.session().operand(array), positions,
                                               axis_of(axis), mode_of(mode)));
  });
}

PyObject* compress(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "compress", args, kwargs, [&](Call& call, const LazyArray& array) {
    const auto [condition, axis, out] = parse<3>({"condition", "axis", "out"}, args, kwargs);
    reject_out(out);
    const Operand mask = positions_of(call, condition);
    return to_python(call,
                     call.session().compress(call.session().operand(array), mask, axis_of(axis)));
  });
}

// Columns of one array, as in NumPy.
PyObject* nonzero(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, "nonzero", args, kwargs,
                [&](Call& call, const LazyArray& array) -> py::object {
                  parse<0>({}, args, kwargs);
                  const LazyArray rows = call.session().nonzero(call.session().operand(array));
                  const std::int64_t axes = rows.layout.shape[1];
                  py::tuple columns(static_cast<std::size_t>(axes));
                  for (std::int64_t a = 0; a < axes; ++a)
                    columns[static_cast<std::size_t>(a)] =
                        make_lazy(call.session().view(rows, numpy_shim::column(rows.layout, a)));
                  return columns;
                });
}

// The arguments as they are, for NumPy: it writes, at the positions before the one that it rejects.
PyObject* put(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    return native_or(
               tracing_call(self),
               [&](Call& call) -> py::object {
                 call.enter();
                 const auto [indices, values, mode] =
                     parse<3>({"indices", "values", "mode"}, args, kwargs);
                 const LazyArray& array = as_lazy(self)->array;
                 if (!values || array.scalar) throw Unsupported(Reason::Arguments);
                 const Operand positions = positions_of(call, indices);
                 const Operand value = assigned_value(call, array.layout.dtype, values);
                 call.session().put(array, positions, value, mode_of(mode));
                 if (call.take_immediate()) call.session().force({&array, 1});
                 return py::none();
               },
               [&](Reason reason) {
                 return numpy_method(self, "put", args, kwargs, reason, false);
               })
        .release()
        .ptr();
  });
}

template <const char* ufunc, const char* name>
PyObject* carried(PyObject* self, PyObject* args, PyObject* kwargs) {
  return method(self, name, args, kwargs, [&](Call& call, const LazyArray&) {
    const auto [axis, dtype, out] = parse<3>({"axis", "dtype", "out"}, args, kwargs);
    return accumulate(call, numpy_ufunc(ufunc), {self, axis, dtype, out}, true);
  });
}
constexpr char kAdd[] = "add", kCumsum[] = "cumsum";
constexpr char kMultiply[] = "multiply", kCumprod[] = "cumprod";

}  // namespace

py::object accumulate(Call& call, PyObject* ufunc, const AccumulateArgs& args, bool flat) {
  std::optional<DType> dtype;
  if (args.dtype && args.dtype != Py_None) {
    dtype = dtype_argument(args.dtype);
    if (!dtype) throw Unsupported(Reason::Dtype);
  }
  PyObject* out = args.out;
  if (out && PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1) out = PyTuple_GET_ITEM(out, 0);
  if (out == Py_None) out = nullptr;
  if (out && (!is_lazy(out) || tracing_call(out) != &call || as_lazy(out)->array.scalar))
    throw Unsupported(Reason::ForeignObject);
  if (!args.array) throw Unsupported(Reason::Arguments);
  const numpy_shim::Ufunc& described = describe_ufunc(ufunc);
  if (!described.of_numpy) call.enter_special();
  Operand operand = to_operand(call, args.array);
  if (operand.weak) throw Unsupported(Reason::Arguments);
  std::int64_t axis = 0;
  const bool all = args.axis == Py_None || (flat && args.axis == nullptr);
  // NumPy's methods take the elements of all axes; a ufunc's has only one axis.
  if (flat && (all || operand.layout.shape.empty())) {
    if (!all && to_integer(args.axis) != 0 && to_integer(args.axis) != -1)
      throw Unsupported(Reason::Shape);
    operand = call.session().flattened(operand);
  } else if (all) {
    if (operand.layout.shape.size() != 1) throw Unsupported(Reason::Arguments);
  } else if (args.axis) {
    axis = to_integer(args.axis);
  }
  // Without dtype=, the output's is what is carried along.
  if (out) {
    const DType written = as_lazy(out)->array.layout.dtype;
    if (dtype.value_or(operand.layout.dtype) != written) throw Unsupported(Reason::Arguments);
    dtype = written;
  }
  LazyArray result = call.session().accumulate(described, operand, axis, dtype);
  if (!out) return to_python(call, std::move(result));
  if (result.layout.shape != as_lazy(out)->array.layout.shape ||
      result.layout.dtype != as_lazy(out)->array.layout.dtype)
    throw Unsupported(Reason::Shape);
  const bool immediate = call.take_immediate();
  const py::object written = write_into(call, std::move(result), out, true);
  if (immediate) call.session().force({&as_lazy(out)->array, 1});
  return written;
}

py::object combine_at(Call& call, PyObject* ufunc, PyObject* args, PyObject* kwargs) {
  const auto [x, key, value] = parse<3>({"a", "indices", "b"}, args, nullptr);
  const bool has_keywords = kwargs && PyDict_GET_SIZE(kwargs) > 0;
  if (!key || has_keywords || !is_lazy(x) || tracing_call(x) != &call)
    throw Unsupported(Reason::Arguments);
  const LazyArray& array = as_lazy(x)->array;
  const numpy_shim::Ufunc& described = describe_ufunc(ufunc);
  if (array.scalar || described.nin != (value ? 2 : 1) || described.nout != 1)
    throw Unsupported(Reason::Arguments);
  if (!has_arrays(key)) throw Unsupported(Reason::AdvancedAssignment);
  std::optional<Operand> operand;
  if (value) operand = call.session().as_array(to_operand(call, value));
  // NumPy 1 promotes by the value of a number beside arrays.
  if (operand && call.session().version.promotes_by_value() &&
      array.layout.shape.empty() != operand->layout.shape.empty() &&
      array.layout.dtype != operand->layout.dtype)
    throw Unsupported(Reason::Promotion);
  const numpy_shim::Selection selection =
      call.session().select(array, key_of(call, key), tracer::Session::Use::Write);
  call.session().combine_at(array, selection, described, operand);
  if (call.take_immediate()) call.session().force({&array, 1});
  return py::none();
}

std::vector<PyMethodDef> position_methods() {
  return {row<take>("take", "As np.ndarray.take."),
          row<put>("put", "As np.ndarray.put."),
          row<compress>("compress", "As np.ndarray.compress."),
          row<nonzero>("nonzero", "As np.ndarray.nonzero."),
          row<carried<kAdd, kCumsum>>("cumsum", "As np.ndarray.cumsum."),
          row<carried<kMultiply, kCumprod>>("cumprod", "As np.ndarray.cumprod.")};
}

}  // namespace ufuse::pyext
