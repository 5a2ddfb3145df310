// See boxes.h.
#include "pyext/bind/programs/boxes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "codegen/runtime/abi.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/programs/generators.h"

namespace ufuse::pyext {

using codegen::FrameLayout;
using ir::DType;
using ir::program::Box;
using ir::program::Where;
using numpy_shim::program::Given;

namespace {

constexpr Py_ssize_t kMostParts = 8;  // of a tuple
constexpr int kDeepest = 4;           // tuples and lists inside one another

// Memory of arrays that programs have made, for the next program: the system takes long to give it.
// Who changes it holds Python's lock.
constexpr std::int64_t kMostSpare = std::int64_t{2} << 20;  // bytes
rt::NewArray* spare_arrays = nullptr;

const rt::NewArray* new_array(std::uint64_t word) {
  return reinterpret_cast<const rt::NewArray*>(word & ~FrameLayout::kNew);
}

Given number(DType dtype, Box box) {
  Given given;
  given.kind = Given::Kind::Number;
  given.dtype = dtype;
  given.box = box;
  return given;
}

py::object boxed(DType dtype, Box box, const void* word) {
  if (box == Box::NumPy) return scalar_object(dtype, word);
  switch (dtype) {
    case DType::Bool: {
      bool value;
      std::memcpy(&value, word, sizeof value);
      return borrow(value ? Py_True : Py_False);
    }
    case DType::Int64: {
      std::int64_t value;
      std::memcpy(&value, word, sizeof value);
      return steal(PyLong_FromLongLong(value));
    }
    case DType::Float64: {
      double value;
      std::memcpy(&value, word, sizeof value);
      return steal(PyFloat_FromDouble(value));
    }
    case DType::Complex128: {
      double parts[2];
      std::memcpy(parts, word, sizeof parts);
      return steal(PyComplex_FromDoubles(parts[0], parts[1]));
    }
    default:
      throw InternalError("Python has no number of this dtype");
  }
}

bool may_be_in_list(const Given& item);
bool may_be_in_tuple(const Given& item) {
  return item.kind != Given::Kind::List && may_be_in_list(item);
}

// Whether programs know lists of such items.
bool may_be_in_list(const Given& item) {
  if (item.kind == Given::Kind::Tuple)
    return !item.parts.empty() && std::ranges::all_of(item.parts, may_be_in_tuple);
  if (item.kind != Given::Kind::Number) return item.kind == Given::Kind::List;
  return item.dtype != DType::Float16 && item.dtype != DType::UInt64 &&
         ir::real_part(item.dtype) != DType::LongDouble;
}

// `depth`: of the tuples and lists that it stands in.
Given given_inside(PyObject* object, int depth) {
  Given given;
  if (object == nullptr) {
    given.kind = Given::Kind::Unbound;
  } else if (object == Py_None) {
    given.kind = Given::Kind::Nothing;
  } else if (PyBool_Check(object)) {
    return number(DType::Bool, Box::Python);
  } else if (PyLong_CheckExact(object)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return number(DType::Int64, Box::Python);
  } else if (PyFloat_CheckExact(object)) {
    return number(DType::Float64, Box::Python);
  } else if (PyComplex_CheckExact(object)) {
    return number(DType::Complex128, Box::Python);
  } else if (const auto dtype = scalar_dtype(object)) {
    return number(*dtype, Box::NumPy);
  } else if (is_supported_array(object)) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    given.kind = Given::Kind::Array;
    given.dtype = *dtype_of_number(PyArray_TYPE(array));
    given.rank = PyArray_NDIM(array);
    given.writeable = PyArray_ISWRITEABLE(array) && !warns_of_writes(array);
  } else if (PyList_CheckExact(object) && depth < kDeepest) {
    if (PyList_GET_SIZE(object) > 0) {
      Given item = given_inside(PyList_GET_ITEM(object, 0), depth + 1);
      if (!may_be_in_list(item)) return given;
      given.parts.push_back(std::move(item));
    }
    given.kind = Given::Kind::List;
  } else if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) <= kMostParts &&
             depth < kDeepest) {
    given.kind = Given::Kind::Tuple;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      given.parts.push_back(given_inside(PyTuple_GET_ITEM(object, i), depth + 1));
      if (given.parts.back().kind == Given::Kind::Other) return {};
    }
  } else if (const std::string_view of = generator_class(object); !of.empty() && depth == 0) {
    given.kind = Given::Kind::Generator;
    given.name = of;
  }
  return given;
}

}  // namespace

