// Does the disk cache give back what was put in, and never anything else?
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <string_view>

#include "codegen/jit/cache.h"
#include "codegen/jit/hash.h"
#include "ir/support/error.h"
#include "tests/cpp/codegen/jit_tools.h"

namespace ufuse::codegen {
namespace {

namespace fs = std::filesystem;
using namespace testing;

constexpr std::uint64_t kMuch = 1 << 30;

TEST_CASE("hash: FNV-1a's published values") {
  CHECK(hash128("").hex() == "6c62272e07bb014262b821756295c58d");
  CHECK(hash128("a").hex() == "d228cb696f1a8caf78912b704e4a8964");
}

TEST_CASE("cache: entries come back whole") {
  const TemporaryFolder folder;
  EntryStore store(folder / "deep/cache", kMuch);
  REQUIRE(store.usable());
  CHECK(fs::status(folder / "deep/cache").permissions() == fs::perms::owner_all);
  const std::string payload("binary\0text", 11);
  CHECK_FALSE(store.read("key").has_value());
  REQUIRE(store.put("key", payload).has_value());
  CHECK(store.read("key") == payload);
  CHECK(EntryStore(folder / "deep/cache", kMuch).read("key") == payload);
  const auto file = store.find("key");
  REQUIRE(file.has_value());
  CHECK(read_file(*file)->starts_with(payload));
  CHECK_FALSE(store.read("another key").has_value());
  CHECK(store.rejected() == 0);
  REQUIRE(store.put("key", "new").has_value());
  CHECK(store.read("key") == "new");
  CHECK(files_in(folder / "deep/cache", "").size() == 1);  // no temporary file is left
}

TEST_CASE("cache: a damaged entry is removed, and only that one") {
  const TemporaryFolder folder;
  const std::string payload(1000, 'x');
  const auto damaged = [&](auto&& damage) {
    EntryStore store(folder / "cache", kMuch);
    const fs::path other = *store.put("other", "sound");
    const fs::path path = *store.put("key", payload);
    std::string text = *read_file(path);
    damage(text);
    REQUIRE(write_file(path, text));
    CHECK_FALSE(store.find("key").has_value());
    CHECK(store.rejected() == 1);
    CHECK_FALSE(fs::exists(path));
    CHECK(fs::exists(other));
    CHECK(store.read("other") == "sound");
  };
  damaged([](std::string& text) { text.clear(); });
  damaged([](std::string& text) { text.resize(10); });
  damaged([](std::string& text) { text.resize(text.size() - 1); });
  damaged([](std::string& text) { text[500] ^= 1; });              // payload
  damaged([](std::string& text) { text[1001] ^= 1; });             // key
  damaged([](std::string& text) { text[text.size() - 1] ^= 1; });  // checksum
  damaged([](std::string& text) { text += "x"; });
  // Another key's entry under this key's name: what a collision of hashes would look like.
  damaged([&](std::string& text) {
    EntryStore store(folder / "elsewhere", kMuch);
    text = *read_file(*store.put("kEy", payload));
  });
}

TEST_CASE("cache: an entry that cannot be read is left alone") {
  if (geteuid() == 0) return;  // root reads everything
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", kMuch);
  const fs::path path = *store.put("key", "payload");
  chmod(path.c_str(), 0);
  CHECK_FALSE(store.find("key").has_value());
  CHECK(fs::exists(path));
  CHECK(store.rejected() == 0);
}

TEST_CASE("cache: a folder that is not ours alone is not used") {
  const TemporaryFolder folder;
  const auto note = [&](const fs::path& path) { return EntryStore(path, kMuch).note(); };
  CHECK(contains(note(""), "no folder is known"));
  CHECK(contains(note("relative/path"), "not an absolute path"));

  fs::create_directory(folder / "open");
  chmod((folder / "open").c_str(), 0755);
  CHECK(contains(note(folder / "open"), "open to other users"));
  CHECK(fs::is_empty(folder / "open"));
  chmod((folder / "open").c_str(), 0700);
  CHECK(note(folder / "open").empty());

  std::ofstream(folder / "file") << "text";
  CHECK(contains(note(folder / "file"), "not a folder"));
  CHECK(contains(note(folder / "file/below"), "ot a directory"));

  fs::create_directory_symlink(folder / "open", folder / "link");
  CHECK(contains(note(folder / "link"), "not a folder"));

  if (geteuid() == 0) {
    fs::create_directory(folder / "foreign");
    chmod((folder / "foreign").c_str(), 0700);
    REQUIRE(chown((folder / "foreign").c_str(), 12345, 12345) == 0);
    CHECK(contains(note(folder / "foreign"), "another user"));
  } else {
    CHECK_FALSE(note("/root/ufuse").empty());
  }
}

TEST_CASE("cache: the least recently used entries make room") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", 100'000);
  const std::string payload(1000, 'x');
  std::ofstream(folder / "cache/mine.txt") << std::string(200'000, 'y');
  for (int i = 0; i < 129; ++i) {  // it is looked at now and then only: at the 1st, 65th and 129th
    REQUIRE(store.put("key " + std::to_string(i), payload).has_value());
    const fs::path path = *store.find("key " + std::to_string(i));
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(1000 - i));
    if (i == 127) CHECK(store.find("key 0").has_value());
  }
  CHECK(store.evicted() > 0);
  CHECK(store.read("key 0").has_value());
  CHECK_FALSE(store.read("key 1").has_value());
  CHECK(store.read("key 128").has_value());
  CHECK(fs::exists(folder / "cache/mine.txt"));
  std::uint64_t total = 0;
  for (const fs::path& path : files_in(folder / "cache")) total += fs::file_size(path);
  CHECK(total <= 100'000);
  CHECK(total >= 60'000);
}

TEST_CASE("cache: a full disk keeps nothing and breaks nothing") {
  const TemporaryFolder folder;
  REQUIRE(EntryStore(folder / "cache", kMuch).put("old", "sound").has_value());
  const pid_t child = fork();
  if (child == 0) {  // in a process that may write 4 KiB per file
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, 4096};
    setrlimit(RLIMIT_FSIZE, &small);
    EntryStore store(folder / "cache", kMuch);
    bool right = !store.put("old", std::string(10'000, 'x')) && store.read("old") == "sound" &&
                 files_in(folder / "cache", "").size() == 1;
    try {
      Jit(config(folder / "cache")).get(add_kernel(1) + "//" + std::string(5000, '-'));
      right = false;
    } catch (const CompileError&) {
    }
    _exit(right ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("cache: temporary files of killed processes go") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", kMuch);
  std::ofstream(folder / "cache/ufuse-tmp-old") << "x";
  std::ofstream(folder / "cache/ufuse-tmp-new") << "x";
  fs::last_write_time(folder / "cache/ufuse-tmp-old",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  store.put("key", "payload");
  CHECK_FALSE(fs::exists(folder / "cache/ufuse-tmp-old"));
  CHECK(fs::exists(folder / "cache/ufuse-tmp-new"));
}

TEST_CASE("jit: the next process finds its kernels on disk") {
  const TemporaryFolder folder;
  {
    Jit jit(config(folder / "cache"));
    CHECK(jit.get(add_kernel(1)).origin == Origin::Compiled);
    CHECK(jit.stats().cache_dir == (folder / "cache").string());
  }
  Jit jit(config(folder / "cache"));
  const Built built = jit.get(add_kernel(1));
  CHECK(built.origin == Origin::Disk);
  CHECK(adds(*built.kernel, 1));
  CHECK(jit.stats().disk_hits == 1);
  JitConfig other = config(folder / "cache");
  other.preamble += "// a newer version\n";
  CHECK(Jit(other).get(add_kernel(1)).origin == Origin::Compiled);
  JitConfig another_compiler = config(folder / "cache");
  another_compiler.compiler = folder.script("another-g++", "exec g++ \"$@\"");
  CHECK(Jit(another_compiler).get(add_kernel(1)).origin == Origin::Compiled);
}

TEST_CASE("jit: damaged entries are built anew") {
  const TemporaryFolder folder;
  Jit(config(folder / "cache")).get(add_kernel(1));
  for (const fs::path& path : files_in(folder / "cache")) fs::resize_file(path, 100);
  Jit jit(config(folder / "cache"));
  const Built built = jit.get(add_kernel(1));
  CHECK(built.origin == Origin::Compiled);
  CHECK(adds(*built.kernel, 1));
  CHECK(jit.stats().disk_rejected == 2);  // the kernel's, and what was known of the compiler
  CHECK(Jit(config(folder / "cache")).get(add_kernel(1)).origin == Origin::Disk);
}

TEST_CASE("jit: without a cache kernels live in this process only") {
  const TemporaryFolder folder;
  for (const fs::path& cache : {fs::path(), fs::path("/proc/ufuse"), fs::path("/dev/null/ufuse")}) {
    CAPTURE(cache);
    Jit jit(config(cache));
    const Built built = jit.get(add_kernel(1));
    CHECK(built.origin == Origin::Compiled);
    CHECK(adds(*built.kernel, 1));
    CHECK(jit.stats().cache_dir.empty());
    CHECK_FALSE(jit.stats().cache_note.empty());
  }
}

TEST_CASE("jit: a temporary folder that is not there is passed by") {
  const TemporaryFolder folder;
  const char* before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", "/no/such/folder", 1);
  Jit jit(config(folder / "cache"));
  CHECK(adds(*jit.get(add_kernel(1)).kernel, 1));
  if (before)
    setenv("TMPDIR", kept.c_str(), 1);
  else
    unsetenv("TMPDIR");
}

}  // namespace
}  // namespace ufuse::codegen
