// Nodes are put in an order in which few values wait for their last user (the longest operand
// first), and the order is cut where the fewest bytes cross. Of equally good places the last one is
// taken: statements that repeat are then cut at the same distances, and equal parts have equal
// texts, which are compiled once.
#include "codegen/schedule/cut.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "codegen/schedule/cost.h"
#include "codegen/schedule/reach.h"
#include "codegen/schedule/views.h"

namespace ufuse::codegen {
namespace {

using ir::NodeId;
using ir::Op;

class Cutter {
 public:
  Cutter(const ir::Graph& graph, const std::vector<bool>& last) : g_(graph), last_(last) {}

  std::vector<Part> run() {
    if (g_.size() > cost::kMostNodes) put_in_order();
    if (order_.size() <= cost::kMostNodes) return whole();
    find_last_uses();
    return parts(boundaries());
  }

 private:
  std::vector<Part> whole() const {
    Part all;
    all.written.resize(g_.outputs.size());
    std::iota(all.written.begin(), all.written.end(), std::size_t{0});
    return {std::move(all)};
  }

  // What is computed or seen otherwise, for itself; a repeated scalar takes no statement.
  bool counts(NodeId id) const {
    const ir::Node& n = g_[id];
    const auto is_leaf = [](const ir::Node& node) { return reach_of(node.op) == Reach::None; };
    return !is_leaf(n) && !(n.op == Op::Broadcast && is_leaf(g_[n.inputs[0]]));
  }

  // All that the outputs need, operands before users, from the longest operand on.
  void put_in_order() {
    std::vector<std::uint32_t> height(g_.size(), 0);
    for (std::size_t i = 0; i < g_.size(); ++i)
      for (NodeId in : g_[g_.at(i)].inputs) height[i] = std::max(height[i], height[in.value] + 1);
    std::vector<NodeId> roots = g_.outputs;
    std::ranges::sort(roots, std::greater{}, &NodeId::value);
    std::vector<bool> opened(g_.size()), done(g_.size());
    std::vector<NodeId> stack = std::move(roots);  // the first node on top
    while (!stack.empty()) {
      const NodeId id = stack.back();
      if (opened[id.value]) {
        stack.pop_back();
        if (done[id.value]) continue;
        done[id.value] = true;
        if (counts(id)) order_.push_back(id);
        continue;
      }
      opened[id.value] = true;
      std::vector<NodeId> operands;
      for (NodeId in : g_[id].inputs)
        if (!opened[in.value]) operands.push_back(in);
      std::ranges::stable_sort(operands, {}, [&](NodeId in) { return height[in.value]; });
      stack.insert(stack.end(), operands.begin(), operands.end());
    }
  }

  // The value whose memory is kept where `id` is wanted later.
  NodeId base(NodeId id) const {
    while (reach_of(g_[id].op) == Reach::Mapped) id = g_[id].inputs[0];
    return id;
  }

  void find_last_uses() {
    position_.assign(g_.size(), 0);
    for (std::size_t p = 0; p < order_.size(); ++p) position_[order_[p].value] = p;
    last_use_.assign(g_.size(), 0);
    for (std::size_t p = 0; p < order_.size(); ++p)
      for (NodeId in : g_[order_[p]].inputs) {
        std::size_t& use = last_use_[base(in).value];
        use = std::max(use, p);
      }
    is_written_.assign(g_.size(), false);
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      if (last_[k])
        last_use_[base(g_.outputs[k]).value] = order_.size();
      else
        is_written_[g_.outputs[k].value] = true;
    }
  }

  // The positions behind which to cut.
  std::vector<std::size_t> boundaries() const {
    const std::size_t count = order_.size();
    std::vector<double> crossing(count + 1, 0);  // first as changes from one position to the next
    for (std::size_t p = 0; p < count; ++p) {
      const NodeId id = order_[p];
      if (reach_of(g_[id].op) == Reach::Mapped || is_written_[id.value] || last_use_[id.value] <= p)
        continue;
      const double bytes = static_cast<double>(element_count(g_[id].shape)) *
                           static_cast<double>(ir::size_of(g_[id].dtype));
      crossing[p] += bytes;
      crossing[last_use_[id.value]] -= bytes;
    }
    std::partial_sum(crossing.begin(), crossing.end(), crossing.begin());
    std::vector<std::size_t> found;
    for (std::size_t from = 0; count - from > cost::kMostNodes; from = found.back() + 1) {
      std::size_t best = from + cost::kFewestNodes - 1;
      for (std::size_t p = best; p < from + cost::kMostNodes; ++p)
        if (crossing[p] <= crossing[best]) best = p;
      found.push_back(best);
    }
    found.push_back(count - 1);
    return found;
  }

  std::vector<Part> parts(const std::vector<std::size_t>& ends) const {
    std::vector<Part> result(ends.size());
    const auto part_at = [&](std::size_t position) {
      return static_cast<std::size_t>(std::ranges::lower_bound(ends, position) - ends.begin());
    };
    for (std::size_t p = 0; p < order_.size(); ++p) {
      const NodeId id = order_[p];
      const std::size_t part = part_at(p);
      if (reach_of(g_[id].op) != Reach::Mapped && !is_written_[id.value] &&
          last_use_[id.value] > ends[part])
        result[part].kept.push_back(id);
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const NodeId made = base(g_.outputs[k]);
      const bool early = !last_[k] && counts(made);
      result[early ? part_at(position_[made.value]) : ends.size() - 1].written.push_back(k);
    }
    return result;
  }

  const ir::Graph& g_;
  const std::vector<bool>& last_;
  std::vector<NodeId> order_;
  std::vector<std::size_t> position_, last_use_;
  std::vector<bool> is_written_;  // as an output, from which later parts read it
};

}  // namespace

std::vector<Part> cut(const ir::Graph& graph, const std::vector<bool>& last) {
  return Cutter(graph, last).run();
}

}  // namespace ufuse::codegen