Given given_of(PyObject* object) { return given_inside(object, 0); }

Given given_of_traced(PyObject* object) {
  if (object == nullptr) return given_of(object);
  if (is_number(object)) return given_of(as_number(object)->value);
  if (!is_lazy(object)) return given_of(object);
  const LazyArray& array = as_lazy(object)->array;
  if (array.scalar) return number(array.layout.dtype, Box::NumPy);
  Given given;
  given.kind = Given::Kind::Array;
  given.dtype = array.layout.dtype;
  given.rank = static_cast<int>(array.layout.shape.size());
  given.writeable = array.is_writeable();
  return given;
}

std::int64_t Frame::integer(ir::program::Reg r) const {
  std::int64_t value;
  std::memcpy(&value, word_of(r), sizeof value);
  return value;
}
void Frame::set_integer(ir::program::Reg r, std::int64_t value) {
  std::memcpy(word_of(r), &value, sizeof value);
}

std::vector<std::uint64_t> Frame::words_at(const Where& where) const {
  const auto of = static_cast<std::size_t>(where.reg);
  const bool is_array = where.kind == Where::Kind::Array;
  const std::size_t at = is_array ? layout_.arrays[of] : layout_.registers[of];
  const std::size_t count =
      is_array ? 2 * FrameLayout::strides(program_.arrays[of].rank) - FrameLayout::kLengths
               : (ir::size_of(program_.registers[of].dtype) + 7) / 8;
  const auto first = words_.begin() + static_cast<std::ptrdiff_t>(at);
  std::vector<std::uint64_t> words(first, first + static_cast<std::ptrdiff_t>(count));
  if (where.numpy != ir::program::kNone)
    words.push_back(words_[layout_.registers[static_cast<std::size_t>(where.numpy)]]);
  return words;
}
bool Frame::is_new(const Where& where) const {
  return where.kind == Where::Kind::Array &&
         (words_at(where)[FrameLayout::kObject] & FrameLayout::kNew) != 0;
}

void Frame::put(const Where& where, PyObject* object) {
  if (where.kind == Where::Kind::Tuple) {
    for (std::size_t i = 0; i < where.parts.size(); ++i)
      put(where.parts[i], PyTuple_GET_ITEM(object, static_cast<Py_ssize_t>(i)));
  } else if (where.kind == Where::Kind::Object) {
    std::memcpy(word_of(where.reg), &object, sizeof object);
  } else if (where.kind == Where::Kind::Array) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const int rank = PyArray_NDIM(array);
    std::uint64_t* words = &words_[layout_.arrays[static_cast<std::size_t>(where.reg)]];
    words[FrameLayout::kData] = reinterpret_cast<std::uint64_t>(PyArray_DATA(array));
    words[FrameLayout::kObject] = reinterpret_cast<std::uint64_t>(object);
    words[FrameLayout::kIsView] = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const auto k = static_cast<std::size_t>(axis);
      words[FrameLayout::kLengths + k] = static_cast<std::uint64_t>(PyArray_DIM(array, axis));
      words[FrameLayout::strides(rank) + k] =
          static_cast<std::uint64_t>(PyArray_STRIDE(array, axis));
    }
  } else if (where.kind == Where::Kind::Number) {
    const DType dtype = program_.registers[static_cast<std::size_t>(where.reg)].dtype;
    ir::Scalar bits;
    if (PyBool_Check(object)) {
      bits.bits[0] = object == Py_True;
    } else if (PyLong_CheckExact(object)) {
      bits.bits[0] = static_cast<std::uint64_t>(PyLong_AsLongLong(object));
    } else if (PyFloat_CheckExact(object)) {
      const double value = PyFloat_AS_DOUBLE(object);
      std::memcpy(bits.bits, &value, sizeof value);
    } else if (PyComplex_CheckExact(object)) {
      const Py_complex value = PyComplex_AsCComplex(object);
      std::memcpy(bits.bits, &value, sizeof value);
    } else {
      bits = scalar_bits(object, dtype);
    }
    std::memcpy(word_of(where.reg), bits.bits, ir::size_of(dtype));
    if (where.box != Box::Either) return;
    const bool of_numpy = scalar_dtype(object).has_value();
    std::memcpy(word_of(where.numpy), &of_numpy, sizeof of_numpy);
  }
}

