// The whole compiler on one page: plan, print, build, bind.
#include "codegen/compile.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/deferred.h"
#include "codegen/emit/printer.h"
#include "codegen/jit/fork.h"
#include "codegen/jit/process.h"
#include "codegen/launch.h"
#include "codegen/runtime/memory.h"
#include "codegen/runtime/preamble.h"
#include "codegen/schedule/cost.h"
#include "codegen/schedule/plan.h"
#include "codegen/schedule/views.h"
#include "ir/print.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

// Everything a plan depends on, byte for byte: equal keys may share an Executable.
class Key {
 public:
  static std::string of(const ir::Graph& graph, const ir::RunArgs& layouts) {
    Key key;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const ir::Node& n = graph[graph.at(i)];
      key.add(n.op, n.dtype, n.id, n.slot, n.constant, n.reduction, n.order, n.run_axes, n.chunk);
      key.list(n.shape);
      key.list(n.ints);
      key.list(n.inputs);
    }
    key.list(graph.outputs);
    for (std::span<const ir::Buffer> buffers : {layouts.inputs, layouts.outputs}) {
      key.add(buffers.size());
      for (const ir::Buffer& b : buffers) {
        key.add(b.dtype);
        key.list(b.shape);
        key.list(b.strides);
      }
    }
    key.add(layouts.alias.size());
    for (int a : layouts.alias) key.add(a);
    return std::move(key.text_);
  }

 private:
  template <class... T>
  void add(const T&... values) {
    (text_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  }
  template <class T>
  void list(const T& values) {
    add(values.size());
    const auto bytes = std::as_bytes(std::span(values));
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string text_;
};

ir::Report report_of(const ir::Graph& graph, const ir::LoopTable& loops, const ir::RunArgs& layouts,
                     const Plan& plan) {
  ir::Report report;
  report.graph = ir::print(graph, &loops);
  const auto bytes = [](const ir::Buffer& b) {
    return element_count(b.shape) * static_cast<std::int64_t>(ir::size_of(b.dtype));
  };
  for (const ir::Buffer& b : layouts.inputs) report.bytes_minimum += bytes(b);
  for (const ir::Buffer& b : layouts.outputs) report.bytes_minimum += bytes(b);
  for (const loop::Kernel& k : plan.kernels)
    for (const loop::Buffer& b : k.buffers) {
      const auto i = static_cast<std::size_t>(b.index);
      if (b.role == loop::Buffer::Role::Input) report.bytes_moved += bytes(layouts.inputs[i]);
      if (b.role == loop::Buffer::Role::Output) report.bytes_moved += bytes(layouts.outputs[i]);
      if (b.role == loop::Buffer::Role::Temp)
        report.bytes_moved +=
            plan.temps[i].elements * static_cast<std::int64_t>(ir::size_of(plan.temps[i].dtype));
    }
  return report;
}

// The rest was for the text.
loop::Kernel needed_by_launches(loop::Kernel printed) {
  loop::Kernel k;
  k.buffers = std::move(printed.buffers);
  k.sizes = std::move(printed.sizes);
  k.params = std::move(printed.params);
  k.cost_ns = printed.cost_ns;
  k.streams = printed.streams;
  return k;
}

// A graph cut into kernels and printed, before anything is built.
struct Printed {
  std::vector<BoundKernel> kernels;  // without code
  std::vector<Temp> temps;
  std::vector<int> alias;
  ir::Report report;  // with the kernels' texts

  Printed(const ir::Graph& graph, const ir::LoopTable& loops, const ir::RunArgs& layouts)
      : alias(layouts.alias.begin(), layouts.alias.end()) {
    Plan plan = make_plan(graph, loops, layouts);
    report = report_of(graph, loops, layouts, plan);
    temps = std::move(plan.temps);
    for (loop::Kernel& k : plan.kernels) {
      ir::GroupReport group;
      group.source = print_cpp(k, loops);
      group.loops = loop::print(k);
      group.ops = std::move(k.ops);
      report.groups.push_back(std::move(group));
      BoundKernel bound;
      for (std::uint32_t row : k.calls) bound.calls.push_back({loops[row].loop, loops[row].data});
      bound.loops = needed_by_launches(std::move(k));
      kernels.push_back(std::move(bound));
    }
  }
};

// Roughly what it takes without compiled loops: a pass over memory for each node.
struct Uncompiled {
  double interpreted = 0, numpy = 0;  // nanoseconds
  double largest = 0;                 // value, bytes
  double worth_waiting = cost::kWorthWaiting;

  explicit Uncompiled(const ir::Graph& graph) {
    worth_waiting +=
        cost::kCompiledPart * static_cast<double>(graph.size() / (2 * cost::kMostNodes));
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const ir::Node& node = graph[graph.at(i)];
      const bool folds = node.op == ir::Op::Reduce || node.op == ir::Op::ArgReduce;
      const auto elements =
          static_cast<double>(element_count(folds ? graph[node.inputs[0]].shape : node.shape));
      interpreted += cost::kInterpretedNode + cost::kInterpretedElement * elements;
      numpy += cost::kNumPyNode + cost::kNumPyElement * elements;
      largest = std::max(largest, elements * static_cast<double>(ir::size_of(node.dtype)));
    }
  }
  bool is_quick() const { return interpreted <= cost::kInterpretedMost; }
  bool is_worse_than_waiting() const {
    return numpy > worth_waiting || largest > cost::kWorthWaitingBytes;
  }
};

