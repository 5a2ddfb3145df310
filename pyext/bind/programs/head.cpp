// The head of a running loop: what a `for` or `while` goes over in a looped function.
//
// It hands out what the loop's own iterable would. Now and then it looks whether the loop has taken
// long enough to be worth compiling, and whether its program is there; then it ends the rounds of
// Python's, and `run_loop` runs the program from there on. Where the program exits, Python goes on:
// with the rest of the round in a function of its own (`LoopState::continuation`), and then with
// the program again, or with rounds of its own.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "codegen/runtime/abi.h"
#include "codegen/runtime/share.h"
#include "codegen/runtime/timeline.h"
#include "pyext/bind/call/backends.h"
#include "pyext/bind/call/call.h"
#include "pyext/bind/gil.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/native_call.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/programs/boxes.h"
#include "pyext/bind/programs/generators.h"
#include "pyext/bind/programs/lists.h"
#include "pyext/bind/programs/loop.h"
#include "pyext/bind/programs/walk.h"
#include "pyext/bind/signals.h"
#include "pyext/bind/sites/variables.h"

namespace ufuse::pyext {

using ir::program::Exit;
using ir::program::Input;
using ir::program::Over;
using numpy_shim::program::Entered;
using numpy_shim::program::Given;
using numpy_shim::program::Walked;

namespace {

// How a loop has gone on: what the code around it does next (ufuse/source/heads.py).
enum class Way : long { Ended, Broke, Returned, Raised, Resumed, AsWritten };

// What Python's rounds of a loop have taken before it is compiled, in all its runs.
constexpr std::int64_t kWorthCompiling = 5'000'000;
constexpr std::int64_t kLookEach = 500'000;  // ns
// Or how many operations it would record in a traced call.
constexpr std::int64_t kManyOperations = 1'000;
// Bytes of a value from which on a traced call is not given up for a program of whole arrays.
constexpr std::int64_t kLargeArray = std::int64_t{128} << 10;
constexpr std::int64_t kFirstLook = 16;  // rounds
// Of runs with no more rounds than that only one of so many is counted, for all of them: a head
// takes as long as some rounds.
constexpr std::int64_t kShortRuns = 16;
// What zip and the like go over is asked less and less often where it is never worth a head.
constexpr std::uint32_t kMostSkipped = 4096;
constexpr std::int64_t kBeginning = 10'000;  // ns: to look and to begin a program
// ns: what a head takes, and what it adds to a round of a `while`.
constexpr std::int64_t kHeadCost = 80, kRoundCost = 20;
constexpr std::int64_t kMostRounds = 1 << 20;
// A program asks after so long whether it is to go on, or after so many rounds; then signals are
// handled where that was so long ago.
constexpr std::int64_t kAskEach = 1'000'000, kMostUnasked = 256, kSignalsEach = 5'000'000;
// Where Python had to go on so often, and took so many times as long as the program, the program
// is given up.
constexpr std::int64_t kManyExits = 64, kWorse = 2;
// Where a program's run takes less than its share of what Python's rounds took before, there is no
// doubt that it is faster: what is known of Python's are first rounds, which take longer than later
// ones where arrays become smaller. It is given up after it has lost so many of so many trials.
constexpr double kNoDoubt = 1.0 / 3, kLost = 1.05;
constexpr int kMostLost = 2, kMostTrials = 8;

struct HeadObject {
  PyObject_HEAD PyObject* loop;
  enum Over : int { Range, Array, List, Walked, Iterator, While } over;
  PyObject* iterable;  // the range, array, list or iterator
  // Walked: what the iterator goes over. Iterator: the same, where there are lazy arrays in it.
  std::unique_ptr<Walk> walk;
  long long next, step, left;  // Range
  Py_ssize_t position;         // Array, List, Walked: how many items have been handed out
  PyObject* lazy;              // Iterator: over this lazy array; else null
  std::int64_t operations;     // that the call had recorded at the beginning
  // Rounds until the next look, how many there are between two, and since the beginning; when it
  // was looked last, 0 where nobody has to know.
  std::int64_t countdown, rounds, all_rounds, counted;
  std::int64_t weight;  // it is counted for so many runs
  bool enters;          // the program runs the rest
  bool is_traced;       // it is in code with call sites
  bool as_written;      // the rest of a traced loop goes on as it stands in the source
  std::shared_ptr<Version> version;
  std::unique_ptr<Place> place;  // List: `iterable`, while a call is traced
  std::int64_t begun;            // when a trial began, else 0
  bool is_pythons, is_programs;  // the trial; whether the program began
  long long all;                 // Range: the rounds at the beginning
};

PyTypeObject* head_type = nullptr;
PyObject* unbound = nullptr;

void look_again_after(HeadObject& head, std::int64_t rounds) {
  head.countdown = head.rounds = rounds;
}

// Whether it goes over items at positions, and how many there are at this time.
bool is_sized(const HeadObject& head) {
  return head.over == HeadObject::Array || head.over == HeadObject::List ||
         head.over == HeadObject::Walked;
}
Py_ssize_t size_of(const HeadObject& head) {
  if (head.over == HeadObject::Walked) return head.walk->rounds();
  if (head.over == HeadObject::List) return PyList_GET_SIZE(head.iterable);
  return PyArray_DIM(reinterpret_cast<PyArrayObject*>(head.iterable), 0);
}

// Whether nobody knows what it goes over.
bool is_unknown(const HeadObject& head) {
  return head.over == HeadObject::Iterator && head.lazy == nullptr && head.walk == nullptr;
}

// How many rounds there will have been after `done` ones, as far as that is known.
std::int64_t all_rounds(const HeadObject& head, std::int64_t done) {
  if (head.over == HeadObject::Range) return done + head.left;
  if (head.walk != nullptr) return head.walk->rounds();
  if (head.lazy != nullptr) return as_lazy(head.lazy)->array.layout.shape[0];
  return is_sized(head) ? size_of(head) : done;
}

HeadObject* head_of(PyObject* self) { return reinterpret_cast<HeadObject*>(self); }

// The variables and names of the function that runs the loop.
class Locals {
 public:
  Locals() {
    PyFrameObject* frame = PyEval_GetFrame();
    if (frame == nullptr) throw InternalError("a loop runs in no function");
    locals_ = steal(PyFrame_GetLocals(frame));
    names.globals = steal(PyFrame_GetGlobals(frame));
    names.builtins = steal(PyFrame_GetBuiltins(frame));
  }
  ~Locals() { drop_copies(locals_.ptr()); }
  Locals(const Locals&) = delete;
  Locals& operator=(const Locals&) = delete;
  Names names;
  py::object get(const py::object& name) const {
    PyObject* value = PyObject_GetItem(locals_.ptr(), name.ptr());
    if (value == nullptr) PyErr_Clear();
    return py::reinterpret_steal<py::object>(value);
  }

