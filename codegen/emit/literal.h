// Constants as C++ text that is exact to the bit. Used by the printer.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ufuse::codegen {

std::string literal(ir::DType dtype, const ir::Scalar& bits);

}  // namespace ufuse::codegen
