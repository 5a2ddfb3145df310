// What belongs to one traced call: its session, the Python objects that its lazy arrays stand for,
// the code objects in which its operations stand, and, as the session's Host, memory, backends and
// NumPy. Traced calls may be made inside others: each thread has a stack of them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pyext/bind/call/containers.h"
#include "pyext/bind/call/copies.h"
#include "pyext/bind/call/holders.h"
#include "pyext/bind/call/warning_watch.h"
#include "pyext/bind/numpy/error_state.h"
#include "pyext/bind/numpy/numpy_facts.h"
#include "pyext/bind/replay/number_history.h"
#include "pyext/bind/replay/objects.h"
#include "pyext/bind/replay/result_tree.h"
#include "pyext/bind/replay/signature.h"
#include "pyext/bind/sites/frames.h"
#include "tracer/session.h"

namespace ufuse::pyext {

using tracer::LazyArray;
using tracer::Memory;

// Nanoseconds of a clock that never goes back, time.perf_counter_ns's.
std::int64_t steady_ns();

// Memory that a Python object keeps alive.
Memory memory_of(PyObject* owner, void* data);

// A line of Python code.
struct SourceLine {
  py::object file;  // a str, perhaps with surrogates where the name is no UTF-8
  int line = 0;
  py::object module;  // __name__ of the module whose code it is
};

// A RuntimeWarning at a line of the user's.
void warn(const SourceLine& at, const std::string& message);

class Call final : public tracer::Host, public std::enable_shared_from_this<Call> {
 public:
  // Of ufuse.jit.
  struct Options {
    bool fast = false;   // numerics="fast"
    bool debug = false;  // defects of ufuse are raised, where NumPy would answer otherwise
    bool waits = false;  // compile="wait"
  };

  Call();
  ~Call() override;

  tracer::Session& session() { return session_; }
  const tracer::Session& session() const { return session_; }
  void set_options(const Options& options) { options_ = options; }
  bool debug() const { return options_.debug; }
  // The call that is being traced on this thread; null: none.
  static Call* active();
  // The last one that ended on this thread; null: none.
  static std::shared_ptr<Call> last();
  // What a dispatcher tells a call that it is about to record.
  struct Recorder {
    const NumberSites& sites;  // where numbers may stay numbers
    const Signature& signature;
    ObjectSchemas& schemas;
  };
  // While one lives, no call is traced on this thread: for code that is no part of one.
  class Aside {
   public:
    Aside();
    ~Aside();
    Aside(const Aside&) = delete;
    Aside& operator=(const Aside&) = delete;

   private:
    const Recorder* const recorder_;
  };
  // Of the caller's lists and dicts, for traced code.
  Copies& copies() { return copies_; }
  const Copies& copies() const { return copies_; }
  // A function that traced code has made (`def`, `lambda`), and the version of its code with call
  // sites.
  void add_made(PyObject* function, py::object code) {
    made_[function] = {steal(PyWeakref_NewRef(function, nullptr)), std::move(code)};
  }
  PyObject* code_of_made(PyObject* function) const {
    const auto it = made_.find(function);
    if (it == made_.end() || PyWeakref_GET_OBJECT(it->second.first.ptr()) != function)
      return nullptr;
    return it->second.second.ptr();
  }
  std::vector<py::object> made_functions() const {
    std::vector<py::object> alive;
    for (const auto& [function, known] : made_)
      if (PyWeakref_GET_OBJECT(known.first.ptr()) == function) alive.push_back(borrow(function));
    return alive;
  }
  // Before and after untraced code runs, which reads and writes memory by itself: computes all that
  // is pending, and forgets what is known of memory.
  void flush_and_share();
  // Puts real objects where traced code has put lazy ones (attributes, lists, dicts), because
  // untraced code may look there.
  void show_containers();
  // The same, and takes over what untraced code has changed in the caller's lists and dicts.
  void share_containers();
  // Whether an operation is being recorded or a request computed: the session cannot be flushed
  // now.
  bool is_busy() const;
  // Whether untraced code runs now.
  bool in_untraced_code() const { return in_untraced_code_; }
  void set_in_untraced_code(bool is_in) { in_untraced_code_ = is_in; }
  // The call is ending by an exception: it waits for no compiler any more.
  void hurry() { patience_ = std::chrono::nanoseconds(0); }
  // Before a value is computed: an attribute may have shown it to another thread than the one that
  // traces its call, and that one may be computing it. Waits until it is done.
  static void await_rest(const tracer::Storage& storage);
  static void push(std::shared_ptr<Call> call);
  static std::shared_ptr<Call> pop();
  // How many calls there are on this thread's stack.
  static std::size_t depth();
  // The function of a call that has stopped tracing has ended. `depth`: how many calls were on the
  // stack before it began.
  void leave(std::size_t depth);
  // The call of the innermost function that still runs although tracing has stopped; null: none.
  static Call* stopped();
  // Whose function the next call of this thread is traced for; null: nobody's.
  static void set_owner(const void* owner);
  // Whether tracing a call of theirs that still runs on this thread has stopped because it is slow.
  static bool is_slow_for(const void* owner);
  // What traced calls of this thread have taken in all, each until tracing stopped in it or it
  // ended.
  static std::int64_t traced_ns();
  // Whether it is on this thread's stack, perhaps below calls that were made inside it.
  bool is_open() const;
  // Whether tracing has stopped at a time when loops of the call were being compiled: with them it
  // might not have been slow.
  bool stopped_before_loops() const { return stopped_before_loops_; }

