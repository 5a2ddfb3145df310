// What do the tests of the Jit share? A folder of their own, kernels of a few lines, and stand-ins
// for a compiler.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "codegen/jit/jit.h"
#include "codegen/runtime/preamble.h"

namespace ufuse::codegen::testing {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ufuse-test-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  // A program that runs the lines with sh.
  std::string script(const std::string& name, const std::string& lines) const {
    const std::filesystem::path file = path_ / name;
    std::ofstream(file) << "#!/bin/sh\n" << lines << "\n";
    chmod(file.c_str(), 0755);
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline JitConfig config(const std::filesystem::path& cache) {
  JitConfig result;
  result.preamble = runtime_preamble();
  result.half = runtime_half();
  result.cache_dir = cache;
  return result;
}

// out[i] = in[i] + number
inline std::string add_kernel(int number) {
  return "extern \"C\" unsigned ufuse_kernel(const rt::Args* args) {\n"
         "  const double* __restrict in = (const double*)args->buffers[0];\n"
         "  double* __restrict out = (double*)args->buffers[1];\n"
         "  return rt::parallel(args->threads, args->sizes[0], 1024,\n"
         "                      [=](rt::Index lo, rt::Index hi, rt::Flags&) {\n"
         "    for (rt::Index i = lo; i < hi; ++i) out[i] = in[i] + " +
         std::to_string(number) + ";\n  });\n}\n";
}

// Whether the kernel made by add_kernel(number) does what it should.
inline bool adds(const Kernel& kernel, int number, int threads = 2) {
  std::vector<double> in(10'000), out(in.size(), -1);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i);
  void* buffers[] = {in.data(), out.data()};
  const rt::Index sizes[] = {static_cast<rt::Index>(in.size())};
  const rt::Args args{buffers, sizes, nullptr, nullptr, {threads}};
  if (kernel(args) != 0) return false;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (out[i] != in[i] + number) return false;
  return true;
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder,
                                                   const std::string& ending = ".so") {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().string().ends_with(ending)) found.push_back(entry.path());
  return found;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ufuse::codegen::testing