 private:
  py::object locals_;
};

using Variables = std::vector<py::object>;  // by number; unset: without a value

Entered entered_with(const HeadObject& head, const Variables& variables,
                     ProgramWorld::GivenOf given_of = pyext::given_of) {
  Entered entered;
  entered.has_chances = program_tests().exits_after != 0;
  // What nobody reads is the same, whatever it is: the loop needs no other program for it.
  const std::vector<bool>& read_first = loop_state(head.loop).read_first;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Given& given = entered.variables.emplace_back();
    if (!read_first[i]) continue;
    given = given_of(variables[i].ptr());
    if (given.kind == Given::Kind::Other) given.identity = identity_of(variables[i].ptr());
  }
  if (head.over == HeadObject::Range) {
    entered.over.kind = Walked::Kind::Range;
    const long long last = head.left > 0 ? head.next + (head.left - 1) * head.step : head.next;
    entered.over.counts_up = head.next >= 0 && last >= 0;
  } else if (head.walk != nullptr) {
    entered.over = head.walk->walked(given_of);
  } else if (is_sized(head) || head.lazy != nullptr) {
    entered.over.kind = Walked::Kind::Items;
    entered.over.items = given_of(head.lazy != nullptr ? head.lazy : head.iterable);
  }
  return entered;
}

bool is_left(const HeadObject& head) {
  switch (head.over) {
    case HeadObject::Range:
      return head.left > 0;
    case HeadObject::Walked:
      if (!head.walk->is_even()) return false;
      [[fallthrough]];
    case HeadObject::Array:
    case HeadObject::List:
      return head.position < size_of(head);
    case HeadObject::While:
      return true;
    case HeadObject::Iterator:
      return false;
  }
  return false;
}

// Whether the program's result is NumPy's whatever NumPy does about floating-point errors: it exits
// where there is one, but for underflows, which nobody asks about by default.
bool ignores_underflow() {
  struct Known {
    ErrorState state;
    bool ignores = false;
  };
  static thread_local Known* known = nullptr;  // never freed: threads may outlive Python
  if (known == nullptr) known = new Known;
  if (!known->state.is_current()) {
    known->state = ErrorState::now();
    const auto mask = current_report_mask();
    known->ignores = mask && (*mask & rt::kUnderflow) == 0;
  }
  return known->ignores;
}

Variables variables_in(const Locals& locals, const LoopState& loop) {
  Variables variables;
  for (const py::object& name : loop.names) variables.push_back(locals.get(name));
  return variables;
}

// Where tracing has stopped, the loop goes on over real arrays.
void make_real(HeadObject& head) {
  if (head.over == HeadObject::Iterator && head.walk != nullptr) {
    head.walk->make_real();
    head.over = HeadObject::Walked;
  }
  if (head.lazy != nullptr) {
    const py::object real = unwrap_to_read(head.lazy);
    Py_CLEAR(head.lazy);
    Py_SETREF(head.iterable, real.inc_ref().ptr());
    head.over = HeadObject::Array;
  }
}

// The same where it has stopped at this loop, which gives the lazy arrays that there were.
bool goes_on_real(HeadObject& head, const std::optional<std::vector<py::object>>& lazies) {
  if (lazies) make_real(head);
  return lazies.has_value();
}

// A loop in a call that is being traced: where it can be a program and is long, tracing stops.
// False where it goes on.
bool stops_tracing(HeadObject& head, LoopState& loop, Call& call, std::int64_t rounds) {
  if (!is_at_traced_code() || is_unknown(head)) return false;
  const std::int64_t recorded = call.operations() - head.operations;
  const std::int64_t expected =
      rounds > 0 ? recorded * all_rounds(head, rounds) / rounds : recorded;
  if (expected < kManyOperations && loop.python_ns < kWorthCompiling) return false;
  const auto version = [&] {
    const Locals locals;  // gone when tracing stops: they hold lazy arrays
    const Variables variables = variables_in(locals, loop);
    return loop.version_for(entered_with(head, variables, given_of_traced), variables, locals.names,
                            given_of_traced);
  }();
  if (version == nullptr) return false;
  // Statements about large arrays are worth loops of their own.
  if (version->program.computes_arrays && call.session().largest_value() > kLargeArray)
    return false;
  return goes_on_real(head, call.stop(Reason::NativeLoop));
}

// Where tracing has stopped, and the loop cannot go on natively, there is no more use for its call
// sites, which take longer than what stands between them.
bool goes_on_as_written(HeadObject& head) {
  if (Call::active() || !Call::stopped() || !is_at_traced_code()) return false;
  head.as_written = true;
  look_again_after(head, kMostRounds);
  return true;
}

// Looks whether the program can run the rest.
bool look(HeadObject& head) {
  LoopState& loop = loop_state(head.loop);
  if (head.as_written) {
    look_again_after(head, kMostRounds);
    return false;
  }
  if (!Call::active()) make_real(head);
  const std::int64_t now = steady_ns();
  if (head.counted != 0) {
    loop.python_ns += head.weight * (now - head.counted);
    loop.python_rounds += head.weight * head.rounds;
  }
  // So many rounds as take about kLookEach.
  const std::int64_t rounds = head.all_rounds += head.rounds;
  const std::int64_t round =
      loop.python_rounds ? loop.python_ns / loop.python_rounds : kLookEach / kFirstLook;
  const bool eager = program_tests().eager;
  look_again_after(head,
                   eager ? 0 : std::clamp<std::int64_t>(kLookEach / (round + 1), 1, kMostRounds));
  head.counted = now;
  if (loop.is_closed || head.is_pythons || is_unknown(head)) {
    if (Call* call = Call::active(); call && is_at_traced_code()) {
      if (!goes_on_real(head, call->stop_at_slow_loop())) return false;
    } else {
      look_again_after(head, kMostRounds);
    }
    return goes_on_as_written(head);
  }
  if (Call* call = Call::active(); call && !stops_tracing(head, loop, *call, rounds) &&
                                   !goes_on_real(head, call->stop_at_slow_loop()))
    return false;
  if ((loop.python_ns < kWorthCompiling && !eager) || !is_left(head)) return false;
  const Locals locals;
  const Variables variables = variables_in(locals, loop);
  const auto version = loop.version_for(entered_with(head, variables), variables, locals.names);
  if (version == nullptr) return goes_on_as_written(head);
  if (!version->kernel) {
    if (eager) version->build.wait();
    if (version->build.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
    try {
      version->kernel = version->build.get().kernel;
      loop.is_ready = true;
    } catch (const CompileError& error) {
      loop.close(error.what());
      return false;
    }
  }
  head.version = version;
  head.is_programs |= rounds == 0;
  return ignores_underflow();
}

// The same. Whatever goes wrong leaves the loop to Python; only what a signal's handler raises is
// the user's.
bool enters(HeadObject& head) {
  const int found = guard([&] { return static_cast<int>(look(head)); }, -1);
  if (found >= 0) return found > 0;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;
  const py::error_already_set error;
  const py::object of_handler =
      py::module_::import("ufuse.tracing.tracebacks").attr("is_of_handler");
  if (error.trace() && of_handler(error.trace()).ptr() == Py_True) {
    py::error_already_set(error).restore();
    return false;
  }
  loop_state(head.loop).close("internal error: " +
                              text_of(steal(PyObject_Str(error.value().ptr())).ptr()));
  return false;
}

PyObject* next_of(PyObject* self) {
  HeadObject& head = *head_of(self);
  if (--head.countdown < 0) {
    head.enters = enters(head);
    if (PyErr_Occurred() || head.enters) return nullptr;
  }
  switch (head.over) {
    case HeadObject::Range: {
      if (head.left <= 0) return nullptr;
      PyObject* value = PyLong_FromLongLong(head.next);
      head.next += head.step;
      --head.left;
      return value;
    }
    case HeadObject::Array:
      if (head.position >= size_of(head)) return nullptr;
      return PySequence_GetItem(head.iterable, head.position++);
    case HeadObject::List:
      if (head.position >= size_of(head)) return nullptr;
      return Py_NewRef(PyList_GET_ITEM(head.iterable, head.position++));
    case HeadObject::Walked:
    case HeadObject::Iterator: {
      PyObject* item = Py_TYPE(head.iterable)->tp_iternext(head.iterable);
      head.position += item != nullptr;
      return item;
    }
    case HeadObject::While:
      Py_RETURN_NONE;
  }
  return nullptr;
}

// ---- Running the program ----

// After how long other threads get Python's lock. A thread that waits for it asks for it only where
// nobody has given it away for Python's switch interval: whoever gives it away and takes it again
// sooner keeps it for ever.
std::int64_t turn_each() {
  constexpr double kUsual = 5e-3, kMost = 1e6;  // s
  PyObject* const asked = PySys_GetObject("getswitchinterval");
  const py::object answer = asked ? steal(PyObject_CallNoArgs(asked)) : py::object();
  double interval = answer ? PyFloat_AsDouble(answer.ptr()) : kUsual;
  if (PyErr_Occurred()) {
    PyErr_Clear();
    interval = kUsual;
  }
  return static_cast<std::int64_t>(2e9 * std::clamp(interval, 0.0, kMost));
}

// What a program asks from time to time (FrameLayout::kAsk). Other threads and handlers of signals
// may change what the program has read once, as a flag that ends a `while`.
struct Asked {
  const std::function<bool()>& is_as_entered;
  const std::function<bool()>& shows_attributes;
  std::int64_t last = steady_ns(), signals = last, turn = last;
  std::int64_t rounds = 8;
  std::int64_t turn_each = 0;  // not known yet
  ListAccess* lists = nullptr;
  Generators* generators = nullptr;
  bool has_raised = false;
};
// False where that raises.
template <class Do>
bool does(Asked& asked, const Do& what) {
  try {
    what();
  } catch (py::error_already_set& error) {
    error.restore();
    asked.has_raised = true;
  }
  return !asked.has_raised;
}
int ask(void* context) {
  auto& asked = *static_cast<Asked*>(context);
  const std::int64_t now = steady_ns(), took = now - std::exchange(asked.last, now);
  asked.rounds = std::clamp<std::int64_t>(asked.rounds * kAskEach / (took + 1), 1,
                                          std::min(2 * asked.rounds, kMostUnasked));
  if (now - asked.signals >= kSignalsEach) {
    if (!asked.shows_attributes()) return -1;
    if (asked.lists != nullptr) asked.lists->hold_inner();
    if (asked.generators != nullptr && !does(asked, [&] { asked.generators->put_back(); }))
      return -1;
    if (asked.turn_each == 0) asked.turn_each = turn_each();
    if (now - asked.turn >= asked.turn_each) {
      { const WithoutGil others_turn; }
      asked.turn = steady_ns();
    }
    asked.has_raised = handles_signals() && handler_raises();
    if (asked.has_raised) return -1;
    bool is_same = true;
    if (asked.generators != nullptr && !does(asked, [&] { is_same = asked.generators->wait(); }))
      return -1;
    if (!is_same || !asked.is_as_entered()) return -1;
    asked.last = asked.signals = steady_ns();
  }
  return static_cast<int>(asked.rounds);
}

// What the code around the loop gets: the variables that the loop assigns, how it has gone on, and
// a value. `variable(number)` gives a variable's; unset: it has none.
template <class Get>
py::object handed_back(const LoopState& loop, const Get& variable, Way way,
                       const py::object& value) {
  const std::size_t count = loop.assigned.size();
  py::tuple made(count + 2);
  for (std::size_t i = 0; i < count; ++i) {
    const py::object assigned = variable(static_cast<std::size_t>(loop.assigned[i]));
    made[i] = assigned ? assigned : borrow(unbound);
  }
  made[count] = py::int_(static_cast<long>(way));
  made[count + 1] = value;
  return made;
}

class Run {
 public:
  Run(HeadObject& head, LoopState& loop)
      : head_(head),
        loop_(loop),
        kept_(head.version),
        version_(*kept_),
        frame_(version_.program, version_.layout) {
    loop.wasted = 0;
    const Locals locals;
    names_ = locals.names;
    variables_ = variables_in(locals, loop);
    if (version_.program.uses_lists) lists_.emplace();
  }

  py::object result() {
    while (step()) {
    }
    return handed_back(
        loop_, [&](std::size_t i) { return variables_[i]; }, way_, value_ ? value_ : py::none());
  }

 private:
  // The program once, and what Python does where it exits. Whether it goes on.
  bool step() {
    fill();
    const std::int64_t start = steady_ns();
    const Exit& exit = version_.program.exits[launch()];
    version_.native_ns += steady_ns() - start;
    read(exit);
    if (has_raised_) return raise();
    switch (exit.kind) {
      case Exit::Kind::Exhausted:
        return end(Way::Ended);
      case Exit::Kind::Broke:
        return end(Way::Broke);
      case Exit::Kind::Returned:
        value_ = frame_.get(exit.value, entered_);
        return end(Way::Returned);
      case Exit::Kind::Leave:
        return leave(exit, start);
    }
    throw InternalError("an exit of unknown kind");
  }

  bool end(Way way) {
    way_ = way;
    return false;
  }

  // The exception that is set, for the code around the loop.
  bool raise() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace != nullptr) PyException_SetTraceback(value, trace);
    value_ = py::reinterpret_steal<py::object>(value);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return end(Way::Raised);
  }

