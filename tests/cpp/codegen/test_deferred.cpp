// Who answers while loops are being built, and when they cannot be?
#include <doctest/doctest.h>

#include <fstream>
#include <thread>

#include "codegen/deferred.h"
#include "ir/support/error.h"
#include "tests/cpp/codegen/jit_tools.h"

namespace ufuse::codegen {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// An executable that says who it is.
class Named : public ir::Executable {
 public:
  explicit Named(std::string name) {
    report_.groups.resize(1);
    report_.groups[0].origin = std::move(name);
  }
  ir::RunStatus run(const ir::RunArgs&) const override { return {1, false}; }
  double expected_ns() const override { return 0; }
  const ir::Report& report() const override { return report_; }

 private:
  ir::Report report_;
};

std::string origin(const Deferred& deferred) { return deferred.report().groups[0].origin; }
std::optional<Reason> reason(const Deferred& deferred) {
  return deferred.report().groups[0].reason;
}

std::unique_ptr<Deferred> deferred_on(Jit& jit, const std::vector<std::string>& sources) {
  ir::Report report;
  for (const std::string& source : sources) report.groups.emplace_back().source = source;
  return std::make_unique<Deferred>(
      jit, Numerics::Exact, true,
      [](const std::vector<Built>& built) {
        for (std::size_t i = 0; i < built.size(); ++i)
          CHECK(adds(*built[i].kernel, static_cast<int>(i)));
        return std::make_shared<const Named>("loops");
      },
      std::make_shared<const Named>("meanwhile"), std::move(report));
}

ir::Patience patience(int ms) { return {Clock::now() + milliseconds(ms)}; }

TEST_CASE("deferred: loops answer as soon as all of them are built") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  const auto deferred = deferred_on(jit, {add_kernel(0), add_kernel(1), add_kernel(2)});
  deferred->await(patience(0));
  deferred->await(patience(60'000));
  CHECK(deferred->is_final());
  CHECK(origin(*deferred) == "loops");
  CHECK(jit.stats().compiled == 3);
  const auto none = deferred_on(jit, {});
  none->wait();
  CHECK(origin(*none) == "loops");
}

TEST_CASE("deferred: a caller who waits looks around, and may leave") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.direct = false;
  settings.compiler = folder.script("slow-g++", "sleep 1; exec g++ \"$@\"");
  Jit jit(settings);
  const auto deferred = deferred_on(jit, {add_kernel(0)});
  ir::Patience leaving = patience(60'000);
  int looks = 0;
  leaving.look_around = [&] {
    if (++looks == 3) throw 42;
  };
  CHECK_THROWS_AS(deferred->await(leaving), int);
  CHECK_FALSE(deferred->is_final());
  CHECK(origin(*deferred) == "meanwhile");
  CHECK(reason(*deferred) == Reason::Compiling);
  CHECK(deferred->run({}).fp == 1);
  deferred->await(patience(60'000));  // the build has gone on
  CHECK(origin(*deferred) == "loops");
  CHECK(jit.stats().compiled == 1);
}

TEST_CASE("deferred: who waits for the disk does not wait for the compiler") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.direct = false;
  settings.compiler = folder.script("slow-g++",
                                    "case \"$*\" in *kernel*) sleep 2;; esac; "
                                    "exec g++ \"$@\"");
  {
    Jit jit(settings);
    CHECK_FALSE(jit.may_be_near(add_kernel(0)));
    const auto first = deferred_on(jit, {add_kernel(0)});
    while (jit.may_be_near(add_kernel(0))) std::this_thread::yield();  // the compiler is found
    const auto start = Clock::now();
    first->await_load(patience(60'000));
    CHECK_FALSE(first->is_final());
    CHECK(Clock::now() - start < milliseconds(1000));
    first->wait();
    CHECK(first->is_final());
  }
  Jit later(settings);
  const auto second = deferred_on(later, {add_kernel(0)});
  second->await_load(patience(60'000));
  CHECK(second->is_final());
  CHECK(later.stats().disk_hits == 1);
}

TEST_CASE("deferred: nobody waits for a slow compiler") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.slow = milliseconds(200);
  settings.compiler = folder.script("hung-g++", "sleep 100");
  Jit jit(settings);
  const auto start = Clock::now();
  for (int i = 0; i < 20; ++i) {
    const auto deferred = deferred_on(jit, {add_kernel(0)});
    deferred->await(patience(5000));
    CHECK(reason(*deferred) == Reason::SlowCompiler);
    CHECK_FALSE(deferred->is_final());
  }
  CHECK(Clock::now() - start < milliseconds(4000));
}

TEST_CASE("deferred: a source that cannot be compiled is asked for once") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  const auto deferred = deferred_on(jit, {"no C++"});
  CHECK_THROWS_AS(deferred->wait(), CompileError);
  CHECK(deferred->is_final());
  CHECK(!reason(*deferred));
  CHECK(contains(deferred->report().groups[0].note, "the C++ compiler failed"));
  CHECK(deferred->run({}).fp == 1);
  CHECK(jit.stats().failed == 1);
}

TEST_CASE("deferred: after trouble with the compiler the loops come later") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.pause = milliseconds(300);
  const std::string well = folder / "well";
  settings.compiler =
      folder.script("sick-g++", "[ -e " + well + " ] || kill -9 $$\nexec g++ \"$@\"");
  Jit jit(settings);
  const auto deferred = deferred_on(jit, {add_kernel(0), add_kernel(1)});
  const auto start = Clock::now();
  const auto runs_until = [&](const auto& reached) {
    while (!reached() && Clock::now() - start < milliseconds(60'000)) {
      CHECK(deferred->run({}).fp == 1);
      std::this_thread::sleep_for(milliseconds(5));
    }
    return reached();
  };
  CHECK(runs_until([&] { return reason(*deferred) == Reason::CompilerTrouble; }));
  std::ofstream(well.c_str()) << "yes";
  CHECK(runs_until([&] { return origin(*deferred) == "loops"; }));
}

}  // namespace
}  // namespace ufuse::codegen
