// The operators of lazy arrays: arithmetic, powers, comparisons, and conversions to Python's bool,
// int and float.
#include <array>

#include "numpy_shim/operators.h"
#include "numpy_shim/placement.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/ufunc_registry.h"

namespace ufuse::pyext {

PyObject* operator_function(const char* name) {
  // Not initialised here: while C++ initialises a static variable, other threads wait for it.
  // Importing may hand Python's lock to one of them, and both would wait for ever.
  static PyObject* module = nullptr;
  if (module == nullptr) module = PyImport_ImportModule("operator");
  PyObject* function = PyObject_GetAttrString(module, name);
  Py_XDECREF(function);  // the module keeps it
  return function;
}

namespace {

struct UnaryOperator {
  int slot;
  const char *ufunc, *function;
};
constexpr std::array kUnary = {
    UnaryOperator{Py_nb_negative, "negative", "neg"},
    UnaryOperator{Py_nb_positive, "positive", "pos"},
    UnaryOperator{Py_nb_absolute, "absolute", "abs"},
    UnaryOperator{Py_nb_invert, "invert", "invert"},
};

template <std::size_t I>
PyObject* binary(PyObject* a, PyObject* b) {
  return guard([&] {
    static PyObject* const ufunc = numpy_ufunc(kBinary[I].ufunc);
    static PyObject* const function = operator_function(kBinary[I].function);
    PyObject* args[] = {a, b};
    const std::array temporaries = {is_temporary(a), is_temporary(b)};
    return call_ufunc(ufunc, args, nullptr, function, temporaries).release().ptr();
  });
}

template <std::size_t I>
PyObject* unary(PyObject* a) {
  return guard([&] {
    static PyObject* const ufunc = numpy_ufunc(kUnary[I].ufunc);
    static PyObject* const function = operator_function(kUnary[I].function);
    PyObject* args[] = {a};
    return call_ufunc(ufunc, args, nullptr, function).release().ptr();
  });
}

PyObject* divide_with_remainder(PyObject* a, PyObject* b) {
  return guard([&] {
    static PyObject* const builtin = PyDict_GetItemString(PyEval_GetBuiltins(), "divmod");
    PyObject* args[] = {a, b};
    return call_ufunc(numpy_ufunc("divmod"), args, nullptr, builtin).release().ptr();
  });
}

// Of an array, which is changed in place. For a NumPy scalar `a += b` is `a = a + b`.
py::object call_in_place(PyObject* ufunc, std::span<PyObject* const> args, PyObject* numpy,
                         std::span<PyObject* const> numpy_args) {
  return native_or(
      tracing_call(args[0]),
      [&](Call& call) {
        call.enter();
        std::vector<tracer::Operand> operands;
        for (PyObject* arg : args) operands.push_back(to_operand(call, arg));
        numpy_shim::check_complex_product(call.session().version, describe_ufunc(ufunc).name,
                                          operands, true);
        check_promotion(call, args, operands);
        prepare_block_call(call, describe_ufunc(ufunc), args, operands, {}, args.first(1));
        LazyArray result = std::move(call.session().call(describe_ufunc(ufunc), operands).front());
        check_target(call, result, args[0]);
        const bool immediate = call.take_immediate();
        py::object written = write_into(call, std::move(result), args[0], true);
        if (immediate) call.session().force({&as_lazy(args[0])->array, 1});
        return written;
      },
      [&](Reason reason) {
        py::tuple packed(numpy_args.size());
        for (std::size_t i = 0; i < numpy_args.size(); ++i)
          packed[i] = borrow(plain_number(numpy_args[i]));
        return numpy_call(numpy, packed.ptr(), nullptr, reason, false);
      });
}

template <std::size_t I>
PyObject* in_place(PyObject* a, PyObject* b) {
  return guard([&] {
    static PyObject* const ufunc = numpy_ufunc(kBinary[I].ufunc);
    static PyObject* const function = operator_function(kBinary[I].in_place);
    PyObject* args[] = {a, b};
    if (as_lazy(a)->array.scalar) return call_ufunc(ufunc, args, nullptr, function).release().ptr();
    return call_in_place(ufunc, args, function, args).release().ptr();
  });
}

// Whether NumPy goes by the value of this exponent, a lazy scalar or array without axes.
bool decided_by_value(PyObject* base, PyObject* exponent) {
  return numpy().version.powers_by_value() && is_lazy(base) && is_lazy(exponent) &&
         as_lazy(exponent)->array.layout.shape.empty();
}

// An exponent that is one real number; unset for anything else.
std::optional<numpy_shim::Exponent> exponent_of(PyObject* object) {
  numpy_shim::Exponent exponent;
  if (PyLong_Check(object)) {
    int overflow = 0;
    exponent.value = static_cast<double>(PyLong_AsLongAndOverflow(object, &overflow));
    if (overflow != 0) return std::nullopt;
    exponent.is_python = PyLong_CheckExact(object);
  } else if (PyFloat_Check(object)) {  // np.float64 too
    exponent.value = PyFloat_AS_DOUBLE(object);
    exponent.is_float = true;
    exponent.is_python = PyFloat_CheckExact(object);
  } else if (const auto dtype = scalar_dtype(object); dtype && ir::is_in(*dtype, ir::kReal)) {
    exponent.value = PyFloat_AsDouble(object);
    exponent.is_float = ir::is_in(*dtype, ir::kFloat);
    if (PyErr_Occurred()) PyErr_Clear();
  } else {
    return std::nullopt;
  }
  return exponent;
}

// The ufunc that an array's operator calls in the place of `power`; null: there is none.
const char* power_shortcut(PyObject* base, PyObject* exponent) {
  if (is_number(exponent)) {
    if (Call* call = Call::active()) call->numbers().saw_exponent(as_number(exponent)->number);
    exponent = as_number(exponent)->value;
  }
  if (!is_lazy(base) || as_lazy(base)->array.scalar) return nullptr;
  const auto number = exponent_of(exponent);
  return number ? numpy_shim::power_shortcut(numpy().version, as_lazy(base)->array.layout.dtype,
                                             *number)
                : nullptr;
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) {
  return guard([&] {
    if (modulo != Py_None) return borrow(Py_NotImplemented).release().ptr();
    PyObject* args[] = {a, b};
    PyObject* pow = operator_function("pow");
    // NumPy is asked where it needs the value of a lazy exponent, too.
    const char* shortcut = power_shortcut(a, b);
    if (decided_by_value(a, b) || (shortcut && shortcut == numpy_shim::kPowerByNumpy))
      return numpy_call(pow, {plain_number(a), plain_number(b)}, Reason::Promotion, true)
          .release()
          .ptr();
    if (shortcut) return call_ufunc(numpy_ufunc(shortcut), {args, 1}).release().ptr();
    return call_ufunc(numpy_ufunc("power"), args, nullptr, pow).release().ptr();
  });
}

PyObject* power_in_place(PyObject* a, PyObject* b, PyObject* modulo) {
  if (as_lazy(a)->array.scalar) return power(a, b, modulo);
  return guard([&] {
    PyObject* args[] = {a, b};
    if (decided_by_value(a, b))
      return numpy_call(operator_function("ipow"), {a, b}, Reason::Promotion, false)
          .release()
          .ptr();
    const char* shortcut = power_shortcut(a, b);
    if (shortcut && shortcut != numpy_shim::kPowerByNumpy)
      return call_in_place(numpy_ufunc(shortcut), {args, 1}, operator_function("ipow"), args)
          .release()
          .ptr();
    return call_in_place(numpy_ufunc("power"), args, operator_function("ipow"), args)
        .release()
        .ptr();
  });
}

PyObject* matmul(PyObject* a, PyObject* b) {
  return guard([&] {
    return numpy_call(operator_function("matmul"), {a, b}, Reason::GeneralizedUfunc, true)
        .release()
        .ptr();
  });
}

PyObject* matmul_in_place(PyObject* a, PyObject* b) {
  return guard([&] {
    return numpy_call(operator_function("imatmul"), {a, b}, Reason::GeneralizedUfunc, false)
        .release()
        .ptr();
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  const Comparison& row = kComparisons[op];
  return guard([&] {
    PyObject* args[] = {a, b};
    return call_ufunc(numpy_ufunc(row.ufunc), args, nullptr, operator_function(row.function))
        .release()
        .ptr();
  });
}

// NumPy warns that the imaginary part is lost. A replay would not, so such a call is not recorded.
py::object real_number(PyObject* self, Reason reason) {
  const bool complex = ir::is_in(as_lazy(self)->array.layout.dtype, ir::kComplex);
  return complex ? force(self, reason) : force_outcome(self, reason, false);
}

int truth(PyObject* self) {
  return guard([&] { return PyObject_IsTrue(force_outcome(self, Reason::Bool, true).ptr()); }, -1);
}
PyObject* to_int(PyObject* self) {
  return guard([&] { return PyNumber_Long(real_number(self, Reason::Int).ptr()); });
}
PyObject* to_float(PyObject* self) {
  return guard([&] { return PyNumber_Float(real_number(self, Reason::Float).ptr()); });
}
PyObject* to_index(PyObject* self) {
  return guard([&] { return PyNumber_Index(force_outcome(self, Reason::Index, false).ptr()); });
}

template <std::size_t... I>
void add_unary_slots(std::vector<PyType_Slot>& slots, std::index_sequence<I...>) {
  (slots.push_back({kUnary[I].slot, reinterpret_cast<void*>(unary<I>)}), ...);
}

}  // namespace

void add_number_slots(std::vector<PyType_Slot>& slots) {
  each_operator([&]<std::size_t I>() {
    slots.push_back({kBinary[I].slot, reinterpret_cast<void*>(binary<I>)});
    slots.push_back({kBinary[I].in_place_slot, reinterpret_cast<void*>(in_place<I>)});
  });
  add_unary_slots(slots, std::make_index_sequence<kUnary.size()>());
  slots.insert(slots.end(),
               {{Py_nb_divmod, reinterpret_cast<void*>(divide_with_remainder)},
                {Py_nb_power, reinterpret_cast<void*>(power)},
                {Py_nb_inplace_power, reinterpret_cast<void*>(power_in_place)},
                {Py_nb_matrix_multiply, reinterpret_cast<void*>(matmul)},
                {Py_nb_inplace_matrix_multiply, reinterpret_cast<void*>(matmul_in_place)},
                {Py_nb_bool, reinterpret_cast<void*>(truth)},
                {Py_nb_int, reinterpret_cast<void*>(to_int)},
                {Py_nb_float, reinterpret_cast<void*>(to_float)},
                {Py_tp_richcompare, reinterpret_cast<void*>(compare)}});
}

PyType_Slot index_slot() { return {Py_nb_index, reinterpret_cast<void*>(to_index)}; }

}  // namespace ufuse::pyext
