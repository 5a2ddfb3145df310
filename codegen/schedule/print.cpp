// A group of the schedule as text: its targets, its loops, and a line for every node that says
// where its values live. For golden files and explain.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "codegen/schedule/schedule.h"

namespace ufuse::codegen {
namespace {

using Home = Wanted::Home;
using Form = loop::Stmt::Form;

class SchedulePrinter {
 public:
  SchedulePrinter(const Schedule& schedule, const Group& group, const ir::LoopTable& loops)
      : g_(schedule.graph), group_(group), loops_(loops) {}

  std::string print() {
    for (const Target& target : group_.targets)
      text_ += name(target.node) + " -> " + place(target.place.role, target.place.index) +
               (target.streaming == loop::Streaming::Wanted ? ", past the caches" : "") + "\n";
    for (const Loop& loop : group_.loops) {
      text_ += "  for " + range(loop.var) + " along axis " + std::to_string(loop.axis);
      if (group_.lanes && &loop == &group_.loops.back()) text_ += ", in lanes";
      if (loop.parallel) text_ += ", parallel";
      if (loop.carries) text_ += ", in order";
      if (loop.merges) text_ += ", merges with the next";
      text_ += "\n";
    }
    if (group_.listing)
      text_ += "  the true elements of " +
               place(group_.listing->mask.role, group_.listing->mask.index) + "\n";
    if (group_.unrolled_axis >= 0)
      text_ += "  axis " + std::to_string(group_.unrolled_axis) + " is written out\n";
    print_values();
    return std::move(text_);
  }

 private:
  std::string range(VarId var) const {
    return "i" + std::to_string(var) + "<" +
           std::to_string(group_.extents[static_cast<std::size_t>(var)]);
  }

  std::string name(ir::NodeId id) const {
    const ir::Node& n = g_[id];
    std::string op(ir::op_info(n.op).name);
    if (n.op == ir::Op::Ufunc) op = loops_[n.id].ufunc;
    if (n.op == ir::Op::Reduce) op = std::string(ir::reduction_info(n.reduction).name) + ".reduce";
    if (n.op == ir::Op::ArgReduce) op = n.id == 0 ? "argmin" : "argmax";
    return "%" + std::to_string(id.value) + " " + op;
  }

  static std::string place(loop::Buffer::Role role, int index) {
    static constexpr const char* kRoles[] = {"input ", "output ", "temporary ", "row "};
    return kRoles[static_cast<int>(role)] + std::to_string(index);
  }

  // One line for all values of a node that live alike.
  void print_values() {
    std::vector<std::pair<const Wanted*, int>> lines;  // the first value of each, and how many
    for (const Wanted& w : group_.values) {
      const auto known =
          std::ranges::find_if(lines, [&](const auto& line) { return live_alike(*line.first, w); });
      if (known == lines.end())
        lines.emplace_back(&w, 1);
      else
        ++known->second;
    }
    for (const auto& [first, count] : lines) {
      text_ += "  ";
      text_ += describe(*first);
      if (count > 1) text_ += ", " + std::to_string(count) + " values";
      text_ += '\n';
    }
  }

  bool live_alike(const Wanted& a, const Wanted& b) const {
    const auto from_squares = [&](const Wanted& w) {
      return group_.reductions[static_cast<std::size_t>(w.detail)].from_squares;
    };
    return a.node == b.node && a.home == b.home && a.vars == b.vars && a.hidden == b.hidden &&
           (a.home != Home::Unrolled || from_squares(a) == from_squares(b));
  }

  std::string describe(const Wanted& w) const {
    std::string line = name(w.node);
    if (!w.vars.empty()) line += " at";
    for (VarId var : w.vars) line += " i" + std::to_string(var);
    line += ": " + home(w);
    if (w.hidden != 0) line += ", of hidden operands";
    return line;
  }

  std::string home(const Wanted& w) const {
    const auto detail = static_cast<std::size_t>(w.detail);
    switch (w.home) {
      case Home::Memory:
        return place(group_.addresses[detail].role, group_.addresses[detail].index);
      case Home::Chosen:
        return place(group_.addresses[detail].role, group_.addresses[detail].index) +
               ", at positions";
      case Home::Position:
        return "its position";
      case Home::Inline:
        return "inline";
      case Home::Call:
        return "block call";
      case Home::Unrolled:
        return unrolled(w, group_.reductions[detail]);
      case Home::Loops:
        return loops(group_.reductions[detail]);
      case Home::Row: {
        const Row& row = group_.rows[detail];
        return "row of scratch, filled for " + range(row.var) + " before i" +
               std::to_string(row.run);
      }
      case Home::Carried:
        return "carried along i" + std::to_string(w.at);
    }
    return {};
  }

  static std::string unrolled(const Wanted& w, const Reduction& reduction) {
    std::string text = std::to_string(w.operands.size()) + " elements written out";
    if (reduction.from_squares) text += ", by the squares of roots";
    if (reduction.starts_bare) text += ", beginning with the first";
    return text;
  }

  std::string loops(const Reduction& reduction) const {
    static constexpr const char* kForms[] = {"beside the lanes", "along the run",
                                             "along the run, in parallel"};
    std::string text = "loops";
    for (VarId var : reduction.vars) text += " " + range(var);
    text += std::string(" ") + kForms[static_cast<int>(reduction.form)];
    if (reduction.in_blocks) text += ", in blocks";
    if (reduction.stops) text += ", stopping at the answer";
    return text;
  }

  const ir::Graph& g_;
  const Group& group_;
  const ir::LoopTable& loops_;
  std::string text_;
};

}  // namespace

std::string print(const Schedule& schedule, const Group& group, const ir::LoopTable& loops) {
  return SchedulePrinter(schedule, group, loops).print();
}

}  // namespace ufuse::codegen
