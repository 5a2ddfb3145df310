// See objects.h.
#include "pyext/bind/replay/objects.h"

#include <algorithm>

#include "pyext/bind/sites/others.h"

namespace ufuse::pyext {
namespace {

constexpr std::size_t kMaxClasses = 64, kMaxNames = 64;

// Python's number for the present state of a class; 0: it has none, because it changes too often.
unsigned version_of(PyTypeObject* type) {
  if (type->tp_version_tag == 0) {
    static PyObject* name = PyUnicode_InternFromString("__init__");
    _PyType_Lookup(type, name);  // makes Python give it one
  }
  return type->tp_version_tag;
}

// Whether an object is a dictionary of attributes and nothing more: its class and their bases are
// written in Python, and have no code for setting or reading attributes.
bool is_dictionary_only(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_setattro != PyObject_GenericSetAttr ||
      type->tp_getattro != PyObject_GenericGetAttr || type->tp_dictoffset == 0)
    return false;
  const PyTypeObject* base = type;
  while (base != nullptr && (base->tp_flags & Py_TPFLAGS_HEAPTYPE)) base = base->tp_base;
  return base == &PyBaseObject_Type && !is_other(object);
}

// Whether an attribute of a class is a method or a constant, which changes only with the class.
bool is_fixed(PyObject* of_class) {
  return Py_TYPE(of_class)->tp_descr_get != nullptr || of_class == Py_None ||
         PyBool_Check(of_class) || PyLong_CheckExact(of_class) || PyFloat_CheckExact(of_class) ||
         PyComplex_CheckExact(of_class) || PyUnicode_CheckExact(of_class);
}

// Whether reading this attribute of an object without a schema gives the same each time.
bool is_no_holder(PyObject* object, PyObject* name) {
  if (PyType_Check(object)) {
    PyObject* held = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(object), name);
    return held == nullptr || is_fixed(held);
  }
  if (PyArray_DescrCheck(object)) return true;
  return !(Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) && !PyFunction_Check(object) &&
         !PyMethod_Check(object);
}

bool same_items(PyObject* now, PyObject* before, auto is_expected) {
  if (PyList_CheckExact(now)) {
    const Py_ssize_t size = PyList_GET_SIZE(now);
    if (size != PyList_GET_SIZE(before)) return false;
    for (Py_ssize_t i = 0; i < size; ++i)
      if (PyList_GET_ITEM(now, i) != PyList_GET_ITEM(before, i)) return false;
    return true;
  }
  PyObject *key, *value;
  Py_ssize_t known = 0;
  for (Py_ssize_t at = 0; PyDict_Next(now, &at, &key, &value);) {
    PyObject* other = PyDict_GetItemWithError(before, key);
    known += other != nullptr ? 1 : 0;
    if (value != other && !is_expected(key)) return false;
  }
  return known == PyDict_GET_SIZE(before);
}

}  // namespace

ObjectSchema* ObjectSchemas::row_of(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE)) return nullptr;
  auto* const wanted = reinterpret_cast<PyObject*>(type);
  const auto class_of = [](const ObjectSchema& each) {
    return PyWeakref_GET_OBJECT(each.type.ptr());
  };
  auto row = std::ranges::find(rows_, wanted, class_of);
  if (row == rows_.end()) {
    std::erase_if(rows_, [&](const ObjectSchema& each) { return class_of(each) == Py_None; });
    if (rows_.size() == kMaxClasses) return nullptr;
    const bool usable = is_dictionary_only(object);
    rows_.push_back({steal(PyWeakref_NewRef(wanted, nullptr)), 0, usable, {}});
    row = rows_.end() - 1;
  }
  if (!row->usable) return nullptr;
  if (row->version == 0 || row->version != type->tp_version_tag) {
    row->version = version_of(type);
    row->names.clear();  // some of them may be properties now
    ++generation_;
  }
  return row->version != 0 ? &*row : nullptr;
}

const ObjectSchema* ObjectSchemas::of(PyObject* object) { return row_of(object); }

void ObjectSchemas::add(PyObject* object, PyObject* name) {
  ObjectSchema* row = row_of(object);
  if (row == nullptr) return;
  for (const py::object& known : row->names)
    if (PyUnicode_Compare(known.ptr(), name) == 0) return;
  row->names.push_back(borrow(name));
  row->usable = row->names.size() <= kMaxNames;
  ++generation_;
}

