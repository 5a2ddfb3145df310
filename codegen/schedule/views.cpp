#include "codegen/schedule/views.h"

#include <map>
#include <numeric>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/schedule/reach.h"
#include "ir/build.h"

namespace ufuse::codegen {

using ir::Dims;
using ir::NodeId;
using ir::Op;

std::int64_t element_count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= shape[i];
  }
  return strides;
}

namespace {

// The stretches of axes of `from` that each become one stretch of `to` with the same number of
// elements.
struct Stretch {
  std::size_t from, from_end, to, to_end;
};
std::optional<std::vector<Stretch>> stretches(const Dims& from, const Dims& to) {
  std::vector<Stretch> result;
  std::size_t i = 0, k = 0;
  while (i < from.size() || k < to.size()) {
    Stretch s{i, i, k, k};
    std::int64_t n = 1, m = 1;
    if (i < from.size()) n = from[s.from_end++];
    if (k < to.size()) m = to[s.to_end++];
    while (n != m) {
      if (n < m && s.from_end < from.size())
        n *= from[s.from_end++];
      else if (m < n && s.to_end < to.size())
        m *= to[s.to_end++];
      else
        return std::nullopt;
    }
    result.push_back(s);
    i = s.from_end;
    k = s.to_end;
  }
  return result;
}

}  // namespace

std::optional<Dims> reshape_strides(const Dims& shape, const Dims& strides, const Dims& to) {
  if (element_count(shape) == 0) return contiguous_strides(to);
  Dims from_n, from_s;  // without the axes of size 1, which have no say
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) {
      from_n.push_back(shape[i]);
      from_s.push_back(strides[i]);
    }
  auto parts = stretches(from_n, to);
  if (!parts) return std::nullopt;
  Dims result(to.size(), 0);
  for (const Stretch& s : *parts) {
    for (std::size_t a = s.from; a + 1 < s.from_end; ++a)
      if (from_s[a] != from_s[a + 1] * from_n[a + 1]) return std::nullopt;
    std::int64_t step = s.from_end > s.from ? from_s[s.from_end - 1] : 0;
    for (std::size_t b = s.to_end; b-- > s.to;) {
      result[b] = to[b] == 1 ? 0 : step;
      step *= to[b];
    }
  }
  return result;
}

namespace {

// `place` seen through the map `n`.
std::optional<Place> through(const ir::Node& n, const Place& place) {
  Place to = place;
  to.shape = n.shape;
  const std::size_t rank = n.shape.size();
  if (n.op == Op::Reshape) {
    std::optional<Dims> strides = reshape_strides(place.shape, place.strides, n.shape);
    if (!strides) return std::nullopt;
    to.strides = std::move(*strides);
    return to;
  }
  to.strides.assign(rank, 0);
  for (std::size_t i = 0; i < rank; ++i) {
    if (n.op == Op::Slice) {
      to.offset += n.ints[i] * place.strides[i];
      to.strides[i] = n.ints[rank + i] * place.strides[i];
    } else if (n.ints[i] >= 0) {
      to.strides[i] = place.strides[static_cast<std::size_t>(n.ints[i])];
    }
  }
  return to;
}

}  // namespace

std::optional<Place> view_of(const ir::Graph& g, const Places& places, NodeId node) {
  std::vector<NodeId> maps;  // from the node to what has memory
  auto found = places.find(node.value);
  for (; found == places.end(); found = places.find(node.value)) {
    if (reach_of(g[node].op) != Reach::Mapped) return std::nullopt;
    maps.push_back(node);
    node = g[node].inputs[0];
  }
  std::optional<Place> place = found->second;
  for (; place && !maps.empty(); maps.pop_back()) place = through(g[maps.back()], *place);
  return place;
}

