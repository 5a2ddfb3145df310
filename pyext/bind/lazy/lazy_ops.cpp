// Ufunc calls and reductions of lazy arrays.
#include "pyext/bind/lazy/lazy_ops.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "numpy_shim/layout.h"
#include "numpy_shim/operators.h"
#include "numpy_shim/placement.h"
#include "numpy_shim/promote.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/sites/variables.h"

namespace ufuse::pyext {
namespace {

using tracer::Operand;

struct Parsed {
  numpy_shim::UfuncOptions options;
  std::vector<PyObject*> outs;  // borrowed; lazy arrays of the call or null
};

bool share_memory(const tracer::Storage& a, const tracer::Storage& b) {
  return &a == &b || (a.memory && b.memory && a.bytes().overlaps(b.bytes()));
}

// Outputs that share memory are left to NumPy.
void check_outs(const std::vector<PyObject*>& outs) {
  for (std::size_t i = 0; i < outs.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (outs[i] && outs[k] &&
          share_memory(*as_lazy(outs[i])->array.storage, *as_lazy(outs[k])->array.storage))
        throw Unsupported(Reason::Arguments);
}

// The keywords that have a native form; throws Unsupported for all others.
Parsed parse(Call& call, const numpy_shim::Ufunc& ufunc, std::span<PyObject* const> args,
             PyObject* kwargs) {
  Parsed parsed;
  const auto inputs = static_cast<std::size_t>(ufunc.nin);
  if (args.size() < inputs || args.size() > inputs + static_cast<std::size_t>(ufunc.nout))
    throw Unsupported(Reason::Arguments);
  for (std::size_t i = inputs; i < args.size(); ++i) parsed.outs.push_back(args[i]);
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);) {
    const auto is = [&](const char* name) {
      return PyUnicode_CompareWithASCIIString(key, name) == 0;
    };
    if (is("out")) {
      if (value == Py_None) continue;
      if (!parsed.outs.empty()) throw Unsupported(Reason::Arguments);
      if (PyTuple_CheckExact(value))
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
          parsed.outs.push_back(PyTuple_GET_ITEM(value, i));
      else
        parsed.outs.push_back(value);
    } else if (is("where")) {
      if (value != Py_True) throw Unsupported(Reason::Arguments);
    } else if (is("dtype")) {
      if (value == Py_None) continue;
      parsed.options.dtype = dtype_argument(value);
      if (!parsed.options.dtype) throw Unsupported(Reason::Dtype);
    } else if (is("casting")) {
      if (!PyUnicode_Check(value)) throw Unsupported(Reason::Arguments);
      if (PyUnicode_CompareWithASCIIString(value, "unsafe") == 0)
        parsed.options.same_kind = false;
      else if (PyUnicode_CompareWithASCIIString(value, "same_kind") != 0)
        throw Unsupported(Reason::Arguments);
    } else if (is("order")) {
      if (!PyUnicode_Check(value) || PyUnicode_CompareWithASCIIString(value, "K") != 0)
        throw Unsupported(Reason::Arguments);
    } else if (!is("subok") || !PyBool_Check(value)) {
      throw Unsupported(Reason::Arguments);
    }
  }
  for (PyObject*& out : parsed.outs) {
    if (out == Py_None) out = nullptr;
    if (out == nullptr) continue;
    if (!is_lazy(out) || tracing_call(out) != &call || as_lazy(out)->array.scalar)
      throw Unsupported(Reason::ForeignObject);
  }
  check_outs(parsed.outs);
  return parsed;
}

thread_local PyObject* named_ufunc = nullptr;

// NumPy puts a scalar into an array to compare it with an object of another type. Its own
// references to that array, and those of the arguments on the way to operator_of_scalars, are all
// there are.
bool is_in_array_of_comparison(PyObject* object) {
  constexpr Py_ssize_t kReferences = 5;
  if (!PyArray_CheckExact(object) || Py_REFCNT(object) > kReferences) return false;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_NDIM(array) == 0 && PyArray_ISNUMBER(array);
}

py::object scalar_of_array(PyObject* object) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return steal(PyArray_ToScalar(PyArray_DATA(array), array));
}

