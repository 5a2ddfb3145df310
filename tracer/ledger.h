// Which way of answering calls of one kind costs less, ours (a replay or a traced call) or the
// plain function? Both are right. Each is timed; the one that costs less answers, and the other is
// looked at again ever more rarely, and only where the function can afford it: what all its calls
// have cost beyond plain NumPy, its regret, stays within a fixed sum and a share of NumPy's own
// time. Knows no clock: times are handed in.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>

namespace ufuse::tracer {

// One of those that a number counts, as long as it stands.
class Counted {
 public:
  explicit Counted(int& number) : number_(number) { ++number_; }
  ~Counted() { --number_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& number_;
};

// What all functions together have cost; nanoseconds. Functions call each other: were each to try
// again what it can afford alone, all of them would take too long.
struct Together {
  std::int64_t plain = 0;   // what plain NumPy would have taken for the outermost calls
  std::int64_t regret = 0;  // what was spent beyond that; what others have saved is no credit

  bool affords(std::int64_t more) const { return regret + more <= kFree + plain / kShare; }
  void add(std::int64_t taken, std::int64_t plainly) {
    if (open_ < 2) plain += plainly;
    regret += std::max<std::int64_t>(0, taken - plainly);
  }

  // While what this gives stands, a call runs.
  Counted open() { return Counted(open_); }

 private:
  int open_ = 0;
  static constexpr std::int64_t kFree = 500'000'000, kShare = 50;
};

// What one function has cost, all kinds of its calls together; nanoseconds.
struct Account {
  explicit Account(Together& all) : together(&all) {}

  Together* together;
  std::int64_t plain = 0;    // what plain NumPy would have taken
  std::int64_t regret = 0;   // what was spent beyond that; what was saved before is no credit
  std::int64_t unknown = 0;  // what was spent where it is not known what plain NumPy takes

  bool affords(std::int64_t more) const {
    return more <= 0 || regret + more <= kFree + plain / kTryingShare;
  }
  // The same for what has been tried before.
  bool affords_again(std::int64_t more) const {
    return more <= 0 || (affords(more) && together->affords(more));
  }
  // More was spent than is promised: what has not been tried yet is not tried now. Of a function
  // that calls itself, all that it has spent counts that nothing is known to compare with.
  bool is_overdrawn() const { return regret + (open_ > 1 ? unknown : 0) > kMost + plain / kShare; }
  void add(std::int64_t taken, std::int64_t plainly) {
    if (open_ < 2) plain += plainly;  // what a call inside another one takes is part of that one's
    regret = std::max<std::int64_t>(0, regret + taken - plainly);
    together->add(taken, plainly);
  }

  // Whether a call of the function runs.
  bool is_open() const { return open_ > 0; }
  // While one of these stands, a call of the function runs.
  class Open {
   public:
    explicit Open(Account& account)
        : counted_(account.open_), with_others_(account.together->open()) {}

   private:
    const Counted counted_, with_others_;
  };

 private:
  int open_ = 0;
  static constexpr std::int64_t kFree = 100'000'000, kTryingShare = 50;
  static constexpr std::int64_t kMost = 200'000'000, kShare = 20;
};

class Ledger {
 public:
  struct Turn {
    bool plain = false, timed = false;
    bool look = false;  // at the way that is behind
  };

  // How the next call is answered. `asks`: whether the plain function may be timed although nothing
  // says that it could win; it may need much memory. `building`: loops of ours are being compiled.
  // `doubtful`: ours has hardly anything to gain and may take many times as long.
  Turn next(const Account& account, bool asks, bool building, bool doubtful = false) {
    ++calls_;
    if (is_idle()) return idle_turn(account);
    if (building && asks) return stands_in();  // NumPy stands in for them anyway
    if (!plain_.known()) {
      const bool due = calls_ > kBefore || spent_ >= kLong || account.is_overdrawn() || doubtful;
      return {due && (asks || overhead_), true};
    }
    if (!ours_.known()) {
      const bool first = last_ == 0;
      const std::int64_t more =
          first && doubtful ? kDoubtful * plain_.best() : last_ - plain_.best();
      const bool tries = account.affords(more) || (more <= kTry && tries_ < kTries);
      if (building || !tries || (first && account.is_overdrawn())) return stands_in();
      ++tries_;
      return {false, true};
    }
    const bool plain_wins = plain_is_faster();
    if (calls_ < look_) return {plain_wins, calls_ + 1 == look_};
    const std::int64_t more = std::abs(ours_.best() - plain_.best());
    const bool tries = !ours_.complete() && more <= std::min(plain_.best(), kTry);
    if (plain_wins ? tries || account.affords_again(more) : affords_asking(more))
      return {!plain_wins, true, true};
    put_off();
    return {plain_wins, true};
  }

