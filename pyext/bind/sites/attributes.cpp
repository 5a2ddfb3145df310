// What happens where traced code reads, assigns or changes an attribute or an item?
//
// An array that is found there is traced from then on, as arguments are. A value that is assigned
// to an attribute of the user's object stays pending, for only traced code sees it until the call
// ends or untraced code runs (frames.h). Objects of other packages, and objects whose class sets
// attributes by code of its own, are given real arrays at once.
#include "pyext/bind/sites/attributes.h"

#include <array>
#include <cstring>

#include "pyext/bind/call/containers.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/lazy/operators.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/sites/others.h"
#include "pyext/bind/sites/site.h"

namespace ufuse::pyext {
namespace {

// What traced code uses in the place of an object; a new reference.
PyObject* in_traced_code(PyObject* object) {
  return guard([&]() -> PyObject* {
    if (!Call::may_know(object)) {
      note_lookers({&object, 1});
      return Py_NewRef(object);
    }
    Call* call = Call::active();
    py::object mine = call ? call->known(object) : py::object();
    return (mine ? mine : borrow(object)).release().ptr();
  });
}

PyObject* known_object(PyObject*, PyObject* object) {
  if (is_lazy(object)) return Py_NewRef(object);
  // This may be put into a text, with its address, which is another one in another call.
  if (Call* call = Call::active(); call && call->objects().index_of(object) >= 0)
    call->session().mark_impure();
  return in_traced_code(object);
}

// The same for an object that was just found, or null for an error; takes the reference.
PyObject* traced_if_array(PyObject* found) {
  if (found == nullptr || !Call::may_know(found)) return found;
  if (PyArray_CheckExact(found)) return traced_from_here(found, Py_REFCNT(found) == 1);
  PyObject* mine = in_traced_code(found);
  Py_DECREF(found);
  return mine;
}

// The user's function that is called where a property is read or set; null for anything else.
PyObject* function_of_property(PyObject* object, PyObject* name, const char* which) {
  PyTypeObject* type = Py_TYPE(object);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return nullptr;
  PyObject* of_class = _PyType_Lookup(type, name);
  if (of_class == nullptr || Py_TYPE(of_class) != &PyProperty_Type || is_other(object))
    return nullptr;
  PyObject* function = PyObject_GetAttrString(of_class, which);
  Py_XDECREF(function);  // the property keeps it
  return function != nullptr && PyFunction_Check(function) ? function : nullptr;
}

PyObject* builtin_getattr() {
  static PyObject* function = nullptr;  // no initialiser: see operator_function
  if (function == nullptr)
    function = py::object(py::module_::import("builtins").attr("getattr")).release().ptr();
  return function;
}

py::object attribute_of_real(PyObject* lazy, PyObject* name) {
  return numpy_call(builtin_getattr(), {lazy, name}, Reason::UnknownAttribute, false);
}

// An attribute of a lazy array, or of a container's copy. What a lazy array does not have,
// `__array_interface__` for example, is the real one's.
PyObject* attribute_of_known(PyObject* known, PyObject* name) {
  PyObject* found = PyObject_GetAttr(known, name);
  if (found != nullptr || !is_lazy(known) || !PyErr_ExceptionMatches(PyExc_AttributeError))
    return traced_if_array(found);
  PyErr_Clear();
  return guard([&] { return attribute_of_real(known, name).release().ptr(); });
}

PyObject* read_attribute(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "read_attribute needs an object and a name");
    return nullptr;
  }
  Call* call = Call::active();
  if (is_lazy(args[0])) return attribute_of_known(args[0], args[1]);
  if (call == nullptr) return traced_if_array(PyObject_GetAttr(args[0], args[1]));
  return guard([&]() -> PyObject* {
    if (Call::may_know(args[0]))
      if (const py::object mine =
              is_supported_array(args[0]) ? call->find(args[0], false) : call->known(args[0]))
        return attribute_of_known(mine.ptr(), args[1]);
    if (Py_TYPE(args[0])->tp_getattro == PyObject_GenericGetAttr)
      if (PyObject* getter = function_of_property(args[0], args[1], "fget")) {
        PyObject* const given[] = {getter, args[0]};
        return site(given, 2, nullptr);
      }
    if (!call->objects().may_read(args[0], args[1])) call->session().mark_impure();
    PyObject* found = PyObject_GetAttr(args[0], args[1]);
    if (const int number = call->objects().number_at(args[0], args[1]); number >= 0) {
      const py::object kept = py::reinterpret_steal<py::object>(found);
      if (found == call->numbers().value(number))
        return number_in_attribute(*call, number).release().ptr();
      // Code that is not traced has assigned to it, or deleted it.
      call->session().mark_impure();
      call->objects().set_number(args[0], args[1], -1);
      return kept.inc_ref().ptr();
    }
    return traced_if_array(found);
  });
}

