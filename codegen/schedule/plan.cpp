#include "codegen/schedule/plan.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "codegen/loop/lower.h"
#include "codegen/loop/passes.h"
#include "codegen/schedule/cost.h"
#include "codegen/schedule/cut.h"
#include "codegen/schedule/views.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using ir::Dims;
using ir::NodeId;
using loop::Buffer;
using loop::Target;

// Needs within needs: more is a mistake of ours.
constexpr int kMaxDepth = 2 * static_cast<int>(cost::kMostNodes);
constexpr std::int64_t kShortAxis = 8;  // an innermost axis up to here is unrolled

class Planner {
 public:
  Planner(ir::Graph graph, const ir::LoopTable& loops, const ir::RunArgs& layouts)
      : g_(std::move(graph)), loops_(loops), layouts_(layouts) {}

  Plan run() {
    for (std::size_t i = 0; i < g_.size(); ++i) {
      const ir::Node& n = g_[g_.at(i)];
      if (n.op != ir::Op::Input) continue;
      places_[static_cast<std::uint32_t>(i)] =
          place_of(layouts_.inputs[n.id], Buffer::Role::Input, static_cast<int>(n.id));
    }
    std::vector<bool> last(g_.outputs.size());
    for (std::size_t k = 0; k < last.size(); ++k)
      last[k] = !is_empty(g_.outputs[k]) && !layouts_.alias.empty() && layouts_.alias[k] >= 0;
    const std::vector<Part> parts = cut(g_, last);
    std::vector<Target> in_place;
    std::vector<NodeId> empty;
    for (const Part& part : parts) {
      std::vector<Target> targets;
      const auto add = [&](Target target) {
        if (!is_empty(target.node)) return targets.push_back(std::move(target));
        empty.push_back(target.node);
        if (parts.size() > 1) places_.emplace(target.node.value, std::move(target.place));
      };
      for (NodeId node : part.kept) add(temporary(node));
      for (std::size_t k : part.written) {
        Target target{g_.outputs[k],
                      place_of(layouts_.outputs[k], Buffer::Role::Output, static_cast<int>(k))};
        if (last[k])
          in_place.push_back(std::move(target));
        else
          add(std::move(target));
      }
      emit_part(std::move(targets));
    }
    for (NodeId node : empty) emit_sources(node);
    emit_in_place(in_place);
    return std::move(plan_);
  }

 private:
  bool is_empty(NodeId node) const { return element_count(g_[node].shape) == 0; }

