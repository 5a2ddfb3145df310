// How is a compiler run?
//
// A pipeline of programs: stdin is empty, what they print is collected, and they are killed at a
// deadline, when they print without end or when the Jit dies. No word of theirs passes a shell, and
// nothing that this process has open is theirs but what the standard streams are.
// Used by toolchain.cpp. It does not know what the programs do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ufuse::codegen {

using Argv = std::vector<std::string>;

// A switch that many runs can watch. Once pulled it stays so.
class Cancel {
 public:
  void pull() { pulled_.store(true); }
  bool pulled() const { return pulled_.load(); }

 private:
  std::atomic<bool> pulled_{false};
};

struct Finished {
  // Flooded: killed because it printed without end. Unknown: all ended, but how cannot be learned.
  enum Kind { Ok, Failed, NotStarted, TimedOut, Flooded, Cancelled, Unknown } kind = Ok;
  int status = 0;      // exit status of the first program that failed, or 128 + its signal
  std::string output;  // stdout of the last program and stderr of all, at most 256 KiB
};

// The environment variables as they were. That of the process may be written by one thread
// (Python's os.environ) while another, which builds in the background, would read it.
class Environment {
 public:
  static Environment now();
  // `otherwise` where it is not set.
  std::string get(std::string_view name, std::string_view otherwise = {}) const;
  // `otherwise` where it is not set to a whole number below `end`.
  std::uint64_t count(std::string_view name, std::uint64_t otherwise, std::uint64_t end) const;
  const std::vector<std::string>& entries() const { return entries_; }

 private:
  std::vector<std::string> entries_;  // name=value
};

// argv[0] of each is a path (a name is looked up in the PATH of the process). The standard output
// of one is the standard input of the next. Their temporary files go to `temporary`, if given.
// Where how they ended is lost, because children are ignored or somebody else in the process
// collected them, they run a second time, watched: running them twice must do no harm.
Finished run_pipeline(const std::vector<Argv>& programs, const Environment& environment,
                      std::chrono::milliseconds timeout, const Cancel* cancel = nullptr,
                      const std::string& temporary = {});

// The file that a name stands for, looked for in `folders` and then in PATH; empty when there is
// none.
std::string find_program(const std::string& name, const Environment& environment,
                         const std::vector<std::string>& folders = {});

}  // namespace ufuse::codegen