PyObject* get_attribute(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count < 2 || count > 3 || keywords != nullptr || !is_lazy(args[0]))
    return PyObject_Vectorcall(builtin_getattr(), args, static_cast<std::size_t>(count), keywords);
  PyObject* found = attribute_of_known(args[0], args[1]);
  if (found != nullptr || count == 2 || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return Py_NewRef(args[2]);
}

PyObject* found_object(PyObject*, PyObject* object) {
  if (!PyArray_CheckExact(object)) return in_traced_code(object);
  const bool fresh = is_only_on_stack(object);
  return traced_from_here(Py_NewRef(object), fresh);
}

// The dictionary of an object whose attributes are set and read without any code of its class;
// unset for any other object.
py::object plain_attributes(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || type->tp_setattro != PyObject_GenericSetAttr ||
      type->tp_getattro != PyObject_GenericGetAttr || is_other(object))
    return {};
  PyObject* of_class = _PyType_Lookup(type, name);
  if (of_class != nullptr && Py_TYPE(of_class)->tp_descr_set != nullptr) return {};
  py::object names = py::reinterpret_steal<py::object>(PyObject_GenericGetDict(object, nullptr));
  if (!names) PyErr_Clear();
  return names;
}

void check(int status) {
  if (status < 0) throw py::error_already_set();
}

// What untraced code, which may look at any time where a value is put, finds there.
py::object shown(Call& call, PyObject* value) {
  call.holders().add_if_lazy(value);
  call.flush_and_share();
  return unwrap(value);
}

void set_attribute(PyObject* object, PyObject* name, PyObject* value) {
  Call* call = Call::active();
  if (call == nullptr || is_lazy(object))
    return check(PyObject_SetAttr(object, name, value ? seen_number(value) : nullptr));
  if (value == nullptr) {
    call->session().mark_impure();
    return check(PyObject_SetAttr(object, name, value));
  }
  if (PyObject* setter = function_of_property(object, name, "fset")) {
    PyObject* const args[] = {setter, object, seen_number(value)};
    steal(site(args, 3, nullptr));
    return;
  }
  const py::object names = plain_attributes(object, name);
  if (names && call->objects().may_assign(object, name))
    call->objects().set_number(object, name, is_number(value) ? as_number(value)->number : -1);
  else
    call->session().mark_impure();
  if (PyModule_Check(object)) {
    call->flush_and_share();
    if (PyUnicode_CompareWithASCIIString(name, "showwarning") == 0) call->set_warns_by_function();
  }
  PyObject* given = call->copies().original_of(plain_number(value));
  if (!needs_unwrapping(given)) return check(PyObject_SetAttr(object, name, given));
  if (names) {
    call->before_put(given);
    check(PyObject_SetAttr(object, name, given));
    call->holders().add(names.ptr(), name);
    return;
  }
  call->record(tracer::Event::Kind::NumpyCall, Reason::UserCall, Py_TYPE(object)->tp_name);
  const py::object real = shown(*call, given);
  check(PyObject_SetAttr(object, name, real.ptr()));
}

// The type of stand-ins for objects of which an attribute is assigned or deleted.
PyTypeObject* owner_type = nullptr;

int set_of_owner(PyObject* self, PyObject* name, PyObject* value) {
  return guard(
      [&] {
        set_attribute(object_of(self), name, value);
        return 0;
      },
      -1);
}

PyObject* owner(PyObject*, PyObject* object) {
  if (Call::active() == nullptr) return Py_NewRef(object);
  return stand_in(owner_type, object);
}

// The type of stand-ins for objects other than arrays of which an item is assigned or deleted.
PyTypeObject* container_type = nullptr;

// The type of stand-ins for items, other than arrays and numbers, that an operator changes in
// place.
PyTypeObject* item_type = nullptr;

