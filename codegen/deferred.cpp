// See deferred.h. Results do not depend on who answers: both give NumPy's bits.
#include "codegen/deferred.h"

#include <algorithm>
#include <utility>

#include "codegen/jit/fork.h"
#include "codegen/jit/health.h"

namespace ufuse::codegen {
namespace {

// How often a caller who waits looks around.
constexpr std::chrono::milliseconds kGlance{20};
constexpr std::chrono::microseconds kMoment{200};  // or one who waits for the disk
constexpr int kLong = 10;  // glances: who has waited so long has waited for a compiler
// After trouble with the compiler it is asked for these loops again, at least this often.
constexpr std::chrono::hours kLongestPause{1};

ir::Report said(ir::Report report, const ir::Executable* by, std::optional<Reason> reason,
                const std::string& note = {}) {
  const bool has_word = by != nullptr && !by->report().groups.empty();
  const std::string origin = has_word ? by->report().groups[0].origin : "interpreter";
  for (ir::GroupReport& group : report.groups) {
    group.origin = origin;
    group.reason = reason;
    group.note = note;
  }
  return report;
}

bool is_ready(const std::shared_future<Built>& build) {
  return build.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

Deferred::Deferred(Jit& jit, Numerics numerics, bool awaited, Bind bind,
                   std::shared_ptr<const ir::Executable> meanwhile, ir::Report report)
    : jit_(jit),
      numerics_(numerics),
      bind_(std::move(bind)),
      meanwhile_(std::move(meanwhile)),
      report_(std::move(report)) {
  stage_ = begun({}, awaited).release();
}

Deferred::~Deferred() {
  for (const Stage* stage = stage_.load(); stage != nullptr;)
    delete std::exchange(stage, stage->before);
}

void Deferred::await(const ir::Patience& patience) const {
  for (int glances = 0;; ++glances) {
    const Stage& now = look();
    if (now.state != Stage::Building) return;
    const auto left = std::min<Clock::duration>(patience.end - Clock::now(), kGlance);
    const bool prompt = jit_.is_prompt();
    if (left <= Clock::duration(0) || !prompt) {
      const bool in_vain = !prompt || glances > kLong;
      if (in_vain && !now.slow) advance(now, slow(now));
      return;
    }
    const auto pending = std::ranges::find_if_not(now.builds, is_ready);
    if (pending != now.builds.end()) pending->wait_for(left);
    patience.look_around();
  }
}

void Deferred::await_load(const ir::Patience& patience) const {
  while (look().state == Stage::Building && Clock::now() < patience.end && may_be_near())
    for (const std::shared_future<Built>& build : look().builds)
      if (build.wait_for(kMoment) != std::future_status::ready) break;
  const Stage& now = look();
  if (now.state == Stage::Building && !now.slow && !jit_.is_prompt()) advance(now, slow(now));
}

// Whether each of its loops is there or may be on the disk.
bool Deferred::may_be_near() const {
  const Stage& now = look();
  for (std::size_t i = 0; i < now.builds.size(); ++i)
    if (!is_ready(now.builds[i]) && !jit_.may_be_near(*report_.groups[i].source, {numerics_}))
      return false;
  return true;
}

void Deferred::wait() const {
  for (;;) {
    const Stage& now = look();
    if (now.state == Stage::Failed) std::rethrow_exception(now.error);
    if (now.state == Stage::Compiled) return;
    for (const std::shared_future<Built>& build : now.builds) build.wait();
  }
}

ir::RunStatus Deferred::run(const ir::RunArgs& args) const { return look().executable->run(args); }

double Deferred::expected_ns() const { return look().executable->expected_ns(); }

const ir::Report& Deferred::report() const {
  const Stage& now = look();
  return now.state == Stage::Compiled ? now.executable->report() : now.report;
}

bool Deferred::is_final() const {
  // Who asks may run it only if it is: so it is found out here.
  return stage_.load(std::memory_order_acquire)->state != Stage::Building ||
         look().state != Stage::Building;
}

const Deferred::Stage& Deferred::look() const {
  const Stage* now = stage_.load(std::memory_order_acquire);
  if (now->state == Stage::Compiled) return *now;
  std::unique_ptr<Stage> following = next(*now);
  return following ? advance(*now, std::move(following)) : *now;
}

std::unique_ptr<Deferred::Stage> Deferred::next(const Stage& now) const {
  if (now.state == Stage::Failed)
    return Clock::now() < now.again ? nullptr : begun(now.pause, false);
  if (now.generation != fork_generation()) return begun({}, true);
  return std::ranges::all_of(now.builds, is_ready) ? over(now) : nullptr;
}

std::unique_ptr<Deferred::Stage> Deferred::begun(Clock::duration pause, bool awaited) const {
  auto made = std::make_unique<Stage>();
  made->generation = fork_generation();
  for (const ir::GroupReport& group : report_.groups)
    made->builds.push_back(
        jit_.get_async(*group.source, {numerics_}, awaited ? Urgency::Awaited : Urgency::Later));
  made->executable = meanwhile_;
  made->report = said(report_, meanwhile_.get(), Reason::Compiling);
  made->pause = pause;
  return made;
}

std::unique_ptr<Deferred::Stage> Deferred::over(const Stage& now) const {
  auto made = std::make_unique<Stage>();
  made->generation = now.generation;
  try {
    std::vector<Built> built;
    for (const std::shared_future<Built>& build : now.builds) built.push_back(build.get());
    made->executable = bind_(std::move(built));
    made->state = Stage::Compiled;
    return made;
  } catch (const CompilerTrouble& error) {
    made->error = std::current_exception();
    made->report = said(without_loops(), meanwhile_.get(), Reason::CompilerTrouble, error.what());
    made->pause = std::clamp<Clock::duration>(2 * now.pause, jit_.pause(), kLongestPause);
    made->again = Clock::now() + made->pause;
  } catch (const std::exception& error) {
    made->error = std::current_exception();
    made->report = said(without_loops(), meanwhile_.get(), {}, error.what());
  }
  made->state = Stage::Failed;
  made->executable = meanwhile_;
  return made;
}

std::unique_ptr<Deferred::Stage> Deferred::slow(const Stage& now) const {
  auto made = std::make_unique<Stage>(now);
  made->slow = true;
  made->report = said(report_, meanwhile_.get(), Reason::SlowCompiler);
  return made;
}

// Of several threads one is first.
const Deferred::Stage& Deferred::advance(const Stage& from, std::unique_ptr<Stage> to) const {
  to->before = &from;
  const Stage* first = &from;
  if (stage_.compare_exchange_strong(first, to.get(), std::memory_order_acq_rel))
    return *to.release();
  return *first;
}

const ir::Report& Deferred::without_loops() const {
  return meanwhile_ ? meanwhile_->report() : report_;
}

}  // namespace ufuse::codegen
