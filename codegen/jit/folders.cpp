// The walk from "/" to a folder, and what is asked of each folder on the way.
#include "codegen/jit/folders.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <deque>
#include <optional>

#include "codegen/jit/words.h"

namespace ufuse::codegen {
namespace {

// O_PATH: a folder that we may pass through, but not list, can be opened too.
constexpr int kStep = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int kMostLinks = 40;  // as many as the kernel follows

std::string quoted_error() { return std::strerror(errno); }

Opened refused(const std::string& path, const std::string& why) {
  return {Fd(), path + ": " + why};
}

// Because of what stands at `here`, on the way to the path or at its end.
Opened refused_at(const std::string& here, const std::string& path, const std::string& why) {
  return refused(path, here == path ? why : here + " " + why);
}

// Whether nobody but us is in the group. Many systems give each user such a group of his own, and
// let him make folders that his group can write in.
bool is_our_own_group(gid_t group) {
  const std::string users = read_file("/etc/passwd").value_or("");
  const std::string groups = read_file("/etc/group").value_or("");
  const std::string our_number = std::to_string(geteuid()), its_number = std::to_string(group);
  std::string_view our_name;
  for (const std::string_view line : split(users, '\n')) {  // name:password:user:group:...
    const auto fields = split(line, ':');
    if (fields.size() < 4) continue;
    const bool ours = fields[2] == our_number;
    if (ours && our_name.empty()) our_name = fields[0];
    if (fields[3] == its_number && !ours) return false;
  }
  bool found = false;
  for (const std::string_view line : split(groups, '\n')) {  // name:password:group:members
    const auto fields = split(line, ':');
    if (fields.size() < 3 || fields[2] != its_number) continue;
    // The group must bear our name, as such a group does: users of other lists than /etc/passwd
    // may be in any other.
    if (our_name.empty() || fields[0] != our_name) return false;
    for (const std::string_view member : split(fields.size() > 3 ? fields[3] : "", ','))
      if (member != our_name) return false;
    found = true;
  }
  return found;
}

// The users who may own a folder on the way: root, we ourselves, and the owner of "/", who decides
// what every program of this machine is. (In a container root itself may bear another number.)
struct Trusted {
  uid_t top;
  bool owner(uid_t user) const { return user == 0 || user == geteuid() || user == top; }
};

// Why others could replace what is in this folder; empty when they cannot.
std::string weakness(int folder, const Trusted& trusted) {
  struct stat info {};
  if (fstat(folder, &info) != 0) return quoted_error();
  if (!trusted.owner(info.st_uid))
    return "belongs to another user, who could replace what is in it";
  if ((info.st_mode & S_ISVTX) != 0) return {};  // only the owner of a file may replace it
  if ((info.st_mode & S_IWOTH) != 0 ||
      ((info.st_mode & S_IWGRP) != 0 && !is_our_own_group(info.st_gid)))
    return "can be written by other users, who could replace what is in it";
  return {};
}

// Where a link leads; nothing for what is no link.
std::optional<std::string> target_of(int folder, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t size = readlinkat(folder, name.c_str(), target, sizeof target);
  if (size <= 0 || size == sizeof target) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(size));
}

void prepend(std::deque<std::string>& steps, std::string_view path) {
  std::deque<std::string> first;
  for (const std::string_view part : split(path, '/'))
    if (!part.empty() && part != ".") first.emplace_back(part);
  steps.insert(steps.begin(), first.begin(), first.end());
}

// A private folder is made where it is missing and must not be a link; a shared one is checked as
// its parents are.
enum class Wanted { Private, Shared };

// Every folder before the last is checked, and every link is one of root's or ours.
Opened walk(const std::string& path, Wanted wanted) {
  if (!path.starts_with('/')) return refused(path, "is not an absolute path");
  Fd at(open("/", kStep));
  struct stat info {};
  if (!at || fstat(at.get(), &info) != 0) return refused(path, quoted_error());
  const Trusted trusted{info.st_uid};
  std::string here;  // as a path; empty for "/"
  std::deque<std::string> steps;
  prepend(steps, path);
  int links = 0;
  while (!steps.empty()) {
    if (const std::string why = weakness(at.get(), trusted); !why.empty())
      return refused_at(here.empty() ? "/" : here, path, why);
    const std::string name = steps.front();
    steps.pop_front();
    Fd next(openat(at.get(), name.c_str(), kStep));
    if (!next && errno == ENOENT && wanted == Wanted::Private &&
        (mkdirat(at.get(), name.c_str(), 0700) == 0 || errno == EEXIST))
      next = Fd(openat(at.get(), name.c_str(), kStep));
    if (next) {
      at = std::move(next);
      here += "/" + name;
      continue;
    }
    if (errno != ENOTDIR && errno != ELOOP) return refused(path, quoted_error());
    const std::optional<std::string> target = target_of(at.get(), name);
    if (!target || (steps.empty() && wanted == Wanted::Private))
      return refused_at(here + "/" + name, path, "is not a folder");
    if (fstatat(at.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return refused(path, quoted_error());
    if (!trusted.owner(info.st_uid))
      return refused_at(here + "/" + name, path, "is another user's link");
    if (++links > kMostLinks) return refused(path, std::strerror(ELOOP));
    prepend(steps, *target);
    if (target->starts_with('/')) {
      at = Fd(open("/", kStep));
      here.clear();
    }
  }
  if (wanted == Wanted::Shared)
    if (const std::string why = weakness(at.get(), trusted); !why.empty())
      return refused(path, why);
  return {std::move(at), {}};
}

// To list what is in it as well, where we may write in it.
Opened opened_to_write(const std::string& path, const Fd& folder) {
  if (faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return refused(path, quoted_error());
  Fd result(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return result ? Opened{std::move(result), {}} : refused(path, quoted_error());
}

}  // namespace

Opened open_private_folder(const std::string& path) {
  Opened found = walk(path, Wanted::Private);
  if (!found.folder) return found;
  struct stat info {};
  if (fstat(found.folder.get(), &info) != 0) return refused(path, quoted_error());
  if (info.st_uid != geteuid()) return refused(path, "belongs to another user");
  if ((info.st_mode & 077) != 0)
    return refused(path, "is open to other users, who may have put files there: remove it");
  return opened_to_write(path, found.folder);
}

Opened open_shared_folder(const std::string& path) {
  Opened found = walk(path, Wanted::Shared);
  return found.folder ? opened_to_write(path, found.folder) : std::move(found);
}

}  // namespace ufuse::codegen
