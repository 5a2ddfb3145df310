// Where does a ufunc's result depend on where its operands and outputs lie? NumPy's inner loops
// choose their code by strides and overlap, and some of it rounds differently. A call for which
// memory of its own would give other bits is left to NumPy (Unsupported).
#pragma once

#include <span>

#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim {

// Products of complex numbers: the loops fuse one product with the sum, but not for one number
// whose result takes its place, nor in the `square` of a NumPy scalar. `in_place`: the result may
// be written over an operand.
void check_complex_product(const NumpyVersion& version, std::string_view ufunc,
                           std::span<const Operand> operands, bool in_place);

// Whether a result of these operands is rounded differently when it is written over one of them.
bool rounds_by_place(const NumpyVersion& version, DType dtype);

// A call of NumPy's own loop (is_block_call) and the arrays that its results are written to
// afterwards: one that packed memory stands in for gives the same bits.
void check_block_call(const NumpyVersion& version, const Ufunc& ufunc,
                      std::span<const Operand> operands, const UfuncOptions& options,
                      std::span<const Layout* const> outputs);

// For a loop that looks at whether an input has a stride of 0: see ir::LoopEntry::repeated. NumPy's
// loops of inexact powers square where one number stands beside all elements (see
// NumpyVersion::powers_by_stride). Whether an exponent for a whole row has that stride, its
// iterator decides by where all operands lie. `shape` is the result's.
std::optional<std::uint32_t> repeated_inputs(const NumpyVersion& version, const Ufunc& ufunc,
                                             std::span<const Operand> operands,
                                             const Resolved& resolved, const Dims& shape);

// The value of `node`, which NumPy would lay out as `fresh`, is about to be written to `output`. A
// block call writes forwards into memory of its own; NumPy's loop would write to the output itself.
void check_output(Context& context, NodeId node, const Layout& fresh, const Layout& output);

}  // namespace ufuse::numpy_shim
