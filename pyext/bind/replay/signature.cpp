// See signature.h.
#include "pyext/bind/replay/signature.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/numpy/python_number.h"

namespace ufuse::pyext {
namespace {

enum Tag : std::uint64_t {
  kArray = 1,
  kScalar,
  kSame,
  kInt,
  kFloat,
  kComplex,
  kObject,
  kAnyInt,
  kAnyFloat,
  kAnyComplex,
  kTuple,
  kList,
  kDict,
  kOwner,
  kSameOwner,
  kAbsent,
  kScalarBits
};
constexpr int kMaxDepth = 4;
// Items of a list or dict in an attribute. Most longer ones grow from call to call.
constexpr Py_ssize_t kMaxHeld = 256;
// Looking at so many items would take longer than many a function.
constexpr Py_ssize_t kMaxItems = 4096;
constexpr std::uint32_t kFew = 16;  // arguments; more are not compared with each one
constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x9E3779B97F4A7C15ull + (hash >> 31);
}

// Collects what the arguments add to the kind of a call.
struct Kind {
  std::uint64_t hash = 1;
  std::size_t bytes = 0;
  bool objects = false, arrays = false;
  static constexpr int kMostObjects = 64, kFew = 4;
  int objects_left = kMostObjects;
  Py_ssize_t containing = 0;  // items of containers, those that are not looked at as well

  void add(PyObject* object) {
    if (--objects_left < 0) return;
    hash = mixed(hash, reinterpret_cast<std::uintptr_t>(Py_TYPE(object)));
    if (PyArray_Check(object)) {
      auto* array = reinterpret_cast<PyArrayObject*>(object);
      const auto size = static_cast<std::size_t>(PyArray_NBYTES(array));
      bytes += size;
      arrays = true;
      hash = mixed(hash, static_cast<std::uint64_t>(PyArray_TYPE(array)) << 8 |
                             static_cast<std::uint64_t>(std::bit_width(size)));
    } else if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      const auto items = static_cast<std::uint64_t>(size);
      containing += size;
      hash = mixed(hash,
                   items < kFew ? items : static_cast<std::uint64_t>(std::bit_width(items)) << 8);
      // Equal ones in a row count once: many a list grows from call to call.
      const std::uint64_t outside = hash;
      std::uint64_t last = 0;
      for (Py_ssize_t i = 0; i < size && objects_left > 0; ++i) {
        const std::uint64_t so_far = hash;
        hash = outside;
        add(PySequence_Fast_GET_ITEM(object, i));
        const std::uint64_t item = std::exchange(hash, so_far);
        if (i < kFew || item != last) hash = mixed(hash, item);
        last = item;
      }
    } else if (PyDict_CheckExact(object)) {
      containing += PyDict_GET_SIZE(object);
      PyObject *key, *value;
      for (Py_ssize_t at = 0; objects_left > 0 && PyDict_Next(object, &at, &key, &value);)
        add(value);
    } else {
      objects |= object != Py_None && !PyLong_Check(object) && !PyFloat_Check(object) &&
                 !PyComplex_Check(object) && !PyUnicode_Check(object) &&
                 !PyArray_CheckScalar(object);
    }
  }
};

