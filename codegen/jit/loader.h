// What is loaded machine code?
//
// A Kernel is one shared object in memory and its entry point; the code stays as long as the Kernel
// lives. Made by the Jit. It knows neither compilers nor caches.
#pragma once

#include <memory>
#include <string>

#include "codegen/runtime/abi.h"

namespace ufuse::codegen {

class Kernel {
 public:
  // Loads the file; it may be unlinked afterwards. Throws CompileError with the loader's words.
  explicit Kernel(const std::string& path);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // Runs it: bits of abi.h.
  unsigned operator()(const rt::Args& args) const { return entry_(&args); }
  rt::Entry entry() const { return entry_; }

 private:
  void* handle_;
  rt::Entry entry_;
};

}  // namespace ufuse::codegen