// Leaves each run to NumPy, by way of the caller.
class LeftToNumPy final : public ir::Executable {
 public:
  explicit LeftToNumPy(ir::Report report) : report_(std::move(report)) {
    for (ir::GroupReport& group : report_.groups) group.origin = "NumPy";
  }
  ir::RunStatus run(const ir::RunArgs&) const override { return {.redo = true}; }
  const ir::Report& report() const override { return report_; }
  double expected_ns() const override { return 0; }

 private:
  ir::Report report_;
};

constexpr std::size_t kMaxPrepared = 4096;  // then all are forgotten; their kernels stay in the Jit

}  // namespace

struct Compiler::State {
  State(const ir::LoopTable& table, Numerics n, std::shared_ptr<Jit> j)
      : loops(table),
        numerics(n),
        jit(std::move(j)),
        threads([this] { return static_cast<int>(jit->building()); }) {}

  // A fork waits for both: the child would find the lock taken.
  std::shared_ptr<const Deferred> find(const std::string& key) {
    const NoFork whole;
    const std::lock_guard lock(mutex);
    const auto it = prepared.find(key);
    return it == prepared.end() ? nullptr : it->second;
  }
  std::shared_ptr<const Deferred> keep(std::string key, std::shared_ptr<const Deferred> made) {
    Prepared forgotten;  // dies after the lock is given back: unloading takes long
    const NoFork whole;
    const std::lock_guard lock(mutex);
    if (prepared.size() >= kMaxPrepared) forgotten.swap(prepared);
    return prepared.emplace(std::move(key), std::move(made)).first->second;
  }
  std::shared_ptr<const ir::Executable> bind(Printed printed, std::vector<Built> built) {
    for (std::size_t i = 0; i < built.size(); ++i) {
      printed.kernels[i].code = built[i].kernel;
      printed.report.groups[i].origin = to_string(built[i].origin);
      printed.report.groups[i].compile_ms = built[i].milliseconds;
    }
    return std::make_shared<CompiledGraph>(std::move(printed.kernels), std::move(printed.temps),
                                           std::move(printed.alias), std::move(printed.report),
                                           threads, pool);
  }

