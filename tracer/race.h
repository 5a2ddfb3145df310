// Which way of answering calls of one signature is faster, a replay or the plain function? Both are
// right, and for a few numbers NumPy's own call can cost less than finding the plan. Some calls are
// taken each way and timed; after that the faster way is kept, and asked about again now and then.
// Used by the dispatcher for small arguments only, where a call of either kind costs microseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace ufuse::tracer {

class Race {
 public:
  // How the next call is answered, and whether its time is wanted.
  struct Turn {
    bool plain = false, timed = false;
  };
  Turn next() {
    const std::uint32_t at = calls_++ % kPeriod;
    if (at < kBefore || at >= kAfter) return {plain_wins_, false};
    if (at == kBefore) replay_ = plain_ = kNever;
    // A replay that takes long does work that is worth more than its overhead.
    const bool plain = at % 2 == 1 && replay_ < kWorthAsking;
    return {plain, true};
  }
  void took(const Turn& turn, std::int64_t nanoseconds) {
    std::int64_t& best = turn.plain ? plain_ : replay_;
    best = std::min(best, nanoseconds);
    // Replays are the rule: they do not depend on how fast Python runs.
    plain_wins_ = plain_ < kNever && plain_ < replay_ - replay_ / 8;
  }
  bool plain_wins() const { return plain_wins_; }

 private:
  static constexpr std::uint32_t kPeriod = 10000, kBefore = 4, kAfter = 20;
  static constexpr std::int64_t kWorthAsking = 20'000;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  std::uint32_t calls_ = 0;
  std::int64_t replay_ = kNever, plain_ = kNever;
  bool plain_wins_ = false;
};

}  // namespace ufuse::tracer
