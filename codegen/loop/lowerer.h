// Lowering in progress: one group of nodes becoming one nest. Private to lowering.
//
// Every question is answered through `value`, which asks back: an elementwise node for its operands
// (values.cpp), a reduction for its elements (folds.cpp), a block call for its operands or for a
// row of scratch (calls.cpp). Where statements go is the Nest's business, where elements lie that
// of the Addresses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/loop/addresses.h"
#include "codegen/loop/index.h"
#include "codegen/loop/lower.h"
#include "codegen/loop/nest.h"

namespace ufuse::codegen::loop {

class Lowerer {
 public:
  explicit Lowerer(const LowerRequest& request)
      : r_(request), g_(request.graph), addresses_(request, nest_) {}

  Lowered run();

 private:
  // The targets (lower.cpp).
  void store_targets(Index index, std::optional<std::size_t> unrolled_axis);
  Body store_targets_exactly(const Index& index, std::optional<std::size_t> unrolled_axis);
  void close_loops(std::vector<Body> bodies, Body exact);

  // Nodes (values.cpp).
  ValueId value(ir::NodeId node, const Index& index);  // computed once per scope
  ValueId make(ir::NodeId node, const Index& index);
  ValueId param(const ir::Node& n);
  ValueId sliced(const ir::Node& n, const Index& index);
  ValueId reshaped(ir::NodeId node, const ir::Node& n, const Index& index);
  ValueId load(const Place& place, ir::NodeId node, const Index& index);
  // The value is asked for in memory; what is returned only keeps the lowering going.
  ValueId need(ir::NodeId node, ir::DType dtype, const Index& index);
  std::vector<ValueId> operands(const ir::Node& n, const Index& index);
  bool may_warn(ir::NodeId node);
  bool may_be_constant(ir::NodeId node, const Index& index);
  void keep_warnings(const ir::Node& n, const Index& index, std::vector<ValueId>& args);
  int fold_depth(ir::NodeId node);
  // For people: each node once, operands first.
  void note(ir::NodeId node, std::string op);

  // Block calls (calls.cpp).
  ValueId call(ir::NodeId node, const ir::Node& n, const Index& index);
  ValueId through_row(ir::NodeId node, const ir::Node& n, const Index& index, std::size_t depth);
  void fill_row(ir::NodeId node, const Index& index, VarId run, std::size_t depth);
  ValueId from_row(ir::NodeId node, const Index& index);

  // Reductions (folds.cpp).
  ValueId fold(ir::NodeId node, const ir::Node& n, const Index& index);
  bool runs_horizontally(const ir::Node& n, const Index& index) const;
  bool can_defer(const ir::Node& n) const;
  ValueId unroll(const ir::Node& n, const Index& index, const ir::Dims& shape);
  ValueId loop_fold(ir::Node n, const Index& index, ir::Dims shape, Stmt::Form form, bool calls);
  struct CallsBelow {
    bool any = false;
    ir::NodeId shared;
  };
  CallsBelow calls_below(ir::NodeId node) const;
  bool merge_run(ir::Node& n, ir::Dims& shape);
  ir::NodeId sink_transpose(ir::NodeId x, const ir::Dims& order,
                            std::unordered_map<std::uint32_t, ir::NodeId>& sunk);
  ValueId initial_value(const ir::Node& n);

  struct Memo {
    ValueId value;
    int scope_uid;
  };
  struct Row {  // a value kept for one run of elements
    ir::NodeId node;
    Index index;  // as filled, over `var`
    VarId var;
    int buffer;
    int scope_uid;
  };

  const LowerRequest& r_;
  ir::Graph& g_;
  Lowered out_;
  Nest nest_;
  Addresses addresses_;
  std::vector<VarId> domain_;  // the loops over the targets, outermost first
  ir::NodeId target_;          // the one that is being lowered
  std::map<std::pair<std::uint32_t, Index>, std::vector<Memo>> memo_;
  std::map<Access, std::vector<Memo>> loads_;
  std::unordered_map<std::uint32_t, int> fold_depth_;
  std::unordered_map<std::uint32_t, bool> may_warn_;
  std::vector<Row> rows_;
  std::unordered_set<std::uint32_t> noted_;
  std::int64_t unrolled_ = 1;  // how often the open unrolled reductions repeat their operands
  bool parallel_fold_ = false;
  bool defer_ = false;     // square roots may be compared by their squares
  bool deferred_ = false;  // and some are
};

}  // namespace ufuse::codegen::loop
