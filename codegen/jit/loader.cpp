// dlopen, and which libomp a kernel's OpenMP calls go to.
#include "codegen/jit/loader.h"

#include <dlfcn.h>

#include "codegen/jit/fork.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

// Deep binding: the kernel's OpenMP calls go to the libomp it is linked with, also where another
// library has put libgomp into the global scope. Sanitizers refuse it.
#if defined(RTLD_DEEPBIND) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#else
constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
#endif

std::string loader_words() {
  const char* words = dlerror();
  return words ? words : "unknown error of the dynamic loader";
}

}  // namespace

Kernel::Kernel(const std::string& path) {
  const NoFork guard;
  handle_ = dlopen(path.c_str(), kMode);
  if (!handle_) {
    const std::string words = loader_words();
    throw CompileError("a compiled kernel cannot be loaded: " + words, words);
  }
  entry_ = reinterpret_cast<rt::Entry>(dlsym(handle_, "ufuse_kernel"));
  if (!entry_) {
    const std::string words = loader_words();
    dlclose(handle_);
    throw CompileError("a compiled kernel has no entry point: " + words, words);
  }
}

Kernel::~Kernel() {
  const NoFork guard;
  dlclose(handle_);
}

}  // namespace ufuse::codegen
