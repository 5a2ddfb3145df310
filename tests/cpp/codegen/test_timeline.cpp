// Does a timeline keep what ran while somebody keeps it, and nothing otherwise?
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "codegen/runtime/timeline.h"

namespace ufuse::codegen {
namespace {

void work(const char* name) {
  const Timed timed([&] { return Slice{Slice::Kind::Loops, name}; });
}

// Builders of other tests may be at work as well.
std::vector<Slice> runs_since(std::size_t first) {
  std::vector<Slice> found = Timeline::since(first);
  std::erase_if(found, [](const Slice& slice) { return slice.kind != Slice::Kind::Loops; });
  return found;
}

TEST_CASE("slices are kept while somebody keeps a timeline") {
  work("before");
  Timeline::keep();
  const std::size_t first = Timeline::size();
  work("one");
  Timeline::keep();  // somebody else
  const std::size_t second = Timeline::size();
  work("two");
  Timeline::let_go();
  work("three");
  const std::vector<Slice> all = runs_since(first);
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "one");
  CHECK(all[2].name == "three");
  CHECK(runs_since(second).front().name == "two");
  for (const Slice& slice : all) {
    CHECK(slice.from_ns <= slice.to_ns);
    CHECK(slice.thread == all[0].thread);
  }
  CHECK(all[0].to_ns <= all[1].from_ns);
  Timeline::let_go();
  work("after");
  CHECK_FALSE(Timeline::is_kept());
  CHECK(Timeline::size() == 0);
}

TEST_CASE("threads add slices of their own") {
  Timeline::keep();
  work("here");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      for (int n = 0; n < 100; ++n) work("there");
    });
  for (std::thread& each : threads) each.join();
  const std::vector<Slice> all = runs_since(0);
  CHECK(all.size() == 401);
  for (const Slice& slice : all) CHECK((slice.thread == all[0].thread) == (slice.name == "here"));
  Timeline::let_go();
}

TEST_CASE("a run that left the answer to NumPy moved no bytes") {
  ir::Report report;
  report.bytes_moved = 800;
  report.bytes_minimum = 400;
  ir::RunStatus status;
  CHECK(slice_of_run(report, status).bytes_moved == 800);
  CHECK(slice_of_run(report, status).name == "copy or fill");
  status.redo = true;
  CHECK(slice_of_run(report, status).bytes_moved == 0);
  CHECK(slice_of_run(report, status).detail == "left to NumPy");
}

}  // namespace
}  // namespace ufuse::codegen
