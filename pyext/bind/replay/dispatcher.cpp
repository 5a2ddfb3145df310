// See dispatcher.h. A Dispatcher is a callable. It looks for a recording of a call with the same
// signature as the arguments have. Where there is none, or a guard has changed, or a warning is
// due, it traces the call, which is right for every call, and keeps the recording that this leaves.
// Where the plain function is measured to be faster, that answers.
#include "pyext/bind/replay/dispatcher.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "codegen/runtime/threads.h"
#include "pyext/bind/call/call.h"
#include "pyext/bind/programs/loop.h"
#include "pyext/bind/replay/guards.h"
#include "pyext/bind/replay/objects.h"
#include "pyext/bind/replay/replay.h"
#include "pyext/bind/replay/ways.h"
#include "pyext/bind/stack.h"
#include "tracer/unseen.h"

namespace ufuse::pyext {
namespace {

// At most so many recordings of one function are kept, and so many runs of loops in all of them, of
// which each takes about a kilobyte.
constexpr std::size_t kMaxPlans = 64, kMostRuns = 16384;
// At most so many recordings of one signature, which differ in values that Python was told. Where
// they have answered fewer than kWorthwhile calls each, such calls are not recorded any more.
constexpr std::size_t kMaxPaths = 16, kWorthwhile = 4;
// A recording is not replayed any more when so many replays have failed, and more than have
// succeeded.
constexpr std::uint64_t kFailures = 16;
constexpr std::size_t kMaxKinds = 256;
// Recording is not tried at each call where shapes or numbers always change: after kFruitless calls
// in a row that left no recording, or kUnused recordings in a row that have answered no call, only
// one in kRetry calls with a new signature is recorded, and ever fewer up to one in kSeldom.
constexpr std::uint32_t kFruitless = 8, kUnused = 16, kRetry = 64, kSeldom = 1 << 14;
constexpr std::int64_t kLeast = 100'000;  // what recording takes at least; nanoseconds

struct Entry {
  explicit Entry(const Signature& signature)
      : hash(signature.hash), words(signature.words), flags(signature.flags) {
    for (PyObject* object : signature.objects) objects.push_back(borrow(object));
  }

  std::uint64_t hash = 0;
  std::vector<std::uint64_t> words;
  std::vector<int> flags;
  bool asked_flags = false;  // Python has looked at the flags of an argument
  std::vector<py::object> objects;
  ErrorState error_state;
  NumberHistory numbers;
  std::unique_ptr<Recording> recording;  // unset: such calls cannot be replayed
  std::uint64_t answered = 0;            // calls, by this recording
  std::uint64_t failed = 0;              // replays that had to be traced after all

  // Mostly a warning is due, or a tie has to be decided by NumPy.
  bool fails_mostly() const { return failed > kFailures && failed > answered; }
  bool heavy = false;  // plain NumPy may need much memory for such calls
  tracer::Ledger ledger;

  // Whether a call with this signature can be answered like the recorded one; `numbers` are then
  // the numbers of the recording's history.
  bool matches(const Signature& signature, std::vector<py::object>& numbers) const {
    return is_like(signature) && this->numbers.repeat(signature.numbers, numbers);
  }

