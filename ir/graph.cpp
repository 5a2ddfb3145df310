// The graph's storage (hash-consing: equal nodes are one node), scalars as bits, and the table of
// inner loops. Everything that builds or reads a graph links to this; it checks nothing (verify.cpp
// does).
#include "ir/graph.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

// Boost's hash_combine with a 64-bit constant and a final multiply (splitmix64's), so that small
// integers spread.
class Hasher {
 public:
  void add(std::uint64_t value) {
    state_ ^= value + 0x9e3779b97f4a7c15ULL + (state_ << 6) + (state_ >> 2);
    state_ *= 0xbf58476d1ce4e5b9ULL;
    state_ ^= state_ >> 27;
  }
  void add(const Dims& dims) {
    add(dims.size());
    for (std::int64_t d : dims) add(static_cast<std::uint64_t>(d));
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

std::uint64_t low_bits(std::size_t bytes) {
  return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * bytes)) - 1;
}

}  // namespace

std::uint64_t hash_value(const Node& node) {
  Hasher h;
  const auto both = [](std::uint64_t high, std::uint64_t low) { return high << 32 | low; };
  h.add(both(static_cast<std::uint64_t>(node.op), static_cast<std::uint64_t>(node.dtype)));
  h.add(node.shape);
  for (NodeId input : node.inputs) h.add(input.value);
  h.add(node.ints);
  h.add(both(node.id, node.slot));
  if (node.constant != Scalar{})
    for (std::uint64_t bits : node.constant.bits) h.add(bits);
  h.add(
      both(static_cast<std::uint64_t>(node.reduction) << 8 | static_cast<std::uint64_t>(node.order),
           node.run_axes));
  h.add(static_cast<std::uint64_t>(node.chunk));
  if (node.combine || node.bounds != Bounds::Signed)
    h.add(both(node.combine ? static_cast<std::uint64_t>(*node.combine) + 1 : 0,
               static_cast<std::uint64_t>(node.bounds)));
  if (node.kept_apart != 0) h.add(node.kept_apart);
  return h.value();
}

NodeId Graph::add(Node&& node) {
  node.kept_apart = apart_ != 0 && may_raise(*this, node) ? apart_ : 0;
  const std::uint64_t hash = hash_value(node);
  if (!heads_.empty())
    for (std::uint32_t i = heads_[head_of(hash)]; i != kNone; i = links_[i].next)
      if (links_[i].hash == hash && nodes_[i] == node) return NodeId{i};
  const auto id = static_cast<std::uint32_t>(nodes_.size());
  if (nodes_.size() == heads_.size()) {
    heads_.assign(std::max<std::size_t>(32, 2 * heads_.size()), kNone);
    nodes_.reserve(heads_.size());
    links_.reserve(heads_.size());
    for (std::uint32_t i = 0; i < id; ++i) index(links_[i].hash, i);
  }
  nodes_.push_back(std::move(node));
  links_.push_back({});
  index(hash, id);
  return NodeId{id};
}

// Puts a node at the head of its chain.
void Graph::index(std::uint64_t hash, std::uint32_t node) {
  links_[node] = {hash, std::exchange(heads_[head_of(hash)], node)};
}

std::optional<Op> combine_of(const Node& node) {
  return node.op == Op::Reduce ? reduction_info(node.reduction).combine : node.combine;
}

NodeId scattered_values(const Node& node) {
  return node.inputs.size() > node.ints.size() + 1 ? node.inputs.back() : NodeId{};
}

DType combined_dtype(const Graph& g, const Node& node) {
  const NodeId values = node.op == Op::Scatter ? scattered_values(node) : NodeId{};
  return values ? g[values].dtype : node.dtype;
}

bool may_raise(const Graph& g, const Node& node) {
  if (op_info(node.op).flags == Flags::Combine) {
    const std::optional<Op> combine = combine_of(node);
    const DType dtype = combined_dtype(g, node);
    return combine && (may_raise(*combine, dtype, dtype) ||
                       (dtype != node.dtype && cast_may_raise(dtype, node.dtype)));
  }
  return !node.inputs.empty() && may_raise(node.op, g[node.inputs.back()].dtype, node.dtype);
}

