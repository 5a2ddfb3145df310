// The compiler's flags, the reading of `-###`, and the two ways of building: cc1plus, as and ld by
// themselves, or the driver.
#include "codegen/jit/toolchain.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

#include "codegen/jit/cache.h"
#include "codegen/jit/files.h"
#include "codegen/jit/health.h"
#include "codegen/jit/words.h"
#include "ir/support/error.h"

namespace ufuse::codegen {
namespace {

using std::chrono::milliseconds;

// -ffp-contract=off: NumPy's bits. -fno-math-errno and -fno-trapping-math: without them sqrt and
// comparisons do not vectorise; they change no value that rt::integer_part does not see to.
// -fwrapv: integers wrap around, as NumPy's do. Never -ffast-math.
constexpr std::array kFlags = {"-O3",
#if defined(__aarch64__)
                               "-mcpu=native",
#else
                               "-march=native",
#endif
                               "-ffp-contract=off",
                               "-fno-math-errno",
                               "-fno-trapping-math",
                               "-fwrapv",
                               "-fPIC",
                               "-std=c++17",
                               "-fno-exceptions",
                               "-fno-rtti",
                               "-w",
                               "-fno-stack-protector"};
// g++ only. -fno-tree-sink: a division whose quotient np.where may not choose is done all the same,
// and raises its flag, as in NumPy. -fno-loop-unroll-and-jam: rows of a reduction in the order in
// which they lie in memory, one stream instead of two.
constexpr std::array kGccFlags = {"-fno-tree-sink", "-fno-loop-unroll-and-jam"};
// From g++ 11 on: no vectors of which only a part is elements. g++ 16 would divide by the zeros of
// the other part, and raise flags that no element raises.
constexpr std::array kGcc11Flags = {"--param=vect-partial-vector-usage=0"};
// Effort::Little: what vectorises, and what the passes before that need.
constexpr std::array kLittleFlags = {"-O1", "-ftree-loop-vectorize", "-fvect-cost-model=dynamic",
                                     "-fstrict-aliasing", "-finline-small-functions"};
constexpr std::array kFastFlags = {"-ffp-contract=fast", "-DUFUSE_FAST"};

constexpr const char* kCompiler = "the C++ compiler";

bool is_program_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// A compiler as its user names it: the path of a program, whatever is in it, or a program and its
// first arguments. Nothing where a quotation mark is not closed.
std::optional<Argv> command_of(const std::string& named) {
  return is_program_file(named) ? Argv{named} : shell_words(named);
}

void append(Argv& argv, const Argv& more) { argv.insert(argv.end(), more.begin(), more.end()); }

// A driver's command without the words that name files of one run.
Argv without_files(const Argv& command, std::string_view source) {
  static constexpr std::array<std::string_view, 4> kWithValue = {"-o", "-dumpdir", "-dumpbase",
                                                                 "-dumpbase-ext"};
  Argv kept;
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i];
    if (std::ranges::find(kWithValue, word) != kWithValue.end()) {
      ++i;
    } else if (word != source && !word.ends_with(".s") && !word.ends_with(".o") &&
               !word.ends_with(".res")) {
      kept.push_back(word);
    }
  }
  return kept;
}

// What distinguishes this CPU: `-march=native` made its code for it.
std::string cpu_identity() {
  static constexpr std::array<std::string_view, 12> kFields = {
      "vendor_id",        "cpu family",  "model",    "stepping", "flags", "CPU implementer",
      "CPU architecture", "CPU variant", "CPU part", "Features", "isa",   "cpu"};
  // The processors' blocks are alike, and the kernel asks each processor when its block is read.
  const std::string all = read_beginning("/proc/cpuinfo", 1 << 14).value_or("");
  std::string text;
  for (const std::string_view line : split(all, '\n')) {
    if (line.empty()) break;
    std::string_view name = line.substr(0, line.find(':'));
    while (!name.empty() && (name.back() == '\t' || name.back() == ' ')) name.remove_suffix(1);
    if (name == "model name" || std::ranges::find(kFields, name) != kFields.end())
      text.append(line).append("\n");
  }
  return text;
}