  // The same without a look at numbers whose values are not in the signature.
  bool is_like(const Signature& signature) const {
    if (hash != signature.hash || words != signature.words ||
        (asked_flags && flags != signature.flags) || objects.size() != signature.objects.size())
      return false;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      PyObject *a = objects[i].ptr(), *b = signature.objects[i];
      if (a == b) continue;
      if (!PyUnicode_CheckExact(a) || !PyUnicode_CheckExact(b) || PyUnicode_Compare(a, b) != 0)
        return false;
    }
    return true;
  }
};

tracer::Together all_functions;

struct State {
  py::object trace;
  py::object make_plain;  // gives `plain`; unset: calls may not be answered by it
  py::object plain;       // the function itself, once a call is answered by it
  bool records = true;    // unset: the function is not pure
  // It is one of NumPy's, called from many lines: a warning is given by tracing, at the caller's
  // line, and `plain` answers nothing but calls that run no loops.
  bool is_eager = false;
  // Whether measured times decide if `plain` answers.
  bool chooses() const { return make_plain && !is_eager; }
  // NumPy has warned of numbers that are the same in each call. Python may show such a warning only
  // once, and then a further recording would not notice it; so no more calls are recorded.
  bool warned_of_numbers = false;
  Guards guards;
  Codes codes;
  py::object observe;  // gives guards and codes of functions that recorded calls have run
  std::vector<py::object> observed;
  ObjectSchemas schemas;
  NumberPlaces number_places;
  NumberSites number_sites;
  std::vector<py::object> site_codes;         // that the sites are in
  std::list<std::shared_ptr<Entry>> entries;  // those used last come first
  Signature signature;              // of the present call; here so that its memory is used again
  std::vector<py::object> numbers;  // the same of its numbers
  tracer::Account account{all_functions};
  std::unordered_map<std::uint64_t, Kind> kinds;  // by the hash of CallKind
  std::uint64_t replayed = 0, traced = 0, plainly = 0;
  tracer::Unseen unseen;
  std::uint64_t calls() const { return replayed + traced + plainly; }
  // Calls in a row that left no recording; calls with a new signature that were not recorded.
  std::uint32_t fruitless = 0, skipped = 0;
  std::uint32_t retry = kRetry;  // so many are skipped
  std::uint32_t unused = 0;      // recordings since one has answered a call
  // Tracing has stopped in a call that made calls of the function itself; how many of such calls
  // there have been since.
  bool is_slow_recursion = false;
  std::uint32_t inner = 0;
  PyThreadState* plain_in = nullptr;  // the thread in which the plain function is answering a call

  // Whether a call that one of the function has made is left to the plain function. What that one
  // has found out, those inside it need not find out again; few of them are looked at all the same.
  bool is_slow_inside() {
    constexpr std::uint32_t kLookEach = 1 << 15;
    if (!chooses() || choices().by != Choices::Clock) return false;
    is_slow_recursion |= Call::is_slow_for(this);
    return is_slow_recursion && ++inner % kLookEach != 0;
  }

  // Whether this is a call that the function makes of itself while the plain function answers one:
  // what that takes is compared with tracing the whole, and is to be plain Python's time.
  bool is_plain_inside() const {
    return plain_in != nullptr && chooses() && choices().by == Choices::Clock &&
           plain_in == PyThreadState_Get();
  }

  // Whether the plain function is the faster one for calls of other kinds, all that were compared.
  // So it will be for those of a new kind; there are always new ones where a list grows, for
  // example.
  bool is_mostly_plain() const {
    constexpr std::size_t kEnough = 3;
    std::size_t compared = 0;
    for (const auto& [hash, kind] : kinds) {
      if (!kind.ledger.is_settled()) continue;
      if (!kind.ledger.plain_wins() || kind.heavy) return false;
      ++compared;
    }
    return compared >= kEnough;
  }

  // Whether ours has hardly anything to gain from calls of a kind.
  bool is_doubtful(const CallKind& like, const Kind& known) const {
    return like.many || (!known.ledger.is_settled() && is_mostly_plain());
  }

  // Goes on with the counts and costs of the function's dispatcher until now.
  void take_over(const State& before) {
    account = before.account;
    replayed = before.replayed, traced = before.traced, plainly = before.plainly;
  }
  bool read(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    return signature.read(args, count, keywords, number_places, schemas);
  }

  // Replaces entries for the same signature that it makes obsolete: with the same values told to
  // Python, or without a recording. One without a recording goes behind those that have one.
  void keep(std::shared_ptr<Entry> entry, const Signature& signature) {
    std::size_t paths = 0;
    std::erase_if(entries, [&](const std::shared_ptr<Entry>& old) {
      if (!old->matches(signature, numbers)) return false;
      if (!old->error_state.is_current()) return false;
      if (!old->recording) return true;
      if (entry->recording && entry->recording->is_path_of(*old->recording)) return true;
      return ++paths >= kMaxPaths;
    });
    if (entry->recording || paths == 0)
      entries.push_front(std::move(entry));
    else
      entries.push_back(std::move(entry));
    std::size_t plans = 0, runs = 0;
    std::erase_if(entries, [&](const std::shared_ptr<Entry>& old) {
      runs += old->recording ? old->recording->plan().runs.size() : 0;
      return ++plans > kMaxPlans || (plans > 1 && runs > kMostRuns);
    });
  }
};

struct DispatcherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  State* state;
};

// What a call takes. `plainly`: without the calls of other functions that were traced in it;
// tracing them is theirs to account for, and soon over.
class Watch {
 public:
  std::int64_t taken() const { return steady_ns() - start_; }
  std::int64_t plainly() const { return taken() - (Call::traced_ns() - traced_before_); }
  std::int64_t taken_by(const tracer::Ledger::Turn& turn) const {
    return turn.plain ? plainly() : taken();
  }

