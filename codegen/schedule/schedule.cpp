// Which values get memory, which share a group, what runs after what? A graph is cut into parts of
// moderate length, the targets of a part are grouped by shape and order of axes, and each group is
// proposed: what a proposal needs in memory becomes a group of its own, before it.
#include "codegen/schedule/schedule.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "codegen/schedule/cost.h"
#include "codegen/schedule/cut.h"
#include "codegen/schedule/group.h"
#include "codegen/schedule/reach.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using ir::Dims;
using ir::NodeId;
using loop::Streaming;
using Role = loop::Buffer::Role;

// Needs within needs: more is a mistake of ours.
constexpr int kMaxDepth = 2 * static_cast<int>(cost::kMostNodes);

class Scheduler {
 public:
  Scheduler(ir::Graph graph, const ir::RunArgs& layouts) : layouts_(layouts) {
    schedule_.graph = std::move(graph);
  }

  Schedule run() {
    for (std::size_t i = 0; i < g_.size(); ++i) {
      const ir::Node& n = g_[g_.at(i)];
      if (n.op != ir::Op::Input) continue;
      places_[static_cast<std::uint32_t>(i)] =
          place_of(layouts_.inputs[n.id], Role::Input, static_cast<int>(n.id));
    }
    std::vector<bool> last(g_.outputs.size());
    for (std::size_t k = 0; k < last.size(); ++k)
      last[k] = !is_empty(g_.outputs[k]) && overwrites(k);
    const std::vector<Part> parts = cut(g_, last);
    std::vector<Target> in_place;
    for (const Part& part : parts) {
      std::vector<Target> targets;
      const auto add = [&](Target target) {
        if (!is_empty(target.node)) return targets.push_back(std::move(target));
        if (parts.size() > 1) places_.emplace(target.node.value, std::move(target.place));
      };
      for (NodeId node : part.kept) add(temporary(node));
      for (std::size_t k : part.written) {
        Target target = output(k);
        if (last[k])
          in_place.push_back(std::move(target));
        else
          add(std::move(target));
      }
      add_part(std::move(targets));
    }
    add_sources_of_empty();
    add_in_place(in_place);
    return std::move(schedule_);
  }

 private:
  bool is_empty(NodeId node) const { return element_count(g_[node].shape) == 0; }
  bool overwrites(std::size_t output) const {
    return !layouts_.alias.empty() && layouts_.alias[output] >= 0;
  }

  // ---- Memory ----

