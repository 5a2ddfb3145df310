// May the compiler be asked, and is it worth waiting for?
//
// A compiler that hangs, prints without end, is killed or cannot be started is in trouble, whatever
// the source was: it is left alone for a while, then one build tries it again, and ever more rarely
// as long as that fails. One that fails because of the source is well. Used by jit.cpp; it knows
// nothing of kernels. Thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ir/support/error.h"

namespace ufuse::codegen {

// The compiler itself is to blame, not the source: the same build may succeed later.
class CompilerTrouble : public CompileError {
 public:
  using CompileError::CompileError;
};

// It was not even asked, because of trouble before.
class CompilerRefused : public CompilerTrouble {
 public:
  using CompilerTrouble::CompilerTrouble;
};

class Health {
 public:
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::milliseconds;

  // Builds that take longer than `slow` are not worth waiting for. After trouble the compiler is
  // left alone for `pause`, twice as long each time, up to an hour.
  Health(Milliseconds slow, Milliseconds pause) : slow_(slow), first_pause_(pause) {}

  // One build's use of the compiler, from begin() to the end of its life. It says how it went, or
  // nothing where that says nothing about the compiler.
  class Use {
   public:
    explicit Use(Health& health) : health_(health) {}
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Before the compiler runs for the first time. Throws CompilerRefused when it may not be asked.
    void begin();
    // The compiler did what a compiler does, which may be to reject the source.
    void worked();
    void met_trouble(const std::string& words);

   private:
    Health& health_;
    std::optional<Clock::time_point> since_;
    bool probes_ = false;
  };

  // Whether a build that begins now is likely to be done soon.
  bool is_prompt() const;
  // What is wrong, and when it will be tried again; empty when the compiler is well.
  std::string trouble() const;

 private:
  std::string words() const;

  const Milliseconds slow_, first_pause_;
  mutable std::mutex mutex_;                // of all below
  std::vector<Clock::time_point> running_;  // when the builds that run now began
  Milliseconds last_{0};                    // what the last build took
  std::string trouble_;                     // empty: well
  Milliseconds pause_{0};
  Clock::time_point again_;
  bool probing_ = false;
};

}  // namespace ufuse::codegen