int ObjectSchemas::traverse(visitproc visit, void* arg) const {
  for (const ObjectSchema& row : rows_) Py_VISIT(row.type.ptr());
  return 0;
}

py::object attributes_of(PyObject* object) {
  return steal(PyObject_GenericGetDict(object, nullptr));
}

void ObjectWatch::begin(ObjectSchemas& schemas, std::span<PyObject* const> objects,
                        std::span<PyObject* const> containers) {
  schemas_ = &schemas;
  for (PyObject* object : objects) {
    objects_.add(object);
    py::object names = attributes_of(object);
    py::object copy = steal(PyDict_Copy(names.ptr()));
    copies_.emplace_back(std::move(names), std::move(copy));
  }
  for (PyObject* each : containers) {
    containers_.add(each);
    if (PyTuple_CheckExact(each)) continue;
    py::object copy = PyDict_CheckExact(each)
                          ? steal(PyDict_Copy(each))
                          : steal(PyList_GetSlice(each, 0, PyList_GET_SIZE(each)));
    copies_.emplace_back(borrow(each), std::move(copy));
  }
}

void ObjectWatch::end() {
  schemas_ = nullptr;
  assigned_.clear();
  numbers_.clear();
  known_functions_.clear();
  // Their destructors may run Python code. Nothing is found any more by then.
  const auto objects = std::exchange(objects_, {});
  const auto containers = std::exchange(containers_, {});
  const auto copies = std::exchange(copies_, {});
}

bool ObjectWatch::may_read(PyObject* object, PyObject* name) {
  if (schemas_ == nullptr) return true;
  if (schemas_->of(object) == nullptr) return !any() || is_no_holder(object, name);
  if (assigned_.contains({object, name})) return true;
  PyObject* of_class = _PyType_Lookup(Py_TYPE(object), name);
  if (of_class != nullptr && Py_TYPE(of_class)->tp_descr_set != nullptr)
    return PyUnicode_CompareWithASCIIString(name, "__class__") == 0;
  schemas_->add(object, name);
  if (index_of(object) < 0) return false;
  return of_class == nullptr || is_fixed(of_class) ||
         PyDict_GetItemWithError(attributes_of(object).ptr(), name) != nullptr;
}

bool ObjectWatch::may_assign(PyObject* object, PyObject* name) {
  if (schemas_ == nullptr) return true;
  const int index = index_of(object);
  if (index < 0) return false;
  if (assigned_.insert({object, name}).second) stores_.push_back({index, borrow(name)});
  return true;
}

int ObjectWatch::number_at(PyObject* object, PyObject* name) const {
  const auto found = numbers_.find({object, name});
  return found == numbers_.end() ? -1 : found->second;
}

void ObjectWatch::set_number(PyObject* object, PyObject* name, int number) {
  if (index_of(object) >= 0) numbers_[{object, name}] = number;
}

int ObjectWatch::number_of(const Store& store) const {
  return number_at(objects_[store.object], store.name.ptr());
}

void ObjectWatch::called(PyObject* function) {
  if (schemas_ != nullptr && known_functions_.insert(function).second)
    functions_.push_back(borrow(function));
}

// Whether objects and containers hold the same as at the beginning, but for what was assigned.
bool ObjectWatch::as_before() const {
  for (const auto& [now, before] : copies_) {
    const auto is_assigned = [&](PyObject* name) {
      return std::ranges::any_of(stores_, [&](const Store& store) {
        PyObject* object = objects_[store.object];
        return PyObject_RichCompareBool(store.name.ptr(), name, Py_EQ) == 1 &&
               attributes_of(object).is(now);
      });
    };
    if (!same_items(now.ptr(), before.ptr(), is_assigned)) return false;
  }
  return true;
}

py::object ObjectWatch::outcome(PyObject* returned) const {
  if (!as_before()) return {};
  if (stores_.empty()) return borrow(returned);
  py::tuple made(1 + stores_.size());
  made[0] = borrow(returned);
  std::size_t at = 0;
  for (const Store& store : stores_) {
    const py::object names = attributes_of(objects_[store.object]);
    PyObject* value = PyDict_GetItemWithError(names.ptr(), store.name.ptr());
    if (value == nullptr) return {};
    made[++at] = borrow(value);
  }
  return made;
}

}  // namespace ufuse::pyext