// Throws Unsupported where a result cannot be written to its output; before any is written.
void check_written(Call& call, const std::vector<LazyArray>& results,
                   const std::vector<PyObject*>& outs, bool same_kind) {
  for (std::size_t i = 0; i < outs.size() && i < results.size(); ++i) {
    if (outs[i] == nullptr) continue;
    if (!follow_real(as_lazy(outs[i]))) throw Unsupported(Reason::Arguments);
    const LazyArray& target = as_lazy(outs[i])->array;
    const DType from = results[i].layout.dtype, to = target.layout.dtype;
    if (same_kind && !numpy_shim::can_cast_same_kind(from, to))
      throw Unsupported(Reason::Arguments);
    if (results[i].layout.shape != target.layout.shape && outs.size() > 1)
      throw Unsupported(Reason::Shape);
    if (!target.is_writeable()) throw Unsupported(Reason::ReadOnly);
    check_target(call, results[i], outs[i]);
  }
}

}  // namespace

void check_target(Call& call, const LazyArray& result, PyObject* out) {
  numpy_shim::check_output(call.session(), call.session().operand(result).node, result.layout,
                           as_lazy(out)->array.layout);
}

void prepare_block_call(Call& call, const numpy_shim::Ufunc& ufunc,
                        std::span<PyObject* const> inputs, std::vector<Operand>& operands,
                        const numpy_shim::UfuncOptions& options, std::span<PyObject* const> outs) {
  if (!numpy_shim::is_block_call(ufunc, operands, options)) return;
  ir::SmallVector<const Layout*, 4> outputs;
  for (PyObject* out : outs)
    if (out != nullptr) outputs.push_back(&as_lazy(out)->array.layout);
  numpy_shim::check_block_call(call.session().version, ufunc, operands, options, outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_lazy(inputs[i]) && tracing_call(inputs[i]) == &call)
      operands[i] = call.session().loop_operand(as_lazy(inputs[i])->array);
}

LazyArray zero_d(Call& call, const LazyArray& scalar) {
  LazyArray array = call.session().copy(scalar, scalar.layout.dtype, {});
  array.scalar = false;
  return array;
}

py::object as_array(PyObject* object) {
  if (is_lazy(object) ? !as_lazy(object)->array.scalar : !PyArray_IsScalar(object, Generic))
    return borrow(object);
  Call* call = is_lazy(object) ? tracing_call(object) : nullptr;
  if (call == nullptr) return steal(PyArray_FROM_O(unwrap(object).ptr()));
  return make_lazy(zero_d(*call, as_lazy(object)->array));
}

py::object write_into(Call& call, LazyArray result, PyObject* out, bool same_kind, bool alone) {
  if (!follow_real(as_lazy(out))) throw Unsupported(Reason::Arguments);
  const LazyArray& target = as_lazy(out)->array;
  if (same_kind && !numpy_shim::can_cast_same_kind(result.layout.dtype, target.layout.dtype))
    throw Unsupported(Reason::Arguments);
  if (result.layout.shape.size() > target.layout.shape.size()) throw Unsupported(Reason::Shape);
  const Operand value = call.session().operand(result);
  call.session().write_output(target, value,
                              result.storage.use_count() == 1 ? result.storage : nullptr, alone);
  return borrow(out);
}

NamedUfunc::NamedUfunc(PyObject* called)
    : before_(std::exchange(named_ufunc, Py_TYPE(called) == &PyUFunc_Type ? called : nullptr)) {}
NamedUfunc::~NamedUfunc() { named_ufunc = before_; }

