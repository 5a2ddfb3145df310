// What a program is: a flat, append-only vector of immutable nodes; operands come before users;
// equal nodes are one node. Built by numpy_shim and tracer, read by ir/interp and codegen. It knows
// nothing of NumPy's rules: it promotes, broadcasts and defaults nothing. SEMANTICS.md says what
// each op means to the bit.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/ops.h"
#include "ir/support/small_vector.h"

namespace ufuse::ir {

// A shape, strides or a list of axes; an empty shape is 0-d.
using Dims = SmallVector<std::int64_t, 4>;

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

// Which positions there are along an axis of n elements, and what they mean.
enum class Bounds : std::uint8_t {
  Signed,    // -n to n - 1, negative ones count from the end; with others a backend says `redo`
  Unsigned,  // 0 to n - 1, as whoever makes the graph knows
  Wrap,      // any, modulo n
  Clip,      // any: the nearest one within
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
Scalar identity_bits(Reduction r, DType dtype);  // not for Identity::None
// The complex number with these parts, whose dtype is `part`.
Scalar complex_of(const Scalar& re, const Scalar& im, DType part);
// The number with the signs of all its parts turned.
Scalar negated(Scalar value, DType dtype);

struct Node {
  Op op;
  DType dtype;
  Dims shape;
  NodeIds inputs;
  // Attributes; kinds.def tells which ones mean something, the rest keep these defaults.
  Dims ints;               // axes, permutation, starts and steps
  std::uint32_t id = 0;    // of an input, param or inner loop; 1: argmax
  std::uint32_t slot = 0;  // of an inner loop's outputs
  Scalar constant;
  Reduction reduction = Reduction::Sum;
  Order order = Order::Free;
  std::uint32_t run_axes = 0;  // Order::Pairwise
  std::int64_t chunk = 0;      // Order::Pairwise
  std::optional<Op> combine;   // a row of ops.def; unset: none
  Bounds bounds = Bounds::Signed;
  std::uint16_t kept_apart = 0;  // see Graph::keep_apart; means nothing else
  friend bool operator==(const Node&, const Node&) = default;
};

std::uint64_t hash_value(const Node& node);

class Graph {
 public:
  // The existing node when an equal one is there.
  NodeId add(Node&& node);
  NodeId add(const Node& node) { return add(Node(node)); }
  // From now on: nodes that may raise a flag are equal only to those made under the same number.
  void keep_apart(std::uint16_t number) { apart_ = number; }
  const Node& operator[](NodeId id) const { return nodes_[id.value]; }
  std::size_t size() const { return nodes_.size(); }
  NodeId at(std::size_t i) const { return NodeId{static_cast<std::uint32_t>(i)}; }

  // The values wanted, in order; a node may be wanted twice.
  std::vector<NodeId> outputs;

 private:
  std::size_t head_of(std::uint64_t hash) const { return hash & (heads_.size() - 1); }
  void index(std::uint64_t hash, std::uint32_t node);

  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint16_t apart_ = 0;
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

// The op by which a reduction, scan or scatter combines elements; unset: none.
std::optional<Op> combine_of(const Node& node);
// The dtype in which it combines them.
DType combined_dtype(const Graph& g, const Node& node);
// A scatter's operand behind the positions; unset where there is none.
NodeId scattered_values(const Node& node);

// May computing the node raise a floating-point flag that NumPy reports? What its operands raise is
// not asked.
bool may_raise(const Graph& g, const Node& node);
// May NumPy raise an exception in place of computing the node? So it does for a position outside of
// its axis.
bool may_fail(const Node& node);
// May a backend leave the node to NumPy once it sees the operands' values?
bool may_redo(const Node& node);

// NumPy's inner loop of a ufunc: the registry that `Ufunc` nodes point into; filled by pyext, which
// knows where loops come from.
using InnerLoop = void (*)(char** args, const std::int64_t* dims, const std::int64_t* strides,
                           void* data);
struct LoopEntry {
  std::string ufunc;  // "exp", "scipy.special.erf"
  std::vector<DType> inputs, outputs;
  InnerLoop loop = nullptr;
  void* data = nullptr;
  // For a loop that looks at whether the stride of an input is 0 (NumPy's `power` squares where one
  // 2 stands beside all elements): the inputs, a bit each, that have such a stride; no other one
  // may be given it. Unset: the loop does not look.
  std::optional<std::uint32_t> repeated = std::nullopt;

  // Is an input one number beside all elements; must it be given as elements in memory?
  bool is_repeated(std::size_t input) const { return repeated && (*repeated >> input & 1) != 0; }
  bool needs_elements(std::size_t input) const { return repeated && !is_repeated(input); }
};
class LoopTable {
 public:
  LoopTable() = default;
  ~LoopTable();
  LoopTable(const LoopTable&) = delete;
  LoopTable& operator=(const LoopTable&) = delete;

  // The row of an equal loop (same name, types, loop, data and strides) or a new one; rows never
  // move or go away. One thread adds at a time; others may read meanwhile, without a lock, which a
  // forked child could find taken.
  std::uint32_t add(LoopEntry entry);
  const LoopEntry& operator[](std::uint32_t row) const;
  std::size_t size() const { return size_.load(std::memory_order_acquire); }

 private:
  // Blocks of rows, each twice as long as the one before.
  static constexpr std::uint32_t kFirstBlock = 64;
  struct Position {
    std::size_t block, index;
  };
  static Position position_of(std::uint32_t row);

  std::array<std::atomic<LoopEntry*>, 26> blocks_{};
  std::atomic<std::uint32_t> size_{0};
};

}  // namespace ufuse::ir
