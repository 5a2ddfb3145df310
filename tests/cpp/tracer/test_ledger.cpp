// Is the faster way kept, at little cost beside plain NumPy? On a made-up clock.
#include <doctest/doctest.h>

#include <cstdint>

#include "tracer/ledger.h"
#include "tracer/unseen.h"

namespace ufuse::tracer {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// A function with one kind of calls.
struct Calls {
  std::int64_t ours, plain;  // what a call takes
  bool asks = true, building = false;
  Ledger ledger = {};
  Together all = {};
  Account account{all};
  std::int64_t taken = 0, plainly = 0;  // in all, and what plain calls would have taken in all
  int timed = 0;                        // calls

  // Makes calls; gives how many were plain.
  int make(int count) {
    int plain_calls = 0;
    for (int i = 0; i < count; ++i) {
      const Ledger::Turn turn = ledger.next(account, asks, building);
      const std::int64_t time = turn.plain ? plain : ours;
      plain_calls += turn.plain;
      taken += time;
      plainly += plain;
      timed += turn.timed;
      if (turn.timed)
        ledger.took(turn, time, !building, account);
      else
        ledger.passed(turn, account);
    }
    return plain_calls;
  }
};

}  // namespace

TEST_CASE("ledger: the faster way answers, and the other is looked at ever more rarely") {
  Calls ours_wins{900, 2000}, plain_wins{900, 500}, close{900, 880};
  CHECK(ours_wins.make(1000) <= 12);
  CHECK_FALSE(ours_wins.ledger.plain_wins());
  CHECK(plain_wins.make(1000) >= 980);
  CHECK(plain_wins.ledger.plain_wins());
  close.make(1000);
  CHECK_FALSE(close.ledger.plain_wins());
  CHECK(plain_wins.make(1'000'000) >= 1'000'000 - 80);
}

TEST_CASE("ledger: of calls that are mostly NumPy's work, ours has to be clearly faster") {
  for (const std::int64_t plain : {880, 900, 910, 930, 1000}) {
    Calls calls{900, plain};
    calls.ledger.spent_in_loops(10, 900);
    calls.make(1000);
    CHECK(calls.ledger.plain_wins() == (plain < 915));
  }
}