bool is_never_minus_zero(const ir::Graph& graph, NodeId node) {
  std::vector<NodeId> open{node};  // it is enough that one of them is never -0.0
  std::unordered_set<std::uint32_t> seen;
  while (!open.empty()) {
    const NodeId at = open.back();
    open.pop_back();
    const ir::Node& n = graph[at];
    if (!is_in(n.dtype, ir::kFloat) || !seen.insert(at.value).second) continue;
    const bool is_square =
        n.op == Op::Square || (n.op == Op::Multiply && n.inputs[0] == n.inputs[1]);
    const bool begins_with_zero =
        n.op == Op::Reduce && n.reduction == ir::Reduction::Sum && n.inputs.size() == 1;
    // A small negative float may become -0.0, an integer never does.
    const bool was_exact = n.op == Op::Cast && !is_in(graph[n.inputs[0]].dtype, ir::kInexact);
    if (is_square || begins_with_zero || was_exact) return true;
    // A sum is -0.0 where both its terms are.
    if (n.op == Op::Add || reach_of(n.op) == Reach::Mapped)
      open.insert(open.end(), n.inputs.begin(), n.inputs.end());
  }
  return false;
}

namespace {

// A reshape on its way down: each node once for each shape that it is wanted in.
class ReshapeSinker {
 public:
  ReshapeSinker(ir::Graph& g, const Places& places) : g_(g), places_(places) {}

  NodeId sink(NodeId x, const Dims& shape) {
    const auto key = std::make_pair(x.value, shape);
    if (const auto it = done_.find(key); it != done_.end()) return it->second;
    const NodeId sunk = push(x, shape);
    done_.emplace(key, sunk);
    return sunk;
  }

 private:
  NodeId push(NodeId x, const Dims& shape) {
    const ir::Node n = g_[x];  // a copy: the graph grows below
    if (n.shape == shape) return x;
    if (std::optional<Place> place = view_of(g_, places_, x)) {
      if (!reshape_strides(place->shape, place->strides, shape)) return {};
      return ir::reshape(g_, x, shape);
    }
    if (n.op == Op::Reshape) return sink(n.inputs[0], shape);
    if (n.op == Op::Broadcast) return push_broadcast(n, shape);
    if (reach_of(n.op) != Reach::Same) return {};
    ir::Node moved = n;
    moved.shape = shape;
    for (NodeId& operand : moved.inputs) {
      operand = sink(operand, shape);
      if (!operand) return {};
    }
    return g_.add(std::move(moved));
  }

  NodeId push_broadcast(const ir::Node& n, const Dims& shape);

  ir::Graph& g_;
  const Places& places_;
  std::map<std::pair<std::uint32_t, Dims>, NodeId> done_;
};

NodeId ReshapeSinker::push_broadcast(const ir::Node& n, const Dims& shape) {
  auto parts = stretches(n.shape, shape);
  if (!parts) return {};
  const Dims inner = g_[n.inputs[0]].shape;
  Dims inner_shape, axes(shape.size(), -1);
  for (const Stretch& s : *parts) {
    bool all_new = true, all_follow = true;
    std::int64_t expect = -1;
    for (std::size_t a = s.from; a < s.from_end; ++a) {
      const std::int64_t source = n.ints[a];
      if (source < 0 && n.shape[a] != 1) all_follow = false;
      if (source >= 0) {
        all_new = false;
        if (expect >= 0 && source != expect) return {};  // axes swapped on the way
        expect = source + 1;
      }
    }
    if (all_new) continue;
    if (!all_follow) return {};
    for (std::size_t b = s.to; b < s.to_end; ++b) {
      axes[b] = static_cast<std::int64_t>(inner_shape.size());
      inner_shape.push_back(shape[b]);
    }
  }
  if (element_count(inner_shape) != element_count(inner)) return {};
  std::int64_t last = -1;
  for (std::int64_t axis : n.ints)
    if (axis >= 0) {
      if (axis < last) return {};
      last = axis;
    }
  NodeId x = sink(n.inputs[0], inner_shape);
  return x ? ir::broadcast(g_, x, shape, axes) : NodeId{};
}

}  // namespace

NodeId sink_reshape(ir::Graph& g, const Places& places, NodeId x, const Dims& shape) {
  return ReshapeSinker(g, places).sink(x, shape);
}

}  // namespace ufuse::codegen
