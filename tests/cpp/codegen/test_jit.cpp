// Does text become a function pointer, whatever the compiler, the threads and the processes do?
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <thread>

#include "codegen/jit/cache.h"
#include "codegen/jit/health.h"
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

TEST_CASE("jit: exact and fast numerics, all and little effort are different kernels") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  const std::string source =
      "extern \"C\" unsigned ufuse_kernel(const rt::Args* args) {\n"
      "  double* x = (double*)args->buffers[0];\n"
      "  x[3] = x[0] * x[1] + x[2];\n"
      "  return 0;\n}\n";
  const auto value = [&](BuildMode mode) {
    const double a = 1 + 0x1p-30;
    double x[] = {a, a, -(1 + 0x1p-29), 0};
    void* buffers[] = {x};
    (*jit.get(source, mode).kernel)({buffers, nullptr, nullptr, nullptr, team_of(1)});
    return x[3];
  };
  CHECK(value({Numerics::Exact}) == 0);
  CHECK(value({Numerics::Exact, Effort::Little}) == 0);
#if defined(__FMA__) || defined(__aarch64__)
  CHECK(value({Numerics::Fast}) == 0x1p-60);
#else
  value({Numerics::Fast});
#endif
  CHECK(jit.stats().compiled == 3);
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

TEST_CASE(
    "jit: g++ from 11 on is told to fill its vectors, and an older one would not understand") {
  const TemporaryFolder folder;
  const std::string words = folder / "words";
  for (const std::string version : {"10", "11", "16"}) {
    const std::string pretends =
        folder.script("g++-" + version,
                      "for word in \"$@\"; do\n"
                      "  if [ \"$word\" = '-###' ]; then\n"
                      "    exec g++ \"$@\" 2>&1 | sed 's/gcc version [0-9]*/gcc version " +
                          version +
                          "/'\n"
                          "  fi\n"
                          "done\n"
                          "echo \"$@\" >" +
                          words + "\nexec g++ \"$@\"");
    JitConfig settings = config(folder / ("cache" + version));
    settings.compiler = pretends;
    settings.direct = false;
    Jit jit(settings);
    CHECK(adds(*jit.get(add_kernel(5)).kernel, 5));
    const bool told = contains(read_file(words).value(), "vect-partial-vector-usage=0");
    CHECK(told == (version != "10"));
  }
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

// Answers "-###" as g++ does but for the name of the compiler proper, so that it is called itself.
constexpr const char* kAnswer =
    "case \"$*\" in *'-###'*) g++ \"$@\" 2>&1 | sed s/cc1plus/other/ >&2; exit;; esac\n";

TEST_CASE("jit: kernels are built side by side, awaited ones first") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  // Each tells when it begins and ends; none ends before two have begun.
  const std::string log = folder / "log";
  settings.compiler = folder.script(
      "g++-in-twos", kAnswer + ("echo begin >>" + log +
                                "; for i in $(seq 500); do\n"
                                "[ $(wc -l <" +
                                log +
                                ") -ge 2 ] && break; sleep 0.02; done\n"
                                "grep -o '[+] [0-9]*;' \"$(for w; do case $w in *.cpp) echo $w;; "
                                "esac; done)\" | tail -1 >>" +
                                log + "; exec g++ \"$@\""));
  Jit jit(settings);
  std::vector<std::shared_future<Built>> builds;
  for (int i = 0; i < 12; ++i) builds.push_back(jit.get_async(add_kernel(i)));
  builds.push_back(jit.get_async(add_kernel(12), {}, Urgency::Running));
  builds.push_back(jit.get_async(add_kernel(13), {}, Urgency::Awaited));
  for (int i = 0; i <= 13; ++i) CHECK(adds(*builds[static_cast<std::size_t>(i)].get().kernel, i));
  const std::string told = read_file(log).value_or("");
  CHECK(told.starts_with("begin\nbegin\n"));
  CHECK(told.find("+ 12;") < told.find("+ 11;"));
  CHECK(told.find("+ 13;") < told.find("+ 11;"));
  CHECK(jit.stats().compiled == 14);
}

// A compiler that tells when it begins, and goes on when there is a file `go`.
std::string compiler_with_log(const TemporaryFolder& folder, const std::string& log) {
  return folder.script(
      "g++-with-log",
      kAnswer + ("echo begin >>" + log + "; for i in $(seq 500); do [ -e " +
                 std::string(folder / "go") + " ] && break; sleep 0.02; done; exec g++ \"$@\""));
}