 private:
  const std::int64_t traced_before_ = Call::traced_ns(), start_ = steady_ns();
};

// A new reference; null where it raises.
PyObject* run_traced(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  ++state.traced;
  Call::set_owner(&state);
  PyObject* result = PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords);
  Call::set_owner(nullptr);
  return result;
}

// Before the plain function's time is taken: it is made when it is needed for the first time.
void prepare_plain(State& state) {
  if (!state.plain) state.plain = state.make_plain();
}

// A new reference; null where it raises.
PyObject* run_plain(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  prepare_plain(state);
  ++state.plainly;
  codegen::Threads::leave_cores();
  PyThreadState* const before = std::exchange(state.plain_in, PyThreadState_Get());
  PyObject* result = PyObject_Vectorcall(state.plain.ptr(), args, flags, keywords);
  state.plain_in = before;
  if (result == nullptr) hide_loops();
  return result;
}

// After the plain function has answered because it is faster: the next calls may be handed to it
// unseen.
void hand_on(State& state, const tracer::Ledger& ledger) {
  if (choices().by == Choices::Clock)
    state.unseen.begin(ledger.plain(), state.signature.reading_ns());
}

// Lets go what a signature holds of the arguments, at the end of the call.
struct Held {
  Signature& signature;
  ~Held() { signature.let_go(); }
};

// What is known of calls with such arguments; null where it is nothing.
const tracer::Ledger* ledger_of(State& state, PyObject* const* args, Py_ssize_t count,
                                PyObject* keywords) {
  const Held held{state.signature};
  if (state.records && state.read(args, count, keywords))
    for (const std::shared_ptr<Entry>& entry : state.entries)
      if (entry->recording && !entry->fails_mostly() &&
          entry->matches(state.signature, state.numbers) && entry->error_state.is_current())
        return &entry->ledger;
  const auto kind = state.kinds.find(kind_of_call(args, count, keywords).hash);
  return kind == state.kinds.end() ? nullptr : &kind->second.ledger;
}

PyObject* run_unseen(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  const std::uint64_t before = state.calls();
  const Watch watch;
  const tracer::Counted open = all_functions.open();
  auto result = py::reinterpret_steal<py::object>(run_plain(state, args, flags, keywords));
  const std::int64_t taken = watch.plainly();
  // What calls of itself have taken says nothing of this one.
  const bool is_recursive = state.calls() > before + 1;
  if (!is_recursive) state.account.add(taken, taken);
  if (!is_recursive && state.unseen.is_long(taken)) {
    const py::error_scope raised;
    const auto* ledger = ledger_of(state, args, PyVectorcall_NARGS(flags), keywords);
    if (ledger == nullptr || !ledger->plain_wins())
      state.unseen.was_wrong(taken - (ledger == nullptr ? 0 : ledger->ours()));
  }
  return result.release().ptr();
}

// The reference is good until Python runs, for the function may be called again and drop the kinds.
Kind& kind_in(State& state, std::uint64_t hash) {
  if (state.kinds.size() >= kMaxKinds && !state.kinds.contains(hash)) state.kinds.clear();
  return state.kinds[hash];
}

// Adds the guards of functions that a recorded call has run. False where a call of one of them may
// do something else each time.
bool guards_added(State& state, const std::vector<py::object>& functions) {
  py::list fresh;
  for (const py::object& function : functions)
    if (std::ranges::none_of(state.observed, [&](const auto& each) { return each.is(function); }))
      fresh.append(function);
  if (fresh.empty() || !state.observe) return true;
  const py::object rows = state.observe(fresh);
  if (rows.is_none()) return false;
  const auto [guards, codes] = rows.cast<std::pair<py::object, py::object>>();
  state.guards.add(guards);
  state.codes.add(codes);
  for (py::handle function : fresh) state.observed.push_back(borrow(function.ptr()));
  return true;
}

