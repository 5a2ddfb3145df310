// Indexing of lazy arrays: what stands in the key. Basic indices make views; arrays of positions
// and masks gather elements and write to them.
#include <algorithm>
#include <span>

#include "numpy_shim/assign.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
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
    const bool is_truth = PyBool_Check(object) || PyArray_IsScalar(object, Bool) ||
                          (is_lazy(object) && as_lazy(object)->array.layout.dtype == DType::Bool);
    // Python code (`__index__`) must not run while an operation is being recorded.
    const bool asks_python =
        (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !is_lazy(object) && !is_number(object);
    if (is_truth || !PyIndex_Check(object) || asks_python) throw Unsupported(Reason::AdvancedIndex);
    const Py_ssize_t value = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (value == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      throw Unsupported(Reason::Arguments);
    }
    item.integer = value;
  }
  return item;
}

// What NumPy takes for an array of positions, or for a mask.
bool is_array(PyObject* object) {
  if (is_lazy(object)) return !as_lazy(object)->array.scalar;
  return PyArray_Check(object) || PyList_CheckExact(object) || PyTuple_CheckExact(object);
}

std::span<PyObject* const> items_in(PyObject* const& key) {
  if (!PyTuple_Check(key)) return {&key, 1};
  return {reinterpret_cast<PyTupleObject*>(key)->ob_item,
          static_cast<std::size_t>(PyTuple_GET_SIZE(key))};
}

using IndexItems = ir::SmallVector<IndexItem, 4>;

