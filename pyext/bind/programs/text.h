// The text of a loop as `ufuse.source.reading` hands it over, nested tuples, as numpy_shim reads
// it.
#pragma once

#include "numpy_shim/program/source.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

numpy_shim::program::Statement read_statement(const py::handle& tree);
numpy_shim::program::Statements read_statements(const py::handle& trees);
std::vector<std::string> read_names(const py::handle& names);

}  // namespace ufuse::pyext