// Traces the call whose signature has been read. `kept`: whether it has left a recording.
// `only_loops`: it leaves one only if it runs loops.
py::object trace(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords,
                 bool* kept = nullptr, bool only_loops = false) {
  const Signature signature = state.signature;  // the function may be called again inside
  Entry entry(signature);
  entry.error_state = ErrorState::now();
  const std::shared_ptr<Call> before = Call::last();
  const std::uint64_t generation = state.schemas.generation();
  const Call::Recorder recorder{state.number_sites, signature, state.schemas};
  const Call::Recorder* outer = Call::set_recorder(&recorder);
  const Watch watch;
  auto result = py::reinterpret_steal<py::object>(run_traced(state, args, flags, keywords));
  const std::int64_t taken = watch.taken();
  Call::set_recorder(outer);
  const std::shared_ptr<Call> call = Call::last();
  const bool traced = call && call != before;
  // Whatever becomes of the recording: the call may live until the next one, and they must not.
  std::vector<py::object> functions;
  if (traced) functions = call->objects().take_functions();
  if (!result) throw py::error_already_set();
  if (!traced) return result;
  std::optional<ResultTree> results = call->take_result_tree();
  entry.asked_flags = call->asked_flags();
  state.warned_of_numbers |= call->warned_of_numbers();
  entry.numbers = std::move(call->numbers());
  if (!call->session().plan() || call->argument_count() != signature.arguments.size() ||
      !entry.numbers.are(signature.numbers) || !entry.error_state.is_current() ||
      (results && !guards_added(state, functions)))
    results.reset();
  // One of NumPy's own functions is asked itself rather than repeated.
  if (results && state.is_eager && call->session().plan()->calls_host()) results.reset();
  if (generation != state.schemas.generation()) {
    // The call has read attributes that are not in the signatures so far.
    state.entries.clear();
    ++state.fruitless;
    return result;
  }
  if (only_loops && call->runs().empty()) return result;
  state.fruitless = results ? 0 : state.fruitless + 1;
  if (results) {
    ++state.unused;
    if (call->asked_special()) entry.error_state.add_special();
    entry.recording = std::make_unique<Recording>(*call, std::move(*results), !state.is_eager);
    entry.heavy = call->session().largest_value() > kHeavyBytes && !plain_could_win(*call, taken);
  } else {
    entry.numbers = {};
    for (PyObject* number : signature.numbers) entry.numbers.add_argument(number);
    entry.numbers.saw_everything();
  }
  if (kept != nullptr) *kept = entry.recording != nullptr;
  if (call->stopped_before_loops()) return result;        // the next call is recorded
  if (state.is_eager && !entry.recording) return result;  // it may hold a function of the user's
  state.keep(std::make_shared<Entry>(std::move(entry)), signature);
  return result;
}

// Answers a call that cannot be replayed: by tracing, or by the plain function where that is
// measured to be faster, or where tracing found no loops to run.
py::object trace_or_plain(State& state, PyObject* const* args, std::size_t flags,
                          PyObject* keywords) {
  if (!state.make_plain) return steal(run_traced(state, args, flags, keywords));
  const CallKind like = kind_of_call(args, PyVectorcall_NARGS(flags), keywords);
  const std::uint64_t hash = like.hash;
  Kind& known = kind_in(state, hash);
  const bool is_light = static_cast<std::int64_t>(like.bytes) <= kHeavyBytes && !known.heavy;
  const bool doubtful = state.is_doubtful(like, known);
  const bool asks =
      doubtful || (like.hash != 0 && !like.objects && (is_light || known.plain_could_win));
  // An object may be one of the drop-in module's functions, which NumPy does not know.
  const tracer::Ledger::Turn turn =
      state.is_eager
          ? tracer::Ledger::Turn{known.ledger.is_idle() && like.hash != 0 && !like.objects}
          : choices().next(known.ledger, state.account, asks, known.is_building(), doubtful);
  const std::shared_ptr<Call> before = turn.plain ? nullptr : Call::last();
  if (turn.plain) prepare_plain(state);
  const Watch watch;
  const auto result =
      py::reinterpret_steal<py::object>(turn.plain ? run_plain(state, args, flags, keywords)
                                                   : run_traced(state, args, flags, keywords));
  const std::int64_t taken = watch.taken_by(turn);
  // The function may have been called again inside, and may have raised.
  if (const auto found = state.kinds.find(hash); found != state.kinds.end()) {
    Kind& kind = found->second;
    std::int64_t preparing = 0;
    if (const std::shared_ptr<Call> call = turn.plain ? nullptr : Call::last();
        call && call != before)
      preparing = kind.learn(*call, taken);
    if (turn.timed) {
      const bool is_typical = kind.building.empty() && preparing < taken / 8;
      kind.ledger.took(turn, taken, is_typical, state.account, preparing);
    } else {
      kind.ledger.passed(turn, state.account);
      if (turn.plain && state.chooses()) hand_on(state, kind.ledger);
    }
  }
  if (!result) throw py::error_already_set();
  return result;
}