ScalarOperator operator_of_scalars(PyObject* ufunc, std::span<PyObject* const> args,
                                   PyObject* kwargs) {
  if (std::exchange(named_ufunc, nullptr) == ufunc) return {};
  if (args.size() != 2 || (kwargs && PyDict_GET_SIZE(kwargs) > 0) || is_lazy(args[0])) return {};
  if (!(is_lazy(args[1]) ? as_lazy(args[1])->array.scalar : is_number(args[1]))) return {};
  if (is_in_array_of_comparison(args[0])) {
    for (const Comparison& row : kComparisons)
      if (numpy_ufunc(row.ufunc) == ufunc)
        return {operator_function(row.function), scalar_of_array(args[0])};
    return {};
  }
  if (!scalar_dtype(args[0])) return {};
  for (const BinaryOperator& row : kBinary)
    if (numpy_ufunc(row.ufunc) == ufunc) return {operator_function(row.function), borrow(args[0])};
  if (numpy_ufunc("power") == ufunc) return {operator_function("pow"), borrow(args[0])};
  return {};
}

py::object answer_ufunc(PyObject* ufunc, std::span<PyObject* const> args, PyObject* kwargs) {
  const ScalarOperator found = operator_of_scalars(ufunc, args, kwargs);
  if (found.function == nullptr) return call_ufunc(ufunc, args, kwargs);
  PyObject* both[] = {found.scalar.ptr(), args[1]};
  return call_ufunc(ufunc, both, kwargs, found.function);
}

py::object call_ufunc(PyObject* object, std::span<PyObject* const> args, PyObject* kwargs,
                      PyObject* numpy, std::array<bool, 2> temporaries) {
  const Passed passed(args.data(), args.size());
  return native_or(
      Call::active(),
      [&](Call& call) {
        const numpy_shim::Ufunc& ufunc = describe_ufunc(object);
        if (ufunc.name == "power" && args.size() > 1 && is_number(args[1]))
          call.numbers().saw_exponent(as_number(args[1])->number);
        const bool is_operator = numpy != nullptr;
        const bool scalars =
            is_operator && std::ranges::all_of(args, [](PyObject* arg) {
              return is_lazy(arg) ? as_lazy(arg)->array.scalar : !PyArray_Check(arg);
            });
        call.enter(scalars);
        if (!ufunc.of_numpy) call.enter_special();
        Parsed parsed = parse(call, ufunc, args, kwargs);
        const auto inputs = args.first(static_cast<std::size_t>(ufunc.nin));
        std::vector<Operand> operands;
        operands.reserve(inputs.size());
        std::array<LazyArray, 2> dying;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          PyObject* arg = inputs[i];
          if (scalars && (PyList_Check(arg) || PyTuple_Check(arg)))
            throw Unsupported(Reason::ForeignObject);
          if (i >= 2 || !temporaries[i]) {
            operands.push_back(to_operand(call, arg));
            continue;
          }
          dying[i] = is_lazy(arg) ? as_lazy(arg)->array : call.adopt_temporary(arg);
          operands.push_back(call.session().operand(dying[i]));
        }
        if (scalars) numpy_shim::check_scalar_operator(ufunc.name, operands);
        // Of a bool of Python's the complex number's operator makes the quotient, of NumPy's the
        // ufunc does; nodes do not tell the two apart.
        if (scalars && PyBool_Check(inputs[0]) &&
            ir::is_in(operands.back().layout.dtype, ir::kComplex))
          throw Unsupported(Reason::ScalarOperator);
        numpy_shim::check_complex_product(call.session().version, ufunc.name, operands,
                                          !parsed.outs.empty());
        check_promotion(call, inputs, operands);
        prepare_block_call(call, ufunc, inputs, operands, parsed.options, parsed.outs);
        const auto overwritten = numpy_shim::elided_operand(ufunc.name, operands, temporaries);
        if (overwritten && reuses_temporaries()) {
          // NumPy puts the operand that is written over first.
          PyObject* first = args[*overwritten];
          if (*overwritten == 1) {
            std::swap(operands[0], operands[1]);
            std::swap(dying[0], dying[1]);
          }
          if (numpy_shim::rounds_by_place(call.session().version, operands[0].layout.dtype)) {
            py::dict out;
            out["out"] = borrow(first);
            const py::tuple both = py::make_tuple(borrow(first), borrow(args[1 - *overwritten]));
            return numpy_call(object, both.ptr(), out.ptr(), Reason::Arguments, true);
          }
          parsed.options.overwritten = 0;
        }
        std::vector<LazyArray> results = call.session().call(ufunc, operands, parsed.options);
        if (parsed.options.overwritten) call.session().reuse_memory(results.front(), dying[0]);
        if (std::ranges::all_of(parsed.outs, [](PyObject* out) { return out == nullptr; }))
          return to_python(call, std::move(results));
        check_written(call, results, parsed.outs, parsed.options.same_kind);
        const bool immediate = call.take_immediate();
        const bool alone = results.size() == 1;
        if (!alone) call.session().show(results);
        py::list made;
        for (std::size_t i = 0; i < results.size(); ++i) {
          PyObject* out = i < parsed.outs.size() ? parsed.outs[i] : nullptr;
          made.append(
              out ? write_into(call, std::move(results[i]), out, parsed.options.same_kind, alone)
                  : make_lazy(results[i]));
          if (immediate && is_lazy(made[i].ptr()))
            call.session().force({&as_lazy(made[i].ptr())->array, 1});
        }
        return results.size() == 1 ? py::object(made[0]) : py::object(py::tuple(made));
      },
      [&](Reason reason) {
        py::tuple packed(args.size());
        // The call would be repeated with these very numbers.
        for (std::size_t i = 0; i < args.size(); ++i) packed[i] = borrow(seen_number(args[i]));
        const int nin = reinterpret_cast<PyUFuncObject*>(object)->nin;
        const bool pure = args.size() <= static_cast<std::size_t>(nin);
        return numpy_call(numpy ? numpy : object, packed.ptr(), kwargs, reason, pure);
      });
}

