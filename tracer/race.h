// Which way of answering calls of one kind is faster, ours (a replay or a traced call) or the plain
// function? Both are right, and for a few numbers NumPy's own call can cost less than finding the
// plan, or than recording anew what cannot be replayed. Some calls are taken each way and timed;
// after that the faster way is kept, and asked about again now and then. The dispatcher lets both
// run where calls cost microseconds, and where a traced call spends little of its time in loops: a
// loop in Python over single elements. A traced call that has no loops to run is the plain function
// with overhead, so the plain function answers calls like it, of any size.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

namespace ufuse::tracer {

class Race {
 public:
  // Our way is kept unasked where it takes `worth_asking` nanoseconds or more: it then does work
  // that is worth more than its overhead.
  explicit Race(std::int64_t worth_asking) : worth_asking_(worth_asking) {}

  // How the next call is answered, and whether its time is wanted.
  struct Turn {
    bool plain = false, timed = false;
  };
  Turn next() {
    if (is_idle()) return {++calls_ < kLook || !std::has_single_bit(calls_), false};
    const std::uint32_t at = calls_++ % kPeriod;
    if (at < kBefore || at >= kAfter) return {plain_wins_, false};
    if (at == kBefore) {
      ours_ = plain_ = kNever;
      plain_turns_ = 0;
      has_stopped_ = false;
    }
    if (is_won()) return {true, false};
    return {at % 2 == 1 && (ours_ < worth_asking_ || overhead_) && !is_lost(), true};
  }
  void took(const Turn& turn, std::int64_t nanoseconds) {
    std::int64_t& best = turn.plain ? plain_ : ours_;
    best = std::min(best, nanoseconds);
    plain_turns_ += turn.plain;
    // Ours is the rule: what it takes does not depend on how fast Python runs.
    plain_wins_ = plain_ < kNever && plain_ < ours_ - ours_ / 8;
  }
  // How much of a call of ours the loops took.
  void spent_in_loops(std::int64_t nanoseconds, std::int64_t of) {
    overhead_ = nanoseconds < of / kLoopShare;
  }
  // A call of ours stopped tracing, because that cost more than it could win: the plain function is
  // asked at once, and once is enough.
  void stopped(std::int64_t nanoseconds) {
    const std::uint32_t at = calls_ % kPeriod;
    if (at >= kAfter) return;
    calls_ += std::max(at, kBefore + 1) - at;
    ours_ = std::min(ours_, nanoseconds);
    overhead_ = has_stopped_ = true;
  }
  // The last timed turn told nothing, since its loops are not built yet: it is taken again.
  void again() { --calls_; }
  // Whether a call of ours ran loops. Where one did, others may: they are then not called idle.
  void ran_loops(bool any) { (any ? has_run_loops_ : has_run_none_) = true; }
  bool plain_wins() const { return is_idle() || plain_wins_; }

 private:
  static constexpr std::uint32_t kPeriod = 10000, kBefore = 4, kAfter = 20;
  // Where ours has no loops to run it is looked at again after so many calls, and after twice as
  // many as the last time: the plain function then answers few calls too many.
  static constexpr std::uint32_t kLook = 16;
  // NumPy takes a few times as long as fused loops. Where those take less than this part of a call,
  // its answer will not take much longer than ours.
  static constexpr std::int64_t kLoopShare = 16;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  bool is_idle() const { return has_run_none_ && !has_run_loops_; }
  // Large temporaries can make the plain function many times slower: then twice is enough.
  bool is_lost() const { return plain_turns_ >= 2 && plain_ / 2 > ours_; }
  // Calls of ours can take a hundred times as long: then twice is enough, too.
  bool is_won() const {
    if (has_stopped_) return plain_turns_ >= 1 && plain_wins_;
    return plain_turns_ >= 2 && plain_wins_ && plain_ < ours_ / 4;
  }

  std::int64_t worth_asking_;
  std::uint32_t calls_ = 0, plain_turns_ = 0;
  std::int64_t ours_ = kNever, plain_ = kNever;
  bool plain_wins_ = false, overhead_ = false, has_run_loops_ = false, has_run_none_ = false;
  bool has_stopped_ = false;
};

}  // namespace ufuse::tracer