  // One nest for all targets of one shape and one order of axes.
  void emit_part(std::vector<Target> targets) {
    std::vector<std::vector<Target>> groups;
    for (Target& target : targets) {
      auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
        return group[0].place.shape == target.place.shape &&
               group[0].place.strides == target.place.strides;
      });
      if (same == groups.end())
        groups.push_back({std::move(target)});
      else
        same->push_back(std::move(target));
    }
    // What others are made of first: they read it instead of computing it again.
    const auto first_node = [](const std::vector<Target>& group) {
      return std::min_element(
                 group.begin(), group.end(),
                 [](const Target& a, const Target& b) { return a.node.value < b.node.value; })
          ->node.value;
    };
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const auto& a, const auto& b) { return first_node(a) < first_node(b); });
    for (auto& group : groups) {
      // What another group needed in memory is there by now.
      std::erase_if(group, [&](const Target& t) {
        return t.place.role == Buffer::Role::Temp && places_.contains(t.node.value);
      });
      if (!group.empty()) emit(std::move(group), {}, 0);
    }
  }

  static Place place_of(const ir::Buffer& buffer, Buffer::Role role, int index) {
    Place place;
    place.role = role;
    place.index = index;
    place.shape = buffer.shape;
    const auto size = static_cast<std::int64_t>(ir::size_of(buffer.dtype));
    for (std::size_t i = 0; i < buffer.strides.size(); ++i) {
      const std::int64_t stride = buffer.shape[i] > 1 ? buffer.strides[i] : 0;
      if (stride % size != 0) throw Unsupported(Reason::Layout);
      place.strides.push_back(stride / size);
    }
    return place;
  }

  // What an empty result is made of is computed where NumPy would warn of it (the mean of no rows
  // is 0/0).
  void emit_sources(NodeId result) {
    std::unordered_set<std::uint32_t> seen;
    std::vector<NodeId> open{result};
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (!seen.insert(node.value).second) continue;
      if (node != result && places_.contains(node.value)) continue;
      if (node != result && !is_empty(node) && ir::may_raise(g_, g_[node])) {
        emit({temporary(node)}, {}, 0);
        continue;
      }
      const auto& inputs = g_[node].inputs;
      open.insert(open.end(), inputs.rbegin(), inputs.rend());
    }
  }

  // Memory of our own for a node, in C order.
  Target temporary(NodeId node) {
    const ir::Node& n = g_[node];
    Place place;
    place.role = Buffer::Role::Temp;
    place.index = static_cast<int>(plan_.temps.size());
    place.shape = n.shape;
    place.strides = contiguous_strides(n.shape);
    plan_.temps.push_back({n.dtype, element_count(n.shape)});
    return {node, std::move(place)};
  }

  // A reshaped value is written as what it was, through the destination seen in the old shape,
  // where its strides allow that.
  Target unshaped(Target target) const {
    while (g_[target.node].op == ir::Op::Reshape && !view_of(g_, places_, target.node)) {
      const NodeId source = g_[target.node].inputs[0];
      auto strides = reshape_strides(target.place.shape, target.place.strides, g_[source].shape);
      if (!strides) break;
      target.node = source;
      target.place.shape = g_[source].shape;
      target.place.strides = std::move(*strides);
    }
    return target;
  }

  using Overwritten = std::unordered_map<int, std::size_t>;

  // One nest for the targets, after nests for whatever it needs in memory. False: an input would be
  // overwritten too early.
  bool emit(std::vector<Target> targets, const Overwritten& overwritten, int depth) {
    if (depth > kMaxDepth) throw InternalError("plan: a value needs itself in memory");
    int rounds = 0;
    const std::vector<Target> wanted = targets;
    if (targets.size() == 1 && overwritten.empty()) targets[0] = unshaped(targets[0]);
    while (true) {
      loop::Lowered lowered = lower_best(targets, overwritten);
      if (lowered.needs.empty()) {
        if (lowered.conflict) return false;
        allow_streams(lowered.kernel);
        plan_.kernels.push_back(std::move(lowered.kernel));
        for (const Target& t : targets) places_.emplace(t.node.value, t.place);
        for (const Target& t : wanted) places_.emplace(t.node.value, t.place);
        return true;
      }
      if (++rounds > kMaxDepth) throw InternalError("plan: what was put into memory is not used");
      // Operands first: what is in memory by then is not computed again.
      std::ranges::sort(lowered.needs, {}, &NodeId::value);
      for (NodeId need : lowered.needs) {
        if (places_.contains(need.value)) continue;
        auto own = std::find_if(targets.begin(), targets.end(),
                                [&](const Target& t) { return t.node == need; });
        if (own != targets.end() && targets.size() > 1 && overwritten.empty()) {
          Target alone = *own;
          targets.erase(own);
          emit({std::move(alone)}, {}, depth + 1);
        } else {
          emit({temporary(need)}, {}, depth + 1);
        }
      }
    }
  }

  void allow_streams(loop::Kernel& kernel) const {
    for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
      const Buffer& b = kernel.buffers[i];
      const auto at = static_cast<std::size_t>(b.index);
      if (!b.written || b.role == Buffer::Role::Row) continue;
      const bool output = b.role == Buffer::Role::Output;
      if (output && !layouts_.alias.empty() && layouts_.alias[at] >= 0) continue;
      const std::int64_t elements =
          output ? element_count(layouts_.outputs[at].shape) : plan_.temps[at].elements;
      const std::int64_t bytes = elements * static_cast<std::int64_t>(ir::size_of(b.dtype));
      loop::stream(kernel, static_cast<int>(i), bytes >= cost::kStreamBytes);
    }
  }

  loop::Lowered lower_best(const std::vector<Target>& targets, const Overwritten& overwritten) {
    loop::LowerRequest request{g_, loops_, places_, targets, overwritten};
    loop::Lowered first = loop::lower(request);
    if (first.want_roots) {
      request.defer_roots = false;
      first = loop::lower(request);
    }
    if (first.want_scalar) {
      request.lanes = false;
      first = loop::lower(request);
    }
    if (!first.needs.empty()) return first;
    loop::collapse(first.kernel);
    const std::int64_t lanes = loop::lane_extent(first.kernel);
    if (!request.lanes || lanes == 0 || lanes > kShortAxis) return first;
    request.unroll_inner = true;
    loop::Lowered unrolled = loop::lower(request);
    if (!unrolled.needs.empty() || unrolled.want_scalar || unrolled.conflict) return first;
    loop::collapse(unrolled.kernel);
    return loop::lane_extent(unrolled.kernel) > lanes ? std::move(unrolled) : std::move(first);
  }

  // Outputs that overwrite inputs: all in one nest that reads each element just where it writes it,
  // or else through memory of their own, copied when everything has been read.
  void emit_in_place(const std::vector<Target>& targets) {
    if (targets.empty()) return;
    const bool one_shape = std::all_of(targets.begin(), targets.end(), [&](const Target& t) {
      return t.place.shape == targets[0].place.shape && t.place.strides == targets[0].place.strides;
    });
    if (one_shape && !may_redo()) {
      Overwritten overwritten;
      for (std::size_t i = 0; i < targets.size(); ++i)
        overwritten[layouts_.alias[static_cast<std::size_t>(targets[i].place.index)]] = i;
      if (overwritten.size() == targets.size() && emit_needs_first(targets, overwritten)) return;
    }
    std::vector<std::pair<Target, Target>> copies;
    for (const Target& t : targets) {
      if (!places_.contains(t.node.value) || reads_overwritten(places_.at(t.node.value))) {
        Target temp = temporary(t.node);
        emit({temp}, {}, 0);
        places_[t.node.value] = temp.place;
      }
      copies.push_back({{t.node, places_.at(t.node.value)}, t});
    }
    for (const auto& [from, to] : copies) emit({to}, {}, 0);
  }
  // The needs of an in-place nest read inputs too: they are made before it, which emit does.
  bool emit_needs_first(const std::vector<Target>& targets, const Overwritten& overwritten) {
    return emit(targets, overwritten, 0);
  }
  static bool reads_overwritten(const Place& place) { return place.role == Buffer::Role::Input; }
  bool may_redo() const {
    for (std::size_t i = 0; i < g_.size(); ++i)
      if (g_[g_.at(i)].order == ir::Order::Extremum) return true;
    return false;
  }

  ir::Graph g_;
  const ir::LoopTable& loops_;
  const ir::RunArgs& layouts_;
  Places places_;
  Plan plan_;
};

}  // namespace

Plan make_plan(ir::Graph graph, const ir::LoopTable& loops, const ir::RunArgs& layouts) {
  return Planner(std::move(graph), loops, layouts).run();
}

}  // namespace ufuse::codegen
