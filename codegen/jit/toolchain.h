// Which compiler is there, and how is it called?
//
// Found and identified once per process; then one source file becomes one shared object. g++'s own
// programs (cc1plus, as, ld) are run without the driver, which saves a sixth of the time; on any
// surprise the driver is asked instead. Used by jit.cpp. It knows neither caches nor what a kernel
// does.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "codegen/jit/process.h"

namespace ufuse::codegen {

class EntryStore;

// What may the compiler do with floating point? Fast allows contraction into fused multiply-adds.
enum class Numerics { Exact, Fast };
// How long may it take? With little effort g++ takes a third of the time, and vectorises all the
// same.
enum class Effort { Full, Little };
struct BuildMode {
  Numerics numerics = Numerics::Exact;
  Effort effort = Effort::Full;
  bool operator==(const BuildMode&) const = default;
};

class Toolchain {
 public:
  // `requested` (a program, or the words of a command), else $UFUSE_CXX; else $CXX, g++, clang++ in
  // turn. What was learned of a compiler is kept in `memo`, if given, for the next process. Throws
  // CompileError when there is none.
  static Toolchain find(const std::optional<std::string>& requested, const Environment& environment,
                        bool direct, std::chrono::milliseconds timeout, EntryStore* memo,
                        const Cancel* cancel);
  Toolchain(Toolchain&& other) noexcept;

  // Everything about compiler, flags and CPU that the machine code depends on.
  const std::string& identity() const { return identity_; }
  // In words: "g++ 12.2.0 (/usr/bin/g++)".
  const std::string& description() const { return description_; }
  bool direct() const { return direct_.load(); }

  // Makes folder/kernel.so from folder/kernel.cpp. Throws CompileError with the compiler's words.
  void build(const std::string& folder, BuildMode mode, const Cancel& cancel) const;
  // The same through the driver, with the libraries of C and of the compiler.
  void build_by_driver(const std::string& folder, BuildMode mode, const Cancel& cancel) const;

 private:
  Toolchain() = default;
  void identify(EntryStore* memo, const Cancel* cancel);
  void read_driver(const std::string& text);
  Argv flags_for(BuildMode mode) const;
  int major_version() const;
  Finished run_direct(const std::string& folder, BuildMode mode, const Cancel& cancel) const;
  std::string to_memo() const;
  bool from_memo(const std::string& text);

  Environment environment_;
  Argv driver_;  // g++ or clang++, with the words that came with it
  bool is_clang_ = false;
  std::string libm_;     // path of the C library's mathematics
  std::string version_;  // "gcc version 12.2.0 ..."
  std::string target_;   // what the driver said it would run, without file names
  Argv compile_, assemble_,
      link_;  // direct programs with their arguments, without files; empty: none
  std::string identity_, description_;
  std::chrono::milliseconds timeout_{};
  mutable std::atomic<bool> direct_{false};
};

}  // namespace ufuse::codegen