// Answers a call of a signature that has no recording yet.
py::object trace_if_affordable(State& state, PyObject* const* args, std::size_t flags,
                               PyObject* keywords) {
  if (!state.make_plain || (choices().by != Choices::Clock && !state.is_eager))
    return trace(state, args, flags, keywords);
  const CallKind like = kind_of_call(args, PyVectorcall_NARGS(flags), keywords);
  const std::uint64_t hash = like.hash;
  const Kind& known = kind_in(state, hash);
  if (state.is_eager) {
    if (known.ledger.is_idle()) return trace_or_plain(state, args, flags, keywords);
    const std::shared_ptr<Call> before = Call::last();
    py::object result = trace(state, args, flags, keywords);
    if (const std::shared_ptr<Call> call = Call::last(); call && call != before)
      kind_in(state, hash).learn(*call, 0);
    return result;
  }
  // A replay saves as little as tracing does where there are no loops to run.
  if (state.is_doubtful(like, known) || known.ledger.is_idle() ||
      (!known.heavy && !known.ledger.may_record(state.account)))
    return trace_or_plain(state, args, flags, keywords);
  struct Timed {  // notes the time also where the function raises
    State& state;
    const std::uint64_t hash;
    const std::shared_ptr<Call> before = Call::last();
    const std::int64_t start = steady_ns();
    ~Timed() {
      const auto kind = state.kinds.find(hash);
      if (kind == state.kinds.end()) return;
      const std::int64_t taken = steady_ns() - start;
      const std::shared_ptr<Call> call = Call::last();
      const bool traced = call && call != before;
      try {
        kind->second.ledger.recorded(taken, traced ? kind->second.learn(*call, taken) : 0,
                                     state.account);
      } catch (const std::bad_alloc&) {  // nothing is noted of this call then
      }
    }
  } timed{state, hash};
  return trace(state, args, flags, keywords, nullptr, !known.ledger.has_run_loops());
}

// A plain call like this one has been timed: the time that recordings of such calls took can now be
// compared with it.
void compare_recordings(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords,
                        std::int64_t plainly) {
  const auto kind = state.kinds.find(kind_of_call(args, PyVectorcall_NARGS(flags), keywords).hash);
  if (kind != state.kinds.end()) kind->second.ledger.compare_spent(plainly, state.account);
}

// Values that Python is told in calls like these are seldom the same: from now on they are traced.
void give_up(State& state, const Signature& signature) {
  std::erase_if(state.entries, [&](const auto& old) { return old->is_like(signature); });
  state.entries.push_front(std::make_shared<Entry>(signature));
  state.entries.front()->error_state = ErrorState::now();
  for (PyObject* number : signature.numbers) state.entries.front()->numbers.add_argument(number);
}

// A replay has found another value than its recording told Python. Looks for recordings in which
// Python was told the same, and goes on with them. `record`: whether the call should be recorded
// where there is none.
py::object go_elsewhere(State& state, const Signature& signature, Replay& replay,
                        std::vector<std::shared_ptr<Entry>>& used, bool& record) {
  std::vector<py::object> numbers;
  for (bool found = true; found;) {
    found = false;
    std::size_t paths = 0;
    std::uint64_t answered = 0;
    record = true;
    for (auto it = state.entries.begin(); it != state.entries.end(); ++it) {
      const std::shared_ptr<Entry> entry = *it;
      if (!entry->matches(signature, numbers) || !entry->error_state.is_current()) continue;
      ++paths;
      answered += entry->answered;
      record &= entry->recording != nullptr;  // such a call has left no recording before
      if (!entry->recording || !replay.may_follow(*entry->recording)) continue;
      state.entries.splice(state.entries.begin(), state.entries, it);
      used.push_back(entry);  // kept alive for the replay, which refers to it
      const Replay::End end = replay.follow(*entry->recording, numbers);
      if (end == Replay::End::Done) {
        ++entry->answered;
        return replay.result();
      }
      record = end != Replay::End::Traced;
      if (!record) return {};
      found = true;
      break;
    }
    if (!found && paths >= kMaxPaths && answered < kWorthwhile * paths) {
      give_up(state, signature);
      record = false;
    }
  }
  return {};
}