bool may_fail(const Node& node) {
  return (node.op == Op::Gather || node.op == Op::Scatter) && node.bounds == Bounds::Signed;
}

bool may_redo(const Node& node) { return node.order == Order::Extremum || may_fail(node); }

Scalar without_padding(Scalar value, DType dtype) {
  const std::size_t part = size_of(real_part(dtype)), bytes = value_bytes(dtype);
  Scalar clean;
  for (std::size_t at = 0; at < size_of(dtype); at += part)
    std::memcpy(reinterpret_cast<char*>(clean.bits) + at, reinterpret_cast<char*>(value.bits) + at,
                bytes);
  return clean;
}

Scalar complex_of(const Scalar& re, const Scalar& im, DType part) {
  Scalar value = re;
  std::memcpy(reinterpret_cast<char*>(value.bits) + size_of(part), im.bits, size_of(part));
  return value;
}

Scalar negated(Scalar value, DType dtype) {
  const std::size_t part = size_of(real_part(dtype)), bytes = value_bytes(dtype);
  for (std::size_t at = 0; at < size_of(dtype); at += part)
    reinterpret_cast<unsigned char*>(value.bits)[at + bytes - 1] ^= 0x80;
  return value;
}

Scalar identity_bits(Reduction r, DType dtype) {
  const Identity identity = reduction_info(r).identity;
  switch (identity) {
    case Identity::Zero:
      return {};
    case Identity::One:
      switch (dtype) {
        case DType::Float16:
          return {{0x3c00, 0}};
        case DType::LongDouble:
        case DType::CLongDouble: {
          Scalar one;
          const long double value = 1;
          std::memcpy(one.bits, &value, sizeof value);
          return without_padding(one, dtype);
        }
        case DType::Float32:
        case DType::Complex64:
          return {{std::bit_cast<std::uint32_t>(1.0F), 0}};
        case DType::Float64:
        case DType::Complex128:
          return {{std::bit_cast<std::uint64_t>(1.0), 0}};
        default:
          return {{1, 0}};
      }
    case Identity::AllOnes:
      return {{dtype == DType::Bool ? 1 : low_bits(size_of(dtype)), 0}};
    case Identity::None:
      break;
  }
  throw InternalError("identity_bits: " + std::string(reduction_info(r).name) + " has no identity");
}

LoopTable::~LoopTable() {
  for (const std::atomic<LoopEntry*>& block : blocks_) delete[] block.load();
}

// Block b begins at row kFirstBlock * (2^b - 1).
LoopTable::Position LoopTable::position_of(std::uint32_t row) {
  const int block = std::bit_width(row / kFirstBlock + 1) - 1;
  return {static_cast<std::size_t>(block), row - kFirstBlock * ((1u << block) - 1)};
}

std::uint32_t LoopTable::add(LoopEntry entry) {
  const std::uint32_t size = size_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < size; ++i) {
    const LoopEntry& row = (*this)[i];
    if (row.loop == entry.loop && row.data == entry.data && row.ufunc == entry.ufunc &&
        row.inputs == entry.inputs && row.outputs == entry.outputs &&
        row.repeated == entry.repeated)
      return i;
  }
  const auto [block, index] = position_of(size);
  LoopEntry* rows = blocks_.at(block).load(std::memory_order_relaxed);
  if (!rows) {
    rows = new LoopEntry[std::size_t{kFirstBlock} << block];
    blocks_[block].store(rows, std::memory_order_release);
  }
  rows[index] = std::move(entry);
  size_.store(size + 1, std::memory_order_release);
  return size;
}

const LoopEntry& LoopTable::operator[](std::uint32_t row) const {
  if (row >= size()) throw std::out_of_range("a row that the table of loops does not have");
  const auto [block, index] = position_of(row);
  return blocks_[block].load(std::memory_order_acquire)[index];
}

}  // namespace ufuse::ir