  // Asked before each operation. Where recording has cost more than the loops can save, tracing
  // stops here: what is pending is computed, real arrays take the places of lazy ones, and the rest
  // of the function runs as plain Python. Gives the lazy arrays then, to be kept alive: the
  // operation that asks may have been handed some of them.
  std::optional<std::vector<py::object>> stop_if_slow();
  // The same, asked before each other call, and at the heads of loops.
  // `given`: the arguments of a call, which its caller's frame holds for nothing else.
  std::optional<std::vector<py::object>> stop_at_slow_site(std::span<PyObject* const> given);
  std::optional<std::vector<py::object>> stop_at_slow_loop();
  // The same, where traced code asks what stands for an operand, or for what it changes.
  std::optional<std::vector<py::object>> stop_at_slow_operand() {
    constexpr std::int64_t kLookEach = 10'000'000;
    if (operands_ns() < looked_ns_ + kLookEach) return {};
    looked_ns_ = operands_ns();
    return is_slow() ? stop(Reason::SlowTracing) : std::nullopt;
  }
  void count_operand() { ++operands_; }
  // It had to be found out what runs for a callable.
  void count_resolved() { ++resolved_; }
  // The same where a loop goes on natively, whatever recording has cost.
  std::optional<std::vector<py::object>> stop(Reason reason, std::span<PyObject* const> given = {});
  // Nanoseconds spent in what stands in for loops: the interpreter, or NumPy.
  std::int64_t stood_in() const { return in_meanwhile_ + in_numpy_; }
  // How many operations have been recorded.
  std::int64_t operations() const { return operations_; }
  // For tests: tracing stops after so many operations, fast or slow; below zero: as described
  // above. Gives what was set before.
  static std::int64_t set_most_operations(std::int64_t operations);

  // Ends the call because of an exception. `due`: the values that the caller will see all the same;
  // with `quickly` no others are computed.
  void abort(const std::vector<LazyArray>& due, bool quickly);

