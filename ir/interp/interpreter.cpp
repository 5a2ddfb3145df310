// Evaluation of a graph: one value per node in the order of the nodes, each freed after its last
// user. Flags are read node by node, because NumPy's own loops may clear what others have raised.
#include "ir/interp/interpreter.h"

#include <algorithm>
#include <map>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

#include "ir/inner_loops.h"
#include "ir/interp/loop_nest.h"
#include "ir/interp/positions.h"
#include "ir/interp/reduce.h"
#include "ir/interp/scan.h"
#include "ir/interp/value.h"
#include "ir/print.h"
#include "ir/support/error.h"
#include "ir/support/strides.h"

namespace ufuse::ir {
namespace {

using interp::Value;

// What a run needs of the loop table: copies, since the table may grow meanwhile.
using Loops = std::unordered_map<std::uint32_t, LoopEntry>;

Loops loops_of(const Graph& g, const LoopTable* table) {
  Loops loops;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const Node& node = g[g.at(i)];
    if (node.op != Op::Ufunc) continue;
    if (table == nullptr) throw InternalError("interpreter: block calls without a loop table");
    loops.emplace(node.id, (*table)[node.id]);
  }
  return loops;
}

class Evaluation {
 public:
  // Throws interp::GivenUp when the caller's watch says so.
  Evaluation(const Graph& g, const Loops& loops, const RunArgs& args)
      : loops_(loops), args_(args), pulse_(args.watch), values_(g.size()), flags_(g.size(), 0) {
    std::vector<std::size_t> last_use(g.size(), 0);
    for (std::size_t i = 0; i < g.size(); ++i)
      for (NodeId operand : g[g.at(i)].inputs) last_use[operand.value] = i;
    for (NodeId output : g.outputs) last_use[output.value] = g.size();

    for (std::size_t i = 0; i < g.size(); ++i) {
      const Node& node = g[g.at(i)];
      pulse_.beat();
      clear_fp_flags();
      values_[i] = evaluate(node);
      // A quiet node reports none, whatever the hardware says.
      if (may_raise(g, node)) flags_[i] = read_fp_flags();
      for (NodeId operand : node.inputs)
        if (last_use[operand.value] == i) values_[operand.value] = Value{};
    }
    clear_fp_flags();
  }

  const Value& operator[](NodeId id) const { return values_[id.value]; }
  const std::vector<std::uint32_t>& flags() const { return flags_; }
  bool redo() const { return redo_; }

 private:
  Value evaluate(const Node& node) {
    switch (kind_of(node.op)) {
      case NodeKind::Input:
        return input(node);
      case NodeKind::Param:
        return interp::scalar(node.dtype, args_.params[node.id]);
      case NodeKind::Const:
        return interp::scalar(node.dtype, node.constant);
      case NodeKind::Broadcast:
      case NodeKind::Transpose:
      case NodeKind::Slice:
      case NodeKind::Reshape:
        return interp::apply_map(node, operand(node, 0), pulse_);
      case NodeKind::Cast:
        return elementwise(node, cast_loop(operand(node, 0).dtype, node.dtype));
      case NodeKind::Ufunc:
        return block_call(node);
      case NodeKind::Reduce: {
        const Value* initial = node.inputs.size() == 2 ? &operand(node, 1) : nullptr;
        interp::Reduced reduced = interp::reduce(node, operand(node, 0), initial, pulse_);
        redo_ |= reduced.redo;
        return std::move(reduced.value);
      }
      case NodeKind::ArgReduce:
        return interp::arg_reduce(node, operand(node, 0), pulse_);
      case NodeKind::Iota:
        return interp::iota(node);
      case NodeKind::Scan:
        return interp::scan(node, operand(node, 0), pulse_);
      case NodeKind::Gather:
        return placed(interp::gather(node, operand(node, 0), positions_of(node), pulse_));
      case NodeKind::Scatter: {
        const NodeId values = scattered_values(node);
        return placed(interp::scatter(node, operand(node, 0), positions_of(node),
                                      values ? &values_[values.value] : nullptr, pulse_));
      }
      case NodeKind::Nonzero:
        return placed(interp::nonzero(node, operand(node, 0), pulse_));
      case NodeKind::Elementwise:
        return elementwise(node,
                           elementwise_loop(node.op, operand(node, node.inputs.size() - 1).dtype));
    }
    throw InternalError("interpreter: unknown kind of node");
  }