// Answers a call that is no part of another one.
PyObject* answer(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  if (state.is_plain_inside()) return run_plain(state, args, flags, keywords);
  if (state.unseen.takes_next()) return run_unseen(state, args, flags, keywords);
  if (state.account.is_open() && state.is_slow_inside())
    return run_plain(state, args, flags, keywords);
  const tracer::Account::Open open(state.account);
  if (!state.records) return trace_or_plain(state, args, flags, keywords).release().ptr();
  const Held held{state.signature};
  const bool readable = state.read(args, PyVectorcall_NARGS(flags), keywords);
  if (!state.guards.hold()) {
    state.entries.clear();
    return trace_or_plain(state, args, flags, keywords).release().ptr();
  }
  if (!readable) return trace_or_plain(state, args, flags, keywords).release().ptr();
  for (auto it = state.entries.begin(); it != state.entries.end(); ++it) {
    if (!(*it)->matches(state.signature, state.numbers) || !(*it)->error_state.is_current())
      continue;
    if (it != state.entries.begin()) state.entries.splice(state.entries.begin(), state.entries, it);
    // Other threads may drop the entry while this one runs without the GIL.
    const std::shared_ptr<Entry> entry = state.entries.front();
    if (!entry->recording || entry->fails_mostly())
      return trace_or_plain(state, args, flags, keywords).release().ptr();
    const bool is_final = entry->recording->is_final();
    const tracer::Ledger::Turn turn =
        state.chooses() ? choices().next(entry->ledger, state.account, !entry->heavy, !is_final)
                        : tracer::Ledger::Turn{};
    const std::int64_t reading = turn.plain ? 0 : state.signature.reading_ns();
    // Python code that runs in between may call this dispatcher again.
    Signature signature = std::move(state.signature);
    std::vector<py::object> numbers = std::move(state.numbers);
    if (turn.plain) prepare_plain(state);
    const std::optional<Watch> watch =
        turn.timed ? std::optional<Watch>(std::in_place) : std::nullopt;
    py::object result;
    bool record = false;
    if (turn.plain) {
      result = steal(run_plain(state, args, flags, keywords));
    } else {
      Replay replay(signature);
      const Replay::End end = replay.follow(*entry->recording, numbers);
      std::vector<std::shared_ptr<Entry>> used;
      if (end == Replay::End::Done) {
        ++entry->answered;
        result = replay.result();
      } else if (end == Replay::End::Elsewhere) {
        result = go_elsewhere(state, signature, replay, used, record);
      }
      if (!result) replay.take_back();
    }
    state.signature = std::move(signature);
    numbers.clear();
    state.numbers = std::move(numbers);
    if (watch && result) {
      const std::int64_t taken = reading + watch->taken_by(turn);
      entry->ledger.took(turn, taken, is_final, state.account);
      if (turn.plain) compare_recordings(state, args, flags, keywords, taken);
    } else if (result) {
      entry->ledger.passed(turn, state.account);
    }
    if (turn.plain) {
      if (!turn.timed) hand_on(state, entry->ledger);
      return result.release().ptr();
    }
    if (result) {
      ++state.replayed;
      state.unused = 0;
      state.retry = kRetry;
      return result.release().ptr();
    }
    if (record) break;
    entry->failed += is_final;
    return trace_or_plain(state, args, flags, keywords).release().ptr();
  }
  if (state.warned_of_numbers) return trace_or_plain(state, args, flags, keywords).release().ptr();
  if (state.fruitless >= kFruitless || state.unused >= kUnused) {
    if (++state.skipped < state.retry || !state.account.affords_again(kLeast))
      return trace_or_plain(state, args, flags, keywords).release().ptr();
    state.skipped = 0;
    state.retry = std::min(2 * state.retry, kSeldom);
  }
  return trace_if_affordable(state, args, flags, keywords).release().ptr();
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  if (stack_is_full()) return nullptr;
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    const Call* around = Call::active();
    const bool is_part = around != nullptr && !around->in_untraced_code();
    if (is_part || !state.codes.hold())
      return PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords);
    if (around == nullptr) return answer(state, args, flags, keywords);
    // Untraced code calls it, an optimizer for example, with real arrays and as often as it likes.
    const Call::Aside aside;
    return answer(state, args, flags, keywords);
  });
}

