// Scans of the interpreter: one line after the other, each from its first element on.
#pragma once

#include "ir/interp/pulse.h"
#include "ir/interp/value.h"

namespace ufuse::ir::interp {

Value scan(const Node& node, const Value& x, const Pulse& pulse);

}  // namespace ufuse::ir::interp
