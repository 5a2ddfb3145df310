// See signature.h.
#include "pyext/bind/signature.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "pyext/bind/numbers.h"
#include "pyext/bind/numpy_facts.h"
#include "tracer/storage.h"

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
  kDict
};
constexpr int kMaxDepth = 4;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x9E3779B97F4A7C15ull + (hash >> 31);
}

// What an argument adds to the kind of a call.
struct Kind {
  std::uint64_t hash = 1;
  std::size_t bytes = 0;
  bool objects = false;
  int objects_left = 64;

  void add(PyObject* object) {
    if (--objects_left < 0) return;
    hash = mixed(hash, reinterpret_cast<std::uintptr_t>(Py_TYPE(object)));
    if (PyArray_Check(object)) {
      auto* array = reinterpret_cast<PyArrayObject*>(object);
      const auto size = static_cast<std::size_t>(PyArray_NBYTES(array));
      bytes += size;
      hash = mixed(hash, static_cast<std::uint64_t>(PyArray_TYPE(array)) << 8 |
                             static_cast<std::uint64_t>(std::bit_width(size)));
    } else if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
      hash = mixed(hash, static_cast<std::uint64_t>(size));
      for (Py_ssize_t i = 0; i < size && objects_left > 0; ++i)
        add(PySequence_Fast_GET_ITEM(object, i));
    } else if (PyDict_CheckExact(object)) {
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

void Signature::clear() {
  words.clear();
  objects.clear();
  arguments.clear();
  numbers.clear();
  flags.clear();
  containers_.clear();
  held_.clear();
  hash = 0;
}

bool Signature::read(PyObject* const* args, Py_ssize_t count, PyObject* keywords,
                     const NumberPlaces& places) {
  clear();
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  words.push_back(static_cast<std::uint64_t>(count));
  for (Py_ssize_t i = 0; i < named; ++i) objects.push_back(PyTuple_GET_ITEM(keywords, i));
  for (Py_ssize_t i = 0; i < count + named; ++i) {
    const bool is_operand =
        i < count ? places.has_position(i) : places.has_name(PyTuple_GET_ITEM(keywords, i - count));
    if (is_operand && is_plain_number(args[i])) {
      words.push_back(PyFloat_CheckExact(args[i])  ? kAnyFloat
                      : PyLong_CheckExact(args[i]) ? kAnyInt
                                                   : kAnyComplex);
      numbers.push_back(args[i]);
    } else if (!add(args[i])) {
      return false;
    }
  }
  if (!arrays_are_apart()) return false;
  for (std::uint64_t word : words) hash = mixed(hash, word);
  return true;
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
  if (object == Py_None || PyBool_Check(object) || PyUnicode_CheckExact(object)) {
    words.push_back(kObject);
    objects.push_back(object);
    return true;
  }
  if (const auto dtype = scalar_dtype(object)) {
    const auto known = std::ranges::find(arguments, object);
    if (known != arguments.end()) {
      words.insert(words.end(), {kSame, static_cast<std::uint64_t>(known - arguments.begin())});
      return true;
    }
    arguments.push_back(object);
    words.insert(words.end(), {kScalar, static_cast<std::uint64_t>(*dtype)});
    return true;
  }
  return add_container(object, depth);
}

bool Signature::add_container(PyObject* object, int depth) {
  const bool is_tuple = PyTuple_CheckExact(object), is_list = PyList_CheckExact(object);
  if ((!is_tuple && !is_list && !PyDict_CheckExact(object)) || depth == kMaxDepth) return false;
  if (std::ranges::find(containers_, object) != containers_.end()) return false;
  containers_.push_back(object);
  if (is_tuple || is_list) {
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(object);
    words.insert(words.end(), {is_tuple ? kTuple : kList, static_cast<std::uint64_t>(size)});
    for (Py_ssize_t i = 0; i < size; ++i) {
      PyObject* item = PySequence_Fast_GET_ITEM(object, i);
      if (is_list) held_.push_back(borrow(item));
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

bool Signature::add_array(PyArrayObject* array) {
  auto* object = reinterpret_cast<PyObject*>(array);
  const auto known = std::ranges::find(arguments, object);
  if (known != arguments.end()) {
    words.insert(words.end(), {kSame, static_cast<std::uint64_t>(known - arguments.begin())});
    return true;
  }
  const int array_flags = PyArray_FLAGS(array);
  PyArray_Descr* descr = PyArray_DESCR(array);
  if (!(array_flags & NPY_ARRAY_ALIGNED) || !dtype_of(descr)) return false;
  const int ndim = PyArray_NDIM(array);
  const std::uint64_t writeable = array_flags & NPY_ARRAY_WRITEABLE ? 1 : 0;
  words.push_back(kArray | static_cast<std::uint64_t>(descr->type_num) << 8 |
                  static_cast<std::uint64_t>(ndim) << 16 | writeable << 32);
  words.insert(words.end(), PyArray_DIMS(array), PyArray_DIMS(array) + ndim);
  words.insert(words.end(), PyArray_STRIDES(array), PyArray_STRIDES(array) + ndim);
  arguments.push_back(object);
  flags.push_back(array_flags);
  return true;
}

// Overlapping arguments are traced each time: what may be put off depends on it.
bool Signature::arrays_are_apart() const {
  struct Range {
    const char *low, *high;
    bool writeable;
  };
  Range ranges[8];
  std::size_t count = 0;
  for (PyObject* object : arguments) {
    if (!PyArray_CheckExact(object)) continue;
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    Range range{PyArray_BYTES(array), PyArray_BYTES(array) + PyArray_ITEMSIZE(array),
                static_cast<bool>(PyArray_ISWRITEABLE(array))};
    for (int a = 0; a < PyArray_NDIM(array); ++a) {
      const npy_intp span = (PyArray_DIM(array, a) - 1) * PyArray_STRIDE(array, a);
      if (PyArray_DIM(array, a) == 0) range.high = range.low;
      (span < 0 ? range.low : range.high) += span;
    }
    if (PyArray_SIZE(array) == 0) continue;
    if (count == std::size(ranges)) return false;
    for (std::size_t i = 0; i < count; ++i)
      if ((ranges[i].writeable || range.writeable) && ranges[i].low < range.high &&
          range.low < ranges[i].high)
        return false;
    ranges[count++] = range;
  }
  return true;
}

CallKind kind_of_call(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
  Kind kind;
  for (Py_ssize_t i = 0; i < count + named; ++i) kind.add(args[i]);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const Py_hash_t name = PyObject_Hash(PyTuple_GET_ITEM(keywords, i));
    kind.hash = mixed(kind.hash, static_cast<std::uint64_t>(name));
  }
  if (kind.objects_left < 0) return {};
  return {kind.hash != 0 ? kind.hash : 1, kind.bytes, kind.objects};
}

}  // namespace ufuse::pyext