std::string file_identity(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return path;
  std::string text = path;
  for (const auto number :
       {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, static_cast<long>(info.st_ino)})
    text += " " + std::to_string(number);
  return text;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The C library's mathematics, which NumPy and ufuse use as well; empty where it has no file of its
// own.
std::string find_libm() {
  std::string found;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        if (!base_name(object->dlpi_name).starts_with("libm.so")) return 0;
        *static_cast<std::string*>(result) = object->dlpi_name;
        return 1;
      },
      &found);
  return found;
}

std::string how_it_ended(const Finished& run, milliseconds timeout) {
  switch (run.kind) {
    case Finished::TimedOut:
      return "was killed after " + std::to_string(timeout.count()) + " ms";
    case Finished::Flooded:
      return "was killed because it printed without end";
    case Finished::Unknown:
      return "ended, but nobody could learn how";
    case Finished::Cancelled:
      return "was stopped because the program is ending";
    case Finished::NotStarted:
      return "could not be started";
    default:
      return run.status > 128 ? "was killed by signal " + std::to_string(run.status - 128)
                              : "failed with status " + std::to_string(run.status);
  }
}

// Whether the source cannot be what made the program end so.
bool is_trouble(const Finished& run) {
  return run.kind == Finished::TimedOut || run.kind == Finished::Flooded ||
         run.kind == Finished::NotStarted || run.kind == Finished::Unknown || run.status > 128;
}

// `who` did not succeed.
[[noreturn]] void throw_error(const std::string& who, const Finished& run, milliseconds timeout) {
  const std::string words = who + " " + how_it_ended(run, timeout);
  if (is_trouble(run)) throw CompilerTrouble(words, run.output);
  throw CompileError(words, run.output);
}

bool made_something(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 && info.st_size > 0;
}

}  // namespace

Toolchain::Toolchain(Toolchain&& other) noexcept
    : environment_(std::move(other.environment_)),
      driver_(std::move(other.driver_)),
      is_clang_(other.is_clang_),
      libm_(std::move(other.libm_)),
      version_(std::move(other.version_)),
      target_(std::move(other.target_)),
      compile_(std::move(other.compile_)),
      assemble_(std::move(other.assemble_)),
      link_(std::move(other.link_)),
      identity_(std::move(other.identity_)),
      description_(std::move(other.description_)),
      timeout_(other.timeout_),
      direct_(other.direct_.load()) {}

// What follows kFlags.
Argv Toolchain::flags_for(BuildMode mode) const {
  Argv flags;
  const auto add = [&](const auto& more) { append(flags, Argv(more.begin(), more.end())); };
  if (!is_clang_) add(kGccFlags);
  if (!is_clang_ && major_version() >= 11) add(kGcc11Flags);
  if (!is_clang_ && mode.effort == Effort::Little) add(kLittleFlags);
  if (mode.numerics == Numerics::Fast) add(kFastFlags);
  return flags;
}

// 12 of "gcc version 12.2.0 (Debian 12.2.0-14)"; 0 where there is no number.
int Toolchain::major_version() const {
  constexpr std::string_view kBefore = " version ";
  const std::size_t at = version_.find(kBefore);
  int number = 0;
  if (at != version_.npos)
    std::from_chars(version_.data() + at + kBefore.size(), version_.data() + version_.size(),
                    number);
  return number;
}

