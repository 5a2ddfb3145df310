// Does the disk cache give back what was put in, and never anything else?
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <csignal>
#include <string_view>

#include "codegen/jit/cache.h"
#include "codegen/jit/hash.h"
#include "codegen/jit/work_folder.h"
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
  REQUIRE(store.put("key", payload));
  CHECK(store.read("key") == payload);
  CHECK(EntryStore(folder / "deep/cache", kMuch).read("key") == payload);
  CHECK(fs::status(store.path_of("key")).permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write));
  CHECK_FALSE(store.read("another key").has_value());
  CHECK(store.rejected() == 0);
  REQUIRE(store.put("key", "new"));
  CHECK(store.read("key") == "new");
  CHECK(files_in(folder / "deep/cache", "").size() == 1);  // no temporary file is left
}

TEST_CASE("cache: one process makes an entry at a time") {
  const TemporaryFolder folder;
  const EntryStore one(folder / "cache", 1 << 20), other(folder / "cache", 1 << 20);
  const std::string text = "a key", text_of_another = "another key";
  const CacheKey key(text), another(text_of_another);
  std::optional<EntryStore::Claim> claim = one.claim(key);
  CHECK(claim);
  CHECK_FALSE(other.claim(key));
  CHECK(other.claim(another));
  const pid_t child = fork();  // it has the same files open
  if (child == 0) {
    pause();
    _exit(0);
  }
  claim.reset();
  CHECK(other.claim(key));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(one.content().files == 0);
  const EntryStore unused("", 1 << 20);
  const auto mine = unused.claim(key), too = unused.claim(key);
  CHECK(mine);
  CHECK(too);
}

TEST_CASE("cache: a damaged entry is removed, and only that one") {
  const TemporaryFolder folder;
  const std::string payload(1000, 'x');
  const auto damaged = [&](auto&& damage) {
    EntryStore store(folder / "cache", kMuch);
    REQUIRE((store.put("other", "sound") && store.put("key", payload)));
    const fs::path other = store.path_of("other"), path = store.path_of("key");
    std::string text = *read_file(path);
    damage(text);
    REQUIRE(write_file(path, text));
    CHECK_FALSE(store.read("key").has_value());
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
    REQUIRE(store.put("kEy", payload));
    text = *read_file(store.path_of("kEy"));
  });
}

