// Text as print.h writes it back to a graph: for golden files, tests and bug reports. Lines that
// are empty or start with '#' are skipped. Throws InternalError naming the line when the text is no
// well-formed graph.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace ufuse::ir {

// Without `loops`, block calls are taken at their word (operands and result are not checked against
// the loop's types).
Graph parse(std::string_view text, const LoopTable* loops = nullptr);

}  // namespace ufuse::ir
