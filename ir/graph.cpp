// The graph's storage (hash-consing: equal nodes are one node) and the facts about ops and
// reductions, read from ops.def and reductions.def. Everything that builds or reads a graph links
// to this; it checks nothing (verify.cpp does).
#include "ir/graph.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "ir/support/error.h"

namespace ufuse::ir {
namespace {

// The traits column of ops.def: may a floating-point flag be raised that NumPy reports?
enum class Traits : bool { Quiet = false, Fp = true };

// The expression column as `OpInfo` shows it: x0 -> {0}, T -> {T}.
struct Expression {
  char text[64] = {};
  std::size_t size = 0;
};
consteval bool is_name(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
consteval Expression with_holes(std::string_view source) {
  Expression e;
  const auto put = [&e](std::string_view piece) {
    for (char c : piece) e.text[e.size++] = c;
  };
  for (std::size_t i = 0; i < source.size();) {
    std::size_t end = i + 1;
    while (is_name(source[i]) && end < source.size() && is_name(source[end])) ++end;
    const std::string_view token = source.substr(i, end - i);
    const bool is_hole = token == "T" || token == "x0" || token == "x1" || token == "x2";
    put(is_hole ? "{" : "");
    put(is_hole && token != "T" ? token.substr(1) : token);
    put(is_hole ? "}" : "");
    i = end;
  }
  return e;
}
constexpr Expression kExpressions[] = {
#define OP(id, name, arity, accepts, result, traits, cpp) with_holes(#cpp),
#include "ir/ops.def"
#undef OP
};

constexpr auto kOps = [] {
  std::array rows = {
#define OP(id, name, arity, accepts, result, traits, cpp) \
  OpInfo{name, arity, accepts, ResultRule::result, Traits::traits == Traits::Fp, {}},
#include "ir/ops.def"
#undef OP
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].expression = {kExpressions[i].text, kExpressions[i].size};
  return rows;
}();

constexpr ReductionInfo kReductions[] = {
#define REDUCTION(id, name, combine, accepts, identity) \
  ReductionInfo{name, Op::combine, accepts, Identity::identity},
#include "ir/reductions.def"
#undef REDUCTION
};

// The rows of ops.def stand between the other elementwise ops and the reductions in `Op`.
constexpr std::size_t kFirstRow = static_cast<std::size_t>(Op::Ufunc) + 1;
static_assert(kFirstRow + std::size(kOps) == static_cast<std::size_t>(Op::Reduce));

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
  return h.value();
}

NodeId Graph::add(Node&& node) {
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

bool is_index_map(Op op) {
  return op == Op::Broadcast || op == Op::Transpose || op == Op::Slice || op == Op::Reshape;
}

bool is_elementwise_row(Op op) {
  const auto i = static_cast<std::size_t>(op);
  return i >= kFirstRow && i < kFirstRow + std::size(kOps);
}

const OpInfo& op_info(Op op) {
  if (!is_elementwise_row(op)) throw InternalError("op_info: not a row of ops.def");
  return kOps[static_cast<std::size_t>(op) - kFirstRow];
}

std::string_view op_name(Op op) {
  if (is_elementwise_row(op)) return op_info(op).name;
  switch (op) {
    case Op::Input:
      return "input";
    case Op::Param:
      return "param";
    case Op::Const:
      return "const";
    case Op::Broadcast:
      return "broadcast";
    case Op::Transpose:
      return "transpose";
    case Op::Slice:
      return "slice";
    case Op::Reshape:
      return "reshape";
    case Op::Cast:
      return "cast";
    case Op::Ufunc:
      return "ufunc";
    case Op::Reduce:
      return "reduce";
    case Op::ArgReduce:
      return "arg_reduce";
    default:
      throw InternalError("op_name: not an op");
  }
}

const ReductionInfo& reduction_info(Reduction r) {
  const auto i = static_cast<std::size_t>(r);
  if (i >= std::size(kReductions)) throw InternalError("reduction_info: not a reduction");
  return kReductions[i];
}

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
LoopTable::Place LoopTable::place_of(std::uint32_t row) {
  const int block = std::bit_width(row / kFirstBlock + 1) - 1;
  return {static_cast<std::size_t>(block), row - kFirstBlock * ((1u << block) - 1)};
}

std::uint32_t LoopTable::add(LoopEntry entry) {
  const std::uint32_t size = size_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < size; ++i) {
    const LoopEntry& row = (*this)[i];
    if (row.loop == entry.loop && row.data == entry.data && row.ufunc == entry.ufunc &&
        row.inputs == entry.inputs && row.outputs == entry.outputs)
      return i;
  }
  const auto [block, index] = place_of(size);
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
  const auto [block, index] = place_of(row);
  return blocks_[block].load(std::memory_order_acquire)[index];
}

}  // namespace ufuse::ir
