// See lists.h. Whoever calls these has Python's lock, and none of them runs other code: an item
// that is replaced is a number.
#include "pyext/bind/programs/lists.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <optional>
#include <utility>

#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

using ir::DType;
using Object = rt::Lists::Object;

PyObject* object_at(Object address) { return reinterpret_cast<PyObject*>(address); }
Object address_of(PyObject* object) { return reinterpret_cast<Object>(object); }

// Of a list or a tuple; null: there is none.
PyObject* item_of(Object list, rt::Lists::Index index) {
  PyObject* of = object_at(list);
  const Py_ssize_t count = Py_SIZE(of);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return nullptr;
  return PyList_CheckExact(of) ? PyList_GET_ITEM(of, index) : PyTuple_GET_ITEM(of, index);
}

bool read_truth(Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  if (item != Py_True && item != Py_False) return true;
  *static_cast<bool*>(result) = item == Py_True;
  return false;
}

// An integer of one digit, which is what most are. Python's own function asks more.
std::optional<rt::Lists::Index> digit_of(PyObject* integer) {
  auto* number = reinterpret_cast<PyLongObject*>(integer);
#if PY_VERSION_HEX >= 0x030C0000
  if (PyUnstable_Long_IsCompact(number)) return PyUnstable_Long_CompactValue(number);
#else
  const Py_ssize_t digits = Py_SIZE(number);
  if (digits == 0) return 0;
  if (digits == 1 || digits == -1) return digits * static_cast<Py_ssize_t>(number->ob_digit[0]);
#endif
  return {};
}

bool read_integer(Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  if (item == nullptr || !PyLong_CheckExact(item)) return true;
  if (const auto digit = digit_of(item)) {
    *static_cast<rt::Lists::Index*>(result) = *digit;
    return false;
  }
  int overflow = 0;
  *static_cast<rt::Lists::Index*>(result) = PyLong_AsLongLongAndOverflow(item, &overflow);
  return overflow != 0;
}

bool read_real(Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  if (item == nullptr || !PyFloat_CheckExact(item)) return true;
  const double value = PyFloat_AS_DOUBLE(item);
  *static_cast<double*>(result) = value;
  return std::isnan(value);
}

bool is_nan(const std::complex<double>& value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}

bool read_complex(Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  if (item == nullptr || !PyComplex_CheckExact(item)) return true;
  const Py_complex parts = PyComplex_AsCComplex(item);
  const std::complex<double> value{parts.real, parts.imag};
  *static_cast<std::complex<double>*>(result) = value;
  return is_nan(value);
}

// Whether a number of this dtype is a NaN.
bool is_nan(DType dtype, const void* number) {
  switch (dtype) {
    case DType::Float32:
      return std::isnan(*static_cast<const float*>(number));
    case DType::Float64:
      return std::isnan(*static_cast<const double*>(number));
    case DType::Complex64: {
      const auto* parts = static_cast<const float*>(number);
      return std::isnan(parts[0]) || std::isnan(parts[1]);
    }
    case DType::Complex128:
      return is_nan(*static_cast<const std::complex<double>*>(number));
    default:
      return false;
  }
}

bool read_numpy(int dtype, Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  const auto wanted = static_cast<DType>(dtype);
  if (item == nullptr || scalar_dtype(item) != wanted) return true;
  const ir::Scalar bits = scalar_bits(item, wanted);
  std::memcpy(result, bits.bits, ir::size_of(wanted));
  return is_nan(wanted, bits.bits);
}

bool read_list(Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  if (item == nullptr || !PyList_CheckExact(item)) return true;
  *static_cast<Object*>(result) = address_of(item);
  return false;
}

bool read_tuple(int size, Object list, rt::Lists::Index index, void* result) {
  PyObject* item = item_of(list, index);
  if (item == nullptr || !PyTuple_CheckExact(item) || PyTuple_GET_SIZE(item) != size) return true;
  *static_cast<Object*>(result) = address_of(item);
  return false;
}

bool is_number(PyObject* item) {
  return PyFloat_CheckExact(item) || PyLong_CheckExact(item) || PyBool_Check(item) ||
         PyComplex_CheckExact(item) || scalar_dtype(item);
}

// True where there is no memory for it, or no room.
bool keep(void* made, PyObject* object, Object* result) {
  auto& all = *static_cast<ListAccess::Made*>(made);
  if (object == nullptr) PyErr_Clear();
  if (object == nullptr || all.count == all.objects.size()) {
    Py_XDECREF(object);
    return true;
  }
  all.objects[all.count++] = object;
  *result = address_of(object);
  return false;
}

bool make_truth(void* made, const void* number, Object* result) {
  return keep(made, Py_NewRef(*static_cast<const bool*>(number) ? Py_True : Py_False), result);
}
bool make_integer(void* made, const void* number, Object* result) {
  return keep(made, PyLong_FromLongLong(*static_cast<const rt::Lists::Index*>(number)), result);
}
bool make_real(void* made, const void* number, Object* result) {
  const double value = *static_cast<const double*>(number);
  return std::isnan(value) || keep(made, PyFloat_FromDouble(value), result);
}
bool make_complex(void* made, const void* number, Object* result) {
  const auto value = *static_cast<const std::complex<double>*>(number);
  return is_nan(value) || keep(made, PyComplex_FromDoubles(value.real(), value.imag()), result);
}