// What an array is, or is a view of. Of one that the program has made NumPy gets a copy.
py::object Frame::object_of(std::uint64_t word) {
  if ((word & FrameLayout::kNew) == 0) return borrow(reinterpret_cast<PyObject*>(word));
  py::object& made = made_[word];
  if (made) return made;
  const rt::NewArray& array = *new_array(word);
  std::vector<npy_intp> lengths(array.lengths, array.lengths + array.rank);
  const auto dtype = static_cast<DType>(array.dtype);
  made = steal(PyArray_SimpleNew(static_cast<int>(array.rank), lengths.data(), type_number(dtype)));
  auto* copy = reinterpret_cast<PyArrayObject*>(made.ptr());
  std::memcpy(PyArray_DATA(copy), &array + 1, static_cast<std::size_t>(PyArray_NBYTES(copy)));
  return made;
}

Frame::Frame(const ir::program::Program& program, const codegen::FrameLayout& layout)
    : program_(program), layout_(layout), words_(layout.words) {
  words_[FrameLayout::kNewArrays] =
      reinterpret_cast<std::uint64_t>(std::exchange(spare_arrays, nullptr));
}

Frame::~Frame() {
  std::int64_t kept = 0;
  for (const rt::NewArray* each = spare_arrays; each != nullptr; each = each->next)
    kept += each->capacity;
  auto* next = reinterpret_cast<rt::NewArray*>(words_[FrameLayout::kNewArrays]);
  while (rt::NewArray* const each = next) {
    next = each->next;
    kept += each->capacity;
    if (kept > kMostSpare) {
      std::free(each);
    } else {
      each->next = spare_arrays;
      spare_arrays = each;
    }
  }
}

py::object Frame::get(const Where& where, const std::vector<py::object>& entered) {
  using enum Where::Kind;
  switch (where.kind) {
    case Unbound:
      return {};
    case Nothing:
      return py::none();
    case Same:
      return entered[static_cast<std::size_t>(where.reg)];
    case Number: {
      Box box = where.box;
      if (box == Box::Either) {
        bool of_numpy;
        std::memcpy(&of_numpy, word_of(where.numpy), sizeof of_numpy);
        box = of_numpy ? Box::NumPy : Box::Python;
      }
      const DType dtype = program_.registers[static_cast<std::size_t>(where.reg)].dtype;
      return boxed(dtype, box, word_of(where.reg));
    }
    case Array: {
      const auto& of = program_.arrays[static_cast<std::size_t>(where.reg)];
      const std::uint64_t* words = &words_[layout_.arrays[static_cast<std::size_t>(where.reg)]];
      const py::object object = object_of(words[FrameLayout::kObject]);
      if (words[FrameLayout::kIsView] == 0) return object;
      Layout layout{of.dtype, {}, {}};
      for (int axis = 0; axis < of.rank; ++axis) {
        const auto k = static_cast<std::size_t>(axis);
        layout.shape.push_back(static_cast<std::int64_t>(words[FrameLayout::kLengths + k]));
        layout.strides.push_back(
            static_cast<std::int64_t>(words[FrameLayout::strides(of.rank) + k]));
      }
      auto* whole = reinterpret_cast<PyArrayObject*>(object.ptr());
      std::uint64_t at = words[FrameLayout::kData];
      if (words[FrameLayout::kObject] & FrameLayout::kNew)
        at += reinterpret_cast<std::uint64_t>(PyArray_DATA(whole)) -
              reinterpret_cast<std::uint64_t>(new_array(words[FrameLayout::kObject]) + 1);
      return array_on(layout, reinterpret_cast<void*>(at), PyArray_ISWRITEABLE(whole) != 0,
                      object.ptr(), warns_of_writes(whole));
    }
    case Object: {
      PyObject* object;
      std::memcpy(&object, word_of(where.reg), sizeof object);
      return borrow(object);
    }
    case Tuple: {
      py::tuple made(where.parts.size());
      for (std::size_t i = 0; i < where.parts.size(); ++i) made[i] = get(where.parts[i], entered);
      return made;
    }
    case OneOf:
      return get(where.parts.at(static_cast<std::size_t>(integer(where.reg))), entered);
  }
  throw InternalError("a place of unknown kind");
}

}  // namespace ufuse::pyext
