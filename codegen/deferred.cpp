// See deferred.h. Results do not depend on who answers: both give NumPy's bits.
#include "codegen/deferred.h"

#include <algorithm>
#include <utility>

#include "codegen/jit/fork.h"

namespace ufuse::codegen {

Deferred::Deferred(Jit& jit, std::vector<std::string> sources, Numerics numerics, Bind bind,
                   std::shared_ptr<const ir::Executable> meanwhile, ir::Report report)
    : jit_(jit),
      sources_(std::move(sources)),
      numerics_(numerics),
      bind_(std::move(bind)),
      meanwhile_(std::move(meanwhile)),
      pending_report_(std::move(report)),
      generation_(fork_generation()) {
  for (const std::string& source : sources_) builds_.push_back(jit_.get_async(source, numerics_));
}

void Deferred::wait_for(std::chrono::milliseconds patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  for (const std::shared_future<Built>& build : builds_) build.wait_until(end);
  look();
}

void Deferred::wait() const {
  if (const Outcome& outcome = settle(); outcome.error) std::rethrow_exception(outcome.error);
}

ir::RunStatus Deferred::run(const ir::RunArgs& args) const {
  const Outcome* outcome = look();
  return (outcome != nullptr ? *outcome->executable : *meanwhile_).run(args);
}

double Deferred::expected_ns() const {
  const Outcome* outcome = look();
  return (outcome != nullptr ? *outcome->executable : *meanwhile_).expected_ns();
}

const ir::Report& Deferred::report() const {
  const Outcome* outcome = look();
  if (outcome == nullptr) return pending_report_;
  return outcome->error ? outcome->without_loops : outcome->executable->report();
}

const Deferred::Outcome* Deferred::look() const {
  if (const Outcome* outcome = outcome_.load(std::memory_order_acquire)) return outcome;
  const bool ready = std::ranges::all_of(builds_, [](const std::shared_future<Built>& build) {
    return build.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  });
  return ready || generation_ != fork_generation() ? &settle() : nullptr;
}

const Deferred::Outcome& Deferred::settle() const {
  if (const Outcome* outcome = outcome_.load(std::memory_order_acquire)) return *outcome;
  auto outcome = std::make_unique<Outcome>();
  try {
    std::vector<Built> built;
    for (const std::string& source : sources_) {
      const std::size_t i = built.size();
      // A future from before a fork may never become ready.
      built.push_back(generation_ == fork_generation() ? builds_[i].get()
                                                       : jit_.get(source, numerics_));
    }
    outcome->executable = bind_(std::move(built));
  } catch (const std::exception& error) {
    outcome->error = std::current_exception();
    outcome->executable = meanwhile_;
    outcome->without_loops = meanwhile_->report();
    for (ir::GroupReport& group : outcome->without_loops.groups) group.note = error.what();
  }
  const Outcome* first = nullptr;  // of several threads
  if (outcome_.compare_exchange_strong(first, outcome.get(), std::memory_order_acq_rel))
    return *outcome.release();
  return *first;
}

}  // namespace ufuse::codegen