TEST_CASE("cache: an entry that cannot be read is left alone") {
  if (geteuid() == 0) return;  // root reads everything
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", kMuch);
  REQUIRE(store.put("key", "payload"));
  const fs::path path = store.path_of("key");
  chmod(path.c_str(), 0);
  CHECK_FALSE(store.read("key").has_value());
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
  CHECK(contains(note(folder / "open"), "remove it"));
  CHECK(fs::is_empty(folder / "open"));
  chmod((folder / "open").c_str(), 0700);
  CHECK(note(folder / "open").empty());

  std::ofstream(folder / "file") << "text";
  CHECK(contains(note(folder / "file"), "not a folder"));
  CHECK(contains(note(folder / "file/below"), "/file is not a folder"));

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
  for (const char* name : {"cache/mine.txt", "cache/ufuse-mine.so"})
    std::ofstream(folder / name) << std::string(200'000, 'y');
  for (int i = 0; i < 129; ++i) {
    REQUIRE(store.put("key " + std::to_string(i), payload));
    fs::last_write_time(store.path_of("key " + std::to_string(i)),
                        fs::file_time_type::clock::now() - std::chrono::seconds(1000 - i));
    store.make_room();
    if (i == 80) CHECK(store.read("key 0").has_value());
    const CacheContent content = store.content();
    CHECK(content.bytes <= 100'000);
    if (i > 80) CHECK(content.bytes >= 70'000);
  }
  CHECK(store.evicted() > 0);
  CHECK(store.read("key 0").has_value());
  CHECK_FALSE(store.read("key 1").has_value());
  CHECK(store.read("key 128").has_value());
  CHECK_FALSE(store.put("large", std::string(100'000, 'x')));
  const CacheContent before = store.content(), removed = store.clear();
  CHECK(removed.files == before.files);
  CHECK(removed.bytes == before.bytes);
  CHECK(store.content().files == 0);
  for (const char* name : {"cache/mine.txt", "cache/ufuse-mine.so"})
    CHECK(fs::exists(folder / name));
}

TEST_CASE("cache: a full disk keeps nothing and breaks nothing") {
  const TemporaryFolder folder;
  REQUIRE(EntryStore(folder / "cache", kMuch).put("old", "sound"));
  CHECK(failure_in_child([&] {  // that may write 4 KiB per file
          signal(SIGXFSZ, SIG_IGN);
          const rlimit small{4096, 4096};
          setrlimit(RLIMIT_FSIZE, &small);
          EntryStore store(folder / "cache", kMuch);
          bool right = !store.put("old", std::string(10'000, 'x')) &&
                       store.read("old") == "sound" && files_in(folder / "cache", "").size() == 1;
          try {
            Jit(config(folder / "cache")).get(add_kernel(1) + "//" + std::string(5000, '-'));
            right = false;
          } catch (const CompileError&) {
          }
          return right;
        }) == "");
}

TEST_CASE("cache: who puts an entry removes none, and few are removed at once") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", 10'000);
  for (int i = 0; i < 100; ++i)
    REQUIRE(store.put("key " + std::to_string(i), std::string(1000, 'x')));
  CHECK(store.evicted() == 0);
  store.make_room();
  CHECK(store.evicted() > 0);
  CHECK(store.evicted() < 50);
  for (int i = 0; i < 20; ++i) store.make_room();
  CHECK(store.content().bytes <= 10'000);
}

TEST_CASE("cache: temporary files of killed processes go") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", kMuch);
  std::ofstream(folder / "cache/ufuse-tmp-old") << "x";
  std::ofstream(folder / "cache/ufuse-tmp-new") << "x";
  fs::last_write_time(folder / "cache/ufuse-tmp-old",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  store.put("key", "payload");
  store.make_room();
  CHECK_FALSE(fs::exists(folder / "cache/ufuse-tmp-old"));
  CHECK(fs::exists(folder / "cache/ufuse-tmp-new"));
}

// What stands under an entry's name, and is no file of ours that others cannot write.
TEST_CASE("cache: only files of ours are entries") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", kMuch);
  REQUIRE(store.put("key", "payload"));
  const std::string path = store.path_of("key"), kept = *read_file(path);
  const std::string elsewhere = folder / "elsewhere";
  REQUIRE(write_file(elsewhere, kept));
  const auto planted = [&](const auto& plant) {
    unlink(path.c_str());
    plant();
    CHECK(store.content().foreign == 1);
    CHECK_FALSE(store.read("key").has_value());  // nor waited for
    REQUIRE(store.put("key", "payload"));
    CHECK(store.read("key") == "payload");
    CHECK(store.content().foreign == 0);
    CHECK(read_file(elsewhere) == kept);
  };
  planted([&] { REQUIRE(mkfifo(path.c_str(), 0600) == 0); });
  planted([&] { REQUIRE(symlink(elsewhere.c_str(), path.c_str()) == 0); });
  planted([&] { REQUIRE(symlink("/dev/zero", path.c_str()) == 0); });
  planted([&] { REQUIRE(link(elsewhere.c_str(), path.c_str()) == 0); });
  planted([&] {
    sockaddr_un address{AF_UNIX, {}};
    REQUIRE(path.size() < sizeof address.sun_path);
    path.copy(address.sun_path, path.size());
    const Fd made(socket(AF_UNIX, SOCK_STREAM, 0));
    REQUIRE(bind(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  });
  planted([&] {
    REQUIRE(write_file(path, kept));
    chmod(path.c_str(), 0620);
  });
  if (geteuid() != 0) return;  // only root gives files away
  planted([&] {
    REQUIRE(write_file(path, kept));
    REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
  });
  planted([&] { REQUIRE(mknod(path.c_str(), S_IFCHR | 0600, makedev(1, 5)) == 0); });
}

TEST_CASE("cache: the folder that was opened stays the folder") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", kMuch);
  REQUIRE(store.put("key", "ours"));
  fs::rename(folder / "cache", folder / "away");
  EntryStore other(folder / "cache", kMuch);
  REQUIRE((other.put("key", "theirs") && other.put("another key", "theirs")));
  CHECK(store.read("key") == "ours");
  CHECK_FALSE(store.read("another key").has_value());
  REQUIRE(store.put("new", "ours"));
  CHECK_FALSE(other.read("new").has_value());
}

TEST_CASE("cache: a descriptor that the program closed is nobody's folder") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "mine");
  auto store = std::make_unique<EntryStore>(folder / "cache", kMuch);
  REQUIRE(store->put("key", "payload"));
  int number = -1;
  for (int fd = 3; fd < 1000 && number < 0; ++fd) {
    struct stat info {};
    struct stat wanted {};
    stat((folder / "cache").c_str(), &wanted);
    if (fstat(fd, &info) == 0 && info.st_ino == wanted.st_ino && info.st_dev == wanted.st_dev)
      number = fd;
  }
  REQUIRE(number >= 0);
  REQUIRE(dup2(Fd(open((folder / "mine").c_str(), O_RDONLY)).get(), number) == number);
  CHECK_FALSE(store->read("key").has_value());
  CHECK_FALSE(store->put("key", "payload"));
  store.reset();
  CHECK(fs::is_empty(folder / "mine"));
  CHECK(close(number) == 0);
}

TEST_CASE("cache: a size of 0 keeps nothing") {
  const TemporaryFolder folder;
  EntryStore store(folder / "cache", 0);
  CHECK(contains(store.note(), "UFUSE_CACHE_SIZE is 0"));
  CHECK_FALSE(store.put("key", "payload"));
  CHECK_FALSE(fs::exists(folder / "cache"));
}

TEST_CASE("cache: who can replace a folder on the way decides what is loaded") {
  const TemporaryFolder folder;
  const auto note = [&](const fs::path& path) { return EntryStore(path, kMuch).note(); };
  const fs::path parent = folder / "parent";
  fs::create_directories(parent / "inner");
  CHECK(note(parent / "inner/cache").empty());
  for (const mode_t mode : {0777, 0757}) {
    chmod(parent.c_str(), mode);
    CHECK(contains(note(parent / "inner/cache"), "can be written by other users"));
  }
  chmod(parent.c_str(), 01777);  // as /tmp is
  CHECK(note(parent / "inner/cache").empty());
  CHECK(note(parent / "another").empty());
  chmod(parent.c_str(), 0755);
  CHECK(note(parent / "inner/cache").empty());
  CHECK(note(parent.string() + "//./inner/../inner/cache/").empty());

  fs::create_directory_symlink(parent / "inner", folder / "link");
  CHECK(note(folder / "link/cache").empty());
  fs::create_directory_symlink("parent/inner", folder / "relative");
  CHECK(note(folder / "relative/cache").empty());
  fs::create_symlink(folder / "loop", folder / "loop");
  CHECK_FALSE(note(folder / "loop/cache").empty());
  chmod(parent.c_str(), 0777);
  CHECK(contains(note(folder / "link/cache"), "can be written by other users"));
  chmod(parent.c_str(), 0755);

  if (geteuid() != 0) return;  // only root gives folders away
  REQUIRE(lchown((folder / "link").c_str(), 12345, 12345) == 0);
  CHECK(contains(note(folder / "link/cache"), "another user's link"));
  REQUIRE(chown(parent.c_str(), 0, 12345) == 0);
  chmod(parent.c_str(), 0775);
  CHECK(contains(note(parent / "inner/cache"), "can be written by other users"));
  chmod(parent.c_str(), 0755);
  REQUIRE(chown(parent.c_str(), 12345, 12345) == 0);
  CHECK(contains(note(parent / "inner/cache"), "belongs to another user"));
}

// Who was killed in a compile left a folder; a folder in use has its owner's lock.
TEST_CASE("jit: folders of killed processes are removed, those in use are not") {
  const TemporaryFolder folder;
  const WorkFolder used(folder.path());
  REQUIRE(used);
  fs::create_directories(folder / "ufuse-work-left/deeper");
  std::ofstream(folder / "ufuse-work-left/deeper/kernel.s") << "text";
  std::ofstream(folder / "ufuse-work-file") << "text";
  fs::create_directory_symlink(folder / "mine", folder / "ufuse-work-link");
  fs::create_directory_symlink(folder / "mine", folder / "ufuse-work-left/link");
  fs::create_directories(folder / "mine/inner");
  if (geteuid() == 0) {
    fs::create_directory(folder / "ufuse-work-theirs");
    REQUIRE(chown((folder / "ufuse-work-theirs").c_str(), 12345, 12345) == 0);
  }
  remove_left_work_folders(folder.path());
  CHECK_FALSE(fs::exists(folder / "ufuse-work-left"));
  CHECK(fs::is_directory(used.path()));
  CHECK(fs::exists(folder / "mine/inner"));
  CHECK(fs::exists(folder / "ufuse-work-file"));
  CHECK((geteuid() != 0 || fs::exists(folder / "ufuse-work-theirs")));

  chmod(folder.path().c_str(), 0777);
  CHECK(contains(WorkFolder(folder.path()).trouble(), "can be written by other users"));
  chmod(folder.path().c_str(), 0700);
}

// The loader compares file names and inode numbers, and both come again.
TEST_CASE("jit: what is loaded is what was asked for") {
  const TemporaryFolder folder;
  std::vector<std::string> objects, marks;
  {
    Jit jit(config(folder / "cache"));
    for (int i = 0; i < 3; ++i) jit.get(add_kernel(i));
  }
  for (const fs::path& path : files_in(folder / "cache")) {
    const std::string text = *read_file(path);
    const std::string mark = path.stem().string().substr(std::string("ufuse-").size());
    if (text.find("ufuse_kernel") == text.npos) continue;  // what was learned of the compiler
    objects.push_back(text);
    marks.push_back(mark);
  }
  REQUIRE(objects.size() == 3);
  const Library one(objects[0], marks[0], {});
  CHECK_THROWS_WITH_AS(Library(objects[0], marks[1], {}), doctest::Contains("other code"),
                       CompileError);

  // Many are loaded, one after the other by the same number of a descriptor, and all stay.
  std::vector<std::shared_ptr<const Kernel>> kernels;
  for (int round = 0; round < 3; ++round) {
    Jit jit(config(folder / "cache"));
    for (int i = 0; i < 3; ++i) {
      const Built built = jit.get(add_kernel(i));
      CHECK(built.origin == Origin::Disk);
      kernels.push_back(built.kernel);
    }
  }
  for (std::size_t i = 0; i < kernels.size(); ++i)
    CHECK(adds(*kernels[i], static_cast<int>(i % 3)));
}

TEST_CASE("jit: without /proc kernels are loaded from files") {
  const TemporaryFolder folder;
  CHECK(failure_in_child([&] {
          if (unshare(CLONE_NEWNS) != 0 ||
              mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
              mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
            return true;  // not allowed here
          for (const Origin origin : {Origin::Compiled, Origin::Disk}) {
            Jit jit(config(folder / "cache"));
            for (int i = 0; i < 2; ++i) {
              const Built built = jit.get(add_kernel(i));
              if (built.origin != origin || !adds(*built.kernel, i, 1))
                throw DoesNotHold("kernel " + std::to_string(i) + ", from " +
                                  std::to_string(static_cast<int>(built.origin)));
            }
          }
          return true;
        }) == "");
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
