// Who is asked for a graph: what was prepared before is kept, and what is new is compiled, built
// side by side in the background, and bound to its code.
#include "codegen/compiler.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/deferred.h"
#include "codegen/jit/fork.h"
#include "codegen/jit/process.h"
#include "codegen/launch.h"
#include "codegen/meanwhile.h"
#include "codegen/request_key.h"
#include "codegen/runtime/memory.h"
#include "codegen/runtime/preamble.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen {
namespace {

constexpr std::size_t kMaxPrepared = 4096;  // then all are forgotten; their kernels stay in the Jit

}  // namespace

struct Compiler::State {
  State(const ir::LoopTable& table, Numerics n, std::shared_ptr<Jit> j, CompileOptions o)
      : loops(table), numerics(n), options(std::move(o)), jit(std::move(j)), threads([this] {
          return static_cast<int>(jit->building());
        }) {}

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
  std::shared_ptr<const ir::Executable> bind(Compiled compiled, std::vector<int> alias,
                                             std::vector<Built> built) {
    for (std::size_t i = 0; i < built.size(); ++i) {
      compiled.kernels[i].code = built[i].kernel;
      compiled.report.groups[i].origin = to_string(built[i].origin);
      compiled.report.groups[i].compile_ms = built[i].milliseconds;
    }
    return std::make_shared<CompiledGraph>(std::move(compiled.kernels), std::move(compiled.temps),
                                           std::move(alias), std::move(compiled.report), threads,
                                           pool);
  }

  // Begins to build all of a graph's kernels, side by side. Until they are built, `meanwhile`
  // answers, or NumPy where it is null.
  std::shared_ptr<const Deferred> begin(const ir::Graph& graph, const ir::RunArgs& layouts,
                                        bool awaited,
                                        std::shared_ptr<const ir::Executable> meanwhile) {
    Compiled compiled = compile(graph, loops, layouts, options);
    ir::Report report = compiled.report;
    if (!meanwhile) meanwhile = left_to_numpy(report);
    std::vector<int> alias(layouts.alias.begin(), layouts.alias.end());
    return std::make_shared<const Deferred>(
        *jit, numerics, awaited,
        [this, compiled = std::move(compiled), alias = std::move(alias)](std::vector<Built> built) {
          return bind(compiled, alias, std::move(built));
        },
        std::move(meanwhile), std::move(report));
  }

  // A child has little time left, often, and ends without a word; contraction would show.
  bool must_wait(bool always) const {
    return always || fork_generation() != 0 || numerics != Numerics::Exact;
  }
  bool waits(const ir::Graph& graph, bool always) const {
    return must_wait(always) || Uncompiled(graph).is_worse_than_waiting();
  }

  using Prepared = std::unordered_map<std::string, std::shared_ptr<const Deferred>>;
  const ir::LoopTable& loops;
  const Numerics numerics;
  const CompileOptions options;
  const std::shared_ptr<Jit> jit;
  Threads threads;
  ScratchPool pool;
  std::mutex mutex;
  Prepared prepared;
};

Compiler::Compiler(const ir::LoopTable& loops, Numerics numerics, std::shared_ptr<Jit> jit,
                   CompileOptions options)
    : state_(std::make_shared<State>(loops, numerics, std::move(jit), std::move(options))) {}
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
  std::string key = request_key(graph, layouts);
  auto known = state_->find(key);
  const bool is_new = !known;
  if (is_new) known = state_->begin(graph, layouts, true, nullptr);
  known->wait();
  return is_new ? state_->keep(std::move(key), known) : known;
}

std::shared_ptr<const ir::Executable> Compiler::prepare_or_defer(
    const ir::Graph& graph, const ir::RunArgs& layouts, ir::Backend& meanwhile, bool always,
    const ir::Patience& patience, std::chrono::nanoseconds brief) {
  const Uncompiled uncompiled(graph);
  const bool must_wait = state_->must_wait(always);
  const bool waits = must_wait || uncompiled.is_worse_than_waiting();
  std::string key = request_key(graph, layouts);
  auto known = state_->find(key);
  if (known && !waits) return known;
  if (!known) {
    auto made = state_->begin(graph, layouts, waits,
                              uncompiled.is_quick() ? meanwhile.prepare(graph, layouts) : nullptr);
    known = state_->keep(std::move(key), std::move(made));
  }
  if (must_wait) {
    known->await(patience);
    return known;
  }
  const std::chrono::nanoseconds longest =
      waits ? uncompiled.longest_wait()
            : std::min<std::chrono::nanoseconds>(brief, cost::kPatience);
  ir::Patience shorter = patience;
  shorter.end = std::min(patience.end, std::chrono::steady_clock::now() + longest);
  waits ? known->await(shorter) : known->await_load(shorter);
  return known;
}

std::shared_ptr<const ir::Executable> Compiler::find(const ir::Graph& graph,
                                                     const ir::RunArgs& layouts,
                                                     bool always) const {
  auto known = state_->find(request_key(graph, layouts));
  if (known && !known->is_final() && state_->waits(graph, always)) return nullptr;
  return known;
}

ir::Report Compiler::describe(const ir::Graph& graph, const ir::RunArgs& layouts) const {
  return compile(graph, state_->loops, layouts, state_->options).report;
}

}  // namespace ufuse::codegen
