// A graph as readable text, one node a line, for logs, golden files, error messages and bug
// reports; parse.h reads it back. The text is exact: floats are printed as hex-floats, NaNs with
// their bits.
//
//   %0 = input 0 : float64[1000, 2]
//   %1 = const 0x1.8p+1 : float64[]
//   %2 = broadcast %1 axes=[-1, -1] : float64[1000, 2]
//   %3 = subtract %0 %2 : float64[1000, 2]
//   %4 = reduce add %3 axes=[1] order=pairwise run_axes=1 chunk=0 : float64[1000]
//   return %4
#pragma once

#include <string>

#include "ir/graph.h"

namespace ufuse::ir {

std::string print_dims(const Dims& dims);  // "[2, 3]"
std::string print_scalar(DType dtype,
                         const Scalar& value);  // "0x1.8p+1", "-3", "true", "(0x1p+0, -inf)"
std::string print_node(const Graph& g, NodeId id, const LoopTable* loops = nullptr);
// With `loops`, block calls show the name of their ufunc; the parser skips it.
std::string print(const Graph& g, const LoopTable* loops = nullptr);
std::string_view order_name(Order order);
std::string_view bounds_name(Bounds bounds);

}  // namespace ufuse::ir
