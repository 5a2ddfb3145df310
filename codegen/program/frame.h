// Where does a program find what it begins with, and leave what Python goes on with?
//
// The frame is a row of 64-bit words: a question to ask from time to time, how many chances to exit
// are not taken (for tests; 0: none is), the arrays that the program has made (rt::NewArray), then
// where the program uses lists what reads and writes them (rt::Lists), and a place for each
// register and array that an input, an exit or the loop's head names. pyext fills it, runs the
// program and reads it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace ufuse::codegen {

// In words. An array has its address, the object that it is or is a view of (of a new array its
// address, and kNew), whether it is a view, and then its lengths and its strides in bytes.
struct FrameLayout {
  // int (*)(void*) and its argument: for how many rounds of loops it need not be asked again;
  // negative: the program exits.
  static constexpr std::size_t kAsk = 0, kAsked = 1;
  static constexpr std::size_t kChances = 2, kNewArrays = 3;
  static constexpr std::uint64_t kNew = 1;
  static constexpr std::size_t kData = 0, kObject = 1, kIsView = 2, kLengths = 3;

  explicit FrameLayout(const ir::program::Program& program);

  // 0: it has no place.
  std::vector<std::size_t> registers, arrays;
  std::size_t lists = 0;
  std::size_t words = 4;

  static std::size_t strides(int rank) { return kLengths + static_cast<std::size_t>(rank); }
};

}  // namespace ufuse::codegen
