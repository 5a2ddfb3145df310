// From text to a function pointer.
//
// Jit::get looks in memory, then on disk, then runs the compiler. Called by codegen/compile.cpp
// with text that codegen/emit printed. It knows nothing of graphs or loops: to it a kernel is a
// string and an entry point.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "codegen/jit/builders.h"
#include "codegen/jit/cache.h"
#include "codegen/jit/loader.h"
#include "codegen/jit/toolchain.h"

namespace ufuse::codegen {

enum class Origin { Memory, Disk, Compiled };
const char* to_string(Origin origin);  // "memory cache", "disk cache", "compiled"

struct JitConfig {
  std::string preamble;                 // text before every source: runtime_preamble()
  std::string half;                     // and then before those with halves: runtime_half()
  std::optional<std::string> compiler;  // else $UFUSE_CXX, $CXX, g++, clang++
  std::optional<std::string>
      cache_dir;  // else $UFUSE_CACHE_DIR or the XDG cache folder; empty: no disk cache
  std::optional<std::uint64_t> cache_bytes;  // else $UFUSE_CACHE_SIZE (MiB) or 256 MiB; 0: none
  bool direct = true;  // cc1plus, as and ld without the driver, where possible
  std::chrono::milliseconds timeout{60'000};  // of one compiler run
  std::chrono::milliseconds slow{5'000};      // longer builds are not worth waiting for
  // How long a compiler that hung, was killed or could not be started is left alone; twice as long
  // each further time.
  std::chrono::milliseconds pause{10'000};
  // How long another process is waited for that compiles the same. It may have ended, and a child
  // that it forked hold what it held.
  std::chrono::milliseconds others{5'000};
};

struct Built {
  std::shared_ptr<const Kernel> kernel;
  Origin origin = Origin::Compiled;
  // From the call of get to the function pointer; else what the build took, or its part of the
  // build of several.
  double milliseconds = 0;
};

// Data for explain and the logs; monotonic within one process.
struct JitStats {
  std::uint64_t memory_hits = 0, disk_hits = 0, compiled = 0, failed = 0;
  std::uint64_t disk_rejected = 0;  // entries that were damaged or another's and were built anew
  std::uint64_t disk_evicted = 0;   // entries removed to stay below the cap
  double compile_ms = 0;            // sum over `compiled`
  std::string trouble;              // what is wrong with the compiler now, if so
  std::string compiler;             // what was found, in words; empty before first use
  std::string cache_dir;            // empty: no folder is used, kernels live in this process only
  std::string cache_note;           // why not
};

// Thread-safe; equal sources asked for at once are compiled once. May be used in a forked child,
// which begins with an empty memory cache; Kernels made before the fork stay valid there.
class Jit {
 public:
  explicit Jit(JitConfig config);
  ~Jit();  // waits for no compiler: one that is running is killed
  Jit(const Jit&) = delete;
  Jit& operator=(const Jit&) = delete;

  // Builds a kernel on one of a few threads in the background. A CompileError is in the future: no
  // compiler, it failed, or its output cannot be loaded. Such a failure is remembered: asking again
  // gives the same at once. CompilerTrouble is not: asking again may try again. In a forked child a
  // future from before the fork may never become ready: poll it, do not wait.
  std::shared_future<Built> get_async(const std::string& source, BuildMode mode = {},
                                      Urgency urgency = Urgency::Later);

  // The same, waiting however long it takes. Throws CompileError.
  Built get(const std::string& source, BuildMode mode = {});

  // Only from memory, never waiting; null when it is not there (yet).
  std::shared_ptr<const Kernel> find(const std::string& source, BuildMode mode = {});

  // Whether a kernel that is being built may be there within a moment: it is looked for on the
  // disk. Not while the compiler works for it, nor while it waits behind others for one.
  bool may_be_near(const std::string& source, BuildMode mode = {});

  // Whether it makes sense to wait for a build. Not while the compiler is in trouble, nor while it
  // is slower than JitConfig::slow.
  bool is_prompt() const;
  // After CompilerTrouble, asking again makes no sense sooner than this.
  std::chrono::milliseconds pause() const { return config_.pause; }

  // How many builds are on their way just now, a core each.
  std::size_t building() const;

  // The end of the program: waits at most so long for what is being built, kills the rest, and
  // builds no more.
  void finish(std::chrono::milliseconds patience);

  JitStats stats() const;

  // The folder of its entries, for what else is worth keeping from one process to the next.
  EntryStore& store() const;

 private:
  class State;
  State& state() const;

  const JitConfig config_;
  mutable std::atomic<State*> state_;  // one per process: a forked child makes its own
};

}  // namespace ufuse::codegen