// Each has a function of the same name, and some an option that is for them alone.
std::string kernel_with_helper(int number) {
  std::string text = add_kernel(number);
  const std::string sum = "in[i] + " + std::to_string(number);
  text.replace(text.find(sum), sum.size(), "sum(in[i])");
  const std::string options = number % 2 == 0 ? "" : "#pragma GCC optimize(\"O0\")\n";
  return "// a kernel\n" + options + "static double sum(double x) { return x + " +
         std::to_string(number) + "; }\n" + text;
}

TEST_CASE("jit: short kernels that wait are compiled together") {
  const TemporaryFolder folder;
  const std::string log = folder / "log", cache = folder / "cache";
  JitConfig settings = config(cache);
  settings.compiler = compiler_with_log(folder, log);
  constexpr int kKernels = 40;
  {
    Jit jit(settings);
    std::vector<std::shared_future<Built>> builds;
    for (int i = 0; i < kKernels; ++i) builds.push_back(jit.get_async(kernel_with_helper(i)));
    std::ofstream(folder / "go") << "yes";
    for (int i = 0; i < kKernels; ++i) {
      const Built built = builds[static_cast<std::size_t>(i)].get();
      CHECK(adds(*built.kernel, i));
      CHECK(built.origin == Origin::Compiled);
    }
    CHECK(jit.stats().compiled == kKernels);
    CHECK(static_cast<double>(read_file(log)->size()) / 6 < kKernels / 2);
  }
  {
    Jit jit(settings);
    for (int i = 0; i < kKernels; ++i) {
      const Built built = jit.get(kernel_with_helper(i));
      CHECK(adds(*built.kernel, i));
      CHECK(built.origin == Origin::Disk);
    }
    jit.finish(milliseconds(10'000));
    CHECK(jit.stats().disk_hits == kKernels);
    CHECK(jit.stats().compiled == 0);
    CHECK(jit.stats().failed == 0);
  }
  // Entries that say where a kernel is, and nothing is there, or what is there is damaged.
  bool removes = false;
  for (const auto& path : files_in(cache)) {
    if (read_file(path)->find("ufuse_kernel") == std::string::npos) continue;
    if ((removes = !removes))
      std::filesystem::remove(path);
    else
      std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  }
  Jit jit(settings);
  for (int i = 0; i < kKernels; ++i) {
    const Built built = jit.get(kernel_with_helper(i));
    CHECK(adds(*built.kernel, i));
    CHECK(built.origin == Origin::Compiled);
  }
}

TEST_CASE("jit: a kernel that cannot be compiled spoils none of those beside it") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.compiler = compiler_with_log(folder, folder / "log");
  Jit jit(settings);
  std::vector<std::shared_future<Built>> builds;
  for (int i = 0; i < 12; ++i) builds.push_back(jit.get_async(add_kernel(i)));
  const auto wrong = jit.get_async("no C++");
  for (int i = 12; i < 24; ++i) builds.push_back(jit.get_async(add_kernel(i)));
  std::ofstream(folder / "go") << "yes";
  for (int i = 0; i < 24; ++i) CHECK(adds(*builds[static_cast<std::size_t>(i)].get().kernel, i));
  CHECK_THROWS_AS(wrong.get(), CompileError);
  const JitStats stats = jit.stats();
  CHECK(stats.compiled == 24);
  CHECK(stats.failed == 1);
  CHECK(stats.trouble.empty());
}

TEST_CASE("jit: a compiler in trouble is left alone") {
  const TemporaryFolder folder;
  const std::string runs = folder / "runs";
  for (const char* how : {"sleep 1000", "yes nonsense", "yes nonsense >&2", "kill -9 $$"}) {
    CAPTURE(how);
    std::filesystem::remove(runs);
    JitConfig settings = config(folder / "cache");
    settings.timeout = milliseconds(3000);
    settings.compiler =
        folder.script("sick-g++", kAnswer + ("echo >>" + runs + "\nexec " + std::string(how)));
    Jit jit(settings);
    CHECK(jit.is_prompt());
    CHECK(contains(failure_of(jit, add_kernel(1)).what(), "was killed"));
    CHECK_FALSE(jit.is_prompt());
    CHECK(contains(jit.stats().trouble, "will be tried again"));
    for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(jit.get(add_kernel(i)), CompilerTrouble);
    CHECK(read_file(runs) == "\n");
  }
}

TEST_CASE("jit: a compiler in trouble is tried again, ever more rarely") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.pause = milliseconds(1000);
  const std::string runs = folder / "runs", well = folder / "well";
  settings.compiler = folder.script("sick-g++", kAnswer + ("echo >>" + runs + "\n[ -e " + well +
                                                           " ] && exec g++ \"$@\"\nkill -9 $$"));
  Jit jit(settings);
  CHECK_THROWS_AS(jit.get(add_kernel(1)), CompilerTrouble);
  std::this_thread::sleep_for(milliseconds(1100));
  CHECK_THROWS_AS(jit.get(add_kernel(2)), CompilerTrouble);
  CHECK(read_file(runs) == "\n\n");
  std::ofstream(well.c_str()) << "yes";
  CHECK_THROWS_AS(jit.get(add_kernel(2)), CompilerTrouble);
  std::this_thread::sleep_for(milliseconds(2100));
  CHECK(adds(*jit.get(add_kernel(2)).kernel, 2));
  CHECK(jit.is_prompt());
  CHECK(jit.stats().trouble.empty());
  CHECK(adds(*jit.get(add_kernel(1)).kernel, 1));
}