bool make_numpy(int dtype, void* made, const void* number, Object* result) {
  const auto of = static_cast<DType>(dtype);
  if (is_nan(of, number)) return true;
  return keep(made, guard([&] { return scalar_object(of, number).release().ptr(); }), result);
}

// A float that nobody else has becomes another number: Python would make a new one in its memory.
constexpr Object kInPlace = 0;

template <bool (*make)(void*, const void*, Object*)>
bool object_for(void* made, Object list, rt::Lists::Index index, const void* number,
                [[maybe_unused]] bool in_place, Object* result) {
  PyObject* item = item_of(list, index);
  if (item == nullptr || !is_number(item)) return true;
  if constexpr (make == make_real)
    if (in_place && PyFloat_CheckExact(item) && Py_REFCNT(item) == 1) {
      *result = kInPlace;
      return std::isnan(*static_cast<const double*>(number));
    }
  return make(made, number, result);
}

bool object_for_numpy(int dtype, void* made, Object list, rt::Lists::Index index,
                      const void* number, bool /*in_place*/, Object* result) {
  PyObject* item = item_of(list, index);
  return item == nullptr || !is_number(item) || make_numpy(dtype, made, number, result);
}

// All that a statement has made is stored before anything else is made.
void let_go(void* made) { --static_cast<ListAccess::Made*>(made)->count; }

void store(void* made, Object list, rt::Lists::Index index, const void* number, Object object) {
  PyObject* before = item_of(list, index);
  if (object == kInPlace) {
    reinterpret_cast<PyFloatObject*>(before)->ob_fval = *static_cast<const double*>(number);
    return;
  }
  if (index < 0) index += PyList_GET_SIZE(object_at(list));
  PyList_SET_ITEM(object_at(list), index, object_at(object));
  Py_DECREF(before);
  let_go(made);
}

bool append(void* made, Object list, Object object) {
  if (PyList_Append(object_at(list), object_at(object)) < 0) {
    PyErr_Clear();
    return true;
  }
  Py_DECREF(object_at(object));
  let_go(made);
  return false;
}

bool note(void* made, Object list, rt::Lists::Index index, Object object) {
  const auto change = [&] {
    if (index < 0) index += PyList_GET_SIZE(object_at(list));
    PyObject* before = item_of(list, index);
    static_cast<ListAccess::Made*>(made)->changes.push_back({object_at(list), index,
                                                             before ? borrow(before) : py::object(),
                                                             borrow(object_at(object))});
    return 0;
  };
  if (guard(change, -1) == 0) return false;
  PyErr_Clear();
  return true;
}

// Numbers end without running code.
void keep_changes(void* made) { static_cast<ListAccess::Made*>(made)->changes.clear(); }

}  // namespace

ListAccess::ListAccess()
    : functions_{&made_,
                 [](Object list) -> rt::Lists::Index { return PyList_GET_SIZE(object_at(list)); },
                 {read_truth, read_integer, read_real, read_complex, read_list},
                 read_tuple,
                 read_numpy,
                 {make_truth, make_integer, make_real, make_complex},
                 {object_for<make_truth>, object_for<make_integer>, object_for<make_real>,
                  object_for<make_complex>},
                 make_numpy,
                 object_for_numpy,
                 append,
                 note,
                 keep_changes,
                 store} {}

// What other threads have put there since is theirs.
void ListAccess::take_back() {
  while (made_.count > 0) Py_DECREF(made_.objects[--made_.count]);
  while (!made_.changes.empty()) {
    const Change change = std::move(made_.changes.back());
    made_.changes.pop_back();
    if (change.index >= PyList_GET_SIZE(change.list) ||
        change.now.ptr() != PyList_GET_ITEM(change.list, change.index))
      continue;
    const int failed =
        change.before
            ? PyList_SetItem(change.list, change.index, py::object(change.before).release().ptr())
            : PyList_SetSlice(change.list, change.index, change.index + 1, nullptr);
    if (failed < 0) PyErr_Clear();
  }
}

void ListAccess::begin() {
  roots_.clear();
  inner_.clear();
  before_.clear();
}

// The first items tell, as they do where the program is typed (given_of).
void ListAccess::given(PyObject* object) {
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) given(PyTuple_GET_ITEM(object, i));
    return;
  }
  int levels = -1;
  for (PyObject* each = object; PyList_CheckExact(each) && PyList_GET_SIZE(each) > 0;
       each = PyList_GET_ITEM(each, 0))
    ++levels;
  if (levels > 0) roots_.push_back({object, levels});
}

void ListAccess::hold_inner() {
  for (const Nested& each : roots_) hold_inside(each);
}

void ListAccess::hold_inside(Nested outer) {
  std::vector<py::object>& held = inner_[outer.list];
  std::size_t same = 0;
  std::vector<PyObject*> now;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outer.list); ++i) {
    PyObject* item = PyList_GET_ITEM(outer.list, i);
    if (!PyList_CheckExact(item)) continue;
    same += now.size() < held.size() && held[now.size()].ptr() == item;
    now.push_back(item);
  }
  if (same != now.size() || same != held.size()) {
    before_.push_back(std::exchange(held, {}));
    for (PyObject* each : now) held.push_back(borrow(each));
  }
  if (outer.levels == 1) return;
  for (PyObject* each : now) hold_inside({each, outer.levels - 1});
}

}  // namespace ufuse::pyext