// Whether an object is a function, type or dtype of NumPy's. These are never freed, and what they
// give depends on their arguments only.
bool is_fixed(PyObject* object) {
  if (PyObject_TypeCheck(object, &PyUFunc_Type))
    return reinterpret_cast<PyUFuncObject*>(object)->obj == nullptr;
  if (PyType_Check(object)) {
    auto* type = reinterpret_cast<PyTypeObject*>(object);
    return !(type->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
           PyType_IsSubtype(type, &PyGenericArrType_Type);
  }
  if (PyArray_DescrCheck(object))
    return dtype_of(reinterpret_cast<PyArray_Descr*>(object)).has_value();
  return is_dispatcher(object);
}

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

bool NumberPlaces::has_position(Py_ssize_t position) const {
  const auto at = static_cast<std::size_t>(position);
  return at < positions.size() && positions[at];
}

bool NumberPlaces::has_name(PyObject* name) const {
  return std::ranges::any_of(names, [&](const py::object& known) {
    return known.ptr() == name || PyUnicode_Compare(known.ptr(), name) == 0;
  });
}

// One after the other: the last reference to an object may run Python code that reads this
// signature anew.
void Signature::let_go() {
  while (!held_.empty()) {
    const py::object last = std::move(held_.back());
    held_.pop_back();
  }
}

void Signature::clear() {
  words.clear();
  objects.clear();
  arguments.clear();
  numbers.clear();
  attribute_numbers.clear();
  flags.clear();
  owners.clear();
  containers_.clear();
  places_.clear();
  inside_ = 0;
  items_ = 0;
  let_go();
  hash = 0;
}

bool Signature::read(PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                     const NumberPlaces& places, ObjectSchemas& schemas) {
  clear();
  schemas_ = &schemas;
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  words.push_back(static_cast<std::uint64_t>(count));
  for (Py_ssize_t i = 0; i < named; ++i) objects.push_back(PyTuple_GET_ITEM(keywords, i));
  for (Py_ssize_t i = 0; i < count + named; ++i) {
    const bool is_operand =
        i < count ? places.has_position(i) : places.has_name(PyTuple_GET_ITEM(keywords, i - count));
    if (is_operand && is_plain_number(args[i])) {
      add_number(args[i]);
    } else if (!add(args[i])) {
      return false;
    }
  }
  if (!arrays_are_apart()) return false;
  for (std::uint64_t word : words) hash = mixed(hash, word);
  return true;
}

void Signature::add_number(PyObject* number) {
  words.push_back(PyFloat_CheckExact(number)  ? kAnyFloat
                  : PyLong_CheckExact(number) ? kAnyInt
                                              : kAnyComplex);
  numbers.push_back(number);
}

bool Signature::add(PyObject* object, int depth) {
  if (PyArray_CheckExact(object)) return add_array(reinterpret_cast<PyArrayObject*>(object));
  if (PyFloat_CheckExact(object)) {
    words.insert(words.end(), {kFloat, bits_of(PyFloat_AS_DOUBLE(object))});
    return true;
  }
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    words.insert(words.end(), {kInt, static_cast<std::uint64_t>(value)});
    return overflow == 0;
  }
  if (PyComplex_CheckExact(object)) {
    const Py_complex value = PyComplex_AsCComplex(object);
    words.insert(words.end(), {kComplex, bits_of(value.real), bits_of(value.imag)});
    return true;
  }
  if (object == Py_None || PyBool_Check(object) || PyUnicode_CheckExact(object) ||
      is_fixed(object)) {
    words.push_back(kObject);
    objects.push_back(object);
    return true;
  }
  if (const auto dtype = scalar_dtype(object)) {
    if (inside_ > 0) {
      // Traced code gets the scalar itself, which is no argument.
      const ir::Scalar scalar = ir::without_padding(scalar_bits(object, *dtype), *dtype);
      words.insert(words.end(), {kScalarBits, static_cast<std::uint64_t>(*dtype)});
      words.insert(words.end(), std::begin(scalar.bits), std::end(scalar.bits));
      return true;
    }
    if (!add_argument(object)) return true;
    words.insert(words.end(), {kScalar, static_cast<std::uint64_t>(*dtype)});
    return true;
  }
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object))
    return add_container(object, depth);
  return add_owner(object, depth);
}

bool Signature::add_container(PyObject* object, int depth) {
  const bool is_tuple = PyTuple_CheckExact(object), is_list = PyList_CheckExact(object);
  const Py_ssize_t size = PyObject_Size(object);
  items_ += size;
  if (depth == kMaxDepth || size > (inside_ > 0 ? kMaxHeld : kMaxItems) || items_ > kMaxItems ||
      containers_.size() == kMaxContainers)
    return false;
  if (std::ranges::find(containers_, object) != containers_.end()) return false;
  containers_.push_back(object);
  if (is_tuple || is_list) {
    words.insert(words.end(), {is_tuple ? kTuple : kList, static_cast<std::uint64_t>(size)});
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(object, i);
      // The signature has a number's value, and not the object.
      if (is_list && !is_plain_number(item)) held_.push_back(borrow(item));
      if (!add(item, depth + 1)) return false;
    }
    return true;
  }
  words.insert(words.end(), {kDict, static_cast<std::uint64_t>(PyDict_GET_SIZE(object))});
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
    if (!PyUnicode_CheckExact(key)) return false;
    held_.push_back(borrow(key));
    held_.push_back(borrow(value));
    objects.push_back(key);
    if (!add(value, depth + 1)) return false;
  }
  return true;
}