  // What a call took that was timed; `is_typical`: no loop of it was being compiled meanwhile.
  // `preparing`: how much of it later calls are expected to save.
  void took(const Turn& turn, std::int64_t nanoseconds, bool is_typical, Account& account,
            std::int64_t preparing = 0) {
    const bool won = plain_is_faster();
    if (turn.plain) {
      compare_spent(nanoseconds, account);
      plain_.add(nanoseconds);
      if (ours_.known()) asked_ += std::max<std::int64_t>(0, nanoseconds - ours_.best());
    } else {
      last_ = nanoseconds - preparing;
      if (is_typical) ours_.add(nanoseconds);
      ours_spent_ += nanoseconds;
    }
    if (plain_.known())
      account.add(nanoseconds, turn.plain ? nanoseconds : plain_.best());
    else
      spend(nanoseconds, account);
    if (plain_is_faster() != won) {
      gap_ = 1;
      look_ = calls_ + gap_;
    } else if (turn.look) {
      put_off();
    }
  }
  // A call that was not timed.
  void passed(const Turn& turn, Account& account) {
    if (!plain_.known()) return;
    const std::int64_t plainly = plain_.best();
    account.add(turn.plain || !ours_.known() ? plainly : ours_.best(), plainly);
    if (!turn.plain && ours_.known()) ours_spent_ += ours_.best();
  }
  // A call that was recorded took so long: no call like the following ones.
  void recorded(std::int64_t nanoseconds, std::int64_t preparing, Account& account) {
    recorded_ = last_ = nanoseconds - preparing;
    if (plain_.known())
      account.add(nanoseconds, plain_.best());
    else
      spend(nanoseconds, account);
  }
  // What a plain call like these takes has become known: what was spent without that is now
  // compared.
  void compare_spent(std::int64_t nanoseconds, Account& account) {
    account.unknown -= spent_;
    account.add(std::exchange(spent_, 0), std::exchange(spent_calls_, 0) * nanoseconds);
  }
  // Whether one more recording can be afforded. As long as nothing is known of the plain function,
  // all that was spent may turn out to be regret.
  bool may_record(const Account& account) const {
    return account.affords(recorded_ + (plain_.known() ? -plain_.best() : spent_));
  }

  // How much of a call of ours its loops took. Little, where most of it is Python's or NumPy's
  // work: the plain function then takes about as long.
  void spent_in_loops(std::int64_t nanoseconds, std::int64_t of) {
    overhead_ = nanoseconds < of / kLoopShare;
  }
  // Whether a call of ours ran loops. One without is the plain function with overhead, of any size.
  // Where one did, others may: they are then not called idle, and what those without took says
  // nothing of them.
  void ran_loops(bool any) {
    if (any && is_idle()) ours_ = plain_ = {};
    (any ? has_run_loops_ : has_run_none_) = true;
  }

  // Whether both ways have been timed, or one of them has no use.
  bool is_settled() const { return is_idle() || (plain_.known() && last_ > 0); }
  bool has_run_loops() const { return has_run_loops_; }
  // No call has had loops to run.
  bool is_idle() const { return has_run_none_ && !has_run_loops_; }

  bool plain_wins() const { return is_idle() || plain_is_faster(); }
  // The best of the last times; 0 where there is none.
  std::int64_t ours() const { return ours_.known() ? ours_.best() : 0; }
  std::int64_t plain() const { return plain_.known() ? plain_.best() : 0; }

