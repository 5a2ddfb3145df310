// What an element is: facts about dtypes, all read from dtypes.def. Every folder uses this.
// A *choice* of dtype (promotion, casting rules) is NumPy's affair and stands in
// numpy_shim/promote.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace ufuse::ir {

enum class Kind : std::uint8_t { Bool = 1, Int = 2, UInt = 4, Float = 8, Complex = 16 };

// A set of kinds, as the `accepts` column of ops.def.
using Kinds = std::uint8_t;
inline constexpr Kinds kBool = 1, kInt = 2, kUInt = 4, kFloat = 8, kComplex = 16;
inline constexpr Kinds kInteger = kInt | kUInt;
inline constexpr Kinds kReal = kInteger | kFloat;
inline constexpr Kinds kInexact = kFloat | kComplex;
inline constexpr Kinds kNumber = kReal | kComplex;
inline constexpr Kinds kAny = kNumber | kBool;
// In the `accepts` columns: of the kinds named, also float16; also longdouble and clongdouble.
inline constexpr Kinds kHalf = 32, kLong = 64;

enum class DType : std::uint8_t {
#define DTYPE(id, name, ch, kind, size, cpp) id,
#include "ir/dtypes.def"
#undef DTYPE
};

struct DTypeInfo {
  std::string_view name;  // NumPy's name, "float64"
  char code;              // NumPy's character, 'd'
  Kind kind;
  std::size_t size;           // bytes
  std::string_view cpp_type;  // "rt::f64"
};

inline constexpr std::array kDTypes = {
#define DTYPE(id, name, ch, kind, size, cpp) DTypeInfo{name, ch, Kind::kind, size, #cpp},
#include "ir/dtypes.def"
#undef DTYPE
};
inline constexpr std::size_t kDTypeCount = kDTypes.size();

constexpr const DTypeInfo& info(DType t) { return kDTypes[static_cast<std::size_t>(t)]; }
constexpr std::size_t size_of(DType t) { return info(t).size; }
constexpr bool is_in(DType t, Kinds kinds) {
  return (static_cast<Kinds>(info(t).kind) & kinds) != 0;
}
constexpr std::optional<DType> dtype_from_code(char code) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].code == code) return static_cast<DType>(i);
  return std::nullopt;
}
constexpr std::optional<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}
// complex128 -> float64; a real dtype is its own real part's.
constexpr DType real_part(DType t) {
  switch (t) {
    case DType::Complex64:
      return DType::Float32;
    case DType::Complex128:
      return DType::Float64;
    case DType::CLongDouble:
      return DType::LongDouble;
    default:
      return t;
  }
}
// Whether an `accepts` column of ops.def or reductions.def names the dtype.
constexpr bool is_accepted(DType t, Kinds column) {
  const bool half = t == DType::Float16, is_long = real_part(t) == DType::LongDouble;
  return is_in(t, column) && (!half || (column & kHalf)) && (!is_long || (column & kLong));
}
// Bytes of one real number that carry its value: x86's long double has ten, and six that may hold
// anything.
constexpr std::size_t value_bytes(DType t) {
  const bool padded =
      real_part(t) == DType::LongDouble && std::numeric_limits<long double>::digits == 64;
  return padded ? 10 : size_of(real_part(t));
}
// May a cast raise a floating-point flag that NumPy reports? Of integers only one that float16 has
// no finite number for, from 65520 on. Of a float that becomes a wider one, only a signalling NaN.
constexpr bool cast_may_raise(DType from, DType to) {
  if (is_in(from, kInexact)) return to != DType::Bool;
  const bool may_be_too_large = size_of(from) > 2 || from == DType::UInt16;
  return to == DType::Float16 && may_be_too_large;
}

}  // namespace ufuse::ir