TEST_CASE("ledger: what becomes faster wins, sooner or later") {
  Calls calls{900, 500};
  calls.make(100);
  CHECK(calls.ledger.plain_wins());
  calls.ours = 300;
  calls.make(1000);
  CHECK_FALSE(calls.ledger.plain_wins());
  calls.ours = 700;
  calls.make(10'000);
  CHECK(calls.ledger.plain_wins());
}

TEST_CASE("ledger: the regret of a slow way is bounded, whatever it costs") {
  for (const std::int64_t ours : {kMs, 60 * kMs, 300 * kMs, 3000 * kMs})
    for (const std::int64_t plain : {kMs / 1000, 5 * kMs, 50 * kMs}) {
      Calls calls{ours, plain};
      for (int i = 0; i < 3000; ++i) {
        calls.make(1);
        CHECK(calls.taken <= calls.plainly + calls.plainly / 10 + ours + 200 * kMs);
      }
      if (ours > plain) CHECK(calls.ledger.plain_wins());
    }
}

TEST_CASE("ledger: long calls ask the plain function at once, short ones after a few") {
  Calls slow{60 * kMs, 5 * kMs}, quick{60'000, 5000};
  CHECK(slow.make(2) == 1);
  CHECK(quick.make(4) == 0);
  CHECK(quick.make(1) == 1);
}

TEST_CASE("ledger: timing a much slower plain function costs little") {
  Calls calls{1 * kMs, 500 * kMs};
  CHECK(calls.make(1000) <= 2);
  CHECK(calls.make(9000) <= 2);
}

TEST_CASE("ledger: a plain function that may need much memory is tried where loops do little") {
  Calls calls{60 * kMs, 5 * kMs, false};
  CHECK(calls.make(25) == 0);
  calls.ledger.spent_in_loops(30 * kMs, 60 * kMs);
  CHECK(calls.make(25) == 0);
  calls.ledger.spent_in_loops(1 * kMs, 60 * kMs);
  CHECK(calls.make(25) > 20);
  CHECK(calls.ledger.plain_wins());
}

TEST_CASE("ledger: while loops are being built the plain function answers") {
  Calls calls{9000, 500};
  calls.building = true;
  CHECK(calls.make(100) == 100);
  calls.building = false;
  calls.ours = 100;
  CHECK(calls.make(100) <= 8);
  CHECK_FALSE(calls.ledger.plain_wins());
}

TEST_CASE("ledger: recordings that answer no call are made as long as they can be afforded") {
  Ledger ledger;
  Together all;
  Account account{all};
  int recorded = 0;
  for (int i = 0; i < 1000; ++i) {
    if (ledger.may_record(account)) {
      ledger.recorded(5 * kMs, 0, account);
      ++recorded;
      continue;
    }
    const Ledger::Turn turn = ledger.next(account, true, false);
    ledger.took(turn, turn.plain ? kMs / 10 : 5 * kMs, true, account);
  }
  CHECK(recorded >= 10);
  CHECK(recorded <= 60);
}

TEST_CASE("ledger: where ours has no loops to run the plain function answers") {
  Calls calls{900, 500, false};  // however large the arguments are
  CHECK_FALSE(calls.ledger.next(calls.account, false, false).plain);
  calls.ledger.ran_loops(false);
  CHECK(calls.ledger.plain_wins());
  CHECK(calls.make(160) == 156);  // not the 16th, 32nd, 64th and 128th
  // Now and then it has some: the plain function may be much slower then.
  calls.ledger.ran_loops(true);
  calls.ledger.ran_loops(false);
  CHECK_FALSE(calls.ledger.plain_wins());
  CHECK(calls.make(160) == 0);
}

TEST_CASE("ledger: where ours has no loops to run it is known what the plain function takes") {
  Calls calls{900, 500};
  calls.ledger.ran_loops(false);
  calls.make(1);
  CHECK(calls.ledger.plain() == 500);
}

TEST_CASE("ledger: ours, which has no loops to run, is looked at as long as that can be afforded") {
  Calls calls{300 * kMs, kMs / 100};
  calls.ledger.ran_loops(false);
  CHECK(calls.make(100'000) >= 99'998);
  CHECK(calls.taken <= calls.plainly + calls.plainly / 10 + calls.ours);
}

TEST_CASE("ledger: ours, which has no loops to run, is looked at whatever others have spent") {
  Calls calls{900, 500};
  calls.all.add(5'000 * kMs, 0);
  calls.ledger.ran_loops(false);
  CHECK(calls.make(160) == 156);
}

TEST_CASE("ledger: an account that is overdrawn pays for nothing that has not been tried") {
  Together all;
  Account account{all};
  account.add(300 * kMs, 0);
  CHECK(account.is_overdrawn());
  Ledger fresh;
  CHECK(fresh.next(account, true, false).plain);
  account.add(0, 10'000 * kMs);  // NumPy's own time, of which a share may be spent
  CHECK_FALSE(account.is_overdrawn());
  CHECK_FALSE(Ledger().next(account, true, false).plain);
}

TEST_CASE("ledger: what is unknown counts where a function calls itself, and its time once") {
  Together all;
  Account account{all};
  Ledger outer;
  const Account::Open open(account);
  outer.took(outer.next(account, true, false), 300 * kMs, true, account);
  CHECK_FALSE(account.is_overdrawn());
  {
    const Account::Open inside(account);
    CHECK(account.is_overdrawn());
    account.add(0, 1'000 * kMs);
    CHECK(account.plain == 0);
  }
  outer.compare_spent(200 * kMs, account);
  CHECK(account.unknown == 0);
  CHECK(account.plain == 200 * kMs);
  CHECK(account.regret == 100 * kMs);
}

TEST_CASE("ledger: functions that call each other try together what one alone may") {
  Together all;
  const auto spent_by_each = [&](int functions) {
    std::int64_t regret = 0;
    for (int i = 0; i < functions; ++i) {
      Account account{all};
      const Account::Open open(account);
      account.add(10'000 * kMs, 10'000 * kMs);
      while (account.affords_again(5 * kMs)) account.add(5 * kMs, 0);
      regret += account.regret;
    }
    return regret;
  };
  CHECK(spent_by_each(1) == 300 * kMs);    // 100 ms, and a fiftieth
  CHECK(spent_by_each(9) <= 2'400 * kMs);  // 500 ms, and a fiftieth, less what was spent before
  Together inner;
  Account outermost{inner}, called{inner};
  const Account::Open open(outermost);
  {
    const Account::Open inside(called);
    called.add(kMs, kMs);
  }
  outermost.add(3 * kMs, 3 * kMs);
  CHECK(inner.plain == 3 * kMs);  // the time of the call inside is part of the other one's
}

TEST_CASE("ledger: what was measured first is looked at again before long") {
  Calls calls{2 * kMs, 3 * kMs};  // plain, where calls inside were still being tried
  calls.make(100);
  CHECK_FALSE(calls.ledger.plain_wins());
  calls.plain = kMs / 10;
  calls.taken = calls.plainly = 0;
  CHECK(calls.make(4'000) >= 3'800);
  CHECK(calls.ledger.plain_wins());
}

TEST_CASE("ledger: where no look can be afforded hardly a call is timed") {
  for (const std::int64_t ours : {50'000, 500}) {
    Calls calls{ours, 5'000};
    calls.make(100);
    calls.all.add(5'000 * kMs, 0);
    calls.timed = 0;
    calls.make(10'000);
    CHECK(calls.timed < 30);
  }
}

TEST_CASE("ledger: while ours waits for loops the plain function is timed a few times") {
  Calls calls{9'000, 500};
  calls.building = true;
  calls.make(100);
  CHECK(calls.timed == 3);
}

TEST_CASE("ledger: one slow call of ours decides nothing, whatever compiling has cost") {
  Calls calls{40 * kMs, 26 * kMs};
  calls.make(2);
  CHECK(calls.ledger.plain_wins());
  calls.account.add(5'000 * kMs, 0);
  calls.ours = 5 * kMs;
  calls.make(6);
  CHECK_FALSE(calls.ledger.plain_wins());
}

TEST_CASE("ledger: looks take a hundredth of the time at most") {
  for (const std::int64_t plain : {kMs, kMs / 1'000}) {
    Calls calls{50 * kMs, plain};
    calls.make(100'000);
    CHECK(calls.ledger.plain_wins());
    CHECK(calls.taken <= calls.plainly + calls.plainly / 50 + 300 * kMs);
  }
}

namespace {

// Hands on what may be; gives how many of so many calls were.
int hand_on(Unseen& unseen, int count, std::int64_t plain, std::int64_t look = 100) {
  int handed = 0;
  for (int i = 0; i < count; ++i) {
    if (unseen.takes_next())
      ++handed;
    else
      unseen.begin(plain, look);
  }
  return handed;
}

}  // namespace

TEST_CASE("unseen: calls are handed on in rows, where the plain function takes microseconds") {
  Unseen unseen;
  CHECK(hand_on(unseen, 6500, 3000) == 6400);
  unseen.stop();
  CHECK(hand_on(unseen, 6500, 0) == 0);
  CHECK(hand_on(unseen, 6500, 600'000) == 0);
}

TEST_CASE("unseen: rows are so long that looks take a hundredth of the time at most") {
  Unseen unseen;
  CHECK(hand_on(unseen, 1001, 1000, 10'000) == 1000);
  unseen.stop();
  CHECK(hand_on(unseen, 11, 1'000'000, 100'000) == 10);
  unseen.stop();
  CHECK(hand_on(unseen, 100, 10'000'000, 50'000) == 0);
}

TEST_CASE("unseen: only calls that take much longer are looked at afterwards") {
  Unseen unseen;
  unseen.begin(3000, 100);
  CHECK_FALSE(unseen.is_long(10'000));
  CHECK(unseen.is_long(40'000));
}

TEST_CASE("unseen: after a wrong answer calls are looked at, each time twice as many") {
  Unseen unseen;
  for (const int seen : {64, 128, 256}) {
    CHECK(hand_on(unseen, 2, 3000) == 1);
    unseen.was_wrong(kMs);
    CHECK(hand_on(unseen, seen, 3000) == 0);
  }
}

TEST_CASE("unseen: looks take no longer than what was lost without them") {
  Unseen unseen;
  for (const int seen : {5, 10, 15}) {
    CHECK(hand_on(unseen, 2, 3000) == 1);
    unseen.was_wrong(5'000);
    CHECK(hand_on(unseen, seen, 3000) == 0);
    CHECK(hand_on(unseen, 10, 3000) == 9);
    unseen.stop();
  }
}

}  // namespace ufuse::tracer