std::int64_t to_integer(PyObject* object) {
  if (PyBool_Check(object) || !PyIndex_Check(object) || PyArray_Check(object))
    throw Unsupported(Reason::Arguments);
  if (is_lazy(object)) {
    const LazyArray& array = as_lazy(object)->array;
    if (!array.scalar || array.layout.dtype == DType::Bool) throw Unsupported(Reason::Arguments);
  }
  const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
  if (value == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    throw Unsupported(Reason::Arguments);
  }
  return value;
}

std::optional<DType> dtype_argument(PyObject* object) {
  const bool is_array = is_lazy(object) && !as_lazy(object)->array.scalar;
  return is_array ? std::nullopt : dtype_from_object(object);
}

ir::Dims to_dims(PyObject* object) {
  if (!PyTuple_Check(object) && !PyList_Check(object)) return {to_integer(object)};
  ir::Dims dims;
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < size; ++i)
    dims.push_back(to_integer(PySequence_Fast_GET_ITEM(object, i)));
  return dims;
}

ir::Dims to_shape(PyObject* object) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  if (!PyArray_CheckExact(object) || PyArray_NDIM(array) != 1) return to_dims(object);
  return to_dims(steal(PyArray_ToList(array)).ptr());
}

std::optional<ir::Dims> to_axes(PyObject* object) {
  if (object == nullptr || object == Py_None) return std::nullopt;
  if (PyList_Check(object)) throw Unsupported(Reason::Arguments);
  return to_dims(object);
}

