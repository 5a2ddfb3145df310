// See native_call.h.
#include "pyext/bind/numpy/native_call.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "codegen/runtime/threads.h"
#include "codegen/runtime/timeline.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/surface.h"
#include "numpy_shim/value_promotion.h"
#include "pyext/bind/call/containers.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/python_number.h"
#include "pyext/bind/numpy/repeated_call.h"
#include "pyext/bind/sites/callbacks.h"
#include "pyext/bind/sites/frames.h"
#include "pyext/bind/sites/others.h"

namespace ufuse::pyext {
namespace {

using tracer::Operand;

Operand weak_operand(PyObject* number) {
  Operand operand;
  operand.weak = weak_scalar(number);
  return operand;
}

// The value of an operand without axes, computed if need be.
ir::Scalar value_of(PyObject* object, DType dtype) {
  const py::object array = steal(PyArray_FROM_O(unwrap(object).ptr()));
  ir::Scalar bits;
  std::memcpy(bits.bits, PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())),
              ir::size_of(dtype));
  return ir::without_padding(bits, dtype);
}

[[noreturn]] void reject_array(PyObject* object) {
  if (!PyArray_CheckExact(object)) throw Unsupported(Reason::Subclass);
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  const bool plain = PyArray_ISALIGNED(array) && PyArray_ISNOTSWAPPED(array);
  throw Unsupported(plain ? Reason::Dtype : Reason::Layout);
}

void collect(PyObject* object, std::vector<PyObject*>& lazies) {
  ContainerWalk walk(object, Into::All);
  while (PyObject* inside = walk.next())
    if (is_lazy(inside)) lazies.push_back(inside);
}

// A result of NumPy's as traced code gets it. An array that was handed in becomes its lazy array
// again, a view of one becomes a lazy view, and a new array that nobody else holds becomes an array
// of the session. Anything else stays what it is.
class WrappedResult {
 public:
  WrappedResult(Call& call, const std::vector<PyObject*>& lazies) : call_(call), lazies_(lazies) {}

  py::object of(py::object result, int depth = 0) {
    PyObject* object = result.ptr();
    for (PyObject* lazy : lazies_)
      if (as_lazy(lazy)->real == object) return borrow(lazy);
    if (py::object copy = copy_of_callers(object)) return copy;
    if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return array(std::move(result));
    // Others look at this very object, and may change it.
    if (Py_REFCNT(object) > 1) return result;
    if (const auto it = containers_.find(object); it != containers_.end()) return it->second;
    const bool stays = depth == kMaxDepth || !any_inside(object, Into::Sequences, is_from_numpy);
    return stays ? result : container(std::move(result), depth);
  }

 private:
  static constexpr int kMaxDepth = 100;  // arrays in deeper containers stay real ones

  static bool is_from_numpy(PyObject* object) {
    return PyArray_Check(object) || PyArray_IsScalar(object, Generic);
  }

  // What traced code uses in the place of a container of the caller's; unset for any other object.
  py::object copy_of_callers(PyObject* object) const {
    return PyArray_CheckExact(object) || !Call::may_know(object) ? py::object()
                                                                 : call_.known(object);
  }

  py::object container(py::object result, int depth) {
    PyObject* object = result.ptr();
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    const bool is_list = PyList_CheckExact(object);
    py::object made = steal(is_list ? PyList_New(size) : PyTuple_New(size));
    containers_[object] = made;
    for (Py_ssize_t i = 0; i < size; ++i) {
      // Taken out of the container where nobody else has that, so that it holds no reference.
      py::object item = borrow(PySequence_Fast_GET_ITEM(object, i));
      if (Py_REFCNT(object) == 1) {
        Py_INCREF(Py_None);
        is_list ? PyList_SET_ITEM(object, i, Py_None) : PyTuple_SET_ITEM(object, i, Py_None);
        Py_DECREF(item.ptr());
      }
      PyObject* wrapped = of(std::move(item), depth + 1).release().ptr();
      is_list ? PyList_SET_ITEM(made.ptr(), i, wrapped) : PyTuple_SET_ITEM(made.ptr(), i, wrapped);
    }
    return made;
  }