Toolchain Toolchain::find(const std::optional<std::string>& requested,
                          const Environment& environment, bool direct, milliseconds timeout,
                          EntryStore* memo, const Cancel* cancel) {
  std::vector<std::string> candidates;
  const std::string own = environment.get("UFUSE_CXX"), common = environment.get("CXX");
  if (requested) {
    candidates = {*requested};
  } else if (!own.empty()) {
    candidates = {own};
  } else {
    if (!common.empty()) candidates.push_back(common);
    candidates.insert(candidates.end(), {"g++", "clang++"});
  }
  std::string tried, words;
  bool trouble = false;
  for (const std::string& candidate : candidates) {
    Toolchain found;
    found.environment_ = environment;
    found.timeout_ = timeout;
    found.direct_ = direct;
    tried += (tried.empty() ? "" : ", ") + candidate;
    const std::optional<Argv> command = command_of(candidate);
    if (!command) words += candidate + ": a quotation mark is not closed\n";
    if (!command || command->empty()) continue;
    found.driver_ = *command;
    found.driver_[0] = find_program(found.driver_[0], environment);
    if (found.driver_[0].empty()) continue;
    try {
      found.identify(memo, cancel);
      return found;
    } catch (const CompileError& error) {
      words += std::string(error.what()) + "\n" + error.output();
      trouble |= dynamic_cast<const CompilerTrouble*>(&error) != nullptr;
    }
  }
  const std::string message = "no C++ compiler was found (tried: " + tried +
                              "). Install g++ or clang++, or name one in UFUSE_CXX." +
                              (words.empty() ? "" : "\n" + words);
  if (trouble) throw CompilerTrouble(message, words);
  throw CompileError(message, words);
}

void Toolchain::identify(EntryStore* memo, const Cancel* cancel) {
  libm_ = find_libm();
  Argv flags(kFlags.begin(), kFlags.end());
  const std::string key = "ufuse toolchain 3\n" + join(driver_, '\x1f') + "\n" +
                          file_identity(driver_[0]) + "\n" + join(flags) + "\n" + cpu_identity();
  std::optional<std::string> known = memo ? memo->read(key) : std::nullopt;
  if (!known || !from_memo(*known)) {
    // "-###" says which programs would run; `-march=native` stands there as this CPU's features.
    Argv ask = driver_;
    append(ask, flags);
    append(ask, {"-shared", "-nostdlib", "-###", "-x", "c++", "/dev/null", "-o", "kernel.so"});
    const Finished run = run_pipeline({ask}, environment_, timeout_, cancel);
    if (run.kind != Finished::Ok) throw_error(driver_[0], run, timeout_);
    read_driver(run.output);
    if (memo) memo->put(key, to_memo());
  }
  if (compile_.empty()) direct_ = false;
  for (const Effort effort : {Effort::Full, Effort::Little})
    append(flags, flags_for({.effort = effort}));
  identity_ = version_ + "\n" + target_ + "\n" + join(flags) + "\n" + file_identity(driver_[0]) +
              "\n" + cpu_identity();
  description_ = version_ + " (" + join(driver_) + ")";
}

// Takes the words of `-###` apart. What is not understood leaves the direct way closed.
void Toolchain::read_driver(const std::string& text) {
  std::vector<std::string> folders;
  Argv compile, assemble, collect;
  for (const std::string_view line : split(text, '\n')) {
    constexpr std::string_view kFolders = "COMPILER_PATH=";
    if (line.find(" version ") != line.npos && line[0] != ' ' && version_.empty()) version_ = line;
    if (line.starts_with(kFolders))
      for (const std::string_view folder : split(line.substr(kFolders.size()), ':'))
        folders.emplace_back(folder);
    if (!line.starts_with(' ')) continue;
    const Argv command = driver_words(line);
    if (command.empty()) continue;
    const Argv kept = without_files(command, "/dev/null");
    const std::string_view program = base_name(kept[0]);
    if (program == "cc1plus") compile = kept;
    if (program == "as") assemble = kept;
    if (program == "collect2" || program == "ld") collect = kept;
    is_clang_ = is_clang_ || program.starts_with("clang");
    target_ += join(kept) + "\n";
  }
  if (version_.empty() || target_.empty())
    throw CompileError(driver_[0] + " does not answer as a C++ compiler does", text);
  while (!version_.empty() && version_.back() == ' ') version_.pop_back();

  const auto emulation = std::ranges::find(collect, "-m");
  if (compile.empty() || assemble.empty() || emulation == collect.end() ||
      emulation + 1 == collect.end())
    return;
  assemble[0] = find_program(assemble[0], environment_, folders);
  const std::string linker = find_program("ld", environment_, folders);
  if (assemble[0].empty() || linker.empty()) return;
  compile_ = compile;
  assemble_ = assemble;
  link_ = {linker, "-shared", "-m", *(emulation + 1), "--hash-style=gnu", "-z", "noseparate-code"};
}