TEST_CASE("jit: a compiler that rejects a source is well") {
  const TemporaryFolder folder;
  Jit jit(config(folder / "cache"));
  CHECK_THROWS_AS(jit.get("no C++"), CompileError);
  CHECK(jit.is_prompt());
  CHECK(jit.stats().trouble.empty());
  CHECK(adds(*jit.get(add_kernel(1)).kernel, 1));
}

TEST_CASE("jit: nobody waits for a slow compiler") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.slow = milliseconds(300);
  settings.compiler = folder.script("slow-g++", std::string(kAnswer) + "sleep 1; exec g++ \"$@\"");
  Jit jit(settings);
  const auto build = jit.get_async(add_kernel(1));
  CHECK(jit.is_prompt());
  CHECK(build.wait_for(milliseconds(600)) == std::future_status::timeout);
  CHECK_FALSE(jit.is_prompt());
  CHECK(adds(*build.get().kernel, 1));
  CHECK_FALSE(jit.is_prompt());
}

TEST_CASE("jit: too many that wait are sent away, and may come again") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.compiler = folder.script("hung-g++", std::string(kAnswer) + "sleep 100");
  Jit jit(settings);
  const auto is_ready = [](const std::shared_future<Built>& build) {
    return build.wait_for(milliseconds(0)) == std::future_status::ready;
  };
  int refused = 0;
  for (int i = 0; i < 1000; ++i) refused += is_ready(jit.get_async(add_kernel(i)));
  CHECK(refused > 400);
  CHECK_THROWS_AS(jit.get_async(add_kernel(999)).get(), CompilerTrouble);
}

// Children are ignored, or another thread collects them all: how a compiler ended is not known.
enum class Lost { Ignored, Collected };

template <class Body>
std::string failure_without_status(Lost how, const Body& body) {
  return failure_in_child([&] {
    std::jthread collector;
    if (how == Lost::Ignored)
      signal(SIGCHLD, SIG_IGN);
    else
      collector = std::jthread([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          if (waitpid(-1, nullptr, WNOHANG) <= 0)
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
      });
    return body();
  });
}

