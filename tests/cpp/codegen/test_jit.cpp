// Does text become a function pointer, whatever the compiler, the threads and the processes do?
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <thread>

#include "codegen/jit/cache.h"
#include "codegen/jit/process.h"
#include "ir/support/error.h"
#include "tests/cpp/codegen/jit_tools.h"

namespace ufuse::codegen {
namespace {

using namespace testing;
using std::chrono::milliseconds;

CompileError failure_of(Jit& jit, const std::string& source) {
  try {
    jit.get(source);
  } catch (const CompileError& error) {
    return error;
  }
  return CompileError("nothing failed");
}

// Runs `body` in a forked child and gives its answer; a child that hangs is killed and fails.
template <class Body>
bool holds_in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  for (int i = 0; i < 2000; ++i) {
    int status;
    if (waitpid(child, &status, WNOHANG) == child) return status == 0;
    std::this_thread::sleep_for(milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return false;
}

TEST_CASE("jit: a kernel is compiled once, then found in memory") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  CHECK(jit.find(add_kernel(1)) == nullptr);
  const Built first = jit.get(add_kernel(1));
  CHECK(first.origin == Origin::Compiled);
  CHECK(first.milliseconds > 0);
  CHECK(adds(*first.kernel, 1));
  const Built again = jit.get(add_kernel(1));
  CHECK(again.origin == Origin::Memory);
  CHECK(again.kernel == first.kernel);
  CHECK(jit.find(add_kernel(1)) == first.kernel);
  CHECK(adds(*jit.get(add_kernel(2)).kernel, 2));
  const JitStats stats = jit.stats();
  CHECK(stats.compiled == 2);
  CHECK(stats.memory_hits == 1);
  CHECK(stats.compile_ms > 0);
  CHECK(contains(stats.compiler, "version"));
}

TEST_CASE("jit: a kernel outlives its Jit") {
  std::shared_ptr<const Kernel> kernel;
  {
    const TemporaryFolder folder;
    kernel = Jit(config(folder / "cache")).get(add_kernel(3)).kernel;
  }
  CHECK(adds(*kernel, 3));
}

TEST_CASE("jit: exact and fast numerics are different kernels") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  const std::string source =
      "extern \"C\" unsigned ufuse_kernel(const rt::Args* args) {\n"
      "  double* x = (double*)args->buffers[0];\n"
      "  x[3] = x[0] * x[1] + x[2];\n"
      "  return 0;\n}\n";
  const auto value = [&](Numerics numerics) {
    const double a = 1 + 0x1p-30;
    double x[] = {a, a, -(1 + 0x1p-29), 0};
    void* buffers[] = {x};
    (*jit.get(source, numerics).kernel)({buffers, nullptr, nullptr, nullptr, 1});
    return x[3];
  };
  CHECK(value(Numerics::Exact) == 0);
#if defined(__FMA__) || defined(__aarch64__)
  CHECK(value(Numerics::Fast) == 0x1p-60);
#else
  value(Numerics::Fast);
#endif
  CHECK(jit.stats().compiled == 2);
}

TEST_CASE("jit: the direct way and the driver make the same code") {
  const TemporaryFolder folder;
  JitConfig by_driver = config(folder / "driver");
  by_driver.direct = false;
  Jit direct(config(folder / "direct")), driver(by_driver);
  CHECK(adds(*direct.get(add_kernel(4)).kernel, 4));
  CHECK(adds(*driver.get(add_kernel(4)).kernel, 4));
}

TEST_CASE("jit: the driver stands in when the direct way is not there") {
  const TemporaryFolder folder;
  // Answers "-###" with programs that do not exist, and compiles like the real one.
  const std::string odd = folder.script("odd-g++",
                                        "for word in \"$@\"; do\n"
                                        "  if [ \"$word\" = '-###' ]; then\n"
                                        "    exec g++ \"$@\" 2>&1 | sed 's/cc1plus -quiet/cc1plus "
                                        "-no-such-flag/'\n"
                                        "  fi\n"
                                        "done\n"
                                        "exec g++ \"$@\"");
  JitConfig settings = config(folder / "cache");
  settings.compiler = odd;
  Jit jit(settings);
  CHECK(adds(*jit.get(add_kernel(5)).kernel, 5));
  CHECK(adds(*jit.get(add_kernel(6)).kernel, 6));
}

TEST_CASE("jit: an error holds the compiler's words and keeps the source") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  const std::string source =
      "extern \"C\" unsigned ufuse_kernel(const rt::Args*) { return zebra; }";
  const CompileError error = failure_of(jit, source);
  CHECK(contains(error.what(), "the C++ compiler failed with status 1"));
  CHECK(contains(error.what(), "zebra"));
  CHECK(contains(error.what(), "declared"));
  CHECK(contains(error.what(), "source: " + error.source_path()));
  CHECK(contains(error.output(), error.source_path() + ":"));  // the line as the compiler names it
  CHECK(contains(error.output(), "zebra"));
  const auto kept = read_file(error.source_path());
  REQUIRE(kept.has_value());
  CHECK(kept->ends_with(source));
  CHECK(failure_of(jit, source).source_path() == error.source_path());  // not compiled again
  CHECK(jit.stats().failed == 1);
  CHECK(adds(*jit.get(add_kernel(7)).kernel, 7));
}

