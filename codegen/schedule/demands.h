// What one group of targets demands, while it is being found out. Private to scheduling.
//
// Starting at the targets, every node is wanted at an index over loop variables. Elementwise nodes
// pass the index through, index maps rewrite it, a reduction adds variables of its own; a value
// stands at the outermost loop in which all its variables are bound. demands.cpp opens the loops
// over the targets; every question is answered through `want`, which asks back: an elementwise node
// for its operands (values.cpp), a reduction for its elements (reductions.cpp), a block call for
// its operands or for a row of scratch (calls.cpp).
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/loop/scopes.h"
#include "codegen/schedule/group.h"

namespace ufuse::codegen {

// What is tried for a group, and given up where it does not fit.
struct Choices {
  bool lanes = true;          // the innermost loop runs in lanes
  bool squares = true;        // square roots are compared by their squares
  bool unroll_inner = false;  // a short innermost axis is written out; the next one runs in lanes
};

struct Findings {
  Proposal proposal;
  bool lanes_in_vain = false;    // what is demanded cannot be made in lanes
  bool squares_in_vain = false;  // the roots are needed anyway
  std::int64_t lanes = 0;        // how many there are; 0: none
};

struct Steps;  // of a reduction in memory

class Demands {
 public:
  Demands(const GroupRequest& request, const Choices& choices)
      : r_(request), choices_(choices), g_(request.graph) {}

  Findings run();

 private:
  struct Scope : loop::ScopeBase {
    bool lanes = false;
    bool horizontal = false;
    bool parallel = false;
  };

  // The targets (demands.cpp).
  std::vector<Store> want_targets(Index index);
  void merge_loops();
  void choose_parallel();

  // Positions (positions.cpp).
  bool lists_truths();
  bool scatters() const;
  Place scattered() const;
  Store want_scattered(const Index& index);
  WantedId gather(ir::NodeId node, const ir::Node& n, const Index& index);
  WantedId position(ir::NodeId node, const Index& index);
  WantedId scan(ir::NodeId node, const ir::Node& n, const Index& index);

  // Variables and scopes (demands.cpp).
  VarId new_var(std::int64_t extent);
  std::int64_t extent(VarId v) const { return group_.extents[static_cast<std::size_t>(v)]; }
  // How often scope `depth` is entered for each combination of `vars`.
  double repetitions(std::size_t depth, const Vars& vars) const;
  double executions(std::size_t depth) const { return repetitions(depth, {}); }
  // Whether scope `depth` is one of the loops over the targets, or the space around them.
  bool is_over_targets(std::size_t depth) const;
  // Something stands where all of `vars` are bound; `costly`: a call, a reduction, a loop.
  void stand(const Vars& vars, bool costly);

  // Nodes (values.cpp).
  WantedId want(ir::NodeId node, const Index& index);
  WantedId make(ir::NodeId node, const Index& index);
  WantedId add(Wanted wanted, bool costly = false);
  const Wanted& at(WantedId id) const { return group_.values[static_cast<std::size_t>(id)]; }
  // Whether `look` finds something in a value or in what it is computed from; it says of each
  // whether to look at that value's operands too.
  enum class Look : std::uint8_t { Found, Deeper, NoDeeper };
  template <class At>
  bool any_below(WantedId value, const At& look) const {
    std::set<WantedId> seen{value};
    std::vector<WantedId> open{value};
    while (!open.empty()) {
      const Wanted& w = at(open.back());
      open.pop_back();
      const Look found = look(w);
      if (found == Look::Found) return true;
      if (found == Look::NoDeeper) continue;
      for (WantedId operand : w.operands)
        if (seen.insert(operand).second) open.push_back(operand);
    }
    return false;
  }
  WantedId in_memory(const Place& place, ir::NodeId node, const Index& index);
  Address address_of(const Place& place, const Index& index) const;
  bool is_conflict(const Place& place, const Index& index) const;
  WantedId elementwise(ir::NodeId node, const ir::Node& n, const Index& index);
  WantedId sliced(const ir::Node& n, const Index& index);
  WantedId reshaped(ir::NodeId node, const ir::Node& n, const Index& index);
  // The node is needed in memory; what is returned only keeps the walk going.
  WantedId need(ir::NodeId node, const Index& index);
  WantedId stand_in(ir::NodeId node, const Index& index);
  void want_operands(Wanted& wanted, const ir::Node& n, const Index& index);
  int reduction_depth(ir::NodeId node);

