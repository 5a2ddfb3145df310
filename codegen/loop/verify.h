// Is a kernel well formed? Checked in debug and sanitizer builds after lowering and between passes.
#pragma once

#include <string_view>

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// InternalError that says what is wrong, at which statement and after which pass.
void verify(const Kernel& kernel, std::string_view after);

}  // namespace ufuse::codegen::loop
