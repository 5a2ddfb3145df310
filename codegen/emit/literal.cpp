#include "codegen/emit/literal.h"

#include <bit>
#include <cinttypes>
#include <cmath>
#include <cstdio>

namespace ufuse::codegen {
namespace {

template <class F, class Bits>
std::string real(Bits bits, const char* suffix, const char* type) {
  const F value = std::bit_cast<F>(bits);
  char text[64];
  if (std::isfinite(value))
    std::snprintf(text, sizeof text, "%a%s", static_cast<double>(value), suffix);
  else
    std::snprintf(text, sizeof text, "__builtin_bit_cast(%s, 0x%" PRIx64 "%s)", type,
                  static_cast<std::uint64_t>(bits), sizeof(Bits) == 8 ? "ul" : "u");
  return text;
}
std::string f32(std::uint64_t bits) {
  return real<float>(static_cast<std::uint32_t>(bits), "f", "rt::f32");
}
std::string f64(std::uint64_t bits) { return real<double>(bits, "", "rt::f64"); }

}  // namespace

std::string literal(ir::DType dtype, const ir::Scalar& bits) {
  const std::uint64_t low = bits.bits[0];
  const std::string type(ir::info(dtype).cpp_type);
  switch (ir::info(dtype).kind) {
    case ir::Kind::Bool:
      return (low & 0xff) != 0 ? "rt::b8(true)" : "rt::b8(false)";
    case ir::Kind::Float:
      return dtype == ir::DType::Float32 ? f32(low) : f64(low);
    case ir::Kind::Complex:
      return dtype == ir::DType::Complex64
                 ? type + "{" + f32(low & 0xffffffff) + ", " + f32(low >> 32) + "}"
                 : type + "{" + f64(low) + ", " + f64(bits.bits[1]) + "}";
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