  // What must stay hidden from the compiler (values.cpp).
  bool may_warn(ir::NodeId node);
  bool is_given(const Wanted& w) const;
  ir::NodeId read_by(const Wanted& w) const;
  bool is_apart_from(WantedId value, WantedId given) const;
  bool may_be_constant(WantedId id) const;
  std::uint32_t values_to_choose_from(const ir::Node& n, const std::vector<WantedId>& operands);
  bool chooses_below(const std::vector<WantedId>& operands) const;
  std::uint32_t hidden_operands(const ir::Node& n, const std::vector<WantedId>& operands);

  // Block calls (calls.cpp).
  WantedId call(ir::NodeId node, const ir::Node& n, const Index& index);
  WantedId through_row(ir::NodeId node, const Index& index, std::size_t depth);
  WantedId from_row(ir::NodeId node, const Index& index);

  // Reductions (reductions.cpp).
  WantedId reduction(ir::NodeId node, const ir::Node& n, const Index& index);
  bool runs_horizontally(const ir::Node& n, const Index& index) const;
  bool runs_are_woven(const ir::Node& n, const Index& index, double runs) const;
  std::optional<Steps> steps_of(const ir::Node& n, const Index& index) const;
  bool can_compare_squares(const ir::Node& n) const;
  WantedId unroll(ir::NodeId node, const ir::Node& n, const Index& index, const ir::Dims& shape);
  WantedId loops(ir::NodeId node, ir::Node n, const Index& index, ir::Dims shape,
                 loop::Stmt::Form form, bool calls);
  struct CallsBelow {
    bool any = false;
    ir::NodeId shared;
  };
  CallsBelow calls_below(ir::NodeId node) const;
  bool merge_run(ir::Node& n, ir::Dims& shape);
  ir::NodeId sink_transpose(ir::NodeId x, const ir::Dims& order,
                            std::unordered_map<std::uint32_t, ir::NodeId>& sunk);
  template <class Predicate>
  bool any_inside(WantedId element, const Vars& run, const Predicate& predicate) const;
  bool raises(const Wanted& w) const;
  bool is_narrow(const Wanted& w) const;

  // A row of scratch, as its readers find it.
  struct Kept {
    ir::NodeId node;
    Index index;  // as filled
    int scope_uid;
  };

  const GroupRequest& r_;
  const Choices choices_;
  ir::Graph& g_;
  Group group_;
  Findings found_;
  loop::Scopes<Scope> scopes_;
  ir::NodeId target_;                    // the one whose demands are being found
  std::vector<bool> occupied_, costly_;  // by depth of the loops over the targets
  std::unordered_map<std::pair<std::uint32_t, Index>, WantedId, WantedHash> known_;
  std::map<Address, WantedId> loads_;  // two nodes may be views of one element
  std::vector<bool> uses_squares_;     // by WantedId: so does something below
  std::unordered_map<std::uint32_t, int> reduction_depth_;
  std::unordered_map<std::uint32_t, bool> may_warn_;
  std::vector<Kept> kept_;     // by index into Group::rows
  std::int64_t unrolled_ = 1;  // how often the open unrolled reductions repeat their operands
  bool parallel_reduction_ = false;
  bool squares_ = false;  // square roots may be compared by their squares
  bool exact_ = false;    // values that did so are wanted once more, without
};

}  // namespace ufuse::codegen