  // Begins to build all of a graph's kernels, side by side. Until they are built, `meanwhile`
  // answers, or NumPy where it is null.
  std::shared_ptr<const Deferred> begin(const ir::Graph& graph, const ir::RunArgs& layouts,
                                        bool awaited,
                                        std::shared_ptr<const ir::Executable> meanwhile) {
    Printed printed(graph, loops, layouts);
    ir::Report report = printed.report;
    if (!meanwhile) meanwhile = std::make_shared<LeftToNumPy>(report);
    return std::make_shared<const Deferred>(
        *jit, numerics, awaited,
        [this, printed = std::move(printed)](std::vector<Built> built) {
          return bind(printed, std::move(built));
        },
        std::move(meanwhile), std::move(report));
  }

  // A child has little time left, often, and ends without a word; contraction would show.
  bool waits(const ir::Graph& graph, bool always) const {
    return always || fork_generation() != 0 || numerics != Numerics::Exact ||
           Uncompiled(graph).is_worse_than_waiting();
  }

  using Prepared = std::unordered_map<std::string, std::shared_ptr<const Deferred>>;
  const ir::LoopTable& loops;
  const Numerics numerics;
  const std::shared_ptr<Jit> jit;
  Threads threads;
  ScratchPool pool;
  std::mutex mutex;
  Prepared prepared;
};

Compiler::Compiler(const ir::LoopTable& loops, Numerics numerics, std::shared_ptr<Jit> jit)
    : state_(std::make_shared<State>(loops, numerics, std::move(jit))) {}
Compiler::~Compiler() = default;
Threads& Compiler::threads() { return state_->threads; }
Jit& Compiler::jit() { return *state_->jit; }

std::chrono::milliseconds Compiler::longest_wait() {
  static const std::chrono::seconds wait{
      Environment::now().count("UFUSE_PATIENCE", cost::kLongestWait, cost::kMostPatience)};
  return wait;
}

std::shared_ptr<Jit> Compiler::default_jit() {
  JitConfig config;
  config.preamble = runtime_preamble();
  config.half = runtime_half();
  config.slow = std::max<std::chrono::milliseconds>(longest_wait(), cost::kNotSlow);
  return std::make_shared<Jit>(std::move(config));
}

std::shared_ptr<const ir::Executable> Compiler::prepare(const ir::Graph& graph,
                                                        const ir::RunArgs& layouts) {
  std::string key = Key::of(graph, layouts);
  auto known = state_->find(key);
  const bool is_new = !known;
  if (is_new) known = state_->begin(graph, layouts, true, nullptr);
  known->wait();
  return is_new ? state_->keep(std::move(key), known) : known;
}

std::shared_ptr<const ir::Executable> Compiler::prepare_or_defer(
    const ir::Graph& graph, const ir::RunArgs& layouts, ir::Backend& meanwhile, bool always,
    const ir::Patience& patience, std::chrono::nanoseconds brief) {
  const bool waits = state_->waits(graph, always);
  std::string key = Key::of(graph, layouts);
  auto known = state_->find(key);
  if (known && !waits) return known;
  if (!known) {
    const bool quick = Uncompiled(graph).is_quick();
    auto made =
        state_->begin(graph, layouts, waits, quick ? meanwhile.prepare(graph, layouts) : nullptr);
    known = state_->keep(std::move(key), std::move(made));
  }
  if (waits) {
    known->await(patience);
  } else {
    ir::Patience shorter = patience;
    shorter.end =
        std::min(patience.end, std::chrono::steady_clock::now() +
                                   std::min<std::chrono::nanoseconds>(brief, cost::kPatience));
    known->await_load(shorter);
  }
  return known;
}

std::shared_ptr<const ir::Executable> Compiler::find(const ir::Graph& graph,
                                                     const ir::RunArgs& layouts,
                                                     bool always) const {
  auto known = state_->find(Key::of(graph, layouts));
  if (known && !known->settled() && state_->waits(graph, always)) return nullptr;
  return known;
}

ir::Report Compiler::describe(const ir::Graph& graph, const ir::RunArgs& layouts) const {
  return Printed(graph, state_->loops, layouts).report;
}

}  // namespace ufuse::codegen
