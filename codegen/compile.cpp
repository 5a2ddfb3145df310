// The whole compiler on one page: plan, print, build, bind.
#include "codegen/compile.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/deferred.h"
#include "codegen/emit/printer.h"
#include "codegen/jit/fork.h"
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
  void list(const std::vector<T>& values) {
    add(values.size());
    text_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string text_;
};

struct BoundKernel {
  std::shared_ptr<const Kernel> code;
  loop::Kernel loops;  // its body is dropped once it is printed
  std::vector<rt::Loop> calls;
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

class CompiledGraph : public ir::Executable {
 public:
  CompiledGraph(std::vector<BoundKernel> kernels, std::vector<Temp> temps, ir::Report report,
                Threads& threads, ScratchPool& pool)
      : kernels_(std::move(kernels)),
        temps_(std::move(temps)),
        report_(std::move(report)),
        threads_(threads),
        pool_(pool) {
    share_memory();
  }

  ir::RunStatus run(const ir::RunArgs& args) const override {
    ir::RunStatus status;
    std::vector<Scratch> slots;
    try {
      for (std::size_t bytes : slots_) slots.push_back(pool_.take(bytes));
    } catch (const std::bad_alloc&) {
      status.redo = true;  // nothing is written yet
      return status;
    }
    std::vector<void*> buffers;
    std::vector<rt::Param> params;
    for (const BoundKernel& kernel : kernels_) {
      buffers.clear();
      params.clear();
      for (const loop::Buffer& b : kernel.loops.buffers) {
        const auto i = static_cast<std::size_t>(b.index);
        void* base = nullptr;
        switch (b.role) {
          case loop::Buffer::Role::Row:
            continue;
          case loop::Buffer::Role::Input:
            base = args.inputs[i].data;
            break;
          case loop::Buffer::Role::Output:
            base = args.outputs[i].data;
            break;
          case loop::Buffer::Role::Temp:
            base = slots[slot_of_[i]].data();
            break;
        }
        buffers.push_back(static_cast<char*>(base) +
                          b.offset * static_cast<std::int64_t>(ir::size_of(b.dtype)));
      }
      for (std::uint32_t p : kernel.loops.params) {
        rt::Param param;
        std::memcpy(param.bits, args.params[p].bits, sizeof param.bits);
        params.push_back(param);
      }
      rt::Args kernel_args{};
      kernel_args.buffers = buffers.data();
      kernel_args.sizes = kernel.loops.sizes.data();
      kernel_args.params = params.data();
      kernel_args.loops = kernel.calls.data();
      kernel_args.threads = threads_.choose(kernel.loops.cost_ns);
      kernel_args.stream = kernel.loops.streams;
      const unsigned bits = (*kernel.code)(kernel_args);
      status.fp |= bits & 0xf;
      if ((bits & rt::kRedo) != 0) {
        status.redo = true;
        break;
      }
    }
    return status;
  }
  const ir::Report& report() const override { return report_; }

 private:
  // A temporary lives from its first kernel to its last; then another of about its size may have
  // its memory.
  void share_memory() {
    std::vector<std::size_t> last_use(temps_.size());
    const auto each_temp = [&](std::size_t k, const auto& visit) {
      for (const loop::Buffer& b : kernels_[k].loops.buffers)
        if (b.role == loop::Buffer::Role::Temp) visit(static_cast<std::size_t>(b.index));
    };
    for (std::size_t k = 0; k < kernels_.size(); ++k)
      each_temp(k, [&](std::size_t i) { last_use[i] = k; });
    constexpr std::size_t kNone = SIZE_MAX;
    slot_of_.assign(temps_.size(), kNone);
    std::vector<std::size_t> idle;
    for (std::size_t k = 0; k < kernels_.size(); ++k) {
      each_temp(k, [&](std::size_t i) {
        if (slot_of_[i] == kNone) slot_of_[i] = slot_for(bytes_of(temps_[i]), idle);
      });
      each_temp(k, [&](std::size_t i) {
        const bool is_idle = std::ranges::find(idle, slot_of_[i]) != idle.end();
        if (last_use[i] == k && !is_idle) idle.push_back(slot_of_[i]);
      });
    }
  }
  static std::size_t bytes_of(const Temp& temp) {
    return static_cast<std::size_t>(temp.elements) * ir::size_of(temp.dtype);
  }
  std::size_t slot_for(std::size_t bytes, std::vector<std::size_t>& idle) {
    const auto fits = [&](std::size_t slot) {
      return slots_[slot] >= bytes && slots_[slot] <= 2 * bytes;
    };
    if (const auto it = std::ranges::find_if(idle, fits); it != idle.end()) {
      const std::size_t slot = *it;
      idle.erase(it);
      return slot;
    }
    slots_.push_back(bytes);
    return slots_.size() - 1;
  }

