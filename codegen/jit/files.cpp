// See files.h. All calls are repeated where a signal interrupts them.
#include "codegen/jit/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>

namespace ufuse::codegen {

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

std::optional<std::string> read_all(int fd, std::size_t most) {
  std::string text;
  char buffer[1 << 14];
  while (text.size() < most) {
    const ssize_t got = read(fd, buffer, std::min(sizeof buffer, most - text.size()));
    if (got == 0) break;
    if (got > 0)
      text.append(buffer, static_cast<std::size_t>(got));
    else if (errno != EINTR)
      return std::nullopt;
  }
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

std::optional<std::string> read_file(const std::string& path) {
  return read_beginning(path, std::numeric_limits<std::size_t>::max());
}

std::optional<std::string> read_beginning(const std::string& path, std::size_t most) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!fd || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return read_all(fd.get(), most);
}

bool write_file(const std::string& path, std::string_view text) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!fd) return false;
  const bool written = write_all(fd.get(), text);
  // Some file systems say only here that the disk is full.
  if (close(fd.release()) == 0 && written) return true;
  unlink(path.c_str());
  return false;
}

void for_each_name(int folder, std::string_view prefix,
                   const std::function<void(const std::string&)>& visit) {
  Fd own(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> list(own ? fdopendir(own.get()) : nullptr, closedir);
  if (!list) return;
  own.release();  // closedir closes it
  while (const dirent* entry = readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name.starts_with(prefix) && name != "." && name != "..") visit(std::string(name));
  }
}

std::vector<std::string> names_in(int folder, std::string_view prefix) {
  std::vector<std::string> names;
  for_each_name(folder, prefix, [&](const std::string& name) { names.push_back(name); });
  return names;
}

void remove_tree(int folder, const std::string& name) {
  if (unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return;
  if (const Fd inner{openat(folder, name.c_str(),
                            O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)})
    for (const std::string& each : names_in(inner.get())) remove_tree(inner.get(), each);
  unlinkat(folder, name.c_str(), AT_REMOVEDIR);
}

std::string random_digits() {
  std::uint64_t bits = 0;
  if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) != sizeof bits)
    bits = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) *
               0x9e3779b97f4a7c15u ^
           static_cast<std::uint64_t>(getpid());
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[bits >> shift & 15];
  return text;
}

}  // namespace ufuse::codegen
