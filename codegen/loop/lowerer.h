// Lowering in progress: one group becoming one nest. Private to lowering.
//
// lower.cpp opens the loops over the targets and asks for their values, values.cpp makes them.
// Where statements go is the Nest's business.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "codegen/loop/lower.h"
#include "codegen/loop/nest.h"

namespace ufuse::codegen::loop {

class Lowerer {
 public:
  Lowerer(const Schedule& schedule, const Group& group, const ir::LoopTable& loops)
      : g_(schedule.graph),
        group_(group),
        loops_(loops),
        memo_(group.values.size()),
        row_buffers_(group.rows.size(), -1) {}

  Kernel run();

 private:
  // The targets (lower.cpp).
  void open_var(VarId var);
  void store_all(const std::vector<Store>& wanted);
  void scatter(const Store& store, Stmt& stmt);
  Stmt list(const Listing& listing);
  Body close_loops(std::vector<Body> bodies, Body exact);

  // Values (values.cpp).
  ValueId value(WantedId id);  // computed once per scope
  ValueId make(const Wanted& w);
  ValueId load(const Wanted& w);
  ValueId chosen(const Wanted& w);
  ValueId position(const Wanted& w);
  ValueId carried(const Wanted& w);
  ValueId compute(const Wanted& w);
  ValueId param(const ir::Node& n);
  ValueId call(const Wanted& w);
  ValueId unrolled(const Wanted& w);
  ValueId loops(const Wanted& w);
  ValueId from_row(const Wanted& w);
  void fill_row(int row, ir::DType dtype);
  ValueId initial(const Wanted& w);
  std::vector<ValueId> operands(const Wanted& w);

  // Addresses as the kernel writes them (values.cpp).
  Access access(const Address& address, ir::DType dtype, bool write, Streaming streaming);
  Number stride(const Address& address, std::int64_t stride);
  Number number(std::int64_t value);  // part of the text where it is small

  // For people: each node once, operands first.
  void note(ir::NodeId node, std::string op);

  struct Memo {
    ValueId value = -1;
    int scope_uid = -1;
  };

  const ir::Graph& g_;
  const Group& group_;
  const ir::LoopTable& loops_;
  Nest nest_;
  std::vector<Memo> memo_;        // by WantedId
  std::vector<int> row_buffers_;  // by row: its buffer, once it is filled
  // One symbol for each stride of an operand: (role, index, stride).
  std::map<std::tuple<Buffer::Role, int, std::int64_t>, Number> strides_;
  std::unordered_set<std::uint32_t> noted_;
};

}  // namespace ufuse::codegen::loop
