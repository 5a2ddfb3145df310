// Indexing of lazy arrays. Basic indices give views; index arrays and masks are calls of NumPy,
// except the assignment of one value through a mask.
#include "numpy_shim/assign.h"
#include "numpy_shim/view.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/lazy/recorded_number.h"

namespace ufuse::pyext {
namespace {

using numpy_shim::IndexItem;
using numpy_shim::View;

std::optional<std::int64_t> slice_bound(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  if (!PyIndex_Check(object)) throw Unsupported(Reason::Arguments);
  const Py_ssize_t value =
      PyNumber_AsSsize_t(object, nullptr);  // out of range: clipped, as Python does
  if (value == -1 && PyErr_Occurred()) throw py::error_already_set();
  return value;
}

IndexItem item_of(PyObject* object) {
  IndexItem item;
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    item.kind = IndexItem::Kind::Slice;
    item.start = slice_bound(slice->start);
    item.stop = slice_bound(slice->stop);
    item.step = slice_bound(slice->step);
  } else if (object == Py_None) {
    item.kind = IndexItem::Kind::NewAxis;
  } else if (object == Py_Ellipsis) {
    item.kind = IndexItem::Kind::Ellipsis;
  } else {
    const bool is_mask = PyBool_Check(object) || PyArray_IsScalar(object, Bool) ||
                         (is_lazy(object) && as_lazy(object)->array.layout.dtype == DType::Bool);
    if (is_mask) throw Unsupported(Reason::MaskIndex);
    // Python code (`__index__`) must not run while an operation is being recorded.
    const bool asks_python =
        (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !is_lazy(object) && !is_number(object);
    if (!PyIndex_Check(object) || PyArray_Check(object) || asks_python ||
        (is_lazy(object) && !as_lazy(object)->array.scalar))
      throw Unsupported(Reason::AdvancedIndex);
    const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      throw Unsupported(Reason::Arguments);
    }
    item.integer = value;
  }
  return item;
}

using IndexItems = ir::SmallVector<IndexItem, 4>;

IndexItems items_of(PyObject* key) {
  IndexItems items;
  if (PyTuple_Check(key)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
      items.push_back(item_of(PyTuple_GET_ITEM(key, i)));
  } else {
    items.push_back(item_of(key));
  }
  return items;
}

// Integers for all axes and nothing else: NumPy gives a scalar, not a view.
bool picks_element(const Layout& layout, const IndexItems& items) {
  if (items.size() != layout.shape.size()) return false;
  for (const IndexItem& item : items)
    if (item.kind != IndexItem::Kind::Integer) return false;
  return true;
}

PyObject* get_item(PyObject* self, PyObject* key) {
  return guard([&] {
    LazyObject* lazy = as_lazy(self);
    return native_or(
               tracing_call(self),
               [&](Call& call) {
                 call.enter();
                 if (lazy->array.scalar) throw Unsupported(Reason::AdvancedIndex);
                 const IndexItems items = items_of(key);
                 LazyArray view = call.session().view(
                     lazy->array, numpy_shim::basic_index(lazy->array.layout, items));
                 if (!picks_element(lazy->array.layout, items)) return make_lazy(std::move(view));
                 const tracer::Operand element = call.session().operand(view);
                 return make_lazy(
                     call.session().from_result({element.node, {view.layout.dtype, {}, {}}, true}));
               },
               [&](Reason reason) {
                 return numpy_call(operator_function("getitem"), {self, key}, reason, true);
               })
        .release()
        .ptr();
  });
}

// x[mask] = number, for a mask of x's shape.
bool is_mask_of(Call& call, PyObject* key, const LazyArray& target) {
  if (!is_lazy(key) || tracing_call(key) != &call) return false;
  const LazyArray& mask = as_lazy(key)->array;
  return mask.layout.dtype == DType::Bool && !mask.layout.shape.empty() &&
         mask.layout.shape == target.layout.shape && target.is_whole();
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  return guard(
      [&] {
        LazyObject* lazy = as_lazy(self);
        native_or(
            value ? tracing_call(self) : nullptr,
            [&](Call& call) -> py::object {
              call.enter();
              if (lazy->array.scalar) throw Unsupported(Reason::Arguments);
              if (is_mask_of(call, key, lazy->array)) {
                const tracer::Operand number = to_operand(call, value);
                const tracer::Operand mask = call.session().operand(as_lazy(key)->array);
                call.session().assign_where(lazy->array, mask, number);
              } else {
                const View view = numpy_shim::basic_index(lazy->array.layout, items_of(key));
                assign(call, call.session().view(lazy->array, view), value);
              }
              return py::none();
            },
            [&](Reason reason) {
              if (value == nullptr)
                return numpy_call(operator_function("delitem"), {self, key}, reason, false);
              return numpy_call(operator_function("setitem"), {self, key, value}, reason, false);
            });
        return 0;
      },
      -1);
}

Py_ssize_t length(PyObject* self) {
  const Layout& layout = as_lazy(self)->array.layout;
  if (!layout.shape.empty()) return static_cast<Py_ssize_t>(layout.shape.front());
  return guard([&] { return PyObject_Size(real_of(self).ptr()); }, Py_ssize_t{-1});
}

PyObject* item_at(PyObject* self, Py_ssize_t i) {
  // Python's iteration over sequences ends with an IndexError.
  const Layout& layout = as_lazy(self)->array.layout;
  if (!layout.shape.empty() && i >= layout.shape.front()) {
    PyErr_SetString(PyExc_IndexError, "index out of bounds");
    return nullptr;
  }
  return guard([&] { return get_item(self, steal(PyLong_FromSsize_t(i)).ptr()); });
}

// An iterator over the elements of an array with one axis. Each element has the value that it has
// when Python asks for it, which includes what has been written until then.
struct ElementsObject {
  PyObject_HEAD PyObject* array;
  Py_ssize_t at;
};

PyTypeObject* the_elements_type = nullptr;

void free_elements(PyObject* self) {
  Py_CLEAR(reinterpret_cast<ElementsObject*>(self)->array);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* next_element(PyObject* self) {
  return guard([&]() -> PyObject* {
    auto* elements = reinterpret_cast<ElementsObject*>(self);
    if (elements->array == nullptr) return nullptr;
    const py::object real = real_of(elements->array);
    if (elements->at < PySequence_Size(real.ptr()))
      return PySequence_GetItem(real.ptr(), elements->at++);
    Py_CLEAR(elements->array);
    return nullptr;
  });
}

// Of an array with several axes: its rows, which are views.
PyObject* iterate(PyObject* self) {
  return guard([&]() -> PyObject* {
    const Layout& layout = as_lazy(self)->array.layout;
    if (layout.shape.size() > 1 && tracing_call(self)) return PySeqIter_New(self);
    const py::object real = force(self, Reason::Iteration);
    if (!tracing_call(self) || layout.shape.size() != 1) return PyObject_GetIter(real.ptr());
    auto* made = PyObject_New(ElementsObject, the_elements_type);
    if (made == nullptr) throw py::error_already_set();
    made->array = Py_NewRef(self);
    made->at = 0;
    return reinterpret_cast<PyObject*>(made);
  });
}

int contains(PyObject* self, PyObject* value) {
  return guard(
      [&] { return PySequence_Contains(force(self, Reason::Contains).ptr(), unwrap(value).ptr()); },
      -1);
}

// Whether the elements of a value are read from memory that the assignment writes, in an order that
// matters.
bool depends_on_order(const LazyArray& target, PyObject* value) {
  const bool has_memory = static_cast<bool>(target.storage->memory);
  std::int64_t stride = 0;
  tracer::ByteRange range;
  if (is_lazy(value)) {
    const LazyArray& source = as_lazy(value)->array;
    const bool both = has_memory && source.storage->memory;
    if (source.layout.shape.empty() || (source.storage != target.storage && !both)) return false;
    stride = source.layout.shape.back() == 1 ? 0 : source.layout.strides.back();
    range = source.bytes();
  } else if (has_memory && PyArray_Check(value)) {
    auto* source = reinterpret_cast<PyArrayObject*>(value);
    const int last = PyArray_NDIM(source) - 1;
    if (last < 0) return false;
    stride = PyArray_DIM(source, last) == 1 ? 0 : PyArray_STRIDE(source, last);
    range = byte_range(source);
  }
  return numpy_shim::depends_on_order(target.layout, stride) && range.overlaps(target.bytes());
}

}  // namespace

void assign(Call& call, const LazyArray& target, PyObject* value) {
  // `x[i] += y` has written into the view already when Python stores it back.
  if (is_lazy(value)) {
    const LazyArray& source = as_lazy(value)->array;
    if (source.storage == target.storage && source.offset == target.offset &&
        source.layout == target.layout && target.storage->writeable && !target.read_only)
      return;
  }
  if (depends_on_order(target, value)) throw Unsupported(Reason::OverlappingAssignment);
  const tracer::Operand operand = to_operand(call, value);
  numpy_shim::check_item(operand, target.layout.dtype);
  // Nobody else refers to it: it is a temporary on the interpreter's stack.
  const bool temporary =
      is_lazy(value) && Py_REFCNT(value) == 1 && as_lazy(value)->array.storage.use_count() == 1;
  call.session().assign(target, operand, temporary ? as_lazy(value)->array.storage : nullptr);
  if (call.take_immediate()) call.session().force({&target, 1});
}

void init_elements() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_elements)},
                                {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void*>(next_element)},
                                {0, nullptr}};
  static PyType_Spec spec = {"ufuse._core.elements", sizeof(ElementsObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  the_elements_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (the_elements_type == nullptr) throw py::error_already_set();
}

void add_index_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_mp_subscript, reinterpret_cast<void*>(get_item)});
}

void add_sequence_slots(std::vector<PyType_Slot>& slots) {
  // Added again: otherwise `x.__getitem__` would be that of Py_sq_item, which takes integers only.
  add_index_slots(slots);
  slots.insert(slots.end(), {{Py_mp_length, reinterpret_cast<void*>(length)},
                             {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
                             {Py_sq_length, reinterpret_cast<void*>(length)},
                             {Py_sq_item, reinterpret_cast<void*>(item_at)},
                             {Py_sq_contains, reinterpret_cast<void*>(contains)},
                             {Py_tp_iter, reinterpret_cast<void*>(iterate)}});
}

}  // namespace ufuse::pyext