  void fill() {
    frame_.forget_new_arrays();
    outside_.clear();
    if (lists_) lists_->begin();
    generators_.reset();
    std::vector<PyObject*> items;
    if (head_.over == HeadObject::Walked) head_.walk->add_items(items);
    for (const Input& input : version_.program.inputs) {
      switch (input.from) {
        case Input::From::Variable:
          put(input, variables_[static_cast<std::size_t>(input.index)]);
          break;
        case Input::From::Outside:
          put(input, from_outside(input.index));
          break;
        case Input::From::Generator: {
          if (!generators_) generators_.emplace();
          const std::uint64_t address = generators_->address(from_outside(input.index).ptr());
          frame_.set_integer(input.value.reg, static_cast<std::int64_t>(address));
          break;
        }
        case Input::From::Iterable:
          put(input, borrow(items.empty() ? head_.iterable
                                          : items[static_cast<std::size_t>(input.index)]));
          break;
      }
    }
    entered_ = variables_;
    attributes_.clear();
    for (const ir::program::Attribute& each : version_.program.attributes) {
      auto [owner, name] = version_.world->attribute_of(each.index, variables_);
      attributes_.push_back({owner, name, {}, frame_.words_at(each.value)});
    }
    if (const auto& rounds = version_.program.head) {
      frame_.set_integer(rounds->position, 0);
      if (head_.over == HeadObject::Range) {
        frame_.set_integer(rounds->count, head_.left);
        frame_.set_integer(rounds->over.start, head_.next);
        frame_.set_integer(rounds->over.step, head_.step);
      } else {
        frame_.set_integer(rounds->position, head_.position);
        if (head_.over == HeadObject::Array) frame_.set_integer(rounds->count, size_of(head_));
        if (head_.over == HeadObject::Walked) put(rounds->over, *head_.walk);
      }
    }
  }