py::object call_reduce(PyObject* ufunc, PyObject* x, const ReduceArgs& args) {
  return native_or(
      Call::active(),
      [&](Call& call) {
        call.enter();
        if (args.method) call.enter_method(args.method);
        numpy_shim::ReduceOptions options;
        options.axes = to_axes(args.axis);
        options.in_tuple = args.axis != nullptr && PyTuple_Check(args.axis);
        if (args.keepdims && args.keepdims != numpy().no_value.ptr()) {
          if (!PyLong_Check(args.keepdims)) throw Unsupported(Reason::Arguments);  // a bool is one
          options.keepdims = PyObject_IsTrue(args.keepdims) == 1;
        }
        if (args.dtype && args.dtype != Py_None) {
          options.dtype = dtype_argument(args.dtype);
          if (!options.dtype) throw Unsupported(Reason::Dtype);
        }
        PyObject* out = args.out;
        if (out && PyTuple_CheckExact(out) && PyTuple_GET_SIZE(out) == 1)
          out = PyTuple_GET_ITEM(out, 0);
        if (out == Py_None) out = nullptr;
        if (out && (!is_lazy(out) || tracing_call(out) != &call))
          throw Unsupported(Reason::ForeignObject);
        if (args.initial && args.initial != numpy().no_value.ptr()) {
          if (args.initial == Py_None) throw Unsupported(Reason::Arguments);
          options.initial = to_operand(call, args.initial);
        }
        if (args.where && args.where != Py_True && args.where != numpy().no_value.ptr())
          options.where = to_operand(call, args.where);
        const Operand operand = to_operand(call, x);
        if (out) options.out = as_lazy(out)->array.layout.dtype;
        LazyArray result = call.session().reduce(describe_ufunc(ufunc).name, operand, options);
        if (!out) return to_python(call, std::move(result));
        if (result.layout.shape != as_lazy(out)->array.layout.shape)
          throw Unsupported(Reason::Shape);
        const bool immediate = call.take_immediate();
        const py::object written = write_into(call, std::move(result), out, true);
        if (immediate) call.session().force({&as_lazy(out)->array, 1});
        return written;
      },
      [&](Reason reason) {
        py::dict kwargs;
        kwargs["axis"] = args.axis ? borrow(args.axis) : py::none();
        const auto set = [&](const char* name, PyObject* value) {
          if (value) kwargs[name] = borrow(value);
        };
        set("dtype", args.dtype);
        set("out", args.out);
        set("keepdims", args.keepdims);
        set("initial", args.initial);
        set("where", args.where);
        // A method is called as a method, so that a warning names the same line.
        const py::object function =
            args.name ? borrow(x).attr("__class__").attr(args.name)
                      : py::object(steal(PyObject_GetAttrString(ufunc, "reduce")));
        return numpy_call(function.ptr(), py::make_tuple(borrow(x)).ptr(), kwargs.ptr(), reason,
                          true);
      });
}

py::object call_arg_reduce(bool largest, PyObject* x, PyObject* axis, PyObject* out,
                           PyObject* keepdims) {
  return native_or(
      Call::active(),
      [&](Call& call) {
        call.enter();
        if (out && out != Py_None) throw Unsupported(Reason::Arguments);
        std::optional<std::int64_t> at;
        if (axis && axis != Py_None) at = to_integer(axis);
        const bool is_given = keepdims && keepdims != numpy().no_value.ptr();
        if (is_given && !PyLong_Check(keepdims)) throw Unsupported(Reason::Arguments);
        const bool keep = is_given && PyObject_IsTrue(keepdims) == 1;
        return to_python(call, call.session().arg_reduce(largest, to_operand(call, x), at, keep));
      },
      [&](Reason reason) {
        py::dict kwargs;
        if (axis) kwargs["axis"] = borrow(axis);
        if (out) kwargs["out"] = borrow(out);
        if (keepdims) kwargs["keepdims"] = borrow(keepdims);
        const py::object function = numpy().module.attr(largest ? "argmax" : "argmin");
        return numpy_call(function.ptr(), py::make_tuple(borrow(x)).ptr(), kwargs.ptr(), reason,
                          true);
      });
}

}  // namespace ufuse::pyext