 private:
  class Times {
   public:
    bool known() const { return count_ > 0; }
    bool complete() const { return count_ >= last_.size(); }
    std::int64_t best() const { return *std::ranges::min_element(last_); }
    void add(std::int64_t time) { last_[count_++ % last_.size()] = time; }

   private:
    static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
    std::array<std::int64_t, 3> last_{kNone, kNone, kNone};
    std::uint32_t count_ = 0;
  };

  // The first calls pay for what later ones find done; when they have taken long, nobody waits.
  static constexpr std::uint64_t kBefore = 4;
  static constexpr std::int64_t kLong = 10'000'000;
  // What ours may cost to be timed with its loops compiled, whatever it has cost before; and how
  // often that is tried, for there may always be other loops. Where ours takes no longer than two
  // plain calls it is timed three times: the first time may be no typical one.
  static constexpr std::int64_t kTry = 50'000'000;
  static constexpr std::uint32_t kTries = 3;
  // What a doubtful call of ours is taken to cost beyond a plain one.
  static constexpr std::int64_t kDoubtful = 10;
  // Where ours has no loops to run it is looked at again after so many calls, then after twice as
  // many.
  static constexpr std::uint64_t kFirstLook = 16;
  static constexpr std::int64_t kLookTime = 250'000'000, kLookShare = 100;
  static constexpr std::int64_t kLoopShare = 4;
  // Ours is the rule: what it takes does not depend on how fast Python runs. But where most of it
  // is Python's or NumPy's work, plain is: ours has to be clearly faster.
  static constexpr std::int64_t kClose = 20, kClear = 50;
  // What timing a slower plain function may cost: a sum, and a share of what ours has taken.
  static constexpr std::int64_t kAsking = 50'000'000, kAskingShare = 20;

  // The plain function, of which a few times are enough; now and then ours, which may find loops:
  // so rarely that it counts as not having been tried.
  Turn idle_turn(const Account& account) const {
    const bool due = calls_ >= kFirstLook && std::has_single_bit(calls_);
    if (due && (!plain_.known() || account.affords(last_ - plain_.best()))) return {false, true};
    return stands_in();
  }
  // The plain function, which is timed a few times.
  Turn stands_in() const { return {true, !plain_.complete()}; }
  bool plain_is_faster() const {
    if (!plain_.known()) return false;
    if (!ours_.known()) return last_ > plain_.best();
    const std::int64_t ours = ours_.best(), plain = plain_.best();
    return overhead_ ? plain - plain / kClear < ours : plain < ours - ours / kClose;
  }
  // So that looks take a hundredth of the time at most; and are not further apart than kLookTime
  // for anything else. What was measured first may be wrong.
  std::uint64_t longest_gap() const {
    const std::int64_t best = std::min(ours_.best(), plain_.best());
    const std::int64_t more = std::max(ours_.best(), plain_.best()) - best;
    const std::int64_t time = std::max(kLookTime, kLookShare * more);
    return static_cast<std::uint64_t>(1 + time / (best + 1));
  }
  void put_off() {
    gap_ = std::min(2 * gap_, longest_gap());
    look_ = calls_ + gap_;
  }
  bool affords_asking(std::int64_t more) const {
    return asked_ + more <= kAsking + ours_spent_ / kAskingShare;
  }
  void spend(std::int64_t nanoseconds, Account& account) {
    account.unknown += nanoseconds;
    spent_ += nanoseconds;
    ++spent_calls_;
  }

  std::uint64_t calls_ = 0, look_ = 0, gap_ = 1;
  Times ours_, plain_;
  std::int64_t last_ = 0;                     // of ours, loops being built or not
  std::int64_t recorded_ = 0;                 // of the last recording
  std::int64_t spent_ = 0, spent_calls_ = 0;  // by ours, as long as plain is not known
  std::int64_t ours_spent_ = 0, asked_ = 0;   // by ours; by plain beyond ours
  std::uint32_t tries_ = 0;
  bool overhead_ = false, has_run_loops_ = false, has_run_none_ = false;
};

}  // namespace ufuse::tracer
