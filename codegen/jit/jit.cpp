// The order of looking: memory, disk, compiler; single flight for equal sources; the background
// thread; what a fork changes. The machinery itself stands in cache.cpp, toolchain.cpp and
// loader.cpp.
#include "codegen/jit/jit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/jit/cache.h"
#include "codegen/jit/files.h"
#include "codegen/jit/fork.h"
#include "codegen/jit/work_folder.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using Clock = std::chrono::steady_clock;

// Kernels kept by source text. A program with more of them than this makes new text at each call.
constexpr std::size_t kMaxKernels = 4096;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Where a build may happen, best first. More than one, because a disk may be full, read-only, or
// open to others.
std::vector<std::string> work_parents(const Environment& environment, const EntryStore& store) {
  std::vector<std::string> parents = {"/tmp", "/dev/shm"};
  if (const std::string chosen = environment.get("TMPDIR"); chosen.starts_with('/')) {
    std::erase(parents, chosen);
    parents.insert(parents.begin(), chosen);
  }
  if (store.usable()) parents.push_back(store.folder());
  return parents;
}

constexpr const char* kNotWritten = "a source file cannot be written";

// Whether another folder might help.
bool is_about_the_disk(const CompileError& error) {
  static constexpr const char* kSigns[] = {
      "No space left", "Disk quota",         "Read-only",     "Permission denied",
      "failed to map", "Input/output error", "not permitted", kNotWritten};
  const std::string words = error.what() + error.output();
  return std::ranges::any_of(
      kSigns, [&](const char* sign) { return words.find(sign) != std::string::npos; });
}

std::string shortened(const std::string& words) {
  constexpr std::size_t kMost = 4000;
  return words.size() <= kMost ? words : words.substr(0, kMost) + "\n[...]";
}

}  // namespace

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::Memory:
      return "memory cache";
    case Origin::Disk:
      return "disk cache";
    case Origin::Compiled:
      return "compiled";
  }
  return "";
}

// All that one process has: never used, nor destroyed, in a child forked from it, where its thread
// is missing and its locks may be held by nobody.
class Jit::State {
 public:
  explicit State(const JitConfig& config)
      : config_(config),
        store_(config.cache_dir.value_or(default_cache_folder()),
               config.cache_bytes.value_or(default_cache_bytes())) {}

  ~State() {
    cancel_.pull();
    finish(std::chrono::milliseconds(0));
  }

  const unsigned generation = fork_generation();

  Built get(const std::string& source, Numerics numerics) {
    const Clock::time_point start = Clock::now();
    const Job job = enter(source, numerics);
    if (job->claim()) {
      run(*job, cancel_);
      return job->future.get();
    }
    Built built = job->future.get();  // perhaps waiting for another thread
    count(&JitStats::memory_hits);
    built.origin = Origin::Memory;
    built.milliseconds = milliseconds_since(start);
    return built;
  }

  std::shared_ptr<const Kernel> find(const std::string& source, Numerics numerics) {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(key_of(source, numerics));
    if (found == kernels_.end()) return nullptr;
    found->second->used = ++clock_;
    return found->second->kernel.load();
  }

  std::shared_future<Built> get_async(const std::string& source, Numerics numerics) {
    const Job job = enter(source, numerics);
    if (job->claimed.load()) return job->future;
    const std::lock_guard lock(mutex_);
    if (stop_) throw ending();
    if (!worker_.joinable()) start_worker();
    queue_.push_back(job);
    wake_.notify_one();
    return job->future;
  }

  void finish(std::chrono::milliseconds patience) {
    std::deque<Job> left;
    {
      std::unique_lock lock(mutex_);
      idle_.wait_for(lock, patience, [this] { return queue_.empty() && !working_; });
      stop_ = true;
      left.swap(queue_);
    }
    background_cancel_.pull();
    wake_.notify_all();
    if (worker_.joinable()) worker_.join();
    for (const Job& job : left)
      if (job->claim()) job->promise.set_exception(std::make_exception_ptr(ending()));
  }

  JitStats stats() const {
    const std::lock_guard lock(mutex_);
    JitStats result = stats_;
    result.disk_rejected = store_.rejected();
    result.disk_evicted = store_.evicted();
    if (store_.usable()) result.cache_dir = store_.folder();
    result.cache_note = store_.note();
    return result;
  }

 private:
  // One source text. Whoever claims it builds it; everybody else waits for the future.
  struct Work {
    Work(std::string text, Numerics mode) : source(std::move(text)), numerics(mode) {}
    bool claim() { return !claimed.exchange(true); }