  static Place place_of(const ir::Buffer& buffer, Role role, int index) {
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

  static Streaming streaming(ir::DType dtype, const Dims& shape) {
    const auto size = static_cast<std::int64_t>(ir::size_of(dtype));
    return element_count(shape) * size >= cost::kStreamBytes ? Streaming::Wanted
                                                             : Streaming::Allowed;
  }

  Target output(std::size_t k) const {
    const ir::Buffer& buffer = layouts_.outputs[k];
    Target target{g_.outputs[k], place_of(buffer, Role::Output, static_cast<int>(k)), {}};
    if (!overwrites(k)) target.streaming = streaming(buffer.dtype, buffer.shape);
    return target;
  }

  // Memory of our own for a node, in C order.
  Target temporary(NodeId node) {
    const ir::Node& n = g_[node];
    Place place;
    place.role = Role::Temp;
    place.index = static_cast<int>(schedule_.temps.size());
    place.shape = n.shape;
    place.strides = contiguous_strides(n.shape);
    schedule_.temps.push_back({n.dtype, element_count(n.shape)});
    return {node, std::move(place), streaming(n.dtype, n.shape)};
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

  // ---- Groups ----

  // One group for all targets of one shape and one order of axes.
  void add_part(std::vector<Target> targets) {
    std::vector<std::vector<Target>> groups;
    for (Target& target : targets) {
      auto same = std::find_if(groups.begin(), groups.end(),
                               [&](const auto& group) { return is_alike(group[0], target); });
      if (same == groups.end())
        groups.push_back({std::move(target)});
      else
        same->push_back(std::move(target));
    }
    part_numbers(groups);
    // What others are made of first: they read it instead of computing it again.
    const auto first_node = [](const std::vector<Target>& group) {
      return std::ranges::min_element(group, {}, [](const Target& t) { return t.node.value; })
          ->node.value;
    };
    std::ranges::stable_sort(groups, {}, first_node);
    for (auto& group : groups) {
      // What another group needed in memory is there by now.
      std::erase_if(group, [&](const Target& t) {
        return t.place.role == Role::Temp && places_.contains(t.node.value);
      });
      if (!group.empty()) add_group(std::move(group), {}, 0);
    }
  }
  // Numbers that no reduction makes share no loop with one. They do not hold a reduction back from
  // reading what another group makes of them: how many elements of a mask are true, beside the mask
  // and its bounds.
  void part_numbers(std::vector<std::vector<Target>>& groups) const {
    if (groups.size() < 2) return;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].size() < 2 || element_count(groups[i][0].place.shape) != 1) continue;
      const auto reads_others = [&](const Target& t) {
        return is_made_of(t.node, [&](NodeId node) {
          for (std::size_t k = 0; k < groups.size(); ++k)
            if (k != i && std::ranges::find(groups[k], node, &Target::node) != groups[k].end())
              return true;
          return false;
        });
      };
      std::vector<Target> late, early;
      for (const Target& t : groups[i]) (reads_others(t) ? late : early).push_back(t);
      const auto reduces = [&](const Target& t) {
        return is_made_of(t.node,
                          [&](NodeId node) { return reach_of(g_[node].op) == Reach::Many; });
      };
      if (late.empty() || early.empty() || std::ranges::any_of(early, reduces)) continue;
      groups[i] = std::move(early);
      groups.push_back(std::move(late));
    }
  }
  // Whether some node is computed on the way to this one.
  template <class Such>
  bool is_made_of(NodeId node, Such such) const {
    std::vector<NodeId> open{node};
    std::unordered_set<std::uint32_t> met;
    while (!open.empty()) {
      const NodeId next = open.back();
      open.pop_back();
      if (places_.contains(next.value) || !met.insert(next.value).second) continue;
      if (such(next)) return true;
      open.insert(open.end(), g_[next].inputs.begin(), g_[next].inputs.end());
    }
    return false;
  }
  static bool is_alike(const Target& a, const Target& b) {
    return a.place.shape == b.place.shape && a.place.strides == b.place.strides;
  }

  // A group of the targets, after groups for whatever it needs in memory. False: an input would be
  // overwritten too early.
  bool add_group(std::vector<Target> targets, const Overwritten& overwritten, int depth) {
    if (depth > kMaxDepth) throw InternalError("schedule: a value needs itself in memory");
    int rounds = 0;
    const std::vector<Target> wanted = targets;
    if (targets.size() == 1 && overwritten.empty()) targets[0] = unshaped(targets[0]);
    while (true) {
      Proposal proposal = propose({g_, places_, targets, overwritten});
      if (proposal.needs.empty()) {
        if (proposal.conflict) return false;
        const NodeId first = targets[0].node;
        if (g_[first].op == ir::Op::Scatter && !places_.contains(first.value))
          add_base(targets[0], depth);
        schedule_.groups.push_back(std::move(proposal.group));
        for (const Target& t : targets) places_.emplace(t.node.value, t.place);
        for (const Target& t : wanted) places_.emplace(t.node.value, t.place);
        return true;
      }
      if (++rounds > kMaxDepth)
        throw InternalError("schedule: what was put into memory is not used");
      // Operands first: what is in memory by then is not computed again.
      std::ranges::sort(proposal.needs, {}, &NodeId::value);
      for (NodeId need : proposal.needs) {
        if (places_.contains(need.value)) continue;
        const auto own = std::ranges::find(targets, need, &Target::node);
        if (own != targets.end() && targets.size() > 1 && overwritten.empty()) {
          Target alone = *own;
          targets.erase(own);
          add_group({std::move(alone)}, {}, depth + 1);
        } else {
          add_group({temporary(need)}, {}, depth + 1);
        }
      }
    }
  }

  // What a scatter leaves as it is, where the scatter then writes.
  void add_base(const Target& scattered, int depth) {
    Target base{g_[scattered.node].inputs[0], scattered.place, scattered.streaming};
    Places before = places_;
    add_group({std::move(base)}, {}, depth + 1);
    std::erase_if(places_, [&](const auto& known) {
      return known.second.role == scattered.place.role &&
             known.second.index == scattered.place.index && !before.contains(known.first);
    });
  }

  // What values without elements are made of is computed where NumPy would warn of it (the mean of
  // no rows is 0/0).
  void add_sources_of_empty() {
    std::unordered_set<std::uint32_t> seen;
    std::vector<NodeId> open;
    for (std::size_t i = g_.size(); i-- > 0;)
      if (is_empty(g_.at(i))) open.push_back(g_.at(i));
    while (!open.empty()) {
      const NodeId node = open.back();
      open.pop_back();
      if (!seen.insert(node.value).second) continue;
      if (!is_empty(node)) {
        if (places_.contains(node.value)) continue;
        if (ir::may_raise(g_, g_[node]) || ir::may_fail(g_[node])) {
          add_group({temporary(node)}, {}, 0);
          continue;
        }
      }
      const auto& inputs = g_[node].inputs;
      open.insert(open.end(), inputs.rbegin(), inputs.rend());
    }
  }

  // Outputs that overwrite inputs: all in one group that reads each element just where it writes
  // it, or else through memory of their own, copied when everything has been read.
  void add_in_place(const std::vector<Target>& targets) {
    if (targets.empty()) return;
    const bool alike =
        std::ranges::all_of(targets, [&](const Target& t) { return is_alike(t, targets[0]); });
    if (alike && !may_redo()) {
      Overwritten overwritten;
      for (std::size_t i = 0; i < targets.size(); ++i)
        overwritten[layouts_.alias[static_cast<std::size_t>(targets[i].place.index)]] = i;
      // What it needs reads inputs too: that is made before it.
      if (overwritten.size() == targets.size() && add_group(targets, overwritten, 0)) return;
    }
    std::vector<std::pair<NodeId, Place>> copies;
    for (const Target& t : targets) {
      const auto known = places_.find(t.node.value);
      if (known == places_.end() || known->second.role == Role::Input) {
        Target temp = temporary(t.node);
        add_group({temp}, {}, 0);
        copies.emplace_back(t.node, std::move(temp.place));
      } else {
        copies.emplace_back(t.node, known->second);
      }
    }
    for (auto& [node, place] : copies) places_[node.value] = std::move(place);
    for (const Target& t : targets) add_group({t}, {}, 0);
  }
  bool may_redo() const {
    for (std::size_t i = 0; i < g_.size(); ++i)
      if (ir::may_redo(g_[g_.at(i)])) return true;
    return false;
  }

  Schedule schedule_;
  ir::Graph& g_ = schedule_.graph;
  const ir::RunArgs& layouts_;
  Places places_;
};

}  // namespace

Schedule schedule(ir::Graph graph, const ir::RunArgs& layouts) {
  return Scheduler(std::move(graph), layouts).run();
}

}  // namespace ufuse::codegen
