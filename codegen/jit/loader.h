// What is loaded machine code?
//
// A Kernel is one shared object in memory and its entry point; the code stays as long as the Kernel
// lives. Made by the Jit. It knows neither compilers nor caches.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/runtime/abi.h"

namespace ufuse::codegen {

class Kernel {
 public:
  // Loads the text of a shared object, which holds `mark` (see marked). Where the system has no
  // files in memory, it is written to one of `folders` in the meantime. Throws CompileError with
  // the loader's words.
  Kernel(std::string_view object, const std::string& mark, const std::vector<std::string>& folders);
  ~Kernel();
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // C++ that makes a kernel hold its mark. The dynamic loader takes a file for one that is loaded
  // already where their names or their inode numbers are equal; by the mark we know that the code
  // is the code asked for.
  static std::string marked(const std::string& mark);

  // Runs it: bits of abi.h.
  unsigned operator()(const rt::Args& args) const { return entry_(&args); }
  rt::Entry entry() const { return entry_; }

 private:
  void* handle_;
  rt::Entry entry_;
};

}  // namespace ufuse::codegen
