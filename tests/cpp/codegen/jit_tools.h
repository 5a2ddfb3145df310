// What do the tests of the Jit share? A folder of their own, kernels of a few lines, stand-ins for
// a compiler, and processes of their own.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "codegen/jit/jit.h"
#include "codegen/runtime/preamble.h"
#include "codegen/runtime/share.h"

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
  const rt::Args args{buffers, sizes, nullptr, nullptr, team_of(threads)};
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

// Thrown, in a forked child, by what does not hold there.
struct DoesNotHold : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Runs `body` in a forked child. Empty if it returned true; else how the child ended, and what its
// exception said. A child that hangs is killed.
template <class Body>
std::string failure_in_child(const Body& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return "no pipe";
  const pid_t child = fork();
  if (child < 0) return "no child";
  if (child == 0) {
    int status = 1;
    try {
      if (body()) status = 0;
    } catch (const std::exception& error) {
      const std::string words = error.what();
      if (write(ends[1], words.data(), std::min<std::size_t>(words.size(), 4000)) < 0) status = 2;
    }
    _exit(status);
  }
  close(ends[1]);
  std::string end = "hung";
  for (int i = 0; i < 2000 && end == "hung"; ++i) {
    int status;
    const pid_t got = waitpid(child, &status, WNOHANG);
    if (got < 0)
      end = "was lost";
    else if (got == child && WIFSIGNALED(status))
      end = "was killed by signal " + std::to_string(WTERMSIG(status));
    else if (got == child)
      end = WEXITSTATUS(status) == 0 ? "" : "ended with " + std::to_string(WEXITSTATUS(status));
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (end == "hung") {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  } else if (!end.empty()) {
    char words[4000];
    const ssize_t size = read(ends[0], words, sizeof words);
    if (size > 0) end += ": " + std::string(words, static_cast<std::size_t>(size));
  }
  close(ends[0]);
  return end.empty() ? end : "the child " + end;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ufuse::codegen::testing
