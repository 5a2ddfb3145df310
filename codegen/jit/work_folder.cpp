// The lock that tells a folder in use from one that was left behind.
#include "codegen/jit/work_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "codegen/jit/folders.h"

namespace ufuse::codegen {
namespace {

constexpr std::string_view kPrefix = "ufuse-work-";
constexpr int kAttempts = 10;
constexpr int kInner = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

// Whether `folder` still stands under its name.
bool is_there(int parent, const std::string& name, int folder) {
  struct stat named {
  }, opened{};
  return fstatat(parent, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         fstat(folder, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

}  // namespace

WorkFolder::WorkFolder(const std::string& parent) {
  Opened opened = open_shared_folder(parent);
  if (!opened.folder) {
    trouble_ = opened.trouble;
    return;
  }
  parent_ = std::move(opened.folder);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (make()) {
      path_ = parent + "/" + name_;
      return;
    }
  }
  trouble_ = parent + ": " + std::strerror(errno);
}

// False also where another process took it for one that was left behind, in the moment before it
// was locked.
bool WorkFolder::make() {
  name_ = std::string(kPrefix) + random_digits();
  if (mkdirat(parent_.get(), name_.c_str(), 0700) != 0) return false;
  folder_ = Fd(openat(parent_.get(), name_.c_str(), kInner));
  // Where a file system knows no locks, nobody else gets one either, and nothing is removed.
  const bool mine = folder_ &&
                    (flock(folder_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
                    is_there(parent_.get(), name_, folder_.get());
  if (mine) return true;
  const int error = errno;
  unlinkat(parent_.get(), name_.c_str(), AT_REMOVEDIR);
  errno = error;
  return false;
}

WorkFolder::~WorkFolder() {
  if (!path_.empty()) remove_tree(parent_.get(), name_);
}

void remove_left_work_folders(const std::string& parent) {
  const Opened opened = open_shared_folder(parent);
  if (!opened.folder) return;
  for (const std::string& name : names_in(opened.folder.get(), kPrefix)) {
    const Fd folder(openat(opened.folder.get(), name.c_str(), kInner));
    struct stat info {};
    if (!folder || fstat(folder.get(), &info) != 0 || info.st_uid != geteuid()) continue;
    if (flock(folder.get(), LOCK_EX | LOCK_NB) == 0) remove_tree(opened.folder.get(), name);
  }
}

}  // namespace ufuse::codegen
