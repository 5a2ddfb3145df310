#include "codegen/emit/literal.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace ufuse::codegen {
namespace {

// What printf wrote, with a point where the program's locale has another sign.
std::string pointed(std::string text) {
  const std::size_t from = text.find_first_not_of("0123456789abcdefxp+-");
  if (from == text.npos) return text;
  const std::size_t to = text.find_first_of("0123456789abcdefp", from);
  return text.replace(from, to - from, ".");
}

template <class F, class Bits>
std::string real(const char* at, const char* suffix, const char* type) {
  F value;
  Bits bits;
  std::memcpy(&value, at, sizeof value);
  std::memcpy(&bits, at, sizeof bits);
  char text[64];
  if (std::isfinite(value)) {
    std::snprintf(text, sizeof text, "%a", static_cast<double>(value));
    return pointed(text) + suffix;
  }
  std::snprintf(text, sizeof text, "__builtin_bit_cast(%s, 0x%" PRIx64 "%s)", type,
                static_cast<std::uint64_t>(bits), sizeof(Bits) == 8 ? "ul" : "u");
  return text;
}

std::string long_double(const char* at) {
  long double value;
  std::uint64_t bits[2];
  std::memcpy(&value, at, sizeof value);
  std::memcpy(bits, at, sizeof bits);
  char text[80];
  if (std::isfinite(value)) {
    std::snprintf(text, sizeof text, "%La", value);
    return pointed(text) + "L";
  }
  std::snprintf(text, sizeof text, "rt::long_double(0x%" PRIx64 "ul, 0x%" PRIx64 "ul)", bits[0],
                bits[1]);
  return text;
}

std::string real(ir::DType dtype, const char* at) {
  switch (dtype) {
    case ir::DType::Float16: {
      std::uint16_t bits;
      std::memcpy(&bits, at, sizeof bits);
      return "rt::f16::of_bits(" + std::to_string(bits) + ")";
    }
    case ir::DType::Float32:
      return real<float, std::uint32_t>(at, "f", "rt::f32");
    case ir::DType::Float64:
      return real<double, std::uint64_t>(at, "", "rt::f64");
    default:
      return long_double(at);
  }
}

}  // namespace

std::string literal(ir::DType dtype, const ir::Scalar& bits) {
  const std::uint64_t low = bits.bits[0];
  const char* at = reinterpret_cast<const char*>(bits.bits);
  const std::string type(ir::info(dtype).cpp_type);
  switch (ir::info(dtype).kind) {
    case ir::Kind::Bool:
      return (low & 0xff) != 0 ? "rt::b8(true)" : "rt::b8(false)";
    case ir::Kind::Float:
      return real(dtype, at);
    case ir::Kind::Complex: {
      const ir::DType part = ir::real_part(dtype);
      return type + "{" + real(part, at) + ", " + real(part, at + ir::size_of(part)) + "}";
    }
    case ir::Kind::UInt:
      return "(" + type + ")" + std::to_string(low & (~0ul >> (64 - 8 * ir::size_of(dtype)))) +
             "u" + (ir::size_of(dtype) == 8 ? "l" : "");
    case ir::Kind::Int:
      break;
  }
  const int shift = 64 - 8 * static_cast<int>(ir::size_of(dtype));
  const std::int64_t value = static_cast<std::int64_t>(low << shift) >> shift;
  if (value == INT64_MIN) return "(-9223372036854775807l - 1)";
  return "(" + type + ")" + std::to_string(value) + (ir::size_of(dtype) == 8 ? "l" : "");
}

}  // namespace ufuse::codegen