  // An argument as a lazy array (or itself when it is none); the same object gives the same lazy
  // array.
  py::object add_argument(PyObject* object);
  // An array that traced code has found somewhere, as a lazy one that is traced from here on.
  // `fresh`: nobody else holds it.
  py::object find(PyObject* array, bool fresh);
  // What traced code uses in the place of an object: the lazy array for a real one on memory that
  // the call knows, the copy of a list, dict or tuple; unset for any other object.
  py::object known(PyObject* object);
  static bool may_know(PyObject* object) {
    return PyArray_CheckExact(object) || PyList_CheckExact(object) || PyDict_CheckExact(object) ||
           PyTuple_CheckExact(object);
  }
  // The places where traced code has put values.
  Holders& holders() { return holders_; }
  // Before traced code puts a value there: what takes long to compute is computed first, so that
  // Ctrl-C is answered soon and leaves either no value there or one that is known.
  void before_put(PyObject* value);
  // Runs the handlers of the signals that have come, as a run of loops does; throws what one of
  // them raises.
  void answer_signals();
  // The objects in its signature, while it is recorded.
  ObjectWatch& objects() { return objects_; }
  const ObjectWatch& objects() const { return objects_; }
  // Whether NumPy's error state only warns or ignores. Under any other nothing is recorded.
  bool error_state_is_traceable() const {
    return traceable_ && !warns_at_once_ && !warns_by_function_;
  }
  // Whether the function would see it if a floating-point warning came late from here on: it is an
  // exception, or put into a list.
  void set_warns_at_once(bool at_once) { warns_at_once_ = at_once; }
  // Warnings are shown by another function from here on, which may do anything.
  void set_warns_by_function() { warns_by_function_ = true; }
  // Before a ufunc of SciPy's; throws Unsupported where that would report errors by itself.
  void enter_special();
  bool asked_special() const { return asked_special_; }

  // Notes where the operation that follows stands in the user's program, and under which error
  // state. Throws Unsupported where a floating-point error shall raise an exception or call a
  // function there.
  void enter(bool scalar_operator = false);
  tracer::Site here();
  // The line outside NumPy's and SciPy's own source, which explanations name.
  tracer::Site users_line();
  // The operation stands in this function of NumPy's _methods.py, for an ndarray method that is
  // written in Python.
  void enter_method(const char* name);
  SourceLine line_of(const tracer::Site& site) const;
  void record(tracer::Event::Kind kind, Reason reason, std::string detail = {},
              bool repeated = false);

  // An array that is neither an argument nor made in the call, as an operand of the operation that
  // follows. A large one that others may still write is not copied: `immediate` is set, and the
  // results of the operation have to be computed before anything else happens.
  LazyArray capture(PyArrayObject* array);
  // An ndarray that is_temporary, to which nobody else can write: it is not copied.
  LazyArray adopt_temporary(PyObject* array);
  bool take_immediate() { return std::exchange(immediate_, false); }

  // Whether a dispatcher records the call of this thread. Only then is `keep_result_tree` called,
  // for only the dispatcher takes the tree again.
  static bool is_recording();
  // The next call of this thread is recorded for it; null: is not. Gives what was set before.
  static const Recorder* set_recorder(const Recorder* recorder);
  void keep_result_tree(std::optional<ResultTree> tree) { result_tree_ = std::move(tree); }
  std::optional<ResultTree> take_result_tree() { return std::exchange(result_tree_, std::nullopt); }
  std::size_t argument_count() const { return argument_count_; }
  // A warning was given that is not the session's; `of_numbers`: by NumPy, of numbers that are no
  // lazy arrays.
  void heard_warning(bool of_numbers) {
    session_.mark_impure();
    warned_of_numbers_ |= of_numbers;
  }
  bool warned_of_numbers() const { return warned_of_numbers_; }
  void listen() { watch_.listen(); }
  // How many frames there are down to the user's `level`-th one, those of the package included.
  int frames_to(int level);
  // The program has looked at the flags of an argument, which are more than its signature has.
  void ask_flags() { asked_flags_ = true; }
  bool asked_flags() const { return asked_flags_; }

  // What a call that is recorded does with the Python numbers among its arguments.
  bool records_numbers() const { return recorder_ != nullptr; }
  NumberHistory& numbers() { return numbers_; }
  // The next of the signature's numbers that are arguments, and not attributes of one.
  int next_argument_number();
  // Whether the operation that runs now stands at one of the recorder's sites.
  bool is_number_site() const;

  // A request that a backend computed. Times are of the steady clock, which is Python's
  // time.perf_counter_ns.
  struct Run {
    std::shared_ptr<const ir::Executable> executable;
    bool fresh = false;  // its loops were compiled or loaded for this request
    std::string note;    // why a backend that is tried before did not
    std::int64_t prepare_from = 0, prepare_to = 0, run_from = 0, run_to = 0;
  };
  const std::vector<Run>& runs() const { return runs_; }

