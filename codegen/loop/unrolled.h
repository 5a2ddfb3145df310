// A reduction of a few elements, written out: in which order are they combined?
//
// The elements are values already, in C order; what is written is NumPy's own order, bit for bit.
// Called by values.cpp. It knows values and their kinds, not where they came from.
#pragma once

#include <vector>

#include "codegen/loop/nest.h"
#include "ir/graph.h"

namespace ufuse::codegen::loop {

// The reduction `n` of `x`, whose reduced axes have these extents, on top of `initial` (-1: none).
ValueId unrolled_reduce(Nest& nest, const ir::Node& n, const std::vector<ValueId>& x,
                        const ir::Dims& extents, ValueId initial);

// Position of the smallest or largest element.
ValueId unrolled_arg(Nest& nest, const std::vector<ValueId>& x, bool largest);

// The same for square roots, given their squares: roots are slow, and the position of the extreme
// one is mostly that of the extreme square. Where two squares are so close that their roots may be
// equal, or one has none, the innermost scope is put in doubt, to be computed again with roots.
ValueId unrolled_arg_of_roots(Nest& nest, const std::vector<ValueId>& squares, bool largest);

// Floats as integers, so that a plain comparison prefers the first NaN and takes both zeros for
// equal.
ValueId arg_key(Nest& nest, ValueId x, bool largest);

}  // namespace ufuse::codegen::loop
