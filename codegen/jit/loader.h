// What is loaded machine code?
//
// A Library is one shared object in memory, a Kernel one entry point of it; the code stays as long
// as one of them lives. Made by the Jit. It knows neither compilers nor caches.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/runtime/abi.h"

namespace ufuse::codegen {

class Library {
 public:
  // Loads the text of a shared object, which holds `mark` (see text_of). Where the system has no
  // files in memory, it is written to one of `folders` in the meantime. Throws CompileError with
  // the loader's words.
  Library(std::string_view object, const std::string& mark,
          const std::vector<std::string>& folders);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  // The C++ text of a library: `preamble` once, then each source. Of several, each is in a
  // namespace of its own, and its options are its own.
  // The dynamic loader takes a file for one that is loaded already where their names or their inode
  // numbers are equal; by the mark we know that the code is the code asked for.
  static std::string text_of(const std::string& mark, std::string_view preamble,
                             const std::vector<std::string_view>& sources);

  // What was the source's function `ufuse_kernel`. Throws CompileError where there is none.
  rt::Entry entry(std::size_t source) const;

 private:
  void* handle_;
};

class Kernel {
 public:
  Kernel(std::shared_ptr<const Library> library, std::size_t source)
      : library_(std::move(library)), entry_(library_->entry(source)) {}

  // Runs it: bits of abi.h.
  unsigned operator()(const rt::Args& args) const { return entry_(&args); }
  rt::Entry entry() const { return entry_; }

 private:
  std::shared_ptr<const Library> library_;
  rt::Entry entry_;
};

}  // namespace ufuse::codegen
