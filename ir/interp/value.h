// A node's value in the interpreter: elements in memory under an affine map, as a NumPy array has
// them. Index maps are views onto the same memory; elements move only in `copy_elements`, which is
// written with xtensor's strided views.
#pragma once

#include <cstddef>
#include <memory>

#include "ir/graph.h"
#include "ir/interp/pulse.h"

namespace ufuse::ir::interp {

struct Value {
  DType dtype = DType::Bool;
  Dims shape;
  Dims strides;  // bytes
  char* data = nullptr;
  std::shared_ptr<const void> owner;  // keeps `data` alive; unset when the caller of run() owns it
};

std::int64_t count(const Dims& shape);
Dims c_strides(const Dims& shape, std::size_t itemsize);
bool is_contiguous(const Value& value);

// Uninitialised memory of a shape, its axes laid out in the given order (outermost first; all axes
// of `shape`).
Value allocate(DType dtype, const Dims& shape, const Dims& order);
Value allocate(DType dtype, const Dims& shape);  // in C order
Value scalar(DType dtype, const Scalar& bits);

// Copies all elements. Both sides have the same dtype and shape and do not overlap.
void copy_elements(const Value& from, const Value& to, const Pulse& pulse);
// Itself when it is in C order already.
Value contiguous(const Value& value, const Pulse& pulse);

// The index maps; node is Broadcast, Transpose, Slice or Reshape.
Value apply_map(const Node& node, const Value& x, const Pulse& pulse);

}  // namespace ufuse::ir::interp
