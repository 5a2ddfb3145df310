// The order of looking: memory, disk, compiler; single flight for equal sources; what is compiled
// together; what a fork changes. The machinery itself stands in builders.cpp, health.cpp,
// cache.cpp, toolchain.cpp and loader.cpp.
#include "codegen/jit/jit.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/jit/cache.h"
#include "codegen/jit/files.h"
#include "codegen/jit/fork.h"
#include "codegen/jit/health.h"
#include "codegen/jit/work_folder.h"
#include "codegen/runtime/timeline.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using Clock = std::chrono::steady_clock;

// Kernels kept by source text. A program with more of them than this makes new text at each call.
constexpr std::size_t kMaxKernels = 4096;
// Kernels that wait for a builder.
constexpr std::size_t kMaxWaiting = 512;

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

std::string first_line(const std::string& words) { return words.substr(0, words.find('\n')); }

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

  ~State() { finish(std::chrono::milliseconds(0)); }

  const unsigned generation = fork_generation();

  Built get(const std::string& source, BuildMode mode) {
    const Clock::time_point start = Clock::now();
    const auto [job, is_new] = enter(source, mode, Urgency::Awaited);
    Built built = job->future.get();
    if (is_new) return built;
    count(&JitStats::memory_hits);
    built.origin = Origin::Memory;
    built.milliseconds = milliseconds_since(start);
    return built;
  }

  std::shared_ptr<const Kernel> find(const std::string& source, BuildMode mode) {
    const std::lock_guard lock(mutex_);
    const auto found = kernels_.find(key_of(source, mode));
    if (found == kernels_.end()) return nullptr;
    found->second->used = ++clock_;
    return found->second->kernel.load();
  }

  std::shared_future<Built> get_async(const std::string& source, BuildMode mode, Urgency urgency) {
    const auto [job, is_new] = enter(source, mode, urgency);
    std::shared_ptr<const Kernel> kernel = is_new ? nullptr : job->kernel.load();
    if (!kernel) return job->future;
    count(&JitStats::memory_hits);
    std::promise<Built> known;
    known.set_value({std::move(kernel), Origin::Memory, 0});
    return known.get_future().share();
  }

  bool may_be_near(const std::string& source, BuildMode mode) {
    const std::lock_guard lock(mutex_);
    const auto known = kernels_.find(key_of(source, mode));
    if (known == kernels_.end()) return false;
    const Work::Stage stage = known->second->stage;
    return stage == Work::LookedFor || (stage == Work::Queued && builders_.keep_up());
  }

  bool is_prompt() const { return health_.is_prompt(); }

  std::size_t building() const { return builders_.busy(); }

  EntryStore& store() { return store_; }

  void finish(std::chrono::milliseconds patience) {
    ending_ = true;
    if (!is_prompt()) patience = std::chrono::milliseconds(0);
    builders_.finish(patience, [this] { cancel_.pull(); });
  }

  JitStats stats() const {
    const std::lock_guard lock(mutex_);
    JitStats result = stats_;
    result.trouble = health_.trouble();
    result.disk_rejected = store_.rejected();
    result.disk_evicted = store_.evicted();
    if (store_.usable()) result.cache_dir = store_.folder();
    result.cache_note = store_.note();
    return result;
  }

 private:
  // One source text.
  struct Work {
    Work(std::string text, BuildMode m, Urgency u) : source(std::move(text)), mode(m), urgency(u) {}

    const std::string source;
    const BuildMode mode;
    const Urgency urgency;
    std::promise<Built> promise;
    const std::shared_future<Built> future = promise.get_future().share();
    std::atomic<std::shared_ptr<const Kernel>> kernel;  // once built
    std::uint64_t used = 0;                             // under the mutex
    // What is done for it, or was done last.
    enum Stage { Queued, LookedFor, Compiled };
    mutable std::atomic<Stage> stage = Queued;
  };
  using Job = std::shared_ptr<Work>;

  static std::string key_of(const std::string& source, BuildMode mode) {
    return std::string(mode.numerics == Numerics::Fast ? "fast" : "exact") +
           (mode.effort == Effort::Little ? " little\n" : "\n") + source;
  }

  void count(std::uint64_t JitStats::*counter) {
    const std::lock_guard lock(mutex_);
    ++(stats_.*counter);
  }

  // The job for a source, and whether it was made now; a builder has it then.
  std::pair<Job, bool> enter(const std::string& source, BuildMode mode, Urgency urgency) {
    const std::lock_guard lock(mutex_);
    std::string key = key_of(source, mode);
    Job job;
    if (const auto known = kernels_.find(key); known != kernels_.end()) {
      job = known->second;
      job->used = ++clock_;
      return {std::move(job), false};
    }
    job = std::make_shared<Work>(source, mode, urgency);
    job->used = ++clock_;
    try {
      if (ending_) throw ending();
      if (!builders_.post([this, job] { run(job); }, urgency))
        throw CompilerTrouble("too many loops wait for the compiler");
    } catch (const CompileError&) {
      job->promise.set_exception(std::current_exception());
      return {std::move(job), true};
    } catch (const std::system_error& error) {
      job->promise.set_exception(std::make_exception_ptr(CompilerTrouble(
          std::string("no thread for compiling in the background: ") + error.what())));
      return {std::move(job), true};
    }
    queued_.push_back(job);
    kernels_.emplace(std::move(key), job);
    if (kernels_.size() > kMaxKernels) forget_oldest();
    return {std::move(job), true};
  }

  // Drops the quarter that was used longest ago. Who holds a kernel keeps it.
  void forget_oldest() {
    std::vector<std::uint64_t> ages;
    for (const auto& [key, job] : kernels_) ages.push_back(job->used);
    const auto quarter = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 4);
    std::ranges::nth_element(ages, quarter);
    std::erase_if(kernels_, [&](const auto& item) { return item.second->used < *quarter; });
  }

  static CompileError ending() {
    return CompileError("the kernel was not compiled because the program is ending");
  }

  // What a builder does for a job that was posted.
  void run(const Job& posted) {
    std::vector<Job> jobs;
    const auto alone = [](const Job& job) { return std::span<const Job, 1>(&job, 1); };
    if (answered(alone(posted), [&](Health::Use&) {
          jobs = take(posted);
          return false;
        }))
      return;
    std::vector<EntryStore::Claim> claims;
    std::vector<Job> elsewhere;  // another process compiles them just now
    std::erase_if(jobs, [&](const Job& job) {
      if (answered_from_disk(alone(job))) return true;
      std::optional<EntryStore::Claim> claim = claim_of(job, Clock::now());
      if (claim)
        claims.push_back(std::move(*claim));
      else
        elsewhere.push_back(job);
      // It may have come to the disk before the claim was had.
      return !claim || answered_from_disk(alone(job));
    });
    if (jobs.size() <= 1 || !answered_by_compiler(jobs))
      for (const Job& job : jobs) answered_by_compiler(alone(job));
    claims.clear();
    for (const Job& job : elsewhere) {
      job->stage = Work::Compiled;
      const auto claim = claim_of(job, Clock::now() + config_.others);
      if (!answered_from_disk(alone(job))) answered_by_compiler(alone(job));
    }
  }

  // Waits for it until then: another process has compiled the job by the time, or given it up.
  std::optional<EntryStore::Claim> claim_of(const Job& job, Clock::time_point until) {
    constexpr std::chrono::milliseconds kLook(2);
    std::string known_by;
    {
      const std::lock_guard lock(toolchain_mutex_);
      if (!toolchain_) return EntryStore::Claim();  // answered_from_disk has asked for it
      known_by = known_by_text(job, *toolchain_);
    }
    const CacheKey key(known_by);
    std::optional<EntryStore::Claim> claim = store_.claim(key);
    for (; !claim && Clock::now() < until && !cancel_.pulled(); claim = store_.claim(key))
      std::this_thread::sleep_for(kLook);
    return claim;
  }

  // The job, and others that wait for a builder and that the compiler can be given with it. None
  // when another builder has taken it with a job of its own.
  std::vector<Job> take(const Job& posted) {
    // Compilers take as long to start, and to read the preamble, as for a short loop. Programs,
    // which bring a preamble of their own, are not short.
    constexpr std::size_t kMost = 8, kShort = 6'000;
    std::vector<Job> taken;
    taken.reserve(kMost);
    const std::lock_guard lock(mutex_);
    if (std::erase(queued_, posted) == 0) return {};
    taken.push_back(posted);
    const auto fits = [&](const Job& job) {
      return job->source.size() <= kShort && job->mode == posted->mode &&
             job->urgency == posted->urgency;
    };
    if (fits(posted)) {
      // The other builders get their part of those that wait.
      const auto waiting = static_cast<std::size_t>(std::ranges::count_if(queued_, fits));
      const std::size_t most = std::min(kMost, 1 + waiting / builders_here());
      std::erase_if(queued_, [&](const Job& job) {
        if (taken.size() >= most || !fits(job)) return false;
        taken.push_back(job);
        return true;
      });
    }
    for (const Job& job : taken) job->stage = Work::LookedFor;
    return taken;
  }

  // Whether `step` has answered the jobs. What it throws answers them as well.
  template <class Step>
  bool answered(std::span<const Job> jobs, const Step& step) {
    try {
      Health::Use use(health_);
      try {
        if (cancel_.pulled()) throw ending();
        return step(use);
      } catch (const CompilerRefused&) {
        throw;
      } catch (const CompilerTrouble& error) {
        use.met_trouble(first_line(error.what()));
        throw;
      } catch (const CompileError&) {
        use.worked();  // the source is at fault
        throw;
      }
    } catch (const CompilerTrouble&) {
      for (const Job& job : jobs) {
        forget(job);  // who asks again is not given this answer
        refuse(job);
      }
    } catch (...) {
      for (const Job& job : jobs) {
        count(&JitStats::failed);
        refuse(job);
      }
    }
    return true;
  }

  // In a handler of the exception that is the answer, unless the job has one.
  static void refuse(const Job& job) {
    try {
      job->promise.set_exception(std::current_exception());
    } catch (const std::future_error&) {
    }
  }

  void answer(const Job& job, Built built) {
    {
      const std::lock_guard lock(mutex_);
      const bool is_compiled = built.origin == Origin::Compiled;
      ++(is_compiled ? stats_.compiled : stats_.disk_hits);
      if (is_compiled) stats_.compile_ms += built.milliseconds;
    }
    job->kernel.store(built.kernel);
    job->promise.set_value(std::move(built));
  }

  bool answered_from_disk(std::span<const Job, 1> jobs) {
    const Clock::time_point start = Clock::now();
    return answered(jobs, [&](Health::Use& use) {
      const Job& job = jobs[0];
      std::shared_ptr<const Kernel> kernel = read(known_by_text(job, toolchain(use)));
      if (!kernel) return false;
      answer(job, {std::move(kernel), Origin::Disk, milliseconds_since(start)});
      return true;
    });
  }

  bool answered_by_compiler(std::span<const Job> jobs) {
    const Clock::time_point start = Clock::now();
    const Timed timed([&] { return Slice{Slice::Kind::Compile, titles_of(jobs)}; });
    for (const Job& job : jobs) job->stage = Work::Compiled;
    return answered(jobs, [&](Health::Use& use) {
      const Toolchain& tools = toolchain(use);
      use.begin();
      std::vector<std::shared_ptr<const Kernel>> kernels;
      try {
        kernels = compile(tools, jobs);
      } catch (const CompilerTrouble&) {
        throw;
      } catch (const CompileError&) {
        if (jobs.size() == 1 || cancel_.pulled()) throw;
        return false;  // one of them is at fault
      }
      use.worked();
      const double each = milliseconds_since(start) / static_cast<double>(jobs.size());
      for (std::size_t i = 0; i < jobs.size(); ++i)
        answer(jobs[i], {std::move(kernels[i]), Origin::Compiled, each});
      return true;
    });
  }

  // What texts are: they begin with a comment that says so.
  static std::string titles_of(std::span<const Job> jobs) {
    std::string titles;
    for (const Job& job : jobs) {
      const std::string_view first =
          std::string_view(job->source).substr(0, job->source.find('\n'));
      if (!titles.empty()) titles += ", ";
      titles += first.starts_with("// ") ? first.substr(std::strlen("// ")) : first;
    }
    return titles;
  }

  void forget(const Job& job) {
    const std::lock_guard lock(mutex_);
    ++stats_.failed;
    const auto known = kernels_.find(key_of(job->source, job->mode));
    if (known != kernels_.end() && known->second == job) kernels_.erase(known);
  }

  // Found once; a compiler that could not be asked is looked for again.
  const Toolchain& toolchain(Health::Use& use) {
    const std::lock_guard lock(toolchain_mutex_);
    if (no_toolchain_) std::rethrow_exception(no_toolchain_);
    if (toolchain_) return *toolchain_;
    use.begin();
    try {
      toolchain_.emplace(Toolchain::find(config_.compiler, environment_, config_.direct,
                                         config_.timeout, &store_, &cancel_));
    } catch (const CompilerTrouble&) {
      throw;
    } catch (...) {
      no_toolchain_ = std::current_exception();
      throw;
    }
    const std::lock_guard stats_lock(mutex_);
    stats_.compiler = toolchain_->description();
    return *toolchain_;
  }

  // ---- Entries of the disk cache: a library, or which source of which library a kernel is ----

  std::string preamble_of(std::span<const Job> jobs) const {
    const bool halves = std::ranges::any_of(
        jobs, [](const Job& job) { return job->source.find("rt::f16") != std::string::npos; });
    return config_.preamble + (halves ? config_.half : "");
  }

  // All that a kernel's machine code depends on.
  std::string known_by_text(const Job& job, const Toolchain& tools) const {
    return "ufuse kernel 3\n" + tools.identity() + "\n" +
           key_of(preamble_of(std::span(&job, 1)) + job->source, job->mode);
  }

  // What a library is known by once it is loaded.
  static std::string mark_of(const CacheKey& key) { return key.hash.hex(); }

  // Null: it is not there, or cannot be loaded here; to be compiled as if it were absent.
  std::shared_ptr<const Kernel> read(const std::string& known_by) {
    const CacheKey key(known_by);
    const std::optional<std::string> entry = store_.read(key);
    if (!entry) return nullptr;
    const std::vector<std::string> parents = work_parents(environment_, store_);
    try {
      const auto [source, library] = split_reference(*entry);
      auto loaded = library.empty() ? std::make_shared<const Library>(*entry, mark_of(key), parents)
                                    : read_library(library, parents);
      return loaded ? std::make_shared<const Kernel>(std::move(loaded), source) : nullptr;
    } catch (const CompileError&) {
      return nullptr;
    }
  }

  // One that holds several kernels is loaded once. Null: it is not there.
  std::shared_ptr<const Library> read_library(const std::string& known_by,
                                              const std::vector<std::string>& parents) {
    {
      const std::lock_guard lock(mutex_);
      const auto known = libraries_.find(known_by);
      if (auto loaded = known == libraries_.end() ? nullptr : known->second.lock()) return loaded;
    }
    const CacheKey key(known_by);
    const std::optional<std::string> object = store_.read(key);
    if (!object) return nullptr;
    auto loaded = std::make_shared<const Library>(*object, mark_of(key), parents);
    const std::lock_guard lock(mutex_);
    std::erase_if(libraries_, [](const auto& item) { return item.second.expired(); });
    libraries_[known_by] = loaded;
    return loaded;
  }

  // An entry of a kernel that was compiled with others.
  static constexpr std::string_view kReference = "source ";
  static std::string reference(std::size_t source, const std::string& library) {
    return std::string(kReference) + static_cast<char>('0' + source) + library;
  }
  // Which source of which library; no library: the entry is one itself.
  static std::pair<std::size_t, std::string> split_reference(const std::string& entry) {
    if (!entry.starts_with(kReference) || entry.size() <= kReference.size()) return {0, ""};
    return {static_cast<std::size_t>(entry[kReference.size()] - '0'),
            entry.substr(kReference.size() + 1)};
  }

  // ---- Compiling ----

  std::vector<std::shared_ptr<const Kernel>> compile(const Toolchain& tools,
                                                     std::span<const Job> jobs) {
    std::vector<std::string> known_by;
    std::vector<std::string_view> sources;
    for (const Job& job : jobs) {
      known_by.push_back(known_by_text(job, tools));
      sources.push_back(job->source);
    }
    std::string library = known_by[0];
    if (jobs.size() > 1) {
      library = "ufuse library 3\n";
      for (const std::string& each : known_by) library += mark_of(CacheKey(each)) + "\n";
    }
    const CacheKey key(library);
    const std::vector<std::string> parents = work_parents(environment_, store_);
    std::call_once(swept_, [&] { std::ranges::for_each(parents, remove_left_work_folders); });
    const std::string text = Library::text_of(mark_of(key), preamble_of(jobs), sources);
    const auto loaded = build(tools, jobs[0]->mode, text, key, parents, jobs.size() == 1);
    std::vector<std::shared_ptr<const Kernel>> kernels;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      kernels.push_back(std::make_shared<const Kernel>(loaded, i));
      if (jobs.size() > 1) store_.put(CacheKey(known_by[i]), reference(i, library));
    }
    return kernels;
  }

  // `explains`: where the source is at fault, it is kept in a file that the error names.
  std::shared_ptr<const Library> build(const Toolchain& tools, BuildMode mode,
                                       const std::string& text, const CacheKey& key,
                                       const std::vector<std::string>& parents, bool explains) {
    std::optional<CompileError> first;
    bool trouble = false;
    std::string built;
    for (const std::string& parent : parents) {
      try {
        const WorkFolder folder(parent);
        if (!folder) throw CompileError(folder.trouble() + ": " + kNotWritten);
        built = folder.path() + "/kernel.cpp";
        if (!write_file(built, text)) throw CompileError(parent + ": " + kNotWritten);
        return build_in(folder.path(), tools, mode, key, parents);
      } catch (const CompileError& error) {
        const bool hopeless = !is_about_the_disk(error);
        if (!first || hopeless) {
          first = error;
          trouble = dynamic_cast<const CompilerTrouble*>(&error) != nullptr;
        }
        if (hopeless) break;
      }
    }
    if (cancel_.pulled()) throw ending();
    if (!trouble && !explains) throw *first;
    const CompileError told = explained(*first, text, built, tools);
    if (trouble) throw CompilerTrouble(told.what(), told.output(), told.source_path());
    throw told;
  }

  std::shared_ptr<const Library> build_in(const std::string& folder, const Toolchain& tools,
                                          BuildMode mode, const CacheKey& key,
                                          const std::vector<std::string>& parents) {
    const std::string path = folder + "/kernel.so";
    std::string object;
    const auto loaded = [&] {
      object = read_file(path).value_or("");
      return std::make_shared<const Library>(object, mark_of(key), parents);
    };
    tools.build(folder, mode, cancel_);
    std::shared_ptr<const Library> library;
    try {
      library = loaded();
    } catch (const CompileError&) {
      // Perhaps a symbol of a library that only the driver links.
      if (!tools.direct()) throw;
      unlink(path.c_str());
      tools.build_by_driver(folder, mode, cancel_);
      library = loaded();
    }
    store_.put(key, object);
    return library;
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
  Cancel cancel_;
  std::atomic<bool> ending_{false};
  Health health_{config_.slow, config_.pause};

  std::mutex toolchain_mutex_;  // of the next two; never taken while mutex_ is held
  std::optional<Toolchain> toolchain_;
  std::exception_ptr no_toolchain_;
  std::once_flag swept_;  // folders that killed processes left behind

  mutable std::mutex mutex_;  // of all below but the builders
  std::unordered_map<std::string, Job> kernels_;
  std::vector<Job> queued_;  // not taken by a builder yet
  // Read from the disk, by their keys' texts.
  std::unordered_map<std::string, std::weak_ptr<const Library>> libraries_;
  std::uint64_t clock_ = 0;
  JitStats stats_;
  // Last: they use all of the above.
  Builders builders_{builders_here(), kMaxWaiting, [this] { store_.make_room(); }};
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

Built Jit::get(const std::string& source, BuildMode mode) { return state().get(source, mode); }

std::shared_ptr<const Kernel> Jit::find(const std::string& source, BuildMode mode) {
  return state().find(source, mode);
}

std::shared_future<Built> Jit::get_async(const std::string& source, BuildMode mode,
                                         Urgency urgency) {
  return state().get_async(source, mode, urgency);
}

bool Jit::may_be_near(const std::string& source, BuildMode mode) {
  return state().may_be_near(source, mode);
}

bool Jit::is_prompt() const { return state().is_prompt(); }

void Jit::finish(std::chrono::milliseconds patience) { state().finish(patience); }

JitStats Jit::stats() const { return state().stats(); }

std::size_t Jit::building() const { return state().building(); }

EntryStore& Jit::store() const { return state().store(); }

}  // namespace ufuse::codegen
