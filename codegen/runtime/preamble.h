// What does every generated source begin with?
//
// The text of abi.h, prelude.h, support.h and folds.h, in this order; where it has halves, also
// that of prelude_half.h. Handed to the Jit by codegen/compile.cpp.
#pragma once

#include <string>

namespace ufuse::codegen {

std::string runtime_preamble();
std::string runtime_half();

}  // namespace ufuse::codegen
