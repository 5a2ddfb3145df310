// dlopen, which takes files for one by their names and numbers.
#include "codegen/jit/loader.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "codegen/jit/files.h"
#include "codegen/jit/fork.h"
#include "codegen/jit/work_folder.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

constexpr const char* kMark = "ufuse_mark";

std::string entry_name(std::size_t source) { return "ufuse_kernel_" + std::to_string(source); }

std::string loader_words() {
  const char* words = dlerror();
  return words ? words : "unknown error of the dynamic loader";
}

// A file in memory, with no name anywhere: nobody else can write it, no disk can be full, and what
// becomes of the file that the text was read from does not matter.
Fd file_in_memory(std::string_view text) {
  Fd file(memfd_create("ufuse-kernel", MFD_CLOEXEC));
  return file && write_all(file.get(), text) ? std::move(file) : Fd();
}

// A path to a descriptor that no file was loaded by before. The loader compares names as text, and
// numbers of descriptors come again; so a number that does not is written with "/" for 0 and "./"
// for 1, steps that lead nowhere.
std::string new_name_of(int fd) {
  static std::atomic<std::uint64_t> serial{0};  // of the process, as the loader's list of names is
  std::string path = "/proc/self/fd/";
  for (std::uint64_t left = serial.fetch_add(1) + 1; left != 0; left >>= 1)
    path += (left & 1) != 0 ? "./" : "/";
  return path + std::to_string(fd);
}

// A handle, or null and why not.
void* load(const std::string& path, const std::string& mark, std::string& words) {
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    words = loader_words();
    return nullptr;
  }
  const auto* found = static_cast<const char*>(dlsym(handle, kMark));
  if (found && found == mark) return handle;
  words = found ? "the dynamic loader gave other code than that of the file" : loader_words();
  dlclose(handle);
  return nullptr;
}

void* load_from_memory(std::string_view object, const std::string& mark, std::string& words) {
  const Fd file = file_in_memory(object);
  return file ? load(new_name_of(file.get()), mark, words) : nullptr;
}

void* load_from_folder(const std::string& parent, std::string_view object, const std::string& mark,
                       std::string& words) {
  const WorkFolder folder(parent);
  const std::string path = folder.path() + "/kernel.so";
  if (folder && write_file(path, object)) return load(path, mark, words);
  words = parent + ": cannot be written";
  return nullptr;
}

}  // namespace

Library::Library(std::string_view object, const std::string& mark,
                 const std::vector<std::string>& folders) {
  const NoFork guard;
  std::string words, others;
  handle_ = load_from_memory(object, mark, words);
  for (const std::string& folder : folders) {
    if (handle_) break;
    handle_ = load_from_folder(folder, object, mark, others);
  }
  if (words.empty()) words = others;
  if (!handle_) throw CompileError("a compiled kernel cannot be loaded: " + words, words);
}

Library::~Library() {
  const NoFork guard;
  dlclose(handle_);
}

rt::Entry Library::entry(std::size_t source) const {
  const NoFork guard;
  if (void* const found = dlsym(handle_, entry_name(source).c_str()))
    return reinterpret_cast<rt::Entry>(found);
  const std::string words = loader_words();
  throw CompileError("a compiled kernel has no entry point: " + words, words);
}

std::string Library::text_of(const std::string& mark, std::string_view preamble,
                             const std::vector<std::string_view>& sources) {
  std::string text = "extern \"C\" const char " + std::string(kMark) + "[] = \"" + mark + "\";\n";
  text += preamble;
  const bool several = sources.size() > 1;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    text += "\n#define ufuse_kernel " + entry_name(i) + "\n";
    if (several) text += "#pragma GCC push_options\nnamespace source" + std::to_string(i) + " {\n";
    text += sources[i];
    if (several) text += "\n}\n#pragma GCC pop_options\n#undef ufuse_kernel\n";
  }
  return text;
}

}  // namespace ufuse::codegen