  py::object array(py::object result);

  Call& call_;
  const std::vector<PyObject*>& lazies_;
  std::unordered_map<PyObject*, py::object> containers_;
};

py::object WrappedResult::array(py::object result) {
  PyObject* object = result.ptr();
  if (!is_supported_array(object)) return result;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  PyObject* base = PyArray_BASE(array);
  if (base != nullptr) {
    if (py::object view = view_of_known(call_, array)) return view;
    const bool own_base =
        PyArray_CheckExact(base) && Py_REFCNT(base) == 1 &&
        PyArray_CHKFLAGS(reinterpret_cast<PyArrayObject*>(base), NPY_ARRAY_OWNDATA);
    if (!own_base) return result;
  }
  if (Py_REFCNT(object) > 1) return result;
  return make_lazy(call_.session().adopt(layout_of(array), memory_of(object, PyArray_DATA(array)),
                                         PyArray_ISWRITEABLE(array), tracer::Role::Temporary),
                   object);
}

// Writes what is pending for real arrays in an object, which NumPy is about to read.
void write_pending(Call& call, PyObject* object) {
  std::vector<py::object> arrays;
  ContainerWalk walk(object, Into::All);
  while (PyObject* inside = walk.next())
    if (PyArray_Check(inside)) arrays.push_back(borrow(inside));
  for (const py::object& each : arrays)
    call.session().write_pending(byte_range(reinterpret_cast<PyArrayObject*>(each.ptr())));
}

// Whether a result gives its holder another way to the memory of arrays that the call was given. An
// array that the session has becomes a lazy view, and so is no such way.
bool may_look_at_memory(const Call& call, PyObject* object) {
  return is_shared_array(call, object) ? !is_supported_array(object) : gives_memory(object);
}

// While one lives, untraced code runs, which reads and writes memory by itself.
class InUntracedCode {
 public:
  explicit InUntracedCode(Call* call) : call_(call), before_(call && call->in_untraced_code()) {
    if (call_) call_->set_in_untraced_code(true);
  }
  ~InUntracedCode() {
    if (call_) call_->set_in_untraced_code(before_);
  }
  InUntracedCode(const InUntracedCode&) = delete;
  InUntracedCode& operator=(const InUntracedCode&) = delete;

 private:
  Call* call_;
  const bool before_;
};

// The result of a call that a recording repeats, as traced code gets it; unset: it is another than
// new arrays.
py::object result_of(Call& call, std::shared_ptr<const RepeatedCall> repeated,
                     std::span<const LazyArray> given, const py::object& result) {
  const std::vector<py::object> arrays = RepeatedCall::new_arrays(result.ptr());
  if (arrays.empty()) return {};
  const bool is_sequence = PyTuple_Check(result.ptr()) || PyList_Check(result.ptr());
  std::vector<LazyArray> made;
  py::list lazies;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    PyObject* real = is_sequence
                         ? PySequence_Fast_GET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i))
                         : result.ptr();
    auto* array = reinterpret_cast<PyArrayObject*>(arrays[i].ptr());
    const bool is_scalar = !PyArray_CheckExact(real);
    LazyArray& lazy = made.emplace_back(
        call.session().adopt(layout_of(array), memory_of(arrays[i].ptr(), PyArray_DATA(array)),
                             !is_scalar, tracer::Role::Temporary));
    lazy.scalar = is_scalar;
    lazies.append(make_lazy(lazy, real));
  }
  call.session().record_host_call(std::move(repeated), given, made);
  if (!is_sequence) return lazies[0];
  PyTypeObject* type = Py_TYPE(result.ptr());
  if (type == &PyList_Type) return lazies;
  if (type == &PyTuple_Type) return py::tuple(lazies);
  const py::object named = result.attr("_make")(lazies);
  call.holders().add(named.ptr());
  return named;
}

std::string name_of(PyObject* func) {
  py::object name = py::reinterpret_steal<py::object>(PyObject_GetAttrString(func, "__name__"));
  if (!name || !PyUnicode_Check(name.ptr())) {
    forget_exception();
    return Py_TYPE(func)->tp_name;
  }
  return text_of(name.ptr());
}

