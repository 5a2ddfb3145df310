// The type `ufuse.ndarray` itself: how objects are made and freed, attributes that are known
// without computing, and conversions, for which the value is computed.
#include "pyext/bind/lazy/lazy_array.h"

#include <structmember.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>

#include "numpy_shim/layout.h"
#include "numpy_shim/surface.h"
#include "numpy_shim/view.h"
#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {
namespace {

PyTypeObject *the_base = nullptr, *the_array_type = nullptr;
std::array<PyTypeObject*, ir::kDTypeCount> the_scalar_types{};

PyTypeObject* type_for(const LazyArray& array) {
  return array.scalar ? the_scalar_types[static_cast<std::size_t>(array.layout.dtype)]
                      : the_array_type;
}

py::object tuple_of(const ir::Dims& dims) {
  py::tuple made(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) made[i] = dims[i];
  return made;
}

std::int64_t size_of(const ir::Dims& shape) {
  std::int64_t n = 1;
  for (std::int64_t d : shape) n *= d;
  return n;
}

bool has_layout(PyArrayObject* array, const Layout& layout) {
  const std::size_t ndim = layout.shape.size();
  if (static_cast<std::size_t>(PyArray_NDIM(array)) != ndim) return false;
  const npy_intp *shape = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
  const std::int64_t *known = layout.shape.data(), *known_strides = layout.strides.data();
  for (std::size_t i = 0; i < ndim; ++i)
    if (shape[i] != known[i] || strides[i] != known_strides[i]) return false;
  return PyArray_TYPE(array) == type_number(layout.dtype) && PyArray_ISNOTSWAPPED(array);
}

// What `known` gives for the layout; where that is not known, what the real array says.
template <typename Known>
PyObject* of_layout(PyObject* self, const char* name, Known known) {
  return guard([&]() -> PyObject* {
    LazyObject* lazy = as_lazy(self);
    if (!follow_real(lazy)) return PyObject_GetAttrString(lazy->real, name);
    return known(lazy->array.layout);
  });
}

std::size_t on_stack = 0;  // lazy objects that are left on Python's stack

void dealloc(PyObject* self) {
  LazyObject* lazy = as_lazy(self);
  if (lazy->weakrefs) PyObject_ClearWeakRefs(self);
  lazy->next->previous = lazy->previous;
  lazy->previous->next = lazy->next;
  if (lazy->stacked != nullptr) --on_stack;
  lazy->array.~LazyArray();
  Py_XDECREF(lazy->real);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

// The garbage collector never tracks lazy arrays themselves: they refer to no other objects. But
// their type has Py_TPFLAGS_HAVE_GC, and so containers that hold one are tracked, and
// `holders_of` finds these.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return 0;
}

LazyObject* ring() {
  static LazyObject* begin = [] {
    auto* made = static_cast<LazyObject*>(std::calloc(1, sizeof(LazyObject)));
    if (made == nullptr) throw std::bad_alloc();
    made->next = made->previous = made;
    return made;
  }();
  return begin;
}

// Those of the active call that have no value yet, and whose value is lost when the call ends.
py::list pending_arrays() {
  py::list found;
  for (LazyObject* each = ring()->next; each != ring(); each = each->next) {
    auto* object = reinterpret_cast<PyObject*>(each);
    if (!each->real && each->array.storage->value && tracing_call(object) != nullptr)
      found.append(borrow(object));
  }
  return found;
}

// Those of calls that have ended; each is told of once.
py::list arrays_left_behind() {
  py::list found;
  for (LazyObject* each = ring()->next; each != ring(); each = each->next) {
    if (each->left_behind || each->array.storage->session != nullptr) continue;
    if (!each->real && each->array.storage->value) continue;  // never computed: interrupted
    each->left_behind = true;
    found.append(borrow(reinterpret_cast<PyObject*>(each)));
  }
  return found;
}

// Puts the real object into the place of an item, where it is known.
void replace(PyObject*& place, const py::dict& real) {
  if (place == nullptr) return;
  const py::object address = steal(PyLong_FromVoidPtr(place));
  PyObject* replacement = PyDict_GetItem(real.ptr(), address.ptr());
  if (replacement != nullptr) Py_DECREF(std::exchange(place, Py_NewRef(replacement)));
}

// Tuples and frozen sets cannot be changed in Python. But one that a traced call has made, with
// lazy arrays in it, has not been seen by anybody else. C code that fills a list or tuple may still
// be at it, as where `tuple` runs a generator: then some items are not there yet. The place of an
// item in a set follows from its hash, which a lazy scalar has from the real one.
void replace_items(py::handle container, const py::dict& real) {
  if (PyAnySet_Check(container.ptr())) {
    auto* set = reinterpret_cast<PySetObject*>(container.ptr());
    for (Py_ssize_t i = 0; i <= set->mask; ++i) replace(set->table[i].key, real);
    return;
  }
  for (Py_ssize_t i = 0; i < Py_SIZE(container.ptr()); ++i)
    replace(PySequence_Fast_ITEMS(container.ptr())[i], real);
}

PyObject* get_shape(PyObject* self, void*) {
  return of_layout(self, "shape",
                   [](const Layout& l) { return tuple_of(l.shape).release().ptr(); });
}
PyObject* get_strides(PyObject* self, void*) {
  return of_layout(self, "strides",
                   [](const Layout& l) { return tuple_of(l.strides).release().ptr(); });
}
PyObject* get_dtype(PyObject* self, void*) {
  return of_layout(self, "dtype",
                   [](const Layout& l) { return descr_of(l.dtype).release().ptr(); });
}
PyObject* get_ndim(PyObject* self, void*) {
  return of_layout(self, "ndim", [](const Layout& l) { return PyLong_FromSize_t(l.shape.size()); });
}
PyObject* get_size(PyObject* self, void*) {
  return of_layout(self, "size",
                   [](const Layout& l) { return PyLong_FromLongLong(size_of(l.shape)); });
}
PyObject* get_itemsize(PyObject* self, void*) {
  return of_layout(self, "itemsize",
                   [](const Layout& l) { return PyLong_FromSize_t(ir::size_of(l.dtype)); });
}
PyObject* get_nbytes(PyObject* self, void*) {
  return of_layout(self, "nbytes", [](const Layout& l) {
    return PyLong_FromLongLong(size_of(l.shape) * static_cast<std::int64_t>(ir::size_of(l.dtype)));
  });
}

PyObject* get_class(PyObject* self, void*) {
  PyObject* type = as_lazy(self)->array.scalar ? scalar_type(as_lazy(self)->array.layout.dtype)
                                               : reinterpret_cast<PyObject*>(&PyArray_Type);
  Py_INCREF(type);
  return type;
}

// The flags of an ndarray with this layout; no value is needed for them.
PyObject* get_flags(PyObject* self, void*) {
  return guard([&] {
    LazyObject* lazy = as_lazy(self);
    const LazyArray& array = lazy->array;
    if (Call* call = tracing_call(self); call && lazy->real) call->ask_flags();
    py::object like;
    if (lazy->real || array.scalar || array.storage->memory || !array.is_whole() || array.is_view) {
      static char nowhere[64];
      if (lazy->real || array.scalar || array.storage->memory)
        like = real_to_read(self);
      else
        like =
            array_on(array.layout, nowhere, array.storage->writeable && !array.read_only, nullptr);
    } else {
      like = array_on(array.layout, nullptr, true, nullptr);  // fresh memory, never touched
    }
    return PyObject_GetAttrString(like.ptr(), "flags");
  });
}

PyObject* get_base(PyObject* self, void*) {
  return guard([&] {
    const LazyArray& array = as_lazy(self)->array;
    if (array.scalar || (array.is_whole() && !array.is_view && !array.storage->memory))
      return py::none().release().ptr();
    force(self, Reason::UnknownAttribute, "base");
    return PyObject_GetAttrString(real_of(self).ptr(), "base");
  });
}

PyObject* get_T(PyObject* self, void*) {
  return guard([&] {
    Call* call = tracing_call(self);
    LazyObject* lazy = as_lazy(self);
    return native_or(
               lazy->array.scalar ? nullptr : call,
               [&](Call& c) {
                 return make_lazy(c.session().view(
                     lazy->array, numpy_shim::transpose(lazy->array.layout, std::nullopt)));
               },
               [&](Reason) { return steal(PyObject_GetAttrString(real_of(self).ptr(), "T")); })
        .release()
        .ptr();
  });
}

// The real or imaginary part of complex numbers.
PyObject* part_of(PyObject* self, ir::Op op, const char* name) {
  LazyObject* lazy = as_lazy(self);
  const LazyArray& array = lazy->array;
  const bool has_parts = ir::is_in(array.layout.dtype, ir::kComplex);
  return native_or(
             has_parts ? tracing_call(self) : nullptr,
             [&](Call& c) {
               c.enter();
               tracer::Session& session = c.session();
               return make_lazy(array.scalar
                                    ? session.part(array, op)
                                    : session.view(array, numpy_shim::part(array.layout, op)));
             },
             [&](Reason) {
               const py::object getattr = py::module_::import("builtins").attr("getattr");
               return numpy_call(getattr.ptr(), {self, py::str(name).ptr()}, Reason::MemoryView,
                                 true);
             })
      .release()
      .ptr();
}

PyObject* get_real(PyObject* self, void*) {
  return guard([&] {
    LazyObject* lazy = as_lazy(self);
    if (follow_real(lazy) && !ir::is_in(lazy->array.layout.dtype, ir::kComplex))
      return borrow(self).release().ptr();
    return part_of(self, ir::Op::RealPart, "real");
  });
}

PyObject* get_imag(PyObject* self, void*) {
  return guard([&] { return part_of(self, ir::Op::ImagPart, "imag"); });
}

// Attributes are set (shape, flat, real ...), deleted or refused on the real array. Afterwards the
// lazy one is a view of that array's memory.
int setattro(PyObject* self, PyObject* name, PyObject* value) {
  return guard(
      [&] {
        if (Call* call = tracing_call(self)) {
          call->record(tracer::Event::Kind::NumpyCall, Reason::UnknownAttribute, text_of(name));
          call->session().flush();
        }
        const py::object real = real_of(self);
        const py::object given = value ? unwrap(value) : py::object();
        if (PyObject_SetAttr(real.ptr(), name, given.ptr()) < 0) throw py::error_already_set();
        if (Call* call = tracing_call(self)) call->session().forget_memory();
        return 0;
      },
      -1);
}

// Any other attribute is taken from the real object, which has to be computed. A method is bound to
// the lazy object, and runs as a NumPy call when it is called.
PyObject* call_method(PyObject* bound, PyObject* args, PyObject* kwargs) {
  return guard([&] {
    PyObject* self = PyTuple_GET_ITEM(bound, 0);
    const std::string name = text_of(PyTuple_GET_ITEM(bound, 1));
    const bool pure = !numpy_shim::writes_of(name).argument;
    const py::object type = steal(get_class(self, nullptr));
    const py::object method = steal(PyObject_GetAttr(type.ptr(), PyTuple_GET_ITEM(bound, 1)));
    const py::object all = steal(PySequence_Concat(py::make_tuple(borrow(self)).ptr(), args));
    return numpy_call(method.ptr(), all.ptr(), kwargs, Reason::UnknownAttribute, pure)
        .release()
        .ptr();
  });
}
PyMethodDef kMethodDef = {"method",
                          reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_method)),
                          METH_VARARGS | METH_KEYWORDS, nullptr};

