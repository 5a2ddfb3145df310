// The files of the disk cache: their layout, when one is trusted, and who makes room.
#include "codegen/jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/jit/folders.h"
#include "codegen/jit/process.h"

namespace ufuse::codegen {
namespace {

// An entry is payload, key, trailer.
struct Trailer {
  char magic[8];
  std::uint64_t version;
  std::uint64_t payload_bytes, key_bytes;
  Hash128 checksum;  // of the payload; the key is compared as it stands
};
constexpr char kMagic[8] = {'u', 'f', 'u', 's', 'e', 'k', 'r', 'n'};
constexpr std::uint64_t kVersion = 2;
constexpr std::string_view kPrefix = "ufuse-", kSuffix = ".so", kTemporary = "ufuse-tmp-",
                           kFailed = "ufuse-failed-", kClaims = "ufuse-claims";
constexpr std::size_t kMaxEntry = 64 << 20;  // a kernel has some 20 KB
constexpr time_t kStale = 3600;              // s until a temporary file is somebody's who died
constexpr std::size_t kAtOnce = 8;           // entries are removed: few, for a build may wait

// A pipe with an entry's name is neither waited for nor a terminal taken over.
constexpr int kReadOnly = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::string name_of(const CacheKey& key) {
  return std::string(kPrefix) + key.hash.hex() + std::string(kSuffix);
}

bool is_entry(std::string_view name) {
  return name.size() == kPrefix.size() + 32 + kSuffix.size() && name.starts_with(kPrefix) &&
         name.ends_with(kSuffix) &&
         name.substr(kPrefix.size(), 32).find_first_not_of("0123456789abcdef") == name.npos;
}

// A file that only we can have written: ours, closed to the pens of others, under one name.
bool is_ours_alone(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 022) == 0 &&
         info.st_nlink <= 1;
}

// The payload of an entry's text, where it is whole and was made for this key.
std::optional<std::string> payload_in(std::string&& text, std::string_view key) {
  Trailer trailer;
  if (text.size() < sizeof trailer) return std::nullopt;
  const std::string_view body(text.data(), text.size() - sizeof trailer);
  std::memcpy(&trailer, text.data() + body.size(), sizeof trailer);
  if (std::memcmp(trailer.magic, kMagic, sizeof kMagic) != 0 || trailer.version != kVersion ||
      trailer.key_bytes != key.size() || trailer.payload_bytes > body.size() ||
      trailer.payload_bytes + trailer.key_bytes != body.size() ||
      body.substr(trailer.payload_bytes) != key ||
      trailer.checksum != hash128(body.substr(0, trailer.payload_bytes)))
    return std::nullopt;
  text.resize(trailer.payload_bytes);
  return std::move(text);
}

std::string entry_of(std::string_view key, std::string_view payload) {
  std::string entry;
  entry.reserve(payload.size() + key.size() + sizeof(Trailer));
  entry.append(payload).append(key);
  Trailer trailer{};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.version = kVersion;
  trailer.payload_bytes = payload.size();
  trailer.key_bytes = key.size();
  trailer.checksum = hash128(payload);
  entry.append(reinterpret_cast<const char*>(&trailer), sizeof trailer);
  return entry;
}

}  // namespace