std::string Toolchain::to_memo() const {
  return join({version_, is_clang_ ? "clang" : "gcc", join(compile_, '\x1f'),
               join(assemble_, '\x1f'), join(link_, '\x1f'), target_},
              '\x1e');
}

bool Toolchain::from_memo(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, '\x1e');
  if (parts.size() != 6) return false;
  const auto words = [](std::string_view part) {
    const std::vector<std::string_view> list = split(part, '\x1f');
    return Argv(list.begin(), list.end());
  };
  version_ = parts[0];
  is_clang_ = parts[1] == "clang";
  compile_ = words(parts[2]);
  assemble_ = words(parts[3]);
  link_ = words(parts[4]);
  target_ = parts[5];
  return true;
}

Finished Toolchain::run_direct(const std::string& folder, BuildMode mode,
                               const Cancel& cancel) const {
  const std::string object = folder + "/kernel.o", library = folder + "/kernel.so";
  Argv compile = compile_, assemble = assemble_, link = link_;
  append(compile, flags_for(mode));
  append(compile, {folder + "/kernel.cpp", "-o", "-"});
  append(assemble, {"-o", object, "--"});
  append(link, {"-o", library, object});
  if (!libm_.empty()) append(link, {"--as-needed", libm_});
  Finished run = run_pipeline({compile, assemble}, environment_, timeout_, &cancel);
  if (run.kind == Finished::Ok) run = run_pipeline({link}, environment_, timeout_, &cancel);
  return run;
}

void Toolchain::build(const std::string& folder, BuildMode mode, const Cancel& cancel) const {
  if (direct_.load(std::memory_order_relaxed)) {
    const Finished run = run_direct(folder, mode, cancel);
    if (run.kind == Finished::Ok && made_something(folder + "/kernel.so")) return;
    if (run.kind == Finished::TimedOut || run.kind == Finished::Flooded ||
        run.kind == Finished::Cancelled)
      throw_error(kCompiler, run, timeout_);
    // The driver, whose compiler proper was killed as well, only says that it failed.
    const bool killed = run.status > 128;
    try {
      build_by_driver(folder, mode, cancel);
    } catch (const CompileError& error) {
      if (!killed) throw;
      throw CompilerTrouble(error.what(), error.output());
    }
    if (!killed) direct_.store(false);
    return;
  }
  build_by_driver(folder, mode, cancel);
}

void Toolchain::build_by_driver(const std::string& folder, BuildMode mode,
                                const Cancel& cancel) const {
  const std::string library = folder + "/kernel.so";
  Argv argv = driver_;
  append(argv, Argv(kFlags.begin(), kFlags.end()));
  append(argv, flags_for(mode));
  append(argv, {"-shared", folder + "/kernel.cpp", "-o", library});
  // The C++ library stays out: kernels need nothing of it, and a compiler that links a copy of it
  // into each shared object would bring a second one into the process.
  append(argv,
         is_clang_ ? Argv{"-nostdlib++", "-lm"} : Argv{"-nodefaultlibs", "-lm", "-lgcc", "-lc"});
  const Finished run = run_pipeline({argv}, environment_, timeout_, &cancel, folder);
  if (run.kind != Finished::Ok) throw_error(kCompiler, run, timeout_);
  if (!made_something(library))
    throw CompileError("the C++ compiler gave no shared object", run.output);
}

}  // namespace ufuse::codegen
