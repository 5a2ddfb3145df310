// posix_spawn, pipes and deadlines. Programs run in a process group of their own, so that a kill
// reaches what they started.
#include "codegen/jit/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

extern char** environ;

namespace ufuse::codegen {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxOutput = 256 << 10;

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

struct Pipe {
  Fd read, write;
};

bool make_pipe(Pipe& pipe) {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return false;
  pipe = {Fd(fds[0]), Fd(fds[1])};
  return true;
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

// Returns 0 and the process id, or an errno.
int spawn(const Argv& argv, const std::vector<std::string>& environment, int in, int out, int err,
          pid_t group, pid_t& pid) {
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
  // A group of its own: Ctrl-C in the terminal is for the user's program, and a kill reaches
  // grandchildren too.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  sigdelset(&all, SIGKILL);
  sigdelset(&all, SIGSTOP);
  posix_spawnattr_setpgroup(&attributes, group);
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

// Collects what the programs print until all of them have closed the pipe.
Finished::Kind drain(int fd, Clock::time_point deadline, const Cancel* cancel,
                     std::string& output) {
  for (;;) {
    pollfd fds[2] = {{fd, POLLIN, 0}, {cancel ? cancel->fd() : -1, POLLIN, 0}};
    const int ready = poll(fds, 2, milliseconds_left(deadline));
    if (ready < 0 && errno != EINTR) return Finished::Failed;
    if (ready > 0 && fds[1].revents) return Finished::Cancelled;
    if (ready > 0 && fds[0].revents) {
      char buffer[4096];
      const ssize_t got = read(fd, buffer, sizeof buffer);
      if (got == 0) return Finished::Ok;
      if (got > 0 && output.size() < kMaxOutput) output.append(buffer, static_cast<size_t>(got));
      if (got < 0 && errno != EINTR) return Finished::Failed;
    }
    if (milliseconds_left(deadline) == 0) return Finished::TimedOut;
  }
}

// Waits for a program that closed its output, so it is about to end. When another part of the
// process has already collected its status, or children are ignored, the status is unknown and
// counts as success: the caller looks at the files.
bool wait_for(pid_t pid, Clock::time_point deadline, int& status) {
  using std::chrono::microseconds;
  for (microseconds pause(20);; pause = std::min(pause * 2, microseconds(5000))) {
    const pid_t got = waitpid(pid, &status, WNOHANG);
    if (got == pid) return true;
    if (got < 0 && errno != EINTR) {
      status = 0;
      return true;
    }
    if (milliseconds_left(deadline) == 0) return false;
    std::this_thread::sleep_for(pause);
  }
}

bool is_program(const std::string& path) {
  return access(path.c_str(), X_OK) == 0 && path.back() != '/';
}

}  // namespace

Cancel::Cancel() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
Cancel::~Cancel() {
  if (fd_ >= 0) close(fd_);
}
void Cancel::pull() {
  if (fd_ >= 0) eventfd_write(fd_, 1);
}

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

Finished run_pipeline(const std::vector<Argv>& programs, const Environment& environment,
                      milliseconds timeout, const Cancel* cancel, const std::string& temporary) {
  const Clock::time_point deadline = Clock::now() + timeout;
  const std::vector<std::string> given = child_environment(environment, temporary);
  Finished result;
  Pipe report;
  if (!make_pipe(report)) return {Finished::NotStarted, 0, std::strerror(errno)};
  std::vector<pid_t> pids;
  Fd input;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    Pipe next;
    const bool last = i + 1 == programs.size();
    if (!last && !make_pipe(next)) {
      result = {Finished::NotStarted, 0, std::strerror(errno)};
      break;
    }
    pid_t pid;
    const int error =
        spawn(programs[i], given, input.get(), last ? report.write.get() : next.write.get(),
              report.write.get(), pids.empty() ? 0 : pids[0], pid);
    if (error != 0) {
      result = {Finished::NotStarted, 0, programs[i][0] + ": " + std::strerror(error)};
      break;
    }
    pids.push_back(pid);
    input = std::move(next.read);
  }
  input.close();
  report.write.close();
  if (result.kind == Finished::Ok)
    result.kind = drain(report.read.get(), deadline, cancel, result.output);
  bool killed = result.kind != Finished::Ok;
  if (killed && !pids.empty()) kill(-pids[0], SIGKILL);
  for (const pid_t pid : pids) {
    int status = 0;
    if (!wait_for(pid, killed ? Clock::now() + milliseconds(2000) : deadline, status)) {
      if (!killed) result.kind = Finished::TimedOut;
      killed = true;
      kill(-pids[0], SIGKILL);
      wait_for(pid, Clock::now() + milliseconds(2000), status);
    }
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (code != 0 && result.status == 0) result.status = code;
  }
  if (result.kind == Finished::Ok && result.status != 0) result.kind = Finished::Failed;
  return result;
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