// Whether `out` is given by its place among the arguments of this function or method. Ufuncs hand
// it to __array_ufunc__ by its name.
bool has_out_in_its_place(std::string_view name, PyObject* args) {
  const auto place = numpy_shim::writes_of(name).out_place;
  return place && *place < PyTuple_GET_SIZE(args) && PyTuple_GET_ITEM(args, *place) != Py_None;
}

// Whether a function is given another one that it may call, which may do anything.
bool is_given_code(PyObject* args, PyObject* kwargs) {
  const auto is_code = [](PyObject* x) {
    return PyCallable_Check(x) && !PyType_Check(x) && !PyCFunction_Check(x) &&
           !PyObject_TypeCheck(x, &PyUFunc_Type);
  };
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
    if (is_code(PyTuple_GET_ITEM(args, i))) return true;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t at = 0;
  while (kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value))
    if (is_code(value)) return true;
  return false;
}

// Whether there is an object among some into which walks do not look, a named tuple or a deque for
// example: a lazy array may be in it.
bool may_hide_lazies(PyObject* objects) {
  return any_inside(objects, Into::All, [](PyObject* each) {
    return Holders::may_hold(each) && !is_plain_container(each) && each != numpy().no_value.ptr() &&
           !PyObject_TypeCheck(each, &PyUFunc_Type);
  });
}

}  // namespace

bool is_of_ufunc(PyObject* func) {
  if (PyObject_TypeCheck(func, &PyUFunc_Type)) return true;
  PyObject* owner = PyCFunction_Check(func) ? PyCFunction_GET_SELF(func) : nullptr;
  return owner != nullptr && PyObject_TypeCheck(owner, &PyUFunc_Type);
}

bool is_debugging() {
  static const bool everywhere = std::getenv("UFUSE_DEBUG") != nullptr;
  const Call* call = Call::active();
  return everywhere || (call != nullptr && call->debug());
}

Operand to_operand(Call& call, PyObject* object) {
  if (is_lazy(object) && tracing_call(object) == &call)
    return call.session().operand(as_lazy(object)->array);
  if (is_number(object)) {
    Operand operand = weak_operand(as_number(object)->value);
    operand.weak->number = as_number(object)->number;
    return operand;
  }
  if (is_plain_number(object)) return weak_operand(object);
  if (PyBool_Check(object)) {
    const ir::Scalar bits{{object == Py_True ? 1u : 0u, 0}};
    return {call.session().param(DType::Bool, bits), {DType::Bool, {}, {}}, true, std::nullopt};
  }
  // A constant of the program or the like: arguments are lazy arrays.
  if (const auto dtype = scalar_dtype(object)) {
    return {call.session().param(*dtype, scalar_bits(object, *dtype)),
            {*dtype, {}, {}},
            true,
            std::nullopt};
  }
  return call.session().operand(to_array(call, object));
}

LazyArray to_array(Call& call, PyObject* object) {
  if (is_lazy(object)) {
    if (tracing_call(object) == &call) return as_lazy(object)->array;
    const py::object real = real_of(object);
    if (const auto dtype = scalar_dtype(real.ptr()))
      return call.session().literal(*dtype, scalar_bits(real.ptr(), *dtype));
    if (!is_supported_array(real.ptr())) reject_array(real.ptr());
    return call.capture(reinterpret_cast<PyArrayObject*>(real.ptr()));
  }
  if (is_supported_array(object)) return call.capture(reinterpret_cast<PyArrayObject*>(object));
  if (PyArray_Check(object)) reject_array(object);
  if ((PyList_CheckExact(object) || PyTuple_CheckExact(object)) &&
      !any_inside(object, Into::Sequences, is_lazy) && !shows_memory(object)) {
    write_pending(call, object);
    const py::object made = py::reinterpret_steal<py::object>(PyArray_FROM_O(object));
    if (!made) PyErr_Clear();
    if (made && is_supported_array(made.ptr())) {
      auto* array = reinterpret_cast<PyArrayObject*>(made.ptr());
      // Numbers that the way of the call decides, like its constants.
      const auto varies = [](PyObject* inside) {
        return !is_plain_number(inside) && !PyBool_Check(inside) && !PyList_CheckExact(inside) &&
               !PyTuple_CheckExact(inside);
      };
      if (any_inside(object, Into::Sequences, varies)) call.session().mark_impure();
      return call.session().constant(layout_of(array), memory_of(made.ptr(), PyArray_DATA(array)));
    }
  }
  throw Unsupported(Reason::ForeignObject);
}

