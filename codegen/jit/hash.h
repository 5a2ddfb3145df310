// A 128-bit name for a text.
//
// FNV-1a: names files and checks them for damage. Not for defence against an attacker: keys are
// compared in full, and the cache folder is ours alone. Used by cache.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ufuse::codegen {

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  std::string hex() const {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const std::uint64_t word : {high, low})
      for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
    return text;
  }
};

inline Hash128 hash128(std::string_view text) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kPrime = (Wide{1} << 88) + 0x13b;
  Wide hash = (Wide{0x6c62272e07bb0142u} << 64) + 0x62b821756295c58du;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kPrime;
  return {static_cast<std::uint64_t>(hash >> 64), static_cast<std::uint64_t>(hash)};
}

}  // namespace ufuse::codegen
