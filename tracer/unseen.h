// Which calls are handed to the plain function without a look at their arguments? Where it answers
// and takes microseconds, the look would cost too much. So calls are handed on in rows, and only
// one that takes much longer than those before is looked at afterwards: had another way been meant
// for it, the next calls are looked at: ever more of them, as long as that takes no longer than all
// that was lost so. Knows no clock: times are handed in.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ufuse::tracer {

class Unseen {
 public:
  // Whether the next call is handed on, as one of a row.
  bool takes_next() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }
  // The plain function has answered a call that was looked at, as it is faster, and takes so many
  // nanoseconds (0: not known): the next calls may be handed on. So many that the looks, of which
  // each takes `look` nanoseconds, take a hundredth of the time at most.
  void begin(std::int64_t plain, std::int64_t look) {
    if (seen_ > 0) {
      --seen_;
      return;
    }
    if (plain == 0) return;
    const std::int64_t row = std::min(kShare * look / plain, kLongest);
    left_ = static_cast<std::uint32_t>(plain > kShort ? row : std::max(kRow, row));
    limit_ = kLonger * plain;
  }
  // Whether a call that was handed on has taken so long that it should be looked at afterwards. On
  // a busy machine, or where Python collects garbage, a call like the others may.
  bool is_long(std::int64_t nanoseconds) const { return nanoseconds > limit_; }
  // A call that was handed on should have been answered in another way, and may have taken so many
  // nanoseconds less.
  void was_wrong(std::int64_t less) {
    left_ = 0;
    lost_ += std::max<std::int64_t>(0, less);
    seen_ = std::min(seen_next_, lost_ / kLook);
    seen_next_ = std::min(2 * seen_next_, kMostSeen);
  }
  void stop() { left_ = 0; }

 private:
  static constexpr std::int64_t kShort = 500'000, kLonger = 8;
  static constexpr std::int64_t kRow = 64, kShare = 100, kLongest = 1 << 14;
  static constexpr std::int64_t kLook = 1'000, kMostSeen = 1 << 20;

  std::uint32_t left_ = 0;  // of the row
  std::int64_t limit_ = 0;
  // So many calls are looked at in any case; the next time twice as many.
  std::int64_t seen_ = 0, seen_next_ = kRow;
  std::int64_t lost_ = 0;  // nanoseconds
};

}  // namespace ufuse::tracer
