// Which requests are alike? Equal keys may share an Executable.
#pragma once

#include <string>

#include "ir/backend.h"
#include "ir/graph.h"

namespace ufuse::codegen {

// Everything that the compiled loops of a graph depend on, byte for byte.
std::string request_key(const ir::Graph& graph, const ir::RunArgs& layouts);

}  // namespace ufuse::codegen