  // What stands outside, which is kept alive.
  py::object from_outside(int number) {
    const py::object value = version_.world->value(number, variables_);
    held_.push_back(value);
    outside_.emplace_back(number, value.ptr());
    return value;
  }

  void put(const Input& input, const py::object& value) {
    frame_.put(input.value, value.ptr());
    if (lists_) lists_->given(value.ptr());
  }

  // The numbers of what the loop goes over.
  void put(const Over& over, const Walk& walk) {
    if (over.kind == Over::Kind::Range) {
      frame_.set_integer(over.count, walk.count);
      frame_.set_integer(over.step, walk.step);
    }
    if (over.start != ir::program::kNone) frame_.set_integer(over.start, walk.start);
    for (std::size_t i = 0; i < over.parts.size(); ++i) put(over.parts[i], walk.parts[i]);
  }

  // Variables that the loop does not assign: other functions may, those inside this one and around
  // it.
  void take_what_others_assign(Variables& variables) const {
    const Locals locals;
    for (std::size_t i = 0; i < variables.size(); ++i)
      if (!loop_.is_own(i)) variables[i] = locals.get(loop_.names[i]);
  }

  // Whether what was handed in is still what stands outside.
  bool is_as_entered() const {
    try {
      const auto is_same = [&](const auto& each) {
        return version_.world->value(each.first, entered_).ptr() == each.second;
      };
      Variables now = entered_;
      take_what_others_assign(now);
      return std::ranges::equal(now, entered_,
                                [](const auto& a, const auto& b) { return a.is(b); }) &&
             std::ranges::all_of(outside_, is_same) &&
             version_.world->is_current(entered_, given_of);
    } catch (const std::exception&) {
      PyErr_Clear();
      return false;
    }
  }