    const std::string source;
    const Numerics numerics;
    std::atomic<bool> claimed{false};
    std::promise<Built> promise;
    const std::shared_future<Built> future = promise.get_future().share();
    std::atomic<std::shared_ptr<const Kernel>> kernel;  // once built
    std::uint64_t used = 0;                             // under the mutex
  };
  using Job = std::shared_ptr<Work>;

  static std::string key_of(const std::string& source, Numerics numerics) {
    return (numerics == Numerics::Fast ? "fast\n" : "exact\n") + source;
  }

  void count(std::uint64_t JitStats::*counter) {
    const std::lock_guard lock(mutex_);
    ++(stats_.*counter);
  }

  Job enter(const std::string& source, Numerics numerics) {
    const std::lock_guard lock(mutex_);
    Job& job = kernels_[key_of(source, numerics)];
    if (!job) job = std::make_shared<Work>(source, numerics);
    const Job result = job;
    result->used = ++clock_;
    if (kernels_.size() > kMaxKernels) forget_oldest();
    return result;
  }

  // Drops the quarter that was used longest ago. Who holds a kernel keeps it.
  void forget_oldest() {
    std::vector<std::uint64_t> ages;
    for (const auto& [key, job] : kernels_) ages.push_back(job->used);
    const auto quarter = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 4);
    std::ranges::nth_element(ages, quarter);
    std::erase_if(kernels_, [&](const auto& item) { return item.second->used < *quarter; });
  }

  // Signals are for the program's own threads.
  void start_worker() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      worker_ = std::thread([this] { work(); });
    } catch (const std::system_error& error) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw CompileError(std::string("no thread for compiling in the background: ") + error.what());
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void work() {
    for (;;) {
      Job job;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
        if (stop_) return;
        job = queue_.front();
        queue_.pop_front();
        working_ = true;
      }
      if (job->claim()) run(*job, background_cancel_);
      const std::lock_guard lock(mutex_);
      working_ = false;
      idle_.notify_all();
    }
  }

  static CompileError ending() {
    return CompileError("the kernel was not compiled because the program is ending");
  }

  void run(Work& job, const Cancel& cancel) {
    const Clock::time_point start = Clock::now();
    try {
      Built built = load_or_compile(job, cancel);
      built.milliseconds = milliseconds_since(start);
      {
        const std::lock_guard lock(mutex_);
        if (built.origin == Origin::Compiled) {
          ++stats_.compiled;
          stats_.compile_ms += built.milliseconds;
        } else {
          ++stats_.disk_hits;
        }
      }
      job.kernel.store(built.kernel);
      job.promise.set_value(std::move(built));
    } catch (...) {
      count(&JitStats::failed);
      job.promise.set_exception(std::current_exception());
    }
  }

  const Toolchain& toolchain(const Cancel& cancel) {
    std::call_once(toolchain_once_, [&] {
      try {
        toolchain_.emplace(Toolchain::find(config_.compiler, environment_, config_.direct,
                                           config_.timeout, &store_, &cancel));
        const std::lock_guard lock(mutex_);
        stats_.compiler = toolchain_->description();
      } catch (...) {
        no_toolchain_ = std::current_exception();
      }
    });
    if (no_toolchain_) std::rethrow_exception(no_toolchain_);
    return *toolchain_;
  }

  Built load_or_compile(const Work& job, const Cancel& cancel) {
    const bool halves = job.source.find("rt::f16") != std::string::npos;
    const std::string text = config_.preamble + (halves ? config_.half : "") + job.source;
    const Toolchain& tools = toolchain(cancel);
    const std::string known_by =
        "ufuse kernel 2\n" + tools.identity() + "\n" + key_of(text, job.numerics);
    const CacheKey key(known_by);
    const std::vector<std::string> parents = work_parents(environment_, store_);
    if (const std::optional<std::string> object = store_.read(key)) {
      try {
        return {std::make_shared<const Kernel>(*object, mark_of(key), parents), Origin::Disk, 0};
      } catch (const CompileError&) {
        // A sound entry that cannot be loaded here: compile as if it were absent.
      }
    }
    std::call_once(swept_, [&] { std::ranges::for_each(parents, remove_left_work_folders); });
    return {compile(tools, job, Kernel::marked(mark_of(key)) + text, key, parents, cancel),
            Origin::Compiled, 0};
  }

  // What a kernel is known by once it is loaded.
  static std::string mark_of(const CacheKey& key) { return key.hash.hex(); }

  std::shared_ptr<const Kernel> compile(const Toolchain& tools, const Work& job,
                                        const std::string& text, const CacheKey& key,
                                        const std::vector<std::string>& parents,
                                        const Cancel& cancel) {
    std::optional<CompileError> first;
    std::string built;
    for (const std::string& parent : parents) {
      try {
        const WorkFolder folder(parent);
        if (!folder) throw CompileError(folder.trouble() + ": " + kNotWritten);
        built = folder.path() + "/kernel.cpp";
        if (!write_file(built, text)) throw CompileError(parent + ": " + kNotWritten);
        return compile_in(folder.path(), tools, job.numerics, key, parents, cancel);
      } catch (const CompileError& error) {
        const bool hopeless = !is_about_the_disk(error);
        if (!first || hopeless) first = error;
        if (hopeless) break;
      }
    }
    throw explained(*first, text, built, tools);
  }

  std::shared_ptr<const Kernel> compile_in(const std::string& folder, const Toolchain& tools,
                                           Numerics numerics, const CacheKey& key,
                                           const std::vector<std::string>& parents,
                                           const Cancel& cancel) {
    const std::string library = folder + "/kernel.so";
    std::string object;
    const auto loaded = [&] {
      object = read_file(library).value_or("");
      return std::make_shared<const Kernel>(object, mark_of(key), parents);
    };
    tools.build(folder, numerics, cancel);
    std::shared_ptr<const Kernel> kernel;
    try {
      kernel = loaded();
    } catch (const CompileError&) {
      // Perhaps a symbol of a library that only the driver links.
      if (!tools.direct()) throw;
      unlink(library.c_str());
      tools.build_by_driver(folder, numerics, cancel);
      kernel = loaded();
    }
    store_.put(key, object);
    return kernel;
  }

  // The error with the compiler's words, and the source in a file that stays.
  CompileError explained(const CompileError& error, const std::string& text,
                         const std::string& built, const Toolchain& tools) {
    std::vector<std::string> parents = work_parents(environment_, store_);
    if (store_.usable()) std::rotate(parents.begin(), parents.end() - 1, parents.end());
    std::string kept;
    for (const std::string& parent : parents) {
      std::string name = parent + "/ufuse-failed-XXXXXX.cpp";
      const Fd file(mkostemps(name.data(), 4, O_CLOEXEC));
      if (!file) continue;
      if (write_all(file.get(), text)) {
        kept = name;
        break;
      }
      unlink(name.c_str());
    }
    std::string words = error.output();  // they name a file that is gone by now
    if (!kept.empty() && !built.empty())
      for (std::size_t at = 0; (at = words.find(built, at)) != std::string::npos; at += kept.size())
        words.replace(at, built.size(), kept);
    std::string message = error.what();
    message += "\ncompiler: " + tools.description();
    if (!kept.empty()) message += "\nsource: " + kept;
    if (!words.empty()) message += "\n" + shortened(words);
    return CompileError(message, words, kept);
  }

  const JitConfig& config_;
  const Environment environment_ = Environment::now();
  EntryStore store_;
  std::once_flag toolchain_once_;
  std::optional<Toolchain> toolchain_;
  std::exception_ptr no_toolchain_;
  std::once_flag swept_;  // folders that killed processes left behind
  Cancel cancel_, background_cancel_;

  mutable std::mutex mutex_;  // of all below
  std::unordered_map<std::string, Job> kernels_;
  std::uint64_t clock_ = 0;
  JitStats stats_;
  std::deque<Job> queue_;
  std::condition_variable wake_, idle_;
  bool stop_ = false, working_ = false;
  std::thread worker_;
};

Jit::Jit(JitConfig config) : config_(std::move(config)), state_(new State(config_)) {}

Jit::~Jit() {
  State* const state = state_.load();
  if (state->generation == fork_generation()) delete state;
}

Jit::State& Jit::state() const {
  State* current = state_.load(std::memory_order_acquire);
  if (current->generation == fork_generation()) return *current;
  auto fresh = std::make_unique<State>(config_);
  if (state_.compare_exchange_strong(current, fresh.get())) return *fresh.release();
  return *current;
}

Built Jit::get(const std::string& source, Numerics numerics) {
  return state().get(source, numerics);
}

std::shared_ptr<const Kernel> Jit::find(const std::string& source, Numerics numerics) {
  return state().find(source, numerics);
}

std::shared_future<Built> Jit::get_async(std::string source, Numerics numerics) {
  return state().get_async(source, numerics);
}

void Jit::finish(std::chrono::milliseconds patience) { state().finish(patience); }

JitStats Jit::stats() const { return state().stats(); }

}  // namespace ufuse::codegen
