// What survives the process?
//
// A folder of entries, each a file that holds a payload (machine code, or what was learned of a
// compiler) and the whole key it was made for. An entry is written under a temporary name and
// renamed, carries a version and a checksum, and its key is compared in full, so a damaged file or
// a collision of hashes is never used. Nothing here throws: a cache that cannot be used finds
// nothing and keeps nothing. Used by jit.cpp and toolchain.cpp. It does not know what a payload
// means.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace ufuse::codegen {

class EntryStore {
 public:
  // `folder` empty: unused. A folder that is missing is made with mode 0700; one that is not ours
  // alone is not used.
  EntryStore(std::filesystem::path folder, std::uint64_t max_bytes);

  bool usable() const { return note_.empty(); }
  const std::string& note() const { return note_; }  // why it is not used
  const std::filesystem::path& folder() const { return folder_; }

  // The file of a sound entry. It begins with the payload, so it can be loaded as it stands.
  std::optional<std::filesystem::path> find(std::string_view key);
  std::optional<std::string> read(std::string_view key);  // its payload

  // Keeps a payload and returns the entry's file.
  std::optional<std::filesystem::path> put(std::string_view key, std::string_view payload);

  std::uint64_t rejected() const { return rejected_.load(); }
  std::uint64_t evicted() const { return evicted_.load(); }

 private:
  std::filesystem::path path_of(std::string_view key) const;
  std::optional<std::string> sound_payload(const std::filesystem::path& path, std::string_view key);
  void trim();

  std::filesystem::path folder_;
  std::string note_;
  const std::uint64_t max_bytes_;
  std::atomic<std::uint64_t> rejected_{0}, evicted_{0}, puts_{0};
};

// $UFUSE_CACHE_DIR, $XDG_CACHE_HOME/ufuse or ~/.cache/ufuse; empty when none is known.
std::filesystem::path default_cache_folder();
// $UFUSE_CACHE_SIZE in MiB, or 256 MiB.
std::uint64_t default_cache_bytes();

// A file's whole text, or nothing.
std::optional<std::string> read_file(const std::filesystem::path& path);
// False when it could not be written in full; the file is then removed.
bool write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace ufuse::codegen
