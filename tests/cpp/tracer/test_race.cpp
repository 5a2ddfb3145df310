// Does a race of replays against the plain function end with the faster one? On a made-up clock.
#include <doctest/doctest.h>

#include <cstdint>

#include "tracer/race.h"

namespace ufuse::tracer {
namespace {

// Takes `calls` turns; gives how many were answered by the plain function.
int run(Race& race, int calls, std::int64_t replay, std::int64_t plain) {
  int plain_calls = 0;
  for (int i = 0; i < calls; ++i) {
    const Race::Turn turn = race.next();
    plain_calls += turn.plain;
    if (turn.timed) race.took(turn, turn.plain ? plain : replay);
  }
  return plain_calls;
}

}  // namespace

TEST_CASE("race: the faster way answers after a few turns of each") {
  Race replays_win(20'000), plain_wins(20'000), close(20'000);
  CHECK(run(replays_win, 25, 900, 1200) == 8);
  CHECK_FALSE(replays_win.plain_wins());
  CHECK(run(replays_win, 1000, 900, 2000) == 0);

  CHECK(run(plain_wins, 20, 900, 500) == 8);
  CHECK(plain_wins.plain_wins());
  CHECK(run(plain_wins, 1000, 900, 500) == 1000);

  run(close, 25, 900, 880);
  CHECK_FALSE(close.plain_wins());
}

TEST_CASE("race: the plain function is not asked where a replay does much work") {
  Race race(20'000);
  CHECK(run(race, 25, 50'000, 500) == 0);
  CHECK_FALSE(race.plain_wins());
}

TEST_CASE("race: a much slower plain function is asked twice") {
  Race race(500'000);
  CHECK(run(race, 25, 50'000, 5'000'000) == 2);
  CHECK_FALSE(race.plain_wins());
}

TEST_CASE("race: the plain function is asked where little of a long call is loops") {
  Race race(0);
  race.spent_in_loops(100'000, 300'000'000);
  CHECK(run(race, 25, 300'000'000, 4'000'000) == 19);  // twice, and from then on
  CHECK(race.plain_wins());
  Race busy(0);
  busy.spent_in_loops(100'000'000, 300'000'000);
  CHECK(run(busy, 25, 300'000'000, 4'000'000) == 0);
}

TEST_CASE("race: turns that tell nothing are taken again") {
  Race race(20'000);
  run(race, 4, 900, 500);
  for (int i = 0; i < 50; ++i) {
    CHECK_FALSE(race.next().plain);
    race.again();
  }
  CHECK(run(race, 16, 900, 500) == 8);
  CHECK(race.plain_wins());
}

TEST_CASE("race: it is run again after many calls") {
  Race race(20'000);
  run(race, 10'000, 900, 500);
  CHECK(race.plain_wins());
  run(race, 25, 300, 500);
  CHECK_FALSE(race.plain_wins());
}

TEST_CASE(
    "race: the plain function answers where ours has no loops to run, and ours is looked at") {
  Race race(0);  // however large the arguments are
  CHECK_FALSE(race.next().plain);
  race.ran_loops(false);
  CHECK(race.plain_wins());
  CHECK(run(race, 160, 900, 500) == 156);  // not the 16th, 32nd, 64th and 128th
  // Now and then it has some: the plain function may be much slower then.
  race.ran_loops(true);
  race.ran_loops(false);
  CHECK_FALSE(race.plain_wins());
  CHECK(run(race, 160, 900, 500) == 0);
}

}  // namespace ufuse::tracer
