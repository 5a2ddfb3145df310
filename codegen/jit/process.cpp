// posix_spawn, pipes and deadlines. Each program has a process group of its own, so that a kill
// reaches what it started. How they ended is known or not: it is never guessed.
//
// A pipeline has a thread of its own, and that thread a table of open files of its own, so that no
// program is given what this process has open, not even until it runs.
#include "codegen/jit/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "codegen/jit/files.h"

extern char** environ;

namespace ufuse::codegen {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What is kept of the output, and how much of it is more than any compiler has to say.
constexpr std::size_t kMaxOutput = 256 << 10, kFlood = 16 << 20;

struct Pipe {
  Fd read, write;
};

// Above the numbers that a child has for its own use, which are free in a process without stdin.
Fd moved_up(Fd fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 10)); }

bool make_pipe(Pipe& pipe) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  pipe = {moved_up(Fd(fds[0])), moved_up(Fd(fds[1]))};
  return pipe.read.get() >= 0 && pipe.write.get() >= 0;
}

// Messages in one language, and no library of ours preloaded (a sanitizer would find the compiler's
// own leaks).
std::vector<std::string> child_environment(const Environment& environment,
                                           const std::string& temporary) {
  std::vector<std::string> result = {"LC_ALL=C"};
  if (!temporary.empty()) result.push_back("TMPDIR=" + temporary);
  for (const std::string& text : environment.entries())
    if (!text.starts_with("LC_ALL=") && !text.starts_with("LD_PRELOAD=") &&
        (temporary.empty() || !text.starts_with("TMPDIR=")))
      result.push_back(text);
  return result;
}

// As execve takes it; points into `words`.
std::vector<char*> c_strings(const std::vector<std::string>& words) {
  std::vector<char*> result;
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

// Returns 0 and the process id, or an errno. `report` becomes file descriptor 3, if given.
int spawn(const Argv& argv, const std::vector<std::string>& environment, int in, int out, int err,
          int report, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (in >= 0)
    posix_spawn_file_actions_adddup2(&actions, in, 0);
  else
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  if (report >= 0) posix_spawn_file_actions_adddup2(&actions, report, 3);
  // A group of its own: Ctrl-C in the terminal is for the user's program, and a kill reaches
  // grandchildren too.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&pid, argv[0].c_str(), &actions, &attributes,
                                 c_strings(argv).data(), c_strings(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

int milliseconds_left(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

// Waits until something can be read; Ok then.
Finished::Kind wait_to_read(int fd, Clock::time_point deadline, const Cancel* cancel) {
  constexpr int kLook = 10;  // ms between looks at `cancel`
  for (;;) {
    pollfd awaited = {fd, POLLIN, 0};
    const int ready = poll(&awaited, 1, std::min(milliseconds_left(deadline), kLook));
    if (ready < 0 && errno != EINTR) return Finished::Failed;
    if (cancel && cancel->pulled()) return Finished::Cancelled;
    if (ready > 0) return Finished::Ok;
    if (milliseconds_left(deadline) == 0) return Finished::TimedOut;
  }
}

// Collects what the programs print until all of them have closed the pipe.
Finished::Kind drain(int fd, Clock::time_point deadline, const Cancel* cancel,
                     std::string& output) {
  for (std::size_t total = 0;;) {
    const Finished::Kind kind = wait_to_read(fd, deadline, cancel);
    if (kind != Finished::Ok) return kind;
    char buffer[65536];
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got == 0) return Finished::Ok;
    if (got < 0 && errno != EINTR) return Finished::Failed;
    if (got <= 0) continue;
    const std::size_t room = kMaxOutput - output.size();
    output.append(buffer, std::min(room, static_cast<std::size_t>(got)));
    total += static_cast<std::size_t>(got);
    if (total > kFlood) return Finished::Flooded;
    if (milliseconds_left(deadline) == 0) return Finished::TimedOut;
  }
}

// Waits for a program that closed its output, so it is about to end.
enum class End { Known, Lost, Running };
End wait_for(pid_t pid, Clock::time_point deadline, const Cancel* cancel, int& status) {
  using std::chrono::microseconds;
  for (microseconds pause(20);; pause = std::min(pause * 2, microseconds(5000))) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) return End::Known;
    if (got < 0 && errno != EINTR) return End::Lost;
    if (milliseconds_left(deadline) == 0 || (cancel && cancel->pulled())) return End::Running;
    std::this_thread::sleep_for(pause);
  }
}

// The program run by a shell that does nothing but tell its status: the shell is its parent, and
// nobody else can collect it. The words are handed on as they are.
Argv watched(const Argv& argv) {
  Argv result = {"/bin/sh", "-c", "\"$@\" 3>&-; echo $? >&3", "sh"};
  result.insert(result.end(), argv.begin(), argv.end());
  return result;
}

// What the shell told; nothing when it was killed before.
std::optional<int> told_status(int fd, Clock::time_point deadline, const Cancel* cancel) {
  std::string text;
  if (drain(fd, deadline, cancel, text) != Finished::Ok || !text.ends_with('\n')) return {};
  int status = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), status);
  if (error != std::errc() || *end != '\n') return {};
  return status;
}

