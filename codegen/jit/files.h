// How are files read, written and removed?
//
// Plain calls of the system on descriptors. Neither streams nor std::filesystem: they ask the C++
// library's locale, and a process may hold two such libraries whose locales do not fit together.
// Used by the rest of this folder.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ufuse::codegen {

// A file descriptor and who closes it.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// The text from here on, but at most so much; nothing where it cannot be read.
std::optional<std::string> read_all(int fd, std::size_t most);
// False when not all could be written.
bool write_all(int fd, std::string_view text);

// The whole text of a regular file, or its beginning; nothing where it cannot be read. Never waits
// for what is no file, such as a pipe.
std::optional<std::string> read_file(const std::string& path);
std::optional<std::string> read_beginning(const std::string& path, std::size_t most);
// False when it could not be written in full; the file is then removed.
bool write_file(const std::string& path, std::string_view text);

// Visits the names in a folder that begin so, without "." and "..". They are read as they come:
// where files are removed meanwhile, a file system may leave out others.
void for_each_name(int folder, std::string_view prefix,
                   const std::function<void(const std::string&)>& visit);
// All of them at once.
std::vector<std::string> names_in(int folder, std::string_view prefix = {});
// A file, or a folder with all that is in it; links are removed, not followed.
void remove_tree(int folder, const std::string& name);

// 16 hexadecimal digits that no other file of this machine has in its name.
std::string random_digits();

}  // namespace ufuse::codegen