// An object of a class of the user's, with the attributes that recorded calls have read.
bool Signature::add_owner(PyObject* object, int depth) {
  const auto known = std::ranges::find(owners, object);
  if (known != owners.end()) {
    words.insert(words.end(), {kSameOwner, static_cast<std::uint64_t>(known - owners.begin())});
    return true;
  }
  const ObjectSchema* schema = depth < kMaxDepth ? schemas_->of(object) : nullptr;
  if (schema == nullptr) return false;
  const std::size_t owner = owners.size();
  owners.push_back(object);
  words.insert(words.end(), {kOwner, reinterpret_cast<std::uintptr_t>(Py_TYPE(object)),
                             schema->version, schema->names.size()});
  ++inside_;
  const py::object attributes = attributes_of(object);
  // Asked for again each time: objects in the attributes may add schemas, which moves this one.
  for (std::size_t i = 0; i < schemas_->of(object)->names.size(); ++i) {
    PyObject* name = schemas_->of(object)->names[i].ptr();
    PyObject* value = PyDict_GetItemWithError(attributes.ptr(), name);
    if (value == nullptr) {
      if (PyErr_Occurred()) throw py::error_already_set();
      words.push_back(kAbsent);
      continue;
    }
    held_.push_back(borrow(value));
    if (is_plain_number(value)) {
      // Where its value is used otherwise than as an operand, the recording's history notes that.
      attribute_numbers.push_back({owner, name, static_cast<int>(numbers.size())});
      add_number(value);
    } else if (!add(value, depth + 1)) {
      return false;
    }
  }
  --inside_;
  return true;
}

// False where it is one of those before; the words then tell which.
bool Signature::add_argument(PyObject* argument) {
  const auto count = static_cast<std::uint32_t>(arguments.size());
  std::uint32_t place = count;
  if (count < kFew) {
    place = static_cast<std::uint32_t>(std::ranges::find(arguments, argument) - arguments.begin());
  } else {
    if (places_.size() <= 2 * count) {
      places_.assign(std::bit_ceil(4 * std::size_t{count}), kNowhere);
      for (std::uint32_t i = 0; i < count; ++i) place_of(arguments[i]) = i;
    }
    std::uint32_t& known = place_of(argument);
    place = known = std::min(known, count);
  }
  if (place < count) {
    words.insert(words.end(), {kSame, place});
    return false;
  }
  arguments.push_back(argument);
  return true;
}

// kNowhere where it is new. Half of the table is empty at least.
std::uint32_t& Signature::place_of(PyObject* argument) {
  const std::size_t mask = places_.size() - 1;
  std::size_t at = mixed(0, reinterpret_cast<std::uintptr_t>(argument)) >> 32;
  while (places_[at & mask] != kNowhere && arguments[places_[at & mask]] != argument) ++at;
  return places_[at & mask];
}

bool Signature::add_array(PyArrayObject* array) {
  auto* object = reinterpret_cast<PyObject*>(array);
  if (!add_argument(object)) return true;
  const int array_flags = PyArray_FLAGS(array);
  PyArray_Descr* descr = PyArray_DESCR(array);
  if (!(array_flags & NPY_ARRAY_ALIGNED) || !dtype_of(descr)) return false;
  const int ndim = PyArray_NDIM(array);
  const std::uint64_t writeable = array_flags & NPY_ARRAY_WRITEABLE ? 1 : 0;
  const std::uint64_t warned = warns_of_writes(array) ? 2 : 0;
  words.push_back(kArray | static_cast<std::uint64_t>(descr->type_num) << 8 |
                  static_cast<std::uint64_t>(ndim) << 16 | (writeable | warned) << 32);
  words.insert(words.end(), PyArray_DIMS(array), PyArray_DIMS(array) + ndim);
  words.insert(words.end(), PyArray_STRIDES(array), PyArray_STRIDES(array) + ndim);
  flags.push_back(array_flags);
  return true;
}

// Calls whose arguments overlap are traced each time, for which writes can wait depends on it.
bool Signature::arrays_are_apart() {
  reaches_.clear();
  for (PyObject* object : arguments) {
    if (!PyArray_CheckExact(object)) continue;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    reaches_.push_back({byte_range(array), static_cast<bool>(PyArray_ISWRITEABLE(array))});
  }
  return !tracer::any_written_overlap(reaches_);
}

CallKind kind_of_call(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  Kind kind;
  for (Py_ssize_t i = 0; i < count + named; ++i) kind.add(args[i]);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const Py_hash_t name = PyObject_Hash(PyTuple_GET_ITEM(keywords, i));
    kind.hash = mixed(kind.hash, static_cast<std::uint64_t>(name));
  }
  const bool numbers = kind.objects_left <= 0 && !kind.objects && !kind.arrays;
  const bool many = numbers || kind.containing > kMaxItems;
  if (kind.objects_left < 0 && !numbers) return {.many = many};
  return {kind.hash != 0 ? kind.hash : 1, many, kind.bytes, kind.objects};
}

}  // namespace ufuse::pyext