  // An attribute that the program assigns.
  struct Attribute {
    py::object owner, name;
    py::object value;                  // that the owner has got; unset: none yet
    std::vector<std::uint64_t> words;  // of the value that it has
  };

  // Gives an object the attribute that stands there, unless somebody has assigned another one: that
  // was after the program last did.
  void show(std::size_t number, const ir::program::Where& where) {
    Attribute& attribute = attributes_[number];
    std::vector<std::uint64_t> words = frame_.words_at(where);
    if (words == attribute.words && !frame_.is_new(where)) return;
    const int index = version_.program.attributes[number].index;
    const auto known = std::ranges::find(outside_, index, &std::pair<int, PyObject*>::first);
    if (version_.world->value(index, entered_).ptr() != known->second) return;
    const py::object value = frame_.get(where, entered_);
    if (PyObject_SetAttr(attribute.owner.ptr(), attribute.name.ptr(), value.ptr()) < 0)
      throw py::error_already_set();
    known->second = value.ptr();
    attribute.value = value;
    attribute.words = std::move(words);
  }

  // Where others may look at the attributes while the program runs.
  bool show_attributes() {
    try {
      for (std::size_t i = 0; i < attributes_.size(); ++i)
        show(i, version_.program.attributes[i].value);
      frame_.forget_new_arrays();
      return true;
    } catch (const std::exception&) {
      PyErr_Clear();
      return false;
    }
  }

  std::size_t launch() {
    const std::function<bool()> same = [this] { return is_as_entered(); };
    const std::function<bool()> shows = [this] { return show_attributes(); };
    Asked asked{.is_as_entered = same, .shows_attributes = shows};
    if (lists_) {
      asked.lists = &*lists_;
      frame_.words()[version_.layout.lists] = reinterpret_cast<std::uint64_t>(&lists_->functions());
    }
    if (generators_) {
      asked.generators = &*generators_;
      if (!generators_->wait()) throw InternalError("a generator draws from something else");
    }
    frame_.words()[codegen::FrameLayout::kAsk] = reinterpret_cast<std::uint64_t>(&ask);
    frame_.words()[codegen::FrameLayout::kAsked] = reinterpret_cast<std::uint64_t>(&asked);
    frame_.words()[codegen::FrameLayout::kChances] = program_tests().exits_after;
    void* buffers[] = {frame_.words()};
    std::vector<rt::Loop> loops;
    for (const std::uint32_t row : version_.printed.rows)
      loops.push_back({loop_table()[row].loop, loop_table()[row].data});
    rt::Args args{};
    args.buffers = buffers;
    args.loops = loops.data();
    args.threads = codegen::team_of(1);
    std::size_t exit = 0;
    {
      const codegen::Timed timed([&] {
        return codegen::Slice{codegen::Slice::Kind::Program,
                              "loop in line " + std::to_string(loop_.text.statement.line)};
      });
      exit = (*version_.kernel)(args);
    }
    has_raised_ = asked.has_raised;
    if (generators_) generators_->put_back();
    if (lists_) lists_->take_back();
    return exit;
  }

  // The variables and the head's position as the program has left them.
  void read(const Exit& exit) {
    Variables now;
    for (std::size_t i = 0; i < variables_.size(); ++i)
      now.push_back(frame_.get(exit.variables[i], entered_));
    variables_ = std::move(now);
    for (std::size_t i = 0; i < attributes_.size(); ++i)
      show(i, exit.variables[variables_.size() + i]);
    const auto& rounds = version_.program.head;
    if (!rounds) return;
    // Of a round that has begun Python does the rest.
    const bool within =
        exit.kind != Exit::Kind::Exhausted && exit.statement != loop_.text.statement.number;
    const bool begun = within || exit.kind == Exit::Kind::Broke;
    const std::int64_t done = frame_.integer(rounds->position) + (begun ? 1 : 0);
    if (head_.over == HeadObject::Range) {
      head_.next += done * head_.step;
      head_.left -= done;
    } else {
      head_.position = done;
    }
  }

