// What numpy_shim's functions take and give: arrays as NumPy would have them (dtype, shape,
// strides, scalar or not) beside the graph node that is their value. tracer turns its lazy arrays
// into Operands and Results into lazy arrays.
#pragma once

#include <complex>
#include <optional>
#include <vector>

#include "ir/build.h"
#include "ir/graph.h"
#include "ir/support/error.h"
#include "numpy_shim/version.h"

namespace ufuse::numpy_shim {

using ir::Dims;
using ir::DType;
using ir::NodeId;

// How NumPy lays an array out. For a temporary: the strides it would have had; its memory order
// decides the layout of later results and the order of sums.
struct Layout {
  DType dtype = DType::Float64;
  Dims shape;
  Dims strides;  // bytes
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Python's own int, float, complex (NEP 50: weak), not yet of any dtype. bool is no weak scalar: it
// is an np.bool_ operand.
struct WeakScalar {
  enum class Kind : std::uint8_t { Int, Float, Complex } kind = Kind::Int;
  bool negative = false;         // Int: value = negative ? int64(magnitude) : uint64(magnitude)
  std::uint64_t magnitude = 0;   // Int: two's complement bits
  std::complex<double> value{};  // Float, Complex
  int number = -1;               // the caller's name for it, handed on to Context::param
};

struct Operand {
  NodeId node;  // unset for a weak scalar
  Layout layout;
  bool scalar = false;  // a NumPy scalar (np.float64), which is no 0-d array
  std::optional<WeakScalar> weak;
};

struct Result {
  NodeId node;
  Layout layout;        // as NumPy would allocate it
  bool scalar = false;  // NumPy gives a scalar here, not a 0-d array
};

// Where nodes go, and how a number that is known only at run time becomes a parameter. Implemented
// by tracer's session.
class Context {
 public:
  virtual ~Context() = default;
  virtual ir::Graph& graph() = 0;
  virtual ir::LoopTable& loops() = 0;
  virtual NodeId param(DType dtype, ir::Scalar bits, int number) = 0;
  NodeId param(DType dtype, ir::Scalar bits) { return param(dtype, bits, -1); }
  NumpyVersion version;  // whose rules hold
};

// One step of an affine view, in index space: replayed on a value that has no memory yet. A view =
// steps in order.
struct ViewStep {
  ir::Op op;   // Broadcast, Transpose, Slice, Reshape (only splitting or size-1 axes, and merging
               // where the strides chain), RealPart, ImagPart
  Dims shape;  // of the result
  Dims ints;   // as in ir::Node
  friend bool operator==(const ViewStep&, const ViewStep&) = default;
};
struct View {
  Layout layout;            // of the view
  std::int64_t offset = 0;  // bytes from the operand's first element
  std::vector<ViewStep> steps;
};
NodeId apply(ir::Graph& g, NodeId x, const std::vector<ViewStep>& steps);

}  // namespace ufuse::numpy_shim