  Value placed(interp::Placed&& result) {
    redo_ |= result.redo;
    return std::move(result.value);
  }

  // Of a gather or scatter, one for each indexed axis.
  std::vector<Value> positions_of(const Node& node) const {
    std::vector<Value> positions;
    for (std::size_t k = 1; k <= node.ints.size(); ++k) positions.push_back(operand(node, k));
    return positions;
  }

  const Value& operand(const Node& node, std::size_t k) const {
    return values_[node.inputs[k].value];
  }

  // The caller's memory itself, or a copy when an output will overwrite it.
  Value input(const Node& node) const {
    const Buffer& buffer = args_.inputs[node.id];
    const Value value{
        buffer.dtype, buffer.shape, buffer.strides, static_cast<char*>(buffer.data), {}};
    for (int overwritten : args_.alias)
      if (overwritten == static_cast<int>(node.id)) {
        Value copy = interp::allocate(value.dtype, value.shape, interp::walking_order({value}));
        interp::copy_elements(value, copy, pulse_);
        return copy;
      }
    return value;
  }

  std::vector<Value> operands_of(const Node& node) const {
    std::vector<Value> operands;
    for (NodeId id : node.inputs) operands.push_back(values_[id.value]);
    return operands;
  }

  // Results are laid out as NumPy lays them out, in the order in which the operands are walked.
  Value elementwise(const Node& node, InnerLoop loop) const {
    std::vector<Value> operands = operands_of(node);
    operands.push_back(interp::allocate(node.dtype, node.shape, interp::walking_order(operands)));
    interp::run_loop(loop, nullptr, operands, pulse_);
    return operands.back();
  }

  // All outputs of a block call are computed by its first node and kept for the others.
  Value block_call(const Node& node) {
    const auto key = std::pair(node.id, raw(node.inputs));
    if (const auto found = calls_.find(key); found != calls_.end()) return found->second[node.slot];
    const LoopEntry& entry = loops_.at(node.id);
    std::vector<Value> operands = operands_of(node);
    const Dims order = interp::walking_order(operands);
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!has_one_stride(operands[i].shape, operands[i].strides) ||
          (entry.needs_elements(i) && std::ranges::count(operands[i].strides, 0) != 0))
        operands[i] = interp::contiguous(operands[i], pulse_);
    for (DType dtype : entry.outputs)
      operands.push_back(interp::allocate(dtype, node.shape, order));
    const std::vector<Value> results(
        operands.begin() + static_cast<std::ptrdiff_t>(entry.inputs.size()), operands.end());
    interp::run_loop(entry.loop, entry.data, operands, pulse_, entry.repeated.value_or(0));
    Value result = results[node.slot];
    if (results.size() > 1) calls_.emplace(key, results);
    return result;
  }

  static std::vector<std::uint32_t> raw(const NodeIds& ids) {
    std::vector<std::uint32_t> values;
    for (NodeId id : ids) values.push_back(id.value);
    return values;
  }

  const Loops& loops_;
  const RunArgs& args_;
  const interp::Pulse pulse_;
  std::vector<Value> values_;
  std::vector<std::uint32_t> flags_;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::vector<Value>> calls_;
  bool redo_ = false;
};

std::int64_t bytes_of(const Node& node) {
  return interp::count(node.shape) * static_cast<std::int64_t>(size_of(node.dtype));
}