  bool leave(const Exit& exit, std::int64_t start) {
    ++version_.exits;
    const bool at_head = exit.statement == loop_.text.statement.number;
    take_what_others_assign(variables_);
    if (!at_head && !finish_round(exit)) return false;
    const std::int64_t now = steady_ns();
    version_.python_ns += now - start;
    if (version_.exits > kManyExits && version_.python_ns > kWorse * version_.native_ns &&
        !program_tests().eager)
      loop_.close("it had to be left to Python too often");
    if (at_head || loop_.is_closed || !is_left(head_)) return resume();
    const auto again = loop_.version_for(entered_with(head_, variables_), variables_, names_);
    return again == kept_ || resume();
  }

  // Python does the next rounds.
  bool resume() {
    head_.enters = false;
    if (head_.over == HeadObject::Walked)
      Py_SETREF(head_.iterable, head_.walk->rest(head_.position).release().ptr());
    look_again_after(head_, 1);
    head_.counted = steady_ns();
    return end(Way::Resumed);
  }

  // The rest of a round that the program has begun. False where that ends the loop.
  bool finish_round(const Exit& exit) {
    const py::object function =
        loop_.continuation(names_.globals, exit.at_round ? ~exit.statement : exit.statement);
    py::dict given;
    for (std::size_t i = 0; i < variables_.size(); ++i)
      if (variables_[i]) given[loop_.names[i]] = variables_[i];
    for (const ir::program::Rounds& rounds : exit.loops) {
      const bool is_next = exit.at_round && rounds.loop == exit.statement;
      given[py::str(".rest" + std::to_string(rounds.loop))] =
          walk_of(rounds.over).rest(frame_.integer(rounds.position) + (is_next ? 0 : 1));
    }
    entered_.clear();
    const auto empty = py::tuple(0);
    const auto made =
        py::reinterpret_steal<py::object>(PyObject_Call(function.ptr(), empty.ptr(), given.ptr()));
    if (!made) {
      raise();
      take_variables_of_traceback(function);
      return false;
    }
    const auto parts = made.cast<py::tuple>();
    take_variables(parts[2]);
    const auto way = static_cast<Way>(parts[0].cast<long>());
    if (way == Way::Ended) return true;
    value_ = parts[1];
    return end(way);
  }

  Walk walk_of(const Over& over) {
    using enum ir::program::Where::Kind;
    Walk walk;
    walk.kind = over.kind;
    walk.strict = over.strict;
    if (over.count != ir::program::kNone) walk.count = frame_.integer(over.count);
    if (over.start != ir::program::kNone) walk.start = frame_.integer(over.start);
    if (over.step != ir::program::kNone) walk.step = frame_.integer(over.step);
    if (over.array != ir::program::kNone)
      walk.items = frame_.get({.kind = Array, .reg = over.array, .parts = {}}, entered_);
    if (over.list != ir::program::kNone)
      walk.items = frame_.get({.kind = Object, .reg = over.list, .parts = {}}, entered_);
    if (over.kind == Over::Kind::Tuple)
      walk.items = frame_.get({.kind = Tuple, .parts = over.items}, entered_);
    for (const Over& part : over.parts) walk.parts.push_back(walk_of(part));
    return walk;
  }

  void take_variables(const py::object& locals) {
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      PyObject* value = PyObject_GetItem(locals.ptr(), loop_.names[i].ptr());
      if (value == nullptr) PyErr_Clear();
      variables_[i] = py::reinterpret_steal<py::object>(value);
    }
  }
  void take_variables_of_traceback(const py::object& function) {
    const py::object code = function.attr("__code__");
    for (py::object trace = value_.attr("__traceback__"); !trace.is_none();
         trace = trace.attr("tb_next"))
      if (py::object(trace.attr("tb_frame").attr("f_code")).is(code)) {
        take_variables(trace.attr("tb_frame").attr("f_locals"));
        return;
      }
  }

  HeadObject& head_;
  LoopState& loop_;
  // The loop forgets it where names stand for something else, which the rest of a round may do.
  const std::shared_ptr<Version> kept_;
  Version& version_;
  Frame frame_;
  Names names_;
  Variables variables_, entered_;
  std::vector<py::object> held_;  // from outside, in all runs
  // What stands outside and the program has got, or has given to an object; by number.
  std::vector<std::pair<int, PyObject*>> outside_;
  std::vector<Attribute> attributes_;
  std::optional<ListAccess> lists_;
  std::optional<Generators> generators_;
  bool has_raised_ = false;  // a signal's handler, in the last run
  Way way_ = Way::Ended;
  py::object value_;
};

// Where the loop goes on as written: the variables as they are, and the head for the rest of the
// rounds.
py::object rest_as_written(PyObject* self, const LoopState& loop) {
  const Locals locals;
  return handed_back(
      loop, [&](std::size_t i) { return locals.get(loop.names[i]); }, Way::AsWritten, borrow(self));
}

PyObject* run_loop(PyObject*, PyObject* self) {
  if (Py_TYPE(self) != head_type) Py_RETURN_NONE;  // a plain iterator
  HeadObject& head = *head_of(self);
  LoopState& loop = loop_state(head.loop);
  if (!head.enters) {
    if (head.counted != 0) {
      loop.python_ns += head.weight * (steady_ns() - head.counted);
      loop.python_rounds += head.weight * (head.rounds - head.countdown);
    }
    Py_RETURN_NONE;
  }
  return guard([&] {
    py::object left = head.as_written ? rest_as_written(self, loop) : Run(head, loop).result();
    head.enters &= !head.as_written;
    return left.release().ptr();
  });
}