void check_promotion(Call& call, std::span<PyObject* const> objects,
                     std::span<const Operand> operands) {
  if (!call.session().version.promotes_by_value()) return;
  // Values are looked at only where the dtype depends on them. Then a recording is good for the
  // same Python numbers only, and a call in which other values decide is not recorded at all.
  std::vector<std::optional<ir::Scalar>> values(operands.size());
  std::optional<bool> alike = numpy_shim::promotes_alike(operands, values);
  for (std::size_t i = 0; !alike && i < operands.size(); ++i)
    if (const auto& weak = operands[i].weak) {
      seen_number(objects[i]);
      values[i] = numpy_shim::convert(*weak, numpy_shim::default_dtype(*weak));
    }
  if (!alike) alike = numpy_shim::promotes_alike(operands, values);
  if (!alike) {
    call.session().mark_impure();
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!operands[i].weak && operands[i].layout.shape.empty())
        values[i] = value_of(objects[i], operands[i].layout.dtype);
    alike = numpy_shim::promotes_alike(operands, values);
  }
  if (!alike.value()) throw Unsupported(Reason::Promotion);
}

py::object to_python(Call& call, LazyArray array) {
  if (call.take_immediate()) call.session().force({&array, 1});
  return make_lazy(std::move(array));
}

py::object to_python(Call& call, std::vector<LazyArray> arrays) {
  if (arrays.size() == 1) return to_python(call, std::move(arrays.front()));
  if (call.take_immediate()) call.session().force(arrays);
  py::tuple made(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) made[i] = make_lazy(std::move(arrays[i]));
  return made;
}

py::object view_of_known(Call& call, PyArrayObject* array) {
  const Layout layout = layout_of(array);
  auto storage = call.session().storage_at(tracer::byte_range(PyArray_DATA(array), layout));
  if (!storage) return {};
  LazyArray view;
  view.offset = static_cast<char*>(PyArray_DATA(array)) - static_cast<char*>(storage->memory.data);
  view.storage = std::move(storage);
  view.layout = layout;
  view.has_recipe = false;
  view.read_only = !PyArray_ISWRITEABLE(array);  // np.diagonal
  view.warned = warns_of_writes(array);
  return make_lazy(std::move(view), reinterpret_cast<PyObject*>(array));
}

bool gives_memory(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return !(PyArray_CheckExact(object) || is_plain_number(object) || object == Py_None ||
           PyArray_IsScalar(object, Generic) || PyBool_Check(object) || PyUnicode_Check(object) ||
           PyBytes_CheckExact(object) || PyType_Check(object) || PyTuple_Check(object) ||
           PyArray_DescrCheck(object) || PyModule_Check(object) ||
           PyExceptionInstance_Check(object) || PyObject_TypeCheck(object, &PyUFunc_Type) ||
           type == &PyList_Type || type == &PyDict_Type || type == &PySlice_Type ||
           is_lazy(object));
}

bool is_shared_array(const Call& call, PyObject* object) {
  if (!PyArray_CheckExact(object)) return false;
  return call.session().knows_part_of(byte_range(reinterpret_cast<PyArrayObject*>(object)));
}

namespace {

py::object unwrapped(PyObject* object, py::object (*real)(PyObject* lazy)) {
  if (is_lazy(object)) return real(object);
  std::vector<PyObject*> lazies;
  collect(object, lazies);
  if (lazies.empty()) return borrow(object);
  std::vector<LazyArray> pending;
  Call* call = Call::active();
  for (PyObject* lazy : lazies)
    if (call && tracing_call(lazy) == call) pending.push_back(as_lazy(lazy)->array);
  if (!pending.empty()) call->session().force(pending);
  return replaced(object, real);
}

}  // namespace

