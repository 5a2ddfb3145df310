// A program as C++ text: one function that takes a frame and returns the exit that it took. It
// decides nothing. The text goes to codegen/jit behind the runtime preamble; there it has no
// comments that name lines, so that a loop need not be compiled again where the lines above it have
// changed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/program/frame.h"
#include "ir/program/program.h"

namespace ufuse::codegen {

struct PrintedProgram {
  std::string text;  // without what all programs start with
  std::vector<std::uint32_t>
      rows;  // of the LoopTable, in the order in which the text asks for them
};
enum class LineComments : std::uint8_t { No, Yes };
PrintedProgram print_cpp(const ir::program::Program& program, const FrameLayout& frame,
                         LineComments comments = LineComments::No);

// What all programs start with, behind the runtime preamble.
std::string program_preamble();

}  // namespace ufuse::codegen