template <std::size_t I>
PyObject* change_item(PyObject* self, PyObject* value) {
  return guard([&] {
    const py::object given = value_beside(object_of(self), value);
    return kBinary[I].apply_in_place(object_of(self), given.ptr());
  });
}
PyObject* power_item(PyObject* self, PyObject* value, PyObject*) {
  return guard([&] {
    const py::object given = value_beside(object_of(self), value);
    return PyNumber_InPlacePower(object_of(self), given.ptr(), Py_None);
  });
}
PyObject* multiply_item(PyObject* self, PyObject* value) {
  return guard([&] {
    const py::object given = value_beside(object_of(self), value);
    return PyNumber_InPlaceMatrixMultiply(object_of(self), given.ptr());
  });
}

// Python reads an item of the stand-in only in `x[i] += y`.
PyObject* get_of_container(PyObject* self, PyObject* index) {
  const auto container = py::reinterpret_steal<py::object>(operand_of(object_of(self)));
  PyObject* found = container ? PyObject_GetItem(container.ptr(), index) : nullptr;
  found = traced_if_array(found);
  if (found == nullptr || is_array_or_number(found)) return found;
  PyObject* item = stand_in(item_type, found);
  Py_DECREF(found);
  return item;
}

int set_of_container(PyObject* self, PyObject* index, PyObject* value) {
  PyObject* container = object_of(self);
  Call* call = Call::active();
  if (!PyList_CheckExact(container) && !PyDict_CheckExact(container)) {
    const auto other = py::reinterpret_steal<py::object>(operand_of(container));
    if (!other) return -1;
    if (call != nullptr && value != nullptr && needs_unwrapping(value))
      call->holders().add(container);
    return value ? PyObject_SetItem(other.ptr(), index, value)
                 : PyObject_DelItem(other.ptr(), index);
  }
  if (value == nullptr) return PyObject_DelItem(container, index);
  PyObject* given = seen_number(value);
  const auto put = [&] {
    if (call != nullptr) call->before_put(given);
    return PyObject_SetItem(container, index, given);
  };
  if (guard(put, -1) < 0) return -1;
  if (call != nullptr && (needs_unwrapping(given) || call->copies().original_of(given) != given))
    call->holders().add(container, PyDict_CheckExact(container) ? index : nullptr);
  return 0;
}

// x in `x[i] = ...`. A real array, which traced code got unnoticed, is traced from here on; of
// lists and dicts it is noted that they may hold lazy arrays.
PyObject* changed(PyObject*, PyObject* object) {
  Call* call = Call::active();
  if (call == nullptr) return Py_NewRef(object);
  if (is_supported_array(object)) return found_object(nullptr, object);
  if (is_array_or_number(object)) return operand_of(object);
  call->count_operand();
  const bool copied = PyList_CheckExact(object) || PyDict_CheckExact(object);
  return stand_in(container_type, copied ? call->copies().copy_of(object) : object);
}

// The object, the name of the attribute, and its present value: for `augment`.
PyObject* begin_augment(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  PyObject* found = read_attribute(self, args, count);
  if (found == nullptr) return nullptr;
  PyObject* both = PyTuple_Pack(3, args[0], args[1], found);
  Py_DECREF(found);
  return both;
}

PyObject* in_place(const char* name, PyObject* a, PyObject* b) {
  for (const BinaryOperator& each : kBinary)
    if (std::strcmp(each.in_place, name) == 0) return each.apply_in_place(a, b);
  if (std::strcmp(name, "ipow") == 0) return PyNumber_InPlacePower(a, b, Py_None);
  return PyNumber_InPlaceMatrixMultiply(a, b);
}

// augment("iadd", begin_augment(x, "a"), y): `x.a += y`.
PyObject* augment(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count != 3 || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) != 3)
      throw py::type_error("augment needs an operator, what begin_augment gave, and a value");
    PyObject* object = PyTuple_GET_ITEM(args[1], 0);
    const py::object now = borrow(PyTuple_GET_ITEM(args[1], 2));  // may be replaced in the tuple
    const py::object value = value_beside(now.ptr(), args[2]);
    const py::object made = steal(in_place(text_of(args[0]).c_str(), now.ptr(), value.ptr()));
    set_attribute(object, PyTuple_GET_ITEM(args[1], 1), made.ptr());
    Py_RETURN_NONE;
  });
}