  // tracer::Host
  Memory allocate(const Layout& layout) override;
  void copy(const ir::Buffer& to, const ir::Buffer& from) override;
  std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph,
                                                const ir::RunArgs& layouts) override;
  ir::RunStatus run(tracer::Session& session, std::span<const tracer::Want> wants,
                    const ir::Executable& executable, const ir::RunArgs& args) override;
  void redo(tracer::Session& session, std::span<tracer::Want> targets,
            const std::vector<bool>& given) override;
  tracer::Site users_line_of(const tracer::Site& site) const override;
  int threads() const override;
  std::vector<LazyArray> shown() override;
  void refuse() override;
  void warn(const tracer::Site& site, const std::string& message) override;

 private:
  struct Code {
    py::object code, module_name;
    bool ours = false;     // of the package itself
    bool library = false;  // of NumPy or SciPy
  };
  bool is_of_library(const tracer::Site& site) const;
  template <class Wanted>
  tracer::Site frame_where(Wanted wanted);
  void look_at_error_state();
  // Whether recording has cost more than the loops of this call can win.
  bool is_slow() const;
  // Whether it is known where all copies of the caller's containers are.
  bool finds_all_copies(std::span<PyObject* const> given);
  // What asking for operands has taken. Measured: one that may be lazy 60 ns, and 6 ns to look at
  // an object in a container.
  std::int64_t operands_ns() const {
    return operands_ * 60 + (ContainerWalk::walked() - walked_before_) * 6;
  }
  // At every end of a call, which becomes the last one of this thread.
  void close();

  tracer::Session session_;
  tracer::Site users_line_;  // of the last operation that stands in NumPy's or SciPy's own source
  ErrorState error_state_;
  bool traceable_ = true, warns_at_once_ = false, warns_by_function_ = false;
  bool immediate_ = false;
  Options options_;
  bool may_stop_ = true;  // a signal may end a run
  const std::int64_t traced_before_ = traced_ns(), began_ = steady_ns();
  bool stopped_ = false;  // a signal has ended the last run
  std::optional<ResultTree> result_tree_;
  std::size_t argument_count_ = 0;
  bool asked_flags_ = false, asked_special_ = false;
  bool warned_of_numbers_ = false;
  WarningWatch watch_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::optional<FrameWatch> frames_;  // while it is open
  bool in_untraced_code_ = false;
  Holders holders_;
  const Recorder* recorder_;
  ObjectWatch objects_;
  NumberHistory numbers_;
  int argument_numbers_ = 0;  // that have been asked for
  std::vector<Run> runs_;
  std::int64_t no_stop_before_ = 0;
  std::int64_t operations_ = 0;  // that have been recorded
  std::int64_t sites_ = 0;       // calls that traced code has made
  std::int64_t resolved_ = 0;    // of which it had to be found out what runs
  std::int64_t operands_ = 0;    // that it has asked for
  std::int64_t looked_ns_ = 0;   // what those had taken when it was last seen whether it is slow
  const std::int64_t walked_before_ = ContainerWalk::walked();
  std::int64_t in_loops_ = 0;        // nanoseconds
  std::int64_t in_meanwhile_ = 0;    // in what runs until loops are compiled
  std::int64_t in_preparing_ = 0;    // preparing loops
  std::int64_t prepared_in_ = 0;     // the same, at most kLongestPreparing for each request
  std::int64_t in_numpy_ = 0;        // requests that NumPy computed
  std::int64_t redone_ = 0;          // how many these are
  std::int64_t in_numpy_again_ = 0;  // the same time, but for the first ones
  bool stopped_before_loops_ = false;
  bool is_too_slow_ = false;  // tracing has stopped because of that
  const void* const owner_;
  Copies copies_;
  std::unordered_map<PyObject*, std::pair<py::object, py::object>> made_;
  std::chrono::nanoseconds patience_;  // how long it may still wait for compilers
  // How long it may still wait for compilers where another backend can answer meanwhile.
  std::chrono::nanoseconds brief_{std::chrono::milliseconds(40)};
  std::vector<Code> codes_;
  std::unordered_map<PyObject*, std::uint32_t> code_index_;
  std::unordered_map<PyObject*, py::object> arguments_;  // what was wrapped -> its lazy array
};

}  // namespace ufuse::pyext