PyObject* no_attribute(PyTypeObject* type, PyObject* name) {
  return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'", type->tp_name,
                      name);
}

PyObject* getattro(PyObject* self, PyObject* name) {
  // The types of lazy scalars have the methods of arrays, and each type has special ones.
  if (as_lazy(self)->array.scalar ||
      (PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_')) {
    PyTypeObject* real = reinterpret_cast<PyTypeObject*>(steal(get_class(self, nullptr)).ptr());
    PyObject* of_real = _PyType_Lookup(real, name);
    if (of_real == nullptr) return no_attribute(real, name);
    if (Py_TYPE(of_real)->tp_descr_get == nullptr) return Py_NewRef(of_real);
  }
  PyObject* found = PyObject_GenericGetAttr(self, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  return guard([&]() -> PyObject* {
    py::error_already_set missing;  // takes the AttributeError
    const std::string text = text_of(name);
    // NumPy would read memory through these without asking, although values are pending for it.
    const bool protocol = text == "__array_interface__" || text == "__array_struct__";
    const py::object type = steal(get_class(self, nullptr));
    const py::object of_type =
        protocol ? py::object()
                 : py::reinterpret_steal<py::object>(PyObject_GetAttr(type.ptr(), name));
    if (!of_type) {
      forget_exception();
      return no_attribute(reinterpret_cast<PyTypeObject*>(type.ptr()), name);
    }
    // Class methods (float.fromhex) are bound to the type already.
    const bool binds = Py_TYPE(of_type.ptr())->tp_descr_get != nullptr;
    if (binds && PyCallable_Check(of_type.ptr()) && Call::active() && tracing_call(self)) {
      const py::tuple bound = py::make_tuple(borrow(self), borrow(name));
      return PyCFunction_New(&kMethodDef, bound.ptr());
    }
    const py::object getattr = py::module_::import("builtins").attr("getattr");
    return numpy_call(getattr.ptr(), {self, name}, Reason::UnknownAttribute, true).release().ptr();
  });
}

PyGetSetDef kAttributes[] = {
    {"shape", get_shape, nullptr, "Extents, as of np.ndarray.", nullptr},
    {"strides", get_strides, nullptr, "Bytes per step along each axis.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of axes.", nullptr},
    {"size", get_size, nullptr, "Number of elements.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"flags", get_flags, nullptr, "Memory layout, as NumPy would have it.", nullptr},
    {"base", get_base, nullptr, "The array whose memory this is a view of.", nullptr},
    {"T", get_T, nullptr, "The transposed view.", nullptr},
    {"real", get_real, nullptr, "The real part.", nullptr},
    {"imag", get_imag, nullptr, "The imaginary part.", nullptr},
    {"__class__", get_class, nullptr,
     "np.ndarray or the NumPy scalar type, so that isinstance works.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef kMembers[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(LazyObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyObject* repr(PyObject* self) {
  return guard([&] { return PyObject_Repr(force(self, Reason::Print).ptr()); });
}
PyObject* str(PyObject* self) {
  return guard([&] { return PyObject_Str(force(self, Reason::Print).ptr()); });
}
Py_hash_t hash(PyObject* self) {
  return guard([&] { return PyObject_Hash(force(self, Reason::Hash).ptr()); }, Py_hash_t{-1});
}

}  // namespace

std::vector<py::object> lazies_of_ended_calls() {
  std::vector<py::object> found;
  for (LazyObject* each = ring()->next; each != ring(); each = each->next) {
    if (!each->left_behind && each->array.storage->session == nullptr)
      found.push_back(borrow(reinterpret_cast<PyObject*>(each)));
  }
  return found;
}

// From Python 3.14 on the stack does not hold what has come onto it from a variable, and the
// variable has a real array now. So a reference is kept for the stack.
#if PY_VERSION_HEX >= 0x030E0000
constexpr bool kHeldForStack = true;
#else
constexpr bool kHeldForStack = false;
#endif

void leave_on_stack(const std::vector<py::object>& lazies, const Call* call) {
  for (const py::object& each : lazies) {
    LazyObject* lazy = as_lazy(each.ptr());
    if (lazy->stacked == nullptr) {
      ++on_stack;
      if (kHeldForStack) Py_INCREF(each.ptr());
    }
    lazy->stacked = call;
    lazy->left_behind = true;
  }
}

void take_from_stack(const Call* call) {
  if (on_stack == 0) return;
  std::vector<py::object> held;  // let go when the ring is not looked at any more
  for (LazyObject* each = ring()->next; each != ring(); each = each->next) {
    if (each->stacked != call) continue;
    --on_stack;
    each->stacked = nullptr;
    each->left_behind = false;
    if (kHeldForStack) held.push_back(steal(reinterpret_cast<PyObject*>(each)));
  }
}

bool any_on_stack() { return on_stack > 0; }

PyTypeObject* lazy_type() { return the_base; }

namespace {

// NumPy raises where such an array is made, and not where its values are used first. Arrays that
// are only described take no memory.
void check_size(const LazyArray& array) {
  static const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (array.layout.shape.size() > numpy().version.most_axes()) throw Unsupported(Reason::Size);
  if (!array.storage->value || array.is_view || array.storage->session->is_described()) return;
  auto bytes = static_cast<double>(ir::size_of(array.layout.dtype));
  for (std::int64_t n : array.layout.shape) bytes *= static_cast<double>(n);
  if (bytes > memory) throw Unsupported(Reason::Size);
}

}  // namespace

bool any_lazy() { return ring()->next != ring(); }

py::object make_lazy(LazyArray array, PyObject* real) {
  if (real == nullptr) check_size(array);
  LazyObject* lazy = PyObject_GC_New(LazyObject, type_for(array));
  if (lazy == nullptr) throw py::error_already_set();
  lazy->weakrefs = nullptr;
  lazy->next = ring()->next;
  lazy->previous = ring();
  lazy->next->previous = ring()->next = lazy;
  lazy->left_behind = false;
  lazy->stacked = nullptr;
  lazy->real = real;
  Py_XINCREF(real);
  new (&lazy->array) LazyArray(std::move(array));
  auto made = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(lazy));
  if (!lazy->array.scalar || !is_long(lazy->array.layout.dtype)) return made;
  if (Call* call = tracing_call(made.ptr())) call->session().mark_impure();
  return real_of(made.ptr());
}

Call* tracing_call(PyObject* object) {
  LazyObject* lazy = as_lazy(object);
  if (lazy->real != nullptr && !follow_real(lazy)) return nullptr;
  Call* call = Call::active();
  return call && lazy->array.storage->session == &call->session() ? call : nullptr;
}

std::vector<LazyArray> lazies_in(const py::list& objects) {
  std::vector<LazyArray> arrays;
  for (py::handle object : objects)
    if (is_lazy(object.ptr()) && tracing_call(object.ptr()))
      arrays.push_back(as_lazy(object.ptr())->array);
  return arrays;
}

bool follow_real(LazyObject* lazy) {
  if (lazy->real == nullptr || !PyArray_CheckExact(lazy->real)) return true;
  auto* real = reinterpret_cast<PyArrayObject*>(lazy->real);
  LazyArray& array = lazy->array;
  array.read_only = !PyArray_ISWRITEABLE(real);
  array.warned = warns_of_writes(real);
  if (has_layout(real, array.layout)) return true;
  Call* call = Call::active();
  if (call != nullptr && array.storage->session == &call->session()) call->session().mark_impure();
  const tracer::Memory& memory = array.storage->memory;
  if (!is_supported_array(lazy->real) ||
      PyArray_DATA(real) != static_cast<char*>(memory.data) + array.offset)
    return false;
  array.layout = layout_of(real);
  if (!array.is_whole()) array.has_recipe = false;
  return true;
}

bool is_temporary(PyObject* object) {
  const auto owns_memory = [](PyObject* real) {
    if (!is_supported_array(real)) return false;
    auto* array = reinterpret_cast<PyArrayObject*>(real);
    return PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA) && PyArray_ISWRITEABLE(array);
  };
  if (!is_only_on_stack(object)) return false;
  if (!is_lazy(object)) return owns_memory(object);
  const Call* call = tracing_call(object);
  const LazyArray& array = as_lazy(object)->array;
  const tracer::Storage& storage = *array.storage;
  if (call == nullptr || array.scalar || array.is_view || array.read_only || !array.is_whole() ||
      storage.role != tracer::Role::Temporary || !storage.writeable ||
      array.storage.use_count() != 1)
    return false;
  if (!storage.memory) return true;
  auto* owner = static_cast<PyObject*>(storage.memory.owner.get());
  return Py_REFCNT(owner) == (as_lazy(object)->real == owner ? 2 : 1) && owns_memory(owner);
}

py::object real_of(PyObject* object) {
  py::object real = real_to_read(object);
  as_lazy(object)->array.storage->shown = true;
  return real;
}

py::object real_to_read(PyObject* object) {
  LazyObject* lazy = as_lazy(object);
  const LazyArray& array = lazy->array;
  tracer::Storage& storage = *array.storage;
  if (storage.session && storage.value) Call::await_rest(storage);
  if (storage.session && storage.value) storage.session->force({&array, 1});
  if (lazy->real) return borrow(lazy->real);
  if (!storage.session && storage.value)
    throw std::runtime_error(
        "this array was never computed: the call that made it was interrupted");
  py::object real;
  if (storage.literal) {
    real = scalar_object(array.layout.dtype, storage.literal->bits);
  } else {
    void* data = static_cast<char*>(storage.memory.data) + array.offset;
    auto* owner = static_cast<PyObject*>(storage.memory.owner.get());
    if (array.scalar)
      real = scalar_object(array.layout.dtype, data);
    else if (array.is_whole() && !array.is_view && storage.role == tracer::Role::Temporary)
      real = borrow(owner);
    else
      real =
          array_on(array.layout, data, storage.writeable && !array.read_only, owner, array.warned);
  }
  lazy->real = real.inc_ref().ptr();
  return real;
}

py::object force(PyObject* lazy, Reason reason, const char* detail) {
  if (Call* call = tracing_call(lazy)) call->record(tracer::Event::Kind::Force, reason, detail);
  return real_to_read(lazy);
}

py::object force_outcome(PyObject* lazy, Reason reason, bool truth) {
  Call* call = tracing_call(lazy);
  if (call == nullptr) return real_to_read(lazy);
  tracer::Event event{tracer::Event::Kind::Force, reason, {}, call->users_line(), nullptr};
  py::object real = real_to_read(lazy);
  call->session().record_outcome(std::move(event), as_lazy(lazy)->array, truth);
  return real;
}

namespace {

PyTypeObject* make_type(const char* name, unsigned int flags, std::vector<PyType_Slot> slots,
                        PyTypeObject* base) {
  slots.push_back({Py_tp_dealloc, reinterpret_cast<void*>(dealloc)});
  slots.push_back({Py_tp_traverse, reinterpret_cast<void*>(traverse)});
  slots.push_back({0, nullptr});
  PyType_Spec spec = {name, sizeof(LazyObject), 0,
                      static_cast<unsigned int>(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC |
                                                Py_TPFLAGS_DISALLOW_INSTANTIATION) |
                          flags,
                      slots.data()};
  PyObject* type =
      base == nullptr ? PyType_FromSpec(&spec)
                      : PyType_FromSpecWithBases(
                            &spec, py::make_tuple(borrow(reinterpret_cast<PyObject*>(base))).ptr());
  if (type == nullptr) throw py::error_already_set();
  return reinterpret_cast<PyTypeObject*>(type);
}

// The types have the names of the real ones.
void make_types_by_kind() {
  std::vector<PyType_Slot> slots;
  add_sequence_slots(slots);
  slots.push_back(index_slot());
  the_array_type = make_type(PyArray_Type.tp_name, 0, slots, the_base);
  for (std::size_t i = 0; i < ir::kDTypeCount; ++i) {
    auto* real = reinterpret_cast<PyTypeObject*>(scalar_type(static_cast<DType>(i)));
    slots.clear();
    if (real->tp_as_number != nullptr && real->tp_as_number->nb_index != nullptr)
      slots.push_back(index_slot());
    the_scalar_types[i] = make_type(real->tp_name, 0, slots, the_base);
  }
}

}  // namespace

void bind_lazy_array(py::module_& m) {
  static std::vector<PyMethodDef> methods = lazy_methods();
  std::vector<PyType_Slot> slots = {
      {Py_tp_getattro, reinterpret_cast<void*>(getattro)},
      {Py_tp_setattro, reinterpret_cast<void*>(setattro)},
      {Py_tp_getset, kAttributes},
      {Py_tp_members, kMembers},
      {Py_tp_methods, methods.data()},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {Py_tp_str, reinterpret_cast<void*>(str)},
      {Py_tp_hash, reinterpret_cast<void*>(hash)},
      {Py_tp_doc, const_cast<char*>("An array (or NumPy scalar) of a traced call: its value is "
                                    "computed when it is needed.")},
  };
  add_number_slots(slots);
  add_index_slots(slots);
  the_base = make_type("ufuse.ndarray", Py_TPFLAGS_BASETYPE, slots, nullptr);
  make_types_by_kind();
  m.attr("ndarray") = borrow(reinterpret_cast<PyObject*>(the_base));
  py::dict scalars;
  for (std::size_t i = 0; i < ir::kDTypeCount; ++i)
    scalars[borrow(scalar_type(static_cast<DType>(i)))] =
        borrow(reinterpret_cast<PyObject*>(the_scalar_types[i]));
  m.attr("lazy_scalars") = scalars;
  init_elements();
  m.def("pending_arrays", pending_arrays,
        "The lazy arrays of the active call that are alive and have not been computed.");
  m.def("arrays_left_behind", arrays_left_behind,
        "The lazy arrays of calls that have ended which are alive; each is told once.");
  m.def("replace_items", replace_items, py::arg("container"), py::arg("real"),
        "Put `real[id(item)]` into the places of items of a list, tuple, set or frozenset, where "
        "that is known.");
}

}  // namespace ufuse::pyext