TEST_CASE("jit: code that cannot be loaded is an error") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  CHECK(contains(failure_of(jit, "extern \"C\" unsigned other() { return 0; }").what(),
                 "no entry point"));
  CHECK(contains(
      failure_of(jit,
                 "extern \"C\" unsigned nowhere();\n"
                 "extern \"C\" unsigned ufuse_kernel(const rt::Args*) { return nowhere(); }")
          .what(),
      "nowhere"));
}

TEST_CASE("jit: without a compiler the error says what to do") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.compiler = "no-such-compiler";
  Jit jit(settings);
  const CompileError error = failure_of(jit, add_kernel(1));
  CHECK(contains(error.what(), "no C++ compiler was found (tried: no-such-compiler)"));
  CHECK(contains(error.what(), "UFUSE_CXX"));
  CHECK_THROWS_AS(jit.get_async(add_kernel(1)).get(), CompileError);
}

TEST_CASE("jit: programs that are no compiler") {
  const TemporaryFolder folder;
  for (const char* lines :
       {"exit 1", "echo some garbage; echo ' \"more\\' >&2", "kill -9 $$", ""}) {
    CAPTURE(lines);
    JitConfig settings = config(folder / "cache");
    settings.compiler = folder.script("false-compiler", lines);
    Jit jit(settings);
    CHECK(contains(failure_of(jit, add_kernel(1)).what(), "no C++ compiler was found"));
  }
}

TEST_CASE("jit: a compiler that hangs is killed") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.direct = false;
  settings.timeout = milliseconds(1500);
  settings.compiler = folder.script(
      "slow-g++",
      "for word in \"$@\"; do [ \"$word\" = '-###' ] && exec g++ \"$@\"; done; sleep 100");
  Jit jit(settings);
  const auto start = std::chrono::steady_clock::now();
  CHECK(contains(failure_of(jit, add_kernel(1)).what(), "was killed after 1500 ms"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));

  SUBCASE("the end of the Jit stops it at once") {
    settings.timeout = milliseconds(100'000);
    auto impatient = std::make_unique<Jit>(settings);
    const auto future = impatient->get_async(add_kernel(2));
    const auto queued = impatient->get_async(add_kernel(3));
    while (impatient->stats().compiler.empty()) std::this_thread::sleep_for(milliseconds(5));
    impatient.reset();
    CHECK_THROWS_AS(future.get(), CompileError);
    CHECK_THROWS_AS(queued.get(), CompileError);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(40));
  }
}