TEST_CASE("process: how programs ended is known where nobody could know") {
  const Environment environment = Environment::now();
  for (const Lost how : {Lost::Ignored, Lost::Collected}) {
    CAPTURE(static_cast<int>(how));
    const auto failure = [&](const std::vector<Argv>& programs, Finished::Kind kind, int status,
                             const std::string& output = "",
                             milliseconds timeout = milliseconds(20'000)) {
      return failure_without_status(how, [&] {
        const Finished run = run_pipeline(programs, environment, timeout);
        if (run.kind == kind && run.status == status && contains(run.output, output)) return true;
        throw DoesNotHold("kind " + std::to_string(run.kind) + ", status " +
                          std::to_string(run.status) + ", output " + run.output);
      });
    };
    CHECK(failure({{"true"}}, Finished::Ok, 0) == "");
    CHECK(failure({{"false"}}, Finished::Failed, 1) == "");
    CHECK(failure({{"sh", "-c", "kill -9 $$"}}, Finished::Failed, 128 + 9) == "");
    const std::vector<Argv> with_words = {{"sh", "-c", "echo $0 $1; exit 3", "a b", "$(c)"},
                                          {"cat"}};
    CHECK(failure(with_words, Finished::Failed, 3, "a b $(c)\n") == "");
    CHECK(failure({{"sh", "-c", "echo; kill -11 $$"}, {"cat"}}, Finished::Failed, 128 + 11) == "");
    CHECK(failure({{"/no/such/program"}}, Finished::NotStarted, 0) == "");
    CHECK(failure({{"printf", "%s|", "a b", "'\"$x", ""}, {"cat"}}, Finished::Ok, 0,
                  "a b|'\"$x||") == "");
    CHECK(failure({{"sleep", "50"}}, Finished::TimedOut, 0, "", milliseconds(200)) == "");
  }
}

TEST_CASE("jit: what a compiler left that did not succeed is never used") {
  const TemporaryFolder folder;
  // Makes sound code of another source, and fails; or half of the right one, and is killed.
  const std::string wrong =
      folder.script("wrong-g++", std::string(kAnswer) +
                                     "for w; do case $w in *.cpp) sed -i 's/+ 1;/+ 2;/' $w;; esac; "
                                     "done\ng++ \"$@\"; exit 1");
  const std::string half = folder.script(
      "half-g++", std::string(kAnswer) +
                      "g++ \"$@\"; for w; do case $w in *.so) truncate -s 5000 $w;; esac; done; "
                      "kill -9 $$");
  for (const Lost how : {Lost::Ignored, Lost::Collected})
    for (const std::string& compiler : {wrong, half}) {
      CAPTURE(compiler);
      CHECK(failure_without_status(how, [&] {
              JitConfig settings = config(folder / "cache");
              settings.compiler = compiler;
              Jit jit(settings);
              return contains(failure_of(jit, add_kernel(1)).what(), "the C++ compiler");
            }) == "");
      CHECK(failure_without_status(how, [&] {
              JitConfig settings = config(folder / "cache");
              Jit jit(settings);
              return adds(*jit.get(add_kernel(1)).kernel, 1, 1);
            }) == "");
      std::filesystem::remove_all(folder / "cache");
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
  CHECK(adds(*jit.get(add_kernel(3)).kernel, 3));
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
#if defined(__SANITIZE_ADDRESS__)
  // The sanitizer's allocator does not survive a fork while another thread is in it.
  for (const auto& build : busy) build.wait();
#endif
  for (int round = 0; round < 5; ++round) {
    CHECK(failure_in_child([&] {
            return adds(*kernel, 9) && jit.get(add_kernel(9)).origin == Origin::Disk &&
                   adds(*jit.get(add_kernel(12)).kernel, 12) &&
                   adds(*jit.get_async(add_kernel(20 + round)).get().kernel, 20 + round);
          }) == "");
  }
  for (int i = 10; i < 14; ++i)
    CHECK(adds(*busy[static_cast<std::size_t>(i - 10)].get().kernel, i));
  CHECK(failure_in_child([&] {
          const Jit own(config(folder / "cache"));
          return true;  // destroyed in the child
        }) == "");
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

TEST_CASE("jit: of processes with one cache, one compiles a kernel and the others get it") {
  const TemporaryFolder folder;
  JitConfig settings = config(folder / "cache");
  settings.others = std::chrono::minutes(10);
  std::vector<std::unique_ptr<Jit>> jits;  // each has the files open by itself, as processes have
  std::vector<std::shared_future<Built>> futures;
  for (int i = 0; i < 3; ++i) {
    jits.push_back(std::make_unique<Jit>(settings));
    for (int k = 0; k < 4; ++k) futures.push_back(jits.back()->get_async(add_kernel(k)));
  }
  for (std::size_t i = 0; i < futures.size(); ++i)
    CHECK(adds(*futures[i].get().kernel, static_cast<int>(i % 4)));
  std::uint64_t compiled = 0, found = 0;
  for (const auto& jit : jits) {
    compiled += jit->stats().compiled;
    found += jit->stats().disk_hits;
  }
  CHECK(compiled == 4);
  CHECK(found == 8);
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

// How often a file that this process opens again and again was found locked while so many programs
// were started.
int times_locked(int program_count) {
  const TemporaryFolder folder;
  const Environment environment = Environment::now();
  std::atomic<bool> over = false;
  const std::jthread programs([&] {
    for (int i = 0; i < program_count; ++i)
      run_pipeline({{"true"}}, environment, milliseconds(10'000));
    over = true;
  });
  int locked = 0;
  bool was_locked = false;
  do {
    // As a library in C may open it: a child inherits it. It is locked until all have closed it.
    const int fd = open((folder / "file").c_str(), O_RDWR | O_CREAT, 0600);
    const bool is_locked = flock(fd, LOCK_EX | LOCK_NB) != 0;
    locked += is_locked && !was_locked;
    was_locked = is_locked;
    close(fd);
  } while (!over);
  return locked;
}

TEST_CASE("process: a program does not have the files that this process has open") {
  // Linux itself copies the first files of a table, for about a microsecond, or where another
  // process interrupts it there, for as long as that one runs. Programs that inherited files would
  // lock them each time, however often it is tried.
  constexpr int kPrograms = 200, kTries = 40;
  int least = kPrograms;
  for (int i = 0; i < kTries && least >= kPrograms / 20; ++i)
    least = std::min(least, times_locked(kPrograms));
  CHECK(least < kPrograms / 20);
}

}  // namespace
}  // namespace ufuse::codegen
