// What survives the process?
//
// A folder of entries, each a file that holds a payload (machine code, or what was learned of a
// compiler) and the whole key it was made for. An entry is written under a temporary name and
// renamed, carries a version and a checksum, and its key is compared in full, so a damaged file or
// a collision of hashes is never used. The folder is opened once, and only files of ours that no
// other user can write are read. Nothing here throws: a cache that cannot be used finds nothing and
// keeps nothing. Used by jit.cpp and toolchain.cpp. It does not know what a payload means.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/jit/files.h"
#include "codegen/jit/hash.h"

namespace ufuse::codegen {

// What an entry is made for, and its hash, which takes a while where the text is long.
struct CacheKey {
  template <std::convertible_to<std::string_view> Text>
  CacheKey(const Text& whole) : text(whole), hash(hash128(text)) {}
  std::string_view text;  // of a string that outlives the key
  Hash128 hash;
};

struct CacheContent {
  std::uint64_t files = 0, bytes = 0;
  std::uint64_t foreign = 0;  // among them: files that other users own or can write, never used
};

class EntryStore {
 public:
  // `folder` empty or `max_bytes` 0: unused. A folder that is missing is made with mode 0700; one
  // that is not ours alone is not used.
  EntryStore(std::string folder, std::uint64_t max_bytes);
  ~EntryStore();

  bool usable() const { return note_.empty(); }
  const std::string& note() const { return note_; }  // why it is not used
  const std::string& folder() const { return folder_; }

  // The payload of a sound entry, which is from now on the last to be evicted.
  std::optional<std::string> read(const CacheKey& key);
  // False where it could not be kept.
  bool put(const CacheKey& key, std::string_view payload);
  // That this process makes an entry, and no other one of those that share the folder meanwhile.
  // It ends with the object, or with the process and its forked children.
  class Claim {
   public:
    explicit Claim(Fd file = Fd()) : file_(std::move(file)) {}
    Claim(Claim&&) = default;
    Claim& operator=(Claim&&) = default;
    ~Claim();

   private:
    Fd file_;  // holds a lock
  };
  // Unset: another process makes it. Where the folder cannot tell, everybody does.
  std::optional<Claim> claim(const CacheKey& key) const;
  // Removes some of the entries that were used longest ago where they exceed the cap. To be called
  // after entries were put, where nobody waits: thousands of files are looked at now and then, and
  // on some disks removing one takes milliseconds.
  void make_room();
  std::string path_of(const CacheKey& key) const;

  // All files that this class or the Jit ever makes in the folder; how many there are, or were.
  CacheContent content() const;
  CacheContent clear();

  std::uint64_t rejected() const { return rejected_.load(); }
  std::uint64_t evicted() const { return evicted_.load(); }

 private:
  int descriptor() const;
  template <class Visit>
  void for_each_file(const Visit& visit) const;
  void reject(const std::string& name);
  void trim();

  std::string folder_, note_;
  const std::uint64_t max_bytes_;
  Fd opened_;
  dev_t device_ = 0;  // of the folder opened
  ino_t inode_ = 0;
  std::atomic<std::uint64_t> rejected_{0}, evicted_{0}, puts_{0};
  std::atomic<std::uint64_t> counted_{0};  // one more than `puts_` was when the folder was counted
  std::atomic<std::uint64_t> bytes_{0};    // in the folder, as far as this process knows
};

// $UFUSE_CACHE_DIR, $XDG_CACHE_HOME/ufuse or ~/.cache/ufuse; empty when none is known.
std::string default_cache_folder();
// $UFUSE_CACHE_SIZE in MiB, or 256 MiB.
std::uint64_t default_cache_bytes();

}  // namespace ufuse::codegen
