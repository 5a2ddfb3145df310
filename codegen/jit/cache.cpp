// The files of the disk cache: their layout, when one is trusted, and who makes room.
#include "codegen/jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codegen/jit/hash.h"

namespace ufuse::codegen {
namespace {

namespace fs = std::filesystem;

// An entry is payload, key, trailer. The trailer stands at the end because a shared object must
// begin with its own header.
struct Trailer {
  char magic[8];
  std::uint64_t version;
  std::uint64_t payload_bytes, key_bytes;
  Hash128 checksum;  // of payload and key
};
constexpr char kMagic[8] = {'u', 'f', 'u', 's', 'e', 'k', 'r', 'n'};
constexpr std::uint64_t kVersion = 1;
constexpr std::string_view kPrefix = "ufuse-", kSuffix = ".so", kTemporary = "ufuse-tmp-";

std::string reason(const fs::path& folder, const std::string& what) {
  return folder.string() + ": " + what;
}

// Why a folder cannot be used; empty when it can. Makes it when it is missing.
std::string folder_trouble(const fs::path& folder) {
  if (folder.empty())
    return "no folder is known (neither UFUSE_CACHE_DIR, XDG_CACHE_HOME nor HOME)";
  if (!folder.is_absolute()) return reason(folder, "is not an absolute path");
  std::error_code error;
  fs::create_directories(folder.parent_path(), error);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return reason(folder, std::strerror(errno));
  struct stat info;
  if (lstat(folder.c_str(), &info) != 0) return reason(folder, std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return reason(folder, "is not a folder");
  if (info.st_uid != geteuid()) return reason(folder, "belongs to another user");
  if ((info.st_mode & 077) != 0) return reason(folder, "is open to other users (chmod 700 it)");
  if (access(folder.c_str(), W_OK | X_OK) != 0) return reason(folder, std::strerror(errno));
  return {};
}

struct Listed {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type used;
};

}  // namespace

EntryStore::EntryStore(fs::path folder, std::uint64_t max_bytes)
    : folder_(std::move(folder)), note_(folder_trouble(folder_)), max_bytes_(max_bytes) {}

fs::path EntryStore::path_of(std::string_view key) const {
  return folder_ / (std::string(kPrefix) + hash128(key).hex() + std::string(kSuffix));
}

std::optional<std::string> EntryStore::sound_payload(const fs::path& path, std::string_view key) {
  std::optional<std::string> text = read_file(path);
  if (!text) return std::nullopt;  // absent, or unreadable just now: not the entry's fault
  Trailer trailer;
  const std::string_view all(*text);
  bool sound = false;
  if (all.size() >= sizeof trailer) {
    const std::string_view body = all.substr(0, all.size() - sizeof trailer);
    std::memcpy(&trailer, all.data() + body.size(), sizeof trailer);
    sound = std::memcmp(trailer.magic, kMagic, sizeof kMagic) == 0 && trailer.version == kVersion &&
            trailer.key_bytes == key.size() && trailer.payload_bytes <= body.size() &&
            trailer.payload_bytes + trailer.key_bytes == body.size() &&
            body.substr(trailer.payload_bytes) == key && trailer.checksum == hash128(body);
  }
  if (!sound) {
    rejected_.fetch_add(1);
    unlink(path.c_str());
    return std::nullopt;
  }
  text->resize(trailer.payload_bytes);
  return text;
}

std::optional<fs::path> EntryStore::find(std::string_view key) {
  if (!usable()) return std::nullopt;
  fs::path path = path_of(key);
  if (!sound_payload(path, key)) return std::nullopt;
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now: the last to be evicted
  return path;
}

std::optional<std::string> EntryStore::read(std::string_view key) {
  if (!usable()) return std::nullopt;
  return sound_payload(path_of(key), key);
}

std::optional<fs::path> EntryStore::put(std::string_view key, std::string_view payload) {
  if (!usable()) return std::nullopt;
  std::string entry;
  entry.reserve(payload.size() + key.size() + sizeof(Trailer));
  entry.append(payload).append(key);
  Trailer trailer{};
  std::memcpy(trailer.magic, kMagic, sizeof kMagic);
  trailer.version = kVersion;
  trailer.payload_bytes = payload.size();
  trailer.key_bytes = key.size();
  trailer.checksum = hash128(entry);
  entry.append(reinterpret_cast<const char*>(&trailer), sizeof trailer);

  const fs::path path = path_of(key);
  std::string temporary = (folder_ / (std::string(kTemporary) + "XXXXXX")).string();
  const int fd = mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  close(fd);
  if (!write_file(temporary, entry)) return std::nullopt;
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    unlink(temporary.c_str());
    return std::nullopt;
  }
  if (puts_.fetch_add(1) % 64 == 0) trim();
  return path;
}

// Removes the least recently used entries until three quarters of the cap are left, and temporary
// files that a killed process left behind. Only files with names of ours are touched.
void EntryStore::trim() {
  std::error_code error;
  std::vector<Listed> entries;
  std::uint64_t total = 0;
  const auto an_hour_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::error_code ignored;
    if (!name.starts_with(kPrefix) || !it->is_regular_file(ignored)) continue;
    const auto used = it->last_write_time(ignored);
    if (ignored) continue;
    const std::uint64_t bytes = it->file_size(ignored);
    if (ignored) continue;
    if (name.starts_with(kTemporary)) {
      if (used < an_hour_ago) fs::remove(it->path(), ignored);
      continue;
    }
    entries.push_back({it->path(), bytes, used});
    total += bytes;
  }
  if (total <= max_bytes_) return;
  std::ranges::sort(entries, {}, &Listed::used);
  for (const Listed& entry : entries) {
    if (total <= max_bytes_ / 4 * 3) break;
    if (unlink(entry.path.c_str()) != 0) continue;
    total -= entry.bytes;
    evicted_.fetch_add(1);
  }
}

fs::path default_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string own = variable("UFUSE_CACHE_DIR"); !own.empty()) {
    std::error_code error;
    return fs::absolute(own, error);
  }
  // The XDG specification: a path that is not absolute is to be ignored.
  if (const std::string xdg = variable("XDG_CACHE_HOME"); xdg.starts_with('/'))
    return fs::path(xdg) / "ufuse";
  if (const std::string home = variable("HOME"); home.starts_with('/'))
    return fs::path(home) / ".cache" / "ufuse";
  return {};
}

std::uint64_t default_cache_bytes() {
  std::uint64_t mebibytes = 256;
  if (const char* text = std::getenv("UFUSE_CACHE_SIZE")) {
    std::uint64_t value;
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, value);
    if (parsed.ec == std::errc() && parsed.ptr == end && value < (std::uint64_t{1} << 40))
      mebibytes = value;
  }
  return mebibytes << 20;
}

std::optional<std::string> read_file(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  std::string text;
  struct stat info;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode))
    text.reserve(static_cast<std::size_t>(info.st_size));
  char buffer[1 << 14];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR))
    if (got > 0) text.append(buffer, static_cast<std::size_t>(got));
  close(fd);
  if (got < 0) return std::nullopt;
  return text;
}

bool write_file(const fs::path& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  bool written = true;
  while (written && !text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count >= 0)
      text.remove_prefix(static_cast<std::size_t>(count));
    else
      written = errno == EINTR;
  }
  written = close(fd) == 0 && written;
  if (!written) unlink(path.c_str());
  return written;
}

}  // namespace ufuse::codegen