bool children_are_ignored() {
  struct sigaction action {};
  return sigaction(SIGCHLD, nullptr, &action) == 0 &&
         (action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0);
}

bool is_program(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

}  // namespace

Environment Environment::now() {
  Environment result;
  for (char** entry = environ; entry && *entry; ++entry) result.entries_.emplace_back(*entry);
  return result;
}

std::string Environment::get(std::string_view name, std::string_view otherwise) const {
  for (const std::string& entry : entries_)
    if (entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  return std::string(otherwise);
}

std::uint64_t Environment::count(std::string_view name, std::uint64_t otherwise,
                                 std::uint64_t end) const {
  const std::string text = get(name);
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  return whole && value < end ? value : otherwise;
}

namespace {

// One run of all programs; each with a shell that tells how it ended, if `watch`.
class Pipeline {
 public:
  Pipeline(Clock::time_point deadline, const Cancel* cancel, bool watch)
      : deadline_(deadline), cancel_(cancel), watch_(watch) {}

  Finished run(const std::vector<Argv>& programs, const std::vector<std::string>& environment) {
    Pipe output;
    if (!make_pipe(output)) return {Finished::NotStarted, 0, std::strerror(errno)};
    start(programs, environment, output.write.get());
    output.write = Fd();
    if (result_.kind == Finished::Ok)
      result_.kind = drain(output.read.get(), deadline_, cancel_, result_.output);
    killed_ = result_.kind != Finished::Ok;
    if (killed_) kill_all();
    for (Child& child : children_) collect(child);
    if (result_.kind == Finished::Ok && result_.status != 0) result_.kind = Finished::Failed;
    return std::move(result_);
  }

 private:
  struct Child {
    pid_t pid;
    Fd report;             // where its shell tells the status
    bool is_over = false;  // the number may be another's by now
  };

  void start(const std::vector<Argv>& programs, const std::vector<std::string>& environment,
             int output) {
    Fd input;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      Pipe next, report;
      const bool last = i + 1 == programs.size();
      if ((!last && !make_pipe(next)) || (watch_ && !make_pipe(report)))
        return not_started(std::strerror(errno));
      pid_t pid;
      const int error = spawn(watch_ ? watched(programs[i]) : programs[i], environment, input.get(),
                              last ? output : next.write.get(), output, report.write.get(), pid);
      if (error != 0) return not_started(programs[i][0] + ": " + std::strerror(error));
      children_.push_back({pid, std::move(report.read)});
      input = std::move(next.read);
    }
  }

  void not_started(std::string why) { result_ = {Finished::NotStarted, 0, std::move(why)}; }

  void kill_all() {
    for (const Child& child : children_)
      if (!child.is_over) kill(-child.pid, SIGKILL);
  }

  void collect(Child& child) {
    std::optional<int> told;
    if (watch_ && !killed_) told = told_status(child.report.get(), deadline_, cancel_);
    int status = 0;
    End end = End::Running;
    if (!killed_) end = wait_for(child.pid, deadline_, cancel_, status);
    if (end == End::Running) {
      if (!killed_) {
        const bool cancelled = cancel_ && cancel_->pulled();
        result_.kind = cancelled ? Finished::Cancelled : Finished::TimedOut;
        kill_all();
      }
      killed_ = true;
      end = wait_for(child.pid, Clock::now() + milliseconds(2000), nullptr, status);
    }
    child.is_over = end != End::Running;
    if (killed_) return;
    // A shell's own status says nothing that it has not told.
    if (!told && (watch_ || end == End::Lost)) {
      result_.kind = Finished::Unknown;
      return;
    }
    const int code =
        told ? *told : (WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
    if (code != 0 && result_.status == 0) result_.status = code;
  }

  const Clock::time_point deadline_;
  const Cancel* const cancel_;
  const bool watch_;
  std::vector<Child> children_;
  Finished result_;
  bool killed_ = false;
};

// From now on this thread has open files of its own: the standard streams and no other. Else a file
// that the process has closed would stay open, and locked, as long as a child has it.
void leave_the_files() {
  constexpr unsigned kFirst = 3, kUnshare = 1u << 1;  // CLOSE_RANGE_UNSHARE
  if (syscall(SYS_close_range, kFirst, ~0u, kUnshare) == 0) return;
  // Before Linux 5.9: all are copied, so that they are open for a moment longer.
  if (unshare(CLONE_FILES) != 0) return;
  const Fd list(open("/proc/thread-self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const std::string& each : names_in(list.get()))
    if (const int fd = std::atoi(each.c_str()); fd >= 3 && fd != list.get()) close(fd);
}

Finished run_here(const std::vector<Argv>& programs, const Environment& environment,
                  milliseconds timeout, const Cancel* cancel, const std::string& temporary) {
  leave_the_files();
  const Clock::time_point deadline = Clock::now() + timeout;
  const std::vector<std::string> given = child_environment(environment, temporary);
  if (!children_are_ignored()) {
    Finished result = Pipeline(deadline, cancel, false).run(programs, given);
    if (result.kind != Finished::Unknown) return result;
  }
  // A shell would only say that it found no such program.
  for (const Argv& argv : programs)
    if (find_program(argv[0], environment).empty())
      return {Finished::NotStarted, 0, argv[0] + ": " + std::strerror(ENOENT)};
  return Pipeline(deadline, cancel, true).run(programs, given);
}

}  // namespace

Finished run_pipeline(const std::vector<Argv>& programs, const Environment& environment,
                      milliseconds timeout, const Cancel* cancel, const std::string& temporary) {
  try {
    return std::async(std::launch::async, run_here, std::cref(programs), std::cref(environment),
                      timeout, cancel, std::cref(temporary))
        .get();
  } catch (const std::system_error& error) {
    return {Finished::NotStarted, 0, error.what()};  // no thread can be had
  }
}

std::string find_program(const std::string& name, const Environment& environment,
                         const std::vector<std::string>& folders) {
  if (name.empty()) return {};
  if (name.find('/') != std::string::npos) return is_program(name) ? name : std::string();
  for (const std::string& folder : folders)
    if (is_program(folder + "/" + name)) return folder + "/" + name;
  const std::string path = environment.get("PATH", "/usr/local/bin:/usr/bin:/bin");
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string folder(rest.substr(0, end));
    if (!folder.empty() && is_program(folder + "/" + name)) return folder + "/" + name;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace ufuse::codegen