// Traces a call in any case, so that explain can read what has happened.
PyObject* record(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    const auto flags = static_cast<std::size_t>(count);
    const Held held{state.signature};
    bool kept = false;
    if (Call::active() == nullptr && state.records && state.guards.hold() &&
        state.read(args, count, keywords))
      trace(state, args, flags, keywords, &kept);
    else
      steal(run_traced(state, args, flags, keywords));
    return py::bool_(kept).release().ptr();
  });
}

// Whether calls like this one are answered by the plain function, which was measured to be faster.
PyObject* prefers_plain(PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* keywords) {
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    const tracer::Ledger* ledger = ledger_of(state, args, count, keywords);
    return py::bool_(ledger != nullptr && ledger->plain_wins()).release().ptr();
  });
}

// {...} with the counts, the account, and a row (replays, ours, plain, wins) for each ledger.
PyObject* stats(PyObject* self, PyObject*) {
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    struct Row {
      bool replays;
      std::int64_t ours, plain;
      bool plain_wins;
    };
    std::vector<Row> known;  // first: making Python objects may run code that calls the function
    std::size_t building = 0;
    const auto add = [&](const tracer::Ledger& ledger, bool replays) {
      const Row row{replays, ledger.ours(), ledger.plain(), ledger.plain_wins()};
      if (row.ours != 0 || row.plain != 0 || row.plain_wins) known.push_back(row);
    };
    for (const std::shared_ptr<Entry>& entry : state.entries) {
      if (!entry->recording) continue;
      add(entry->ledger, true);
      building += !entry->recording->is_final();
    }
    for (auto& [hash, kind] : state.kinds) {
      add(kind.ledger, false);
      building += kind.is_building();
    }
    py::list rows;
    for (const Row& row : known)
      rows.append(py::make_tuple(row.replays, row.ours, row.plain, row.plain_wins));
    py::dict found;
    found["replayed"] = state.replayed;
    found["traced"] = state.traced;
    found["plain"] = state.plainly;
    found["regret"] = state.account.regret;
    found["numpy"] = state.account.plain;
    found["building"] = building;
    found["rows"] = rows;
    return found.release().ptr();
  });
}

// (positions, names, sites) of ufuse/tracing/parameters.py.
void read_numbers(State& state, const py::tuple& rows) {
  for (py::handle position : rows[0]) {
    const auto at = position.cast<std::size_t>();
    if (state.number_places.positions.size() <= at) state.number_places.positions.resize(at + 1);
    state.number_places.positions[at] = true;
  }
  for (py::handle name : rows[1]) state.number_places.names.push_back(borrow(name.ptr()));
  for (py::handle site : rows[2]) {
    const auto pair = site.cast<py::tuple>();
    state.site_codes.push_back(pair[0]);
    state.number_sites.insert({state.site_codes.back().ptr(), pair[1].cast<int>()});
  }
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* names[] = {"trace",  "guards", "make_plain", "numbers", "observe",
                                  "before", "codes",  "eager",      nullptr};
    PyObject *callable, *guards = nullptr, *make_plain = Py_None, *numbers = nullptr,
                        *observe = nullptr, *before = Py_None, *codes = nullptr;
    int eager = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OOOOOOp", const_cast<char**>(names),
                                     &callable, &guards, &make_plain, &numbers, &observe, &before,
                                     &codes, &eager))
      throw py::error_already_set();
    if (before != Py_None && Py_TYPE(before) != type)
      throw py::type_error("before is a Dispatcher or None");
    auto state = std::make_unique<State>();
    state->trace = borrow(callable);
    if (make_plain != Py_None) state->make_plain = borrow(make_plain);
    if (observe) state->observe = borrow(observe);
    state->is_eager = eager != 0;
    state->records = guards != Py_None;
    if (guards && state->records) state->guards.add(borrow(guards));
    if (codes) state->codes.add(borrow(codes));
    if (numbers) read_numbers(*state, borrow(numbers).cast<py::tuple>());
    if (before != Py_None) state->take_over(*reinterpret_cast<DispatcherObject*>(before)->state);
    auto* self = reinterpret_cast<DispatcherObject*>(type->tp_alloc(type, 0));
    if (self == nullptr) throw py::error_already_set();
    self->vectorcall = call;
    self->state = state.release();
    return reinterpret_cast<PyObject*>(self);
  });
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete reinterpret_cast<DispatcherObject*>(self)->state;
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  const State* state = reinterpret_cast<DispatcherObject*>(self)->state;
  Py_VISIT(Py_TYPE(self));
  if (state == nullptr) return 0;
  Py_VISIT(state->trace.ptr());
  Py_VISIT(state->make_plain.ptr());
  Py_VISIT(state->plain.ptr());
  Py_VISIT(state->observe.ptr());
  for (const py::object& function : state->observed) Py_VISIT(function.ptr());
  if (const int stop = state->schemas.traverse(visit, arg); stop != 0) return stop;
  if (const int stop = state->codes.traverse(visit, arg); stop != 0) return stop;
  return state->guards.traverse(visit, arg);
}