// The end of a loop whose program is compared with Python. Both ways end here with the same code
// behind the loop.
void end_trial(HeadObject& head) {
  LoopState& loop = loop_state(head.loop);
  LoopState::Trial& trial = loop.trial;
  const std::int64_t taken = steady_ns() - head.begun;
  const std::int64_t rounds = head.over == HeadObject::Range ? head.all - head.left : head.position;
  if (trial.is_over || loop.is_closed || head.is_pythons != trial.is_pythons || rounds == 0) return;
  if (!head.is_pythons) {
    if (head.version == nullptr) return;  // it was not there
    const auto pythons =
        static_cast<double>(loop.python_ns) / static_cast<double>(loop.python_rounds);
    trial.is_whole = head.is_programs;
    trial.is_over = trial.is_whole &&
                    static_cast<double>(taken) < kNoDoubt * pythons * static_cast<double>(rounds);
    trial.native_ns = taken;
    trial.rounds = rounds;
    trial.is_pythons = true;
    return;
  }
  trial.is_pythons = false;
  if (rounds == trial.rounds) {
    if (static_cast<double>(trial.native_ns) < kLost * static_cast<double>(taken))
      trial.is_over = trial.is_whole;
    else if (++trial.lost == kMostLost)
      loop.close("it was measured to be faster");
  }
  trial.is_over |= ++trial.runs == kMostTrials;
}

void destroy(PyObject* self) {
  HeadObject& head = *head_of(self);
  if (head.begun != 0)
    guard(
        [&] {
          end_trial(head);
          return 0;
        },
        0);
  if (head.over == HeadObject::While && !head.is_traced && head.version == nullptr) {
    LoopState& loop = loop_state(head.loop);
    const std::int64_t rounds = head.all_rounds + head.rounds - head.countdown;
    if (rounds < kFirstLook || loop.is_decided()) loop.wasted += kHeadCost + kRoundCost * rounds;
  }
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  std::destroy_at(&head.place);
  Py_CLEAR(head.loop);
  Py_CLEAR(head.iterable);
  Py_CLEAR(head.lazy);
  std::destroy_at(&head.walk);
  std::destroy_at(&head.version);
  type->tp_free(self);
  Py_DECREF(type);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(head_of(self)->loop);
  Py_VISIT(head_of(self)->iterable);
  Py_VISIT(head_of(self)->lazy);
  std::vector<PyObject*> items;
  if (head_of(self)->walk) head_of(self)->walk->add_items(items);
  for (PyObject* each : items) Py_VISIT(each);
  return 0;
}

int clear(PyObject* self) {
  head_of(self)->place.reset();
  Py_CLEAR(head_of(self)->iterable);
  return 0;
}

bool read_range(PyObject* range, HeadObject& head) {
  return guard(
             [&] {
               const std::optional<Walk> walk = walk_of_range(range);
               if (!walk) return 0;
               head.next = walk->start;
               head.step = walk->step;
               head.left = walk->count;
               return 1;
             },
             -1) > 0;
}

// After how many rounds a new head looks for the first time: after fewer where a round is known to
// take long, for there may be few of them. Where the program is there: at once if all rounds would
// take Python longer than it takes to begin the program, and if nobody knows how many there are,
// after as many as take so long.
std::int64_t first_look(const HeadObject& head) {
  const LoopState& loop = loop_state(head.loop);
  if (program_tests().eager) return 0;
  if (loop.python_rounds == 0) return kFirstLook;
  const std::int64_t round = std::max<std::int64_t>(loop.python_ns / loop.python_rounds, 1);
  // Rounds that are traced take long once only.
  if (!loop.is_ready) return Call::active() ? kFirstLook : std::min(kFirstLook, kLookEach / round);
  const std::int64_t worth = kBeginning / round;
  if (head.over == HeadObject::While || head.over == HeadObject::Iterator) return worth;
  const std::int64_t left = head.over == HeadObject::Range ? head.left : size_of(head);
  return left > worth ? 0 : kMostRounds;
}

// Of a loop whose program is there, or that has none, it is known what Python's rounds take, or
// does not matter: telling the time would take longer than some loops.
void begin_counting(HeadObject& head) {
  const LoopState& loop = loop_state(head.loop);
  look_again_after(head, first_look(head));
  head.counted = loop.is_ready || loop.is_closed ? 0 : steady_ns();
  const bool is_counted = head.over == HeadObject::Range || is_sized(head);
  if (!loop.is_ready || loop.is_closed || loop.trial.is_over || !is_counted ||
      loop.python_rounds == 0 || program_tests().eager)
    return;
  head.all = head.left;
  head.is_pythons = loop.trial.is_pythons;
  head.begun = steady_ns();
}

bool is_list_of_numbers(PyObject* object) {
  if (!PyList_CheckExact(object)) return false;
  const auto is_known = [&] { return given_of(object).kind == Given::Kind::List ? 1 : 0; };
  return PyList_GET_SIZE(object) > 0 && guard(is_known, 0) != 0;
}

