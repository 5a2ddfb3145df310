// What a program is: a flat, append-only vector of immutable nodes; operands come before users;
// equal nodes are one node. Built by numpy_shim and tracer, rewritten by ir/passes, read by
// ir/interp and codegen. It knows nothing of NumPy's rules: it promotes, broadcasts and defaults
// nothing. SEMANTICS.md says what each op means to the bit.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/support/small_vector.h"

namespace ufuse::ir {

// A shape, strides or a list of axes; an empty shape is 0-d.
using Dims = SmallVector<std::int64_t, 4>;

enum class Op : std::uint8_t {
  // Leaves.
  Input,  // a[id]: memory handed in at run time; id = position in the request's inputs
  Param,  // 0-d value handed in at run time; id = position in the request's params
  Const,  // 0-d value known now: bits
  // Index maps: the value at an index of the result is the operand's value at another index.
  Broadcast,  // ints[i] = operand's axis that result axis i follows, or -1 (operand does not vary
              // along i)
  Transpose,  // ints = permutation: result axis i is operand axis ints[i]
  Slice,      // ints = start per axis, then step per axis (steps may be negative, never 0); shape =
              // lengths
  Reshape,    // same elements in C order
  // Elementwise.
  Cast,   // value converted as C++ static_cast / NumPy's astype(casting="unsafe") does
  Ufunc,  // id = row of the LoopTable, slot = which of its outputs: NumPy's (or SciPy's) own inner
          // loop, elementwise
#define OP(id, name, arity, accepts, result, traits, cpp) id,
#include "ir/ops.def"
#undef OP
  // Reductions.
  Reduce,     // reduction over ints (axes, outermost first in the order of iteration); optional 2nd
              // operand: 0-d initial
  ArgReduce,  // int64 position of the first smallest / largest (id: 0 argmin, 1 argmax) along axis
              // ints[0]; a NaN wins
};

enum class Reduction : std::uint8_t {
#define REDUCTION(id, name, combine, accepts, identity) id,
#include "ir/reductions.def"
#undef REDUCTION
};

// In which order a Reduce combines; decided by numpy_shim from the layout the operand has (or would
// have had) in NumPy.
enum class Order : std::uint8_t {
  Free,        // the result does not depend on the order (integers, bool)
  Sequential,  // acc = init; for each element in order of iteration: acc = acc op x
  Pairwise,  // runs of the last `run_axes` axes, cut every `chunk` elements (0: never): acc = acc +
             // pairwise(run)
  Extremum,  // float minimum/maximum in NumPy's vector order: exact unless NaNs differ or both
             // zeros tie; those are `redo`
};

struct NodeId {
  std::uint32_t value = UINT32_MAX;
  friend bool operator==(NodeId, NodeId) = default;
  explicit operator bool() const { return value != UINT32_MAX; }
};
// The operands of one node.
using NodeIds = SmallVector<NodeId, 4>;

// A scalar as raw bits in its dtype's layout (little end first); bits[1] is the imaginary part of a
// complex128. Bits that carry no value are zero.
struct Scalar {
  std::uint64_t bits[4] = {0, 0, 0, 0};
  friend bool operator==(const Scalar&, const Scalar&) = default;
};
Scalar without_padding(Scalar value, DType dtype);
// The complex number with these parts, whose dtype is `part`.
Scalar complex_of(const Scalar& re, const Scalar& im, DType part);
// The number with the signs of all its parts turned.
Scalar negated(Scalar value, DType dtype);

struct Node {
  Op op;
  DType dtype;
  Dims shape;
  NodeIds inputs;
  // Attributes; each op uses the ones its line in `Op` names, the rest keep these defaults.
  Dims ints;                             // axes, permutation, starts and steps
  std::uint32_t id = 0;                  // Input, Param, Ufunc, ArgReduce
  std::uint32_t slot = 0;                // Ufunc
  Scalar constant;                       // Const
  Reduction reduction = Reduction::Sum;  // Reduce
  Order order = Order::Free;             // Reduce
  std::uint32_t run_axes = 0;            // Reduce, Pairwise
  std::int64_t chunk = 0;                // Reduce, Pairwise
  friend bool operator==(const Node&, const Node&) = default;
};

std::uint64_t hash_value(const Node& node);

class Graph {
 public:
  // The existing node when an equal one is there.
  NodeId add(Node&& node);
  NodeId add(const Node& node) { return add(Node(node)); }
  const Node& operator[](NodeId id) const { return nodes_[id.value]; }
  std::size_t size() const { return nodes_.size(); }
  NodeId at(std::size_t i) const { return NodeId{static_cast<std::uint32_t>(i)}; }

  // The values wanted, in order; a node may be wanted twice.
  std::vector<NodeId> outputs;

 private:
  std::size_t head_of(std::uint64_t hash) const { return hash & (heads_.size() - 1); }
  void index(std::uint64_t hash, std::uint32_t node);

  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::vector<Node> nodes_;
  // A hash table of the nodes: chains that begin at a head and go on by `next`. There are as many
  // heads as some power of two.
  struct Link {
    std::uint64_t hash;
    std::uint32_t next;
  };
  std::vector<Link> links_;  // one per node
  std::vector<std::uint32_t> heads_;
};

// Facts read from the tables.
enum class ResultRule : std::uint8_t { Same, Bool, Real };
struct OpInfo {
  std::string_view name;  // NumPy's ufunc name; lower-case id for what is no ufunc
  int arity;
  Kinds accepts;
  ResultRule result;
  bool raises_fp;               // may raise a flag that NumPy reports (inexact dtypes only)
  std::string_view expression;  // scalar C++
};
bool is_index_map(Op op);         // takes its operand at another index, and computes nothing
bool is_elementwise_row(Op op);   // has a row in ops.def
const OpInfo& op_info(Op op);     // of a row in ops.def
std::string_view op_name(Op op);  // of any op, as printed

enum class Identity : std::uint8_t { Zero, One, AllOnes, None };
struct ReductionInfo {
  std::string_view name;  // NumPy's ufunc
  Op combine;
  Kinds accepts;
  Identity identity;
};
const ReductionInfo& reduction_info(Reduction r);
Scalar identity_bits(Reduction r, DType dtype);  // not for Identity::None

// NumPy's inner loop of a ufunc: the registry that `Ufunc` nodes point into; filled by pyext, which
// knows where loops come from.
using InnerLoop = void (*)(char** args, const std::int64_t* dims, const std::int64_t* strides,
                           void* data);
struct LoopEntry {
  std::string ufunc;  // "exp", "scipy.special.erf"
  std::vector<DType> inputs, outputs;
  InnerLoop loop = nullptr;
  void* data = nullptr;
};
class LoopTable {
 public:
  LoopTable() = default;
  ~LoopTable();
  LoopTable(const LoopTable&) = delete;
  LoopTable& operator=(const LoopTable&) = delete;

  // The row of an equal loop (same name, types, loop and data) or a new one; rows never move or go
  // away. One thread adds at a time; others may read meanwhile, without a lock, which a forked
  // child could find taken.
  std::uint32_t add(LoopEntry entry);
  const LoopEntry& operator[](std::uint32_t row) const;
  std::size_t size() const { return size_.load(std::memory_order_acquire); }

 private:
  // Blocks of rows, each twice as long as the one before.
  static constexpr std::uint32_t kFirstBlock = 64;
  struct Place {
    std::size_t block, index;
  };
  static Place place_of(std::uint32_t row);

  std::array<std::atomic<LoopEntry*>, 26> blocks_{};
  std::atomic<std::uint32_t> size_{0};
};

}  // namespace ufuse::ir