int clear(PyObject* self) {
  State* state = reinterpret_cast<DispatcherObject*>(self)->state;
  if (state == nullptr) return 0;
  state->entries.clear();
  state->guards.clear();
  state->codes.clear();
  state->observed.clear();
  state->schemas.clear();
  state->observe = py::object();
  state->trace = py::none();
  state->make_plain = state->plain = py::object();
  state->unseen.stop();
  return 0;
}

PyObject* get_counts(PyObject* self, void*) {
  return guard([&] {
    const State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    return py::make_tuple(state.replayed, state.traced, state.entries.size()).release().ptr();
  });
}

PyObject* get_is_stale(PyObject* self, void*) {
  return PyBool_FromLong(!reinterpret_cast<DispatcherObject*>(self)->state->guards.hold());
}

PyObject* get_records(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<DispatcherObject*>(self)->state->records);
}

PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(DispatcherObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};
PyMethodDef kMethods[] = {
    {"record", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(record)),
     METH_FASTCALL | METH_KEYWORDS,
     "Trace a call whether or not it could be replayed; whether later calls of its signature are."},
    {"prefers_plain", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(prefers_plain)),
     METH_FASTCALL | METH_KEYWORDS,
     "Whether calls like this one are answered by `plain`, which was measured to be faster."},
    {"stats", stats, METH_NOARGS,
     "How many calls went which way, what they cost, and what else the choices are made by; "
     "nanoseconds."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"counts", get_counts, nullptr, "(replayed, traced, plans kept).", nullptr},
    {"is_stale", get_is_stale, nullptr, "Whether a guard does not hold any more.", nullptr},
    {"records", get_records, nullptr, "Whether calls are recorded, so that they can be replayed.",
     nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

void bind_dispatcher(py::module_& m) {
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(create)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, kMembers},
      {Py_tp_methods, kMethods},
      {Py_tp_getset, kAttributes},
      {Py_tp_doc, const_cast<char*>(
                      "Dispatcher(trace, guards=(), plain=None, numbers=((), (), ()), observe=..., "
                      "before=None, codes=(), eager=False)\n\n"
                      "Calls "
                      "trace(*args, **kwargs), "
                      "which must be pure, and replays the plan that such a "
                      "call leaves for later calls of the same signature. A guard is "
                      "(dict or cell, name, value): where dict[name] or the cell's content is no "
                      "longer the same object (`...`: nothing), all plans are dropped; "
                      "guards=None: `trace` is "
                      "not pure, and nothing is replayed. Calls are "
                      "answered by `plain` where that is measured to be faster. `numbers` are "
                      "the positions and names of arguments that are operands and nothing else "
                      "when they are Python numbers, and the places (code, offset) whose results "
                      "are. observe(functions) gives the guards and codes of functions that a "
                      "recorded call has run, or None where they are not pure. `before`: the "
                      "function's dispatcher until now, whose counts and regret go on. `codes`: "
                      "(function, code, defaults, keyword defaults) of what the function runs; "
                      "where one has others, `trace` answers. `eager`: the function is one of "
                      "NumPy's, called from many lines: warnings are given by tracing, and "
                      "`plain` answers nothing but calls that run no loops.")},
      {0, nullptr}};
  static PyType_Spec spec = {"ufuse._core.Dispatcher", sizeof(DispatcherObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                             slots};
  m.attr("Dispatcher") = steal(PyType_FromSpec(&spec));
  m.def(
      "choose_by",
      [](const std::string& who) {
        std::string before = choices().text();
        choices() = Choices::of(who);
        return before;
      },
      py::arg("who"),
      "Who chooses between our ways and the plain function: 'clock', which compares their times; "
      "'ours', so that the plain function is never asked; or a number, from which chance begins. "
      "Returns who did before.");
}

}  // namespace ufuse::pyext