TEST_CASE("jit: equal sources asked for at once are compiled once") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  std::vector<std::shared_ptr<const Kernel>> kernels(4);
  {
    std::vector<std::jthread> threads;
    for (auto& kernel : kernels)
      threads.emplace_back([&] { kernel = jit.get(add_kernel(8)).kernel; });
  }
  for (const auto& kernel : kernels) CHECK(kernel == kernels[0]);
  CHECK(adds(*kernels[0], 8));
  CHECK(jit.stats().compiled == 1);
  CHECK(jit.stats().memory_hits == 3);
}

TEST_CASE("jit: in the background") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  std::vector<std::shared_future<Built>> futures;
  for (int i = 0; i < 4; ++i) futures.push_back(jit.get_async(add_kernel(i)));
  CHECK(adds(*jit.get(add_kernel(3)).kernel, 3));  // does not wait for those before it
  for (int i = 0; i < 4; ++i) CHECK(adds(*futures[static_cast<std::size_t>(i)].get().kernel, i));
  CHECK(jit.stats().compiled == 4);
  CHECK_THROWS_AS(jit.get_async("no C++").get(), CompileError);
}

TEST_CASE("jit: a forked child goes on") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  const auto kernel = jit.get(add_kernel(9)).kernel;
  CHECK(adds(*kernel, 9));
  std::vector<std::shared_future<Built>> busy;
  for (int i = 10; i < 14; ++i) busy.push_back(jit.get_async(add_kernel(i)));
  for (int round = 0; round < 5; ++round) {
    CHECK(holds_in_child([&] {
      return adds(*kernel, 9) && jit.get(add_kernel(9)).origin == Origin::Disk &&
             adds(*jit.get(add_kernel(12)).kernel, 12) &&
             adds(*jit.get_async(add_kernel(20 + round)).get().kernel, 20 + round);
    }));
  }
  for (int i = 10; i < 14; ++i)
    CHECK(adds(*busy[static_cast<std::size_t>(i - 10)].get().kernel, i));
  CHECK(holds_in_child([&] {
    const Jit own(config(folder / "cache"));
    return true;  // destroyed in the child
  }));
}

TEST_CASE("jit: two processes with one cache") {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int process = 0; process < 2; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      Jit jit(config(folder / "cache"));
      bool right = true;
      for (int i = 0; i < 5; ++i) right = right && adds(*jit.get(add_kernel(i)).kernel, i);
      _exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  Jit jit(config(folder / "cache"));
  for (int i = 0; i < 5; ++i) CHECK(jit.get(add_kernel(i)).origin == Origin::Disk);
}

TEST_CASE("process: a pipeline without a shell") {
  const Environment environment = Environment::now();
  const milliseconds second(1000);
  Finished run = run_pipeline({{"printf", "b\\na\\n"}, {"sort"}}, environment, 10 * second);
  CHECK(run.kind == Finished::Ok);
  CHECK(run.output == "a\nb\n");
  run = run_pipeline({{"sh", "-c", "echo word >&2; exit 3"}, {"cat"}}, environment, 10 * second);
  CHECK(run.kind == Finished::Failed);
  CHECK(run.status == 3);
  CHECK(run.output == "word\n");
  CHECK(run_pipeline({{"sh", "-c", "printf $TMPDIR"}}, environment, 10 * second, nullptr, "/here")
            .output == "/here");
  CHECK(run_pipeline({{"/no/such/program"}}, environment, second).kind == Finished::NotStarted);
  CHECK(run_pipeline({{"sh", "-c", "sleep 50 & sleep 50"}}, environment, milliseconds(100)).kind ==
        Finished::TimedOut);
  CHECK(run_pipeline({{"sh", "-c", "exec >&- 2>&-; sleep 50"}}, environment, milliseconds(100))
            .kind == Finished::TimedOut);
  CHECK(run_pipeline({{"sh", "-c", "kill -11 $$"}}, environment, 10 * second).status == 128 + 11);
  CHECK(find_program("sh", environment).ends_with("/sh"));
  CHECK(find_program("no-such-program", environment).empty());
}

}  // namespace
}  // namespace ufuse::codegen