// What a loop goes over that has `zip(...)`, `enumerate(...)` or `reversed(...)` in its head. Null:
// it is not known, or there are too few rounds for a head; then the next loops are not asked.
std::unique_ptr<Walk> walk_over(LoopState& loop, PyObject* iterator) {
  const bool is_called = loop.text.statement.value.kind == numpy_shim::program::Expr::Kind::Call;
  if (!is_called || (loop.unwalked > 0 && !program_tests().eager)) {
    loop.unwalked -= loop.unwalked > 0;
    return nullptr;
  }
  std::unique_ptr<Walk> made;
  guard(
      [&] {
        std::optional<Walk> walk = walk_of_iterator(iterator);
        if (walk && !Call::active()) walk->make_real();  // lazy ones of a call that has ended
        if (walk) made = std::make_unique<Walk>(std::move(*walk));
        return 0;
      },
      0);
  if (PyErr_Occurred()) PyErr_Clear();
  if (made && (made->rounds() >= kFirstLook || program_tests().eager)) {
    loop.skips_walks = 0;
    return made;
  }
  loop.skips_walks = std::clamp<std::uint32_t>(2 * loop.skips_walks, kShortRuns, kMostSkipped);
  loop.unwalked = loop.skips_walks;
  return nullptr;
}

// Whether a run of the loop is over before it would be looked at, or before a program had begun.
bool is_short_run(const LoopState& loop, PyObject* iterable) {
  if (Call::active() || program_tests().eager || is_lazy(iterable)) return false;
  const Py_ssize_t rounds = PyObject_Size(iterable);
  if (rounds < 0) PyErr_Clear();
  if (!loop.is_ready) return rounds >= 0 && rounds < kFirstLook;
  const std::int64_t round =
      loop.python_rounds ? std::max<std::int64_t>(loop.python_ns / loop.python_rounds, 1) : 1;
  return rounds >= 0 && rounds <= kBeginning / round;
}

// What Python would go over, where a head is of no use.
PyObject* iterator_in_vain(PyObject* loop, PyObject* iterable) {
  loop_state(loop).wasted += kHeadCost;
  return drop_if_useless(loop) ? PyObject_GetIter(iterable) : nullptr;
}

}  // namespace

// Where no program can run the loop, there is no head between Python and its iterator; but while a
// call is traced there is, for tracing may stop in the loop.
PyObject* make_head(PyObject* loop, PyObject* iterable) {
  LoopState& state = loop_state(loop);
  const bool is_while = state.text.statement.kind == numpy_shim::program::Statement::Kind::While;
  const bool is_traced = (Call::active() || Call::stopped()) && is_at_traced_code();
  const bool is_tested = program_tests().eager && !state.is_closed;
  const bool is_tried = is_while || is_tested || state.may_become_native();
  const bool is_plain = PyRange_Check(iterable) || PyArray_CheckExact(iterable) ||
                        is_lazy(iterable) || (is_tried && is_list_of_numbers(iterable));
  std::unique_ptr<Walk> walk;
  if (!is_while && !is_plain && is_tried) walk = walk_over(state, iterable);
  if (!is_while && (!is_tried || (!is_plain && !walk))) {
    if (!is_plain && state.why_not.empty())
      state.why_not = "it goes over something else than a range, an array or a list of numbers";
    if (!is_traced) return iterator_in_vain(loop, iterable);
  }
  const bool is_short = !is_while && !walk && is_short_run(state, iterable);
  if (is_short && ++state.short_runs % kShortRuns != 0) return iterator_in_vain(loop, iterable);
  if (is_while && !drop_if_useless(loop)) return nullptr;
  auto* self = reinterpret_cast<HeadObject*>(head_type->tp_alloc(head_type, 0));
  if (self == nullptr) return nullptr;
  new (&self->version) std::shared_ptr<Version>;
  new (&self->place) std::unique_ptr<Place>;
  new (&self->walk) std::unique_ptr<Walk>(std::move(walk));
  self->weight = is_short ? kShortRuns : 1;
  self->is_traced = is_traced;
  Py_INCREF(loop);
  self->loop = loop;
  if (const Call* call = Call::active()) self->operations = call->operations();
  if (is_while) {
    self->over = HeadObject::While;
  } else if (self->walk && !self->walk->is_lazy()) {
    self->over = HeadObject::Walked;
  } else if (PyRange_Check(iterable) && read_range(iterable, *self)) {
    self->over = HeadObject::Range;
  } else if (PyArray_CheckExact(iterable) &&
             PyArray_NDIM(reinterpret_cast<PyArrayObject*>(iterable)) > 0) {
    self->over = HeadObject::Array;
  } else if (PyList_CheckExact(iterable)) {
    self->over = HeadObject::List;
  } else {
    self->over = HeadObject::Iterator;
    if (is_lazy(iterable)) self->lazy = Py_NewRef(iterable);
    iterable = PyErr_Occurred() ? nullptr : PyObject_GetIter(iterable);
    if (iterable == nullptr) {
      Py_DECREF(self);
      return nullptr;
    }
    self->iterable = iterable;
    begin_counting(*self);
    return reinterpret_cast<PyObject*>(self);
  }
  Py_INCREF(iterable);
  self->iterable = iterable;
  if (self->over == HeadObject::List && is_traced)
    self->place = std::make_unique<Place>(self->iterable);
  begin_counting(*self);
  return reinterpret_cast<PyObject*>(self);
}

void bind_head(py::module_& m) {
  static PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                {Py_tp_iter, reinterpret_cast<void*>(PyObject_SelfIter)},
                                {Py_tp_iternext, reinterpret_cast<void*>(next_of)},
                                {0, nullptr}};
  static PyType_Spec spec = {
      "ufuse._core.Head", sizeof(HeadObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  const py::object type = steal(PyType_FromSpec(&spec));
  head_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("Head") = type;
  unbound =
      steal(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type))).release().ptr();
  m.attr("unbound") = borrow(unbound);
  static PyMethodDef method = {"run_loop", run_loop, METH_O,
                               "Run the rest of a loop natively. None where its head has ended."};
  m.attr("run_loop") = steal(PyCFunction_New(&method, nullptr));
}

}  // namespace ufuse::pyext