EntryStore::EntryStore(std::string folder, std::uint64_t max_bytes)
    : folder_(std::move(folder)), max_bytes_(max_bytes) {
  if (folder_.empty()) {
    note_ = "no folder is known (neither UFUSE_CACHE_DIR, XDG_CACHE_HOME nor HOME)";
    return;
  }
  if (max_bytes_ == 0) {
    note_ = "UFUSE_CACHE_SIZE is 0: nothing is kept";
    return;
  }
  Opened opened = open_private_folder(folder_);
  struct stat info {};
  if (opened.folder && fstat(opened.folder.get(), &info) != 0)
    opened.trouble = folder_ + ": " + std::strerror(errno);
  note_ = opened.trouble;
  opened_ = std::move(opened.folder);
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

EntryStore::~EntryStore() {
  if (descriptor() < 0) opened_.release();  // it is somebody else's by now
}

// The folder's descriptor, or -1. A program may have closed it, as daemons close all there are, and
// have got its number for another file since.
int EntryStore::descriptor() const {
  struct stat info {};
  const bool same = opened_ && fstat(opened_.get(), &info) == 0 && S_ISDIR(info.st_mode) &&
                    info.st_dev == device_ && info.st_ino == inode_;
  return same ? opened_.get() : -1;
}

std::string EntryStore::path_of(const CacheKey& key) const { return folder_ + "/" + name_of(key); }

void EntryStore::reject(const std::string& name) {
  rejected_.fetch_add(1);
  unlinkat(descriptor(), name.c_str(), 0);
}

std::optional<std::string> EntryStore::read(const CacheKey& key) {
  const int folder = descriptor();
  if (folder < 0) return std::nullopt;
  const std::string name = name_of(key);
  const Fd file(openat(folder, name.c_str(), kReadOnly));
  if (!file) {
    // A link, or a socket. Else it is absent, or cannot be read just now: not its own fault.
    if (errno == ELOOP || errno == ENXIO) reject(name);
    return std::nullopt;
  }
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return std::nullopt;
  if (!is_ours_alone(info) || static_cast<std::uint64_t>(info.st_size) > kMaxEntry) {
    reject(name);
    return std::nullopt;
  }
  std::optional<std::string> text = read_all(file.get(), kMaxEntry);
  if (!text) return std::nullopt;
  std::optional<std::string> payload = payload_in(std::move(*text), key.text);
  if (payload)
    futimens(file.get(), nullptr);  // used now
  else
    reject(name);
  return payload;
}

bool EntryStore::put(const CacheKey& key, std::string_view payload) {
  const int folder = descriptor();
  const std::string entry = entry_of(key.text, payload);
  if (folder < 0 || entry.size() > std::min<std::uint64_t>(kMaxEntry, max_bytes_)) return false;
  const std::string name = name_of(key), temporary = std::string(kTemporary) + random_digits();
  Fd file(openat(folder, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 0600));
  if (!file) return false;
  bool kept = write_all(file.get(), entry);
  kept = close(file.release()) == 0 && kept;  // some file systems say only here that they are full
  if (!kept || renameat(folder, temporary.c_str(), folder, name.c_str()) != 0) {
    unlinkat(folder, temporary.c_str(), 0);
    return false;
  }
  bytes_ += entry.size();
  ++puts_;
  return true;
}

// Forked children have the file open, too, so closing it would not do.
EntryStore::Claim::~Claim() {
  struct flock all {};
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  if (file_) fcntl(file_.get(), F_OFD_SETLK, &all);
}

// Who makes an entry locks one byte of a file, the one at the place that the hash says. The system
// ends the lock with the process, whatever ends that.
std::optional<EntryStore::Claim> EntryStore::claim(const CacheKey& key) const {
  const int folder = descriptor();
  if (folder < 0) return Claim();
  constexpr int kOpen = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  Fd file(openat(folder, kClaims.data(), kOpen, 0600));
  struct stat info {};
  if (!file || fstat(file.get(), &info) != 0 || !is_ours_alone(info)) return Claim();
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(key.hash.low >> 2);  // no offset is negative
  range.l_len = 1;
  if (fcntl(file.get(), F_OFD_SETLK, &range) == 0) return Claim(std::move(file));
  const bool is_taken = errno == EAGAIN || errno == EACCES;
  return is_taken ? std::nullopt : std::optional(Claim());
}

// Other processes put entries here too, so what is there is counted anew now and then.
void EntryStore::make_room() {
  constexpr std::uint64_t kCountEach = 64;
  const std::uint64_t puts = puts_.load();
  std::uint64_t counted = counted_.load();
  const bool is_due = puts > 0 && (counted == 0 || puts > counted + kCountEach);
  if ((is_due || bytes_ > max_bytes_) && counted_.compare_exchange_strong(counted, puts + 1))
    trim();
}

// Calls visit(name, info) for each file that bears a name of ours.
template <class Visit>
void EntryStore::for_each_file(const Visit& visit) const {
  const int folder = descriptor();
  if (folder < 0) return;
  for_each_name(folder, kPrefix, [&](const std::string& name) {
    if (!is_entry(name) && !name.starts_with(kTemporary) && !name.starts_with(kFailed)) return;
    struct stat info {};
    if (fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(info.st_mode))
      visit(name, info);
  });
}

CacheContent EntryStore::content() const {
  CacheContent content;
  for_each_file([&](const std::string&, const struct stat& info) {
    ++content.files;
    content.bytes += static_cast<std::uint64_t>(info.st_size);
    if (!is_ours_alone(info)) ++content.foreign;
  });
  return content;
}

CacheContent EntryStore::clear() {
  std::vector<std::pair<std::string, struct stat>> found;
  for_each_file(
      [&](const std::string& name, const struct stat& info) { found.emplace_back(name, info); });
  CacheContent removed;
  for (const auto& [name, info] : found) {
    if (unlinkat(descriptor(), name.c_str(), 0) != 0) continue;
    ++removed.files;
    removed.bytes += static_cast<std::uint64_t>(info.st_size);
    if (!is_ours_alone(info)) ++removed.foreign;
  }
  unlinkat(descriptor(), kClaims.data(), 0);  // who has a claim now is no longer alone
  return removed;
}

// Removes the least recently used entries, at most kAtOnce, until three quarters of the cap are
// left; and temporary files that a killed process left behind. There may be many thousands of
// files: only those that may be removed are kept in memory.
void EntryStore::trim() {
  struct Listed {
    std::string name;
    std::uint64_t bytes;
    timespec used;
  };
  const auto before = [](const Listed& a, const Listed& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
  };
  std::vector<Listed> oldest;  // a heap: the last to be removed is in front
  std::uint64_t total = 0;
  const int folder = descriptor();
  const time_t stale = std::time(nullptr) - kStale;
  for_each_file([&](const std::string& name, const struct stat& info) {
    if (name.starts_with(kTemporary)) {
      if (info.st_mtim.tv_sec < stale) unlinkat(folder, name.c_str(), 0);
      return;
    }
    const auto bytes = static_cast<std::uint64_t>(info.st_size);
    total += bytes;
    oldest.push_back({name, bytes, info.st_mtim});
    std::ranges::push_heap(oldest, before);
    if (oldest.size() <= kAtOnce) return;
    std::ranges::pop_heap(oldest, before);
    oldest.pop_back();
  });
  if (total > max_bytes_) {
    std::ranges::sort_heap(oldest, before);
    for (const Listed& entry : oldest) {
      if (total <= max_bytes_ / 4 * 3) break;
      if (unlinkat(folder, entry.name.c_str(), 0) != 0) continue;
      total -= entry.bytes;
      evicted_.fetch_add(1);
    }
  }
  bytes_.store(total);
}

std::string default_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string own = variable("UFUSE_CACHE_DIR"); !own.empty()) {
    char here[PATH_MAX];
    return own.starts_with('/') || !getcwd(here, sizeof here) ? own : std::string(here) + "/" + own;
  }
  // The XDG specification: a path that is not absolute is to be ignored.
  if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/'))
    return xdg + "/ufuse";
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return home + "/.cache/ufuse";
  return {};
}

std::uint64_t default_cache_bytes() {
  return Environment::now().count("UFUSE_CACHE_SIZE", 256, std::uint64_t{1} << 40) << 20;
}

}  // namespace ufuse::codegen