// outside(x), and outside("iadd", g, x) for what is then assigned to g.
PyObject* outside(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guard([&]() -> PyObject* {
    if (count != 1 && count != 3)
      throw py::type_error("outside needs a value, or an operator and two operands");
    py::object value = borrow(args[0]);
    if (count == 3) {
      const auto now = steal(found_object(nullptr, args[1]));
      const py::object given = value_beside(now.ptr(), args[2]);
      value = steal(in_place(text_of(args[0]).c_str(), now.ptr(), given.ptr()));
    }
    value = borrow(seen_number(value.ptr()));
    Call* call = Call::active();
    if (call == nullptr) return value.release().ptr();
    call->session().mark_impure();
    value = borrow(call->copies().original_of(value.ptr()));
    if (!any_inside(value.ptr(), Into::All, is_lazy)) return value.release().ptr();
    call->record(tracer::Event::Kind::Force, Reason::Array, "for a global or outer name");
    return shown(*call, value.ptr()).release().ptr();
  });
}

PyMethodDef kFunctions[] = {
    {"get_attribute", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(get_attribute)),
     METH_FASTCALL | METH_KEYWORDS,
     "get_attribute(x, name, default=...): `getattr` of traced code."},
    {"read_attribute", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(read_attribute)),
     METH_FASTCALL, "read_attribute(x, name): `x.name`; an array is traced from there on."},
    {"found", found_object, METH_O,
     "found(object): an array found in traced code, which is traced from there on; any other "
     "object as it is."},
    {"known", known_object, METH_O,
     "known(object): an array whose memory the active call knows, as a lazy one; any other object "
     "as it is."},
    {"owner", owner, METH_O,
     "owner(x): what stands for x where traced code assigns or deletes `x.name`."},
    {"changed", changed, METH_O,
     "changed(x): what stands for x where traced code assigns or deletes `x[i]`."},
    {"begin_augment", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(begin_augment)),
     METH_FASTCALL, "begin_augment(x, name): what `augment` needs of `x.name += y` before y."},
    {"augment", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(augment)), METH_FASTCALL,
     "augment(operator, begun, y): the rest of `x.name += y`; the operator is \"iadd\" or another "
     "of module operator."},
    {"outside", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(outside)), METH_FASTCALL,
     "outside(x): what is assigned to a global name, or to one of an enclosing function, in the "
     "place of x. outside(operator, g, x): the same for `g += x`."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* traced_from_here(PyObject* array, bool fresh) {
  Call* call = Call::active();
  if (call == nullptr || !is_supported_array(array)) return array;
  const py::object held = py::reinterpret_steal<py::object>(array);
  return guard([&] { return call->find(array, fresh).release().ptr(); });
}

void bind_attributes(py::module_& m) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_stand_in)},
      {Py_tp_setattro, reinterpret_cast<void*>(set_of_owner)},
      {Py_tp_doc, const_cast<char*>("An object of which an attribute is assigned.")},
      {0, nullptr}};
  PyType_Spec spec = {"ufuse._core.owner", sizeof(StandIn), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  owner_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  PyType_Slot slots_of_container[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_stand_in)},
      {Py_mp_subscript, reinterpret_cast<void*>(get_of_container)},
      {Py_mp_ass_subscript, reinterpret_cast<void*>(set_of_container)},
      {Py_tp_doc, const_cast<char*>("An object of which an item is assigned.")},
      {0, nullptr}};
  std::vector<PyType_Slot> slots_of_item = {
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_stand_in)},
      {Py_nb_inplace_power, reinterpret_cast<void*>(power_item)},
      {Py_nb_inplace_matrix_multiply, reinterpret_cast<void*>(multiply_item)},
      {Py_tp_doc, const_cast<char*>("An item that is changed in place.")}};
  each_operator([&]<std::size_t I>() {
    slots_of_item.push_back({kBinary[I].in_place_slot, reinterpret_cast<void*>(change_item<I>)});
  });
  slots_of_item.push_back({0, nullptr});
  spec.name = "ufuse._core.item";
  spec.slots = slots_of_item.data();
  item_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  spec.name = "ufuse._core.container";
  spec.slots = slots_of_container;
  container_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (owner_type == nullptr || container_type == nullptr || item_type == nullptr ||
      PyModule_AddFunctions(m.ptr(), kFunctions) < 0)
    throw py::error_already_set();
}

}  // namespace ufuse::pyext