// As the reports of compiled loops name it.
std::string name_of(const Node& node, const LoopTable* loops) {
  if (node.op == Op::Reduce) return std::string(reduction_info(node.reduction).name) + ".reduce";
  if (node.op == Op::ArgReduce) return node.id == 0 ? "argmin" : "argmax";
  if (node.combine)
    return std::string(op_info(*node.combine).name) + (node.op == Op::Scan ? ".accumulate" : ".at");
  if (node.op == Op::Ufunc && loops != nullptr && node.id < loops->size())
    return (*loops)[node.id].ufunc;
  return std::string(op_info(node.op).name);
}

Report report_on(const Graph& g, const LoopTable* loops) {
  Report report;
  report.graph = print(g, loops);
  GroupReport group;
  std::vector<std::string> ops;
  group.origin = "interpreter";
  for (std::size_t i = 0; i < g.size(); ++i) {
    const Node& node = g[g.at(i)];
    if (node.op == Op::Input) report.bytes_minimum += bytes_of(node);
    if (is_leaf(node.op)) continue;
    const bool is_view =
        node.op == Op::Broadcast || node.op == Op::Transpose || node.op == Op::Slice;
    if (is_view) continue;
    ops.push_back(name_of(node, loops));
    report.bytes_moved += bytes_of(node);
    for (NodeId operand : node.inputs) report.bytes_moved += bytes_of(g[operand]);
  }
  for (NodeId output : g.outputs) {
    report.bytes_moved += 2 * bytes_of(g[output]);  // results are copied into the caller's memory
    report.bytes_minimum += bytes_of(g[output]);
  }
  group.ops = std::move(ops);
  report.groups.push_back(std::move(group));
  return report;
}

class InterpretedGraph : public Executable {
 public:
  InterpretedGraph(const Graph& graph, Loops loops, Report report)
      : graph_(graph), loops_(std::move(loops)), report_(std::move(report)) {}

  RunStatus run(const RunArgs& args) const override try {
    const Evaluation evaluation(graph_, loops_, args);
    RunStatus status;
    status.redo = evaluation.redo();
    for (std::uint32_t flags : evaluation.flags()) status.fp |= flags;
    if (status.redo) return status;
    // Memory that lasts is written last, and whole.
    for (const bool lasting : {false, true}) {
      const interp::Pulse pulse(lasting ? nullptr : args.watch);
      for (std::size_t k = 0; k < graph_.outputs.size(); ++k) {
        if (lasting != (k < args.lasting.size() && args.lasting[k] != 0)) continue;
        const Buffer& buffer = args.outputs[k];
        interp::copy_elements(
            evaluation[graph_.outputs[k]],
            {buffer.dtype, buffer.shape, buffer.strides, static_cast<char*>(buffer.data), {}},
            pulse);
      }
    }
    return status;
  } catch (const std::bad_alloc&) {
    RunStatus status;
    status.redo = true;  // memory that lasts is written when all is computed
    status.why = Reason::OutOfMemory;
    return status;
  } catch (const interp::GivenUp&) {
    RunStatus status;
    status.stopped = true;
    return status;
  }
  double expected_ns() const override {
    constexpr double kNode = 1000, kByte = 0.25;
    return kNode * static_cast<double>(graph_.size()) +
           kByte * static_cast<double>(report_.bytes_moved);
  }
  const Report& report() const override { return report_; }

 private:
  Graph graph_;
  Loops loops_;
  Report report_;
};

}  // namespace

std::shared_ptr<const Executable> Interpreter::prepare(const Graph& graph, const RunArgs&) {
  return std::make_shared<InterpretedGraph>(graph, loops_of(graph, loops_),
                                            report_on(graph, loops_));
}

std::vector<std::uint32_t> Interpreter::node_flags(const Graph& graph, const RunArgs& args) const {
  const Loops loops = loops_of(graph, loops_);
  return Evaluation(graph, loops, args).flags();
}

}  // namespace ufuse::ir
