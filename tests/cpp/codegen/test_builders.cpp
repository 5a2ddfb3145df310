// What is built when, where there is more to do than there are threads?
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "codegen/jit/builders.h"

namespace ufuse::codegen {
namespace {

using std::chrono::milliseconds;

void wait_for(const std::atomic<bool>& truth) {
  while (!truth) std::this_thread::sleep_for(milliseconds(1));
}

}  // namespace

TEST_CASE("builders: a thread tidies when there is nothing left to do, and is not busy then") {
  std::atomic<bool> built = false, tidies = false, ends = false;
  Builders builders(1, 10, [&] {
    tidies = true;
    wait_for(ends);
  });
  builders.post([&] { built = true; }, Urgency::Awaited);
  wait_for(tidies);
  CHECK(built);
  CHECK(builders.busy() == 0);
  ends = true;
}

TEST_CASE("builders: what may be wanted later begins behind what a running loop waits for") {
  std::atomic<bool> begun = false, ends = false, later = false;
  Builders builders(2, 10);
  builders.post(
      [&] {
        begun = true;
        wait_for(ends);
      },
      Urgency::Running);
  wait_for(begun);
  builders.post([&] { later = true; }, Urgency::Later);
  CHECK(!builders.keep_up());

  SUBCASE("once that is built") {
    std::this_thread::sleep_for(milliseconds(100));
    CHECK(!later);
    ends = true;
    wait_for(later);
  }
  SUBCASE("or takes long") {
    wait_for(later);
    CHECK(!ends);
  }
  SUBCASE("or all ends") {
    ends = true;
    builders.finish(milliseconds(10'000), [] {});
    CHECK(later);
  }
  SUBCASE("but others that run, or are awaited, begin at once") {
    std::atomic<bool> running = false, awaited = false;
    builders.post([&] { running = true; }, Urgency::Running);
    wait_for(running);
    builders.post([&] { awaited = true; }, Urgency::Awaited);
    wait_for(awaited);
    CHECK(!later);
  }
  ends = true;
}

}  // namespace ufuse::codegen