IndexItems items_of(PyObject* key) {
  IndexItems items;
  for (PyObject* object : items_in(key)) items.push_back(item_of(object));
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
                 if (has_arrays(key)) return gather(call, lazy->array, key);
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

// Whether an array may lie where the target lies.
bool may_overlap(const LazyArray& target, PyObject* object) {
  const bool has_memory = static_cast<bool>(target.storage->memory);
  if (is_lazy(object)) {
    const LazyArray& source = as_lazy(object)->array;
    const bool both = has_memory && source.storage->memory;
    if (source.storage != target.storage && !both) return false;
    return source.bytes().overlaps(target.bytes());
  }
  return has_memory && PyArray_Check(object) &&
         byte_range(reinterpret_cast<PyArrayObject*>(object)).overlaps(target.bytes());
}

// Where NumPy may read values or positions that it has written before.
void check_overlap(const Call& call, const LazyArray& target, PyObject* key, PyObject* value,
                   bool is_mask) {
  const numpy_shim::NumpyVersion& version = call.session().version;
  const bool copies_values = version.copies_assigned_values() && !is_mask;
  const bool copies_positions = version.copies_positions();
  const auto overlaps = [&](PyObject* object) { return may_overlap(target, object); };
  if ((!copies_values && overlaps(value)) ||
      (!copies_positions && std::ranges::any_of(items_in(key), overlaps)))
    throw Unsupported(Reason::OverlappingAssignment);
}

// x[key] = value for a key with arrays or masks in it.
void assign_at(Call& call, const LazyArray& x, PyObject* object, PyObject* given) {
  const Key key = key_of(call, object);
  const tracer::Operand value = assigned_value(call, x.layout.dtype, given);
  const auto* mask = key.size() == 1 ? std::get_if<tracer::Operand>(&key.front()) : nullptr;
  const bool is_mask =
      mask && mask->layout.dtype == DType::Bool && mask->layout.shape == x.layout.shape;
  check_overlap(call, x, object, given, is_mask);
  if (is_mask) {
    const ir::Dims shape = value.weak ? ir::Dims{} : value.layout.shape;
    if (shape.size() > 1) throw Unsupported(Reason::Shape);
    // One value for all needs no positions.
    if (shape.empty() || shape.front() == 1) return call.session().assign_where(x, *mask, value);
  }
  const numpy_shim::Selection selection =
      call.session().select(x, key, tracer::Session::Use::Write);
  // Arrays without axes are single positions.
  if (numpy_shim::shape_of(selection).empty() && !is_single(given))
    throw Unsupported(Reason::Arguments);
  call.session().assign_at(x, selection, value);
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
              if (has_arrays(key)) {
                assign_at(call, lazy->array, key, value);
                if (call.take_immediate()) call.session().force({&lazy->array, 1});
              } else {
                const IndexItems items = items_of(key);
                if (picks_element(lazy->array.layout, items) && !is_single(value))
                  throw Unsupported(Reason::Arguments);
                const View view = numpy_shim::basic_index(lazy->array.layout, items);
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
  return guard([&] { return PyObject_Size(real_to_read(self).ptr()); }, Py_ssize_t{-1});
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
  PyObject_GC_UnTrack(self);
  Py_CLEAR(reinterpret_cast<ElementsObject*>(self)->array);
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_Del(self);
  Py_DECREF(type);
}

// So that `holders_of` finds it.
int traverse_elements(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<ElementsObject*>(self)->array);
  return 0;
}

PyObject* next_element(PyObject* self) {
  return guard([&]() -> PyObject* {
    auto* elements = reinterpret_cast<ElementsObject*>(self);
    if (elements->array == nullptr) return nullptr;
    const py::object real = real_to_read(elements->array);
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
    force(self, Reason::Iteration);
    if (!tracing_call(self) || layout.shape.size() != 1)
      return PyObject_GetIter(real_of(self).ptr());
    auto* made = PyObject_GC_New(ElementsObject, the_elements_type);
    if (made == nullptr) throw py::error_already_set();
    made->array = Py_NewRef(self);
    made->at = 0;
    PyObject_GC_Track(made);
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
  if (!may_overlap(target, value)) return false;
  std::int64_t stride = 0;
  if (is_lazy(value)) {
    const Layout& source = as_lazy(value)->array.layout;
    if (!source.shape.empty() && source.shape.back() != 1) stride = source.strides.back();
  } else {
    auto* source = reinterpret_cast<PyArrayObject*>(value);
    const int last = PyArray_NDIM(source) - 1;
    if (last >= 0 && PyArray_DIM(source, last) != 1) stride = PyArray_STRIDE(source, last);
  }
  return numpy_shim::depends_on_order(target.layout, stride);
}

}  // namespace

bool has_arrays(PyObject* key) {
  if (!PyTuple_Check(key)) return is_array(key);
  return std::ranges::any_of(items_in(key), is_array);
}

Key key_of(Call& call, PyObject* key) {
  Key items;
  for (PyObject* object : items_in(key)) {
    if (is_array(object))
      items.emplace_back(to_operand(call, object));
    else
      items.emplace_back(item_of(object));
  }
  return items;
}

py::object gather(Call& call, const LazyArray& x, PyObject* key) {
  return to_python(call, call.session().gather(x, call.session().select(x, key_of(call, key))));
}

tracer::Operand assigned_value(Call& call, DType dtype, PyObject* value) {
  const tracer::Operand operand = to_operand(call, value);
  numpy_shim::check_item(operand, dtype);
  return operand;
}

bool is_single(PyObject* value) {
  if (is_lazy(value)) return as_lazy(value)->array.layout.shape.empty();
  if (PyArray_Check(value)) return PyArray_NDIM(reinterpret_cast<PyArrayObject*>(value)) == 0;
  return !PyList_Check(value) && !PyTuple_Check(value);
}

void assign(Call& call, const LazyArray& target, PyObject* value) {
  // `x[i] += y` has written into the view already when Python stores it back.
  if (is_lazy(value)) {
    const LazyArray& source = as_lazy(value)->array;
    if (source.storage == target.storage && source.offset == target.offset &&
        source.layout == target.layout && target.is_writeable())
      return;
  }
  if (depends_on_order(target, value)) throw Unsupported(Reason::OverlappingAssignment);
  const tracer::Operand operand = assigned_value(call, target.layout.dtype, value);
  // What goes nowhere NumPy does not convert, which would warn.
  if (numpy_shim::bytes_of(target.layout) == 0 && !operand.weak &&
      operand.layout.dtype != target.layout.dtype && numpy_shim::bytes_of(operand.layout) != 0)
    throw Unsupported(Reason::Shape);
  const bool temporary =
      is_lazy(value) && is_only_on_stack(value) && as_lazy(value)->array.storage.use_count() == 1;
  call.session().assign(target, operand, temporary ? as_lazy(value)->array.storage : nullptr);
  if (call.take_immediate()) call.session().force({&target, 1});
}

PyObject* array_of_elements(PyObject* iterator) {
  if (Py_TYPE(iterator) != the_elements_type) return nullptr;
  auto* elements = reinterpret_cast<ElementsObject*>(iterator);
  return elements->at == 0 ? elements->array : nullptr;
}

void init_elements() {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(free_elements)},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse_elements)},
                                {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void*>(next_element)},
                                {0, nullptr}};
  static PyType_Spec spec = {
      "ufuse._core.elements", sizeof(ElementsObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
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