py::object unwrap(PyObject* object) { return unwrapped(object, real_of); }
py::object unwrap_to_read(PyObject* object) { return unwrapped(object, real_to_read); }

Reason reason_of(std::string_view id) {
  if (const auto reason = reason_named(id)) return *reason;
  throw py::value_error("no row of reasons.def: " + std::string(id));
}

py::object numpy_call(PyObject* func, PyObject* args, PyObject* kwargs, Reason reason, bool pure) {
  Call* call = Call::active();
  // Outside of traced calls: a call that is made inside is not recorded for somebody else.
  std::optional<Call::Aside> aside;
  if (call == nullptr) aside.emplace();
  std::vector<PyObject*> lazies;
  collect(args, lazies);
  if (kwargs) collect(kwargs, lazies);
  std::vector<py::object> held;  // real arrays may take their places
  PyObject* out = kwargs ? PyDict_GetItemString(kwargs, "out") : nullptr;
  const std::string name = name_of(func);
  pure &= (out == nullptr || out == Py_None) && !has_out_in_its_place(name, args) &&
          !is_given_code(args, kwargs) && !(call && shows_memory(args, kwargs)) &&
          !may_hide_lazies(args) && !(kwargs && may_hide_lazies(kwargs));
  std::vector<LazyArray> given;
  const auto repeated = call && pure && !call->in_untraced_code()
                            ? RepeatedCall::of(*call, func, args, kwargs, given)
                            : nullptr;
  if (call) {
    call->record(tracer::Event::Kind::NumpyCall, reason, name, repeated != nullptr);
    if (call->in_untraced_code()) {  // nothing is pending
      const py::object values = unwrap(args), named = kwargs ? unwrap(kwargs) : py::object();
      return steal(PyObject_Call(func, values.ptr(), named.ptr()));
    }
    if (!pure) {
      for (PyObject* lazy : lazies) held.push_back(borrow(lazy));
      call->holders().add_if_lazy(func);  // a partial, for example
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)
        call->holders().add_if_lazy(PyTuple_GET_ITEM(args, i));
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &key, &value);)
        call->holders().add_if_lazy(value);
      call->session().flush();
      call->share_containers();
    }
    write_pending(*call, args);
    if (kwargs) write_pending(*call, kwargs);
  }
  const auto real = pure ? unwrap_to_read : unwrap;  // what is not pure may keep them
  const py::object real_args = real(args);
  const py::object real_kwargs = kwargs ? real(kwargs) : py::object();
  py::object result;
  {
    const InUntracedCode untraced(pure ? nullptr : call);
    const NumPyComputes computes(repeated != nullptr);
    if (call) call->session().prune_computed();
    std::optional<RealVariables> variables;
    if (call && !pure) variables.emplace(*call);
    codegen::Threads::leave_cores();
    const codegen::Timed timed([&] {
      return codegen::Slice{codegen::Slice::Kind::Interruption, name,
                            std::string(sentence_of(reason))};
    });
    result = steal(PyObject_Call(func, real_args.ptr(), real_kwargs.ptr()));
  }
  if (!call || Call::active() != call) return result;
  call->session().prune_soon();  // arguments may have been handed over by their last holder
  if (!pure) {
    call->session().flush();  // what was recorded during the call, by an iterator or a callback
    call->session().forget_memory();
    call->share_containers();
  }
  const auto looks = [&](PyObject* object) { return may_look_at_memory(*call, object); };
  if (repeated) {
    if (py::object made = result_of(*call, repeated, given, result)) return made;
    call->session().mark_impure();
  }
  if (!lazies.empty() && any_inside(result.ptr(), Into::All, looks))
    call->session().write_at_once();
  return WrappedResult(*call, lazies).of(std::move(result));
}

py::object numpy_call(PyObject* func, std::initializer_list<PyObject*> args, Reason reason,
                      bool pure) {
  py::tuple packed(args.size());
  std::size_t i = 0;
  for (PyObject* arg : args) packed[i++] = borrow(arg);
  return numpy_call(func, packed.ptr(), nullptr, reason, pure);
}

}  // namespace ufuse::pyext