  std::vector<BoundKernel> kernels_;
  std::vector<Temp> temps_;
  std::vector<std::size_t> slots_;    // bytes of each piece of memory for temporaries
  std::vector<std::size_t> slot_of_;  // where each temporary lies
  ir::Report report_;
  Threads& threads_;
  ScratchPool& pool_;
};

// A graph cut into kernels and printed, before anything is built.
struct Printed {
  std::vector<BoundKernel> kernels;  // without code
  std::vector<Temp> temps;
  ir::Report report;  // with the kernels' texts

  Printed(const ir::Graph& graph, const ir::LoopTable& loops, const ir::RunArgs& layouts) {
    Plan plan = make_plan(graph, loops, layouts);
    report = report_of(graph, loops, layouts, plan);
    temps = std::move(plan.temps);
    for (loop::Kernel& k : plan.kernels) {
      ir::GroupReport group;
      group.source = print_cpp(k, loops);
      group.loops = loop::print(k);
      group.ops = k.ops;
      report.groups.push_back(std::move(group));
      BoundKernel bound;
      for (std::uint32_t row : k.calls) bound.calls.push_back({loops[row].loop, loops[row].data});
      k.body.clear();
      bound.loops = std::move(k);
      kernels.push_back(std::move(bound));
    }
  }
};

// Roughly what the interpreter takes, in nanoseconds: a pass over memory for each node.
double interpreted_ns(const ir::Graph& graph) {
  double ns = 0;
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const ir::Node& node = graph[graph.at(i)];
    const bool folds = node.op == ir::Op::Reduce || node.op == ir::Op::ArgReduce;
    const auto elements =
        static_cast<double>(element_count(folds ? graph[node.inputs[0]].shape : node.shape));
    ns += cost::kInterpretedNode + cost::kInterpretedElement * elements;
  }
  return ns;
}

// For how much interpreting one waits for the compiler instead.
double worth_waiting(const ir::Graph& graph) {
  return cost::kWorthWaiting +
         cost::kCompiledPart * static_cast<double>(graph.size() / (2 * cost::kMostNodes));
}

constexpr std::size_t kMaxPrepared = 4096;  // then all are forgotten; their kernels stay in the Jit

}  // namespace

struct Compiler::State {
  State(const ir::LoopTable& table, Numerics n, std::shared_ptr<Jit> j)
      : loops(table), numerics(n), jit(std::move(j)) {}

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
                                           std::move(printed.report), threads, pool);
  }

  // Begins to build all of a graph's kernels, side by side.
  std::shared_ptr<const Deferred> begin(const ir::Graph& graph, const ir::RunArgs& layouts,
                                        bool awaited,
                                        std::shared_ptr<const ir::Executable> meanwhile) {
    Printed printed(graph, loops, layouts);
    std::vector<std::string> sources;
    for (const ir::GroupReport& group : printed.report.groups) sources.push_back(group.source);
    ir::Report report = printed.report;
    return std::make_shared<const Deferred>(
        *jit, std::move(sources), numerics, awaited,
        [this, printed = std::move(printed)](std::vector<Built> built) {
          return bind(printed, std::move(built));
        },
        std::move(meanwhile), std::move(report));
  }

  // A child has little time left, often, and ends without a word; contraction would show.
  bool waits(const ir::Graph& graph, bool always) const {
    return always || fork_generation() != 0 || numerics != Numerics::Exact ||
           interpreted_ns(graph) > worth_waiting(graph);
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

std::shared_ptr<Jit> Compiler::default_jit() {
  JitConfig config;
  config.preamble = runtime_preamble();
  config.half = runtime_half();
  config.slow = cost::kLongestWait;
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

std::shared_ptr<const ir::Executable> Compiler::prepare_or_defer(const ir::Graph& graph,
                                                                 const ir::RunArgs& layouts,
                                                                 ir::Backend& meanwhile,
                                                                 bool always,
                                                                 const ir::Patience& patience) {
  const bool waits = state_->waits(graph, always);
  std::string key = Key::of(graph, layouts);
  auto known = state_->find(key);
  if (known && !waits) return known;
  if (!known) {
    auto made = state_->begin(graph, layouts, waits, meanwhile.prepare(graph, layouts));
    known = state_->keep(std::move(key), std::move(made));
  }
  ir::Patience shorter = patience;
  if (!waits)
    shorter.end = std::min(patience.end, std::chrono::steady_clock::now() + cost::kPatience);
  known->await(shorter);
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
