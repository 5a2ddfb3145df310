// See call.h.
#include "pyext/bind/call/call.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "codegen/compiler.h"
#include "codegen/runtime/timeline.h"
#include "pyext/bind/call/backends.h"
#include "pyext/bind/call/containers.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/native_call.h"
#include "pyext/bind/numpy/new_array.h"
#include "pyext/bind/numpy/numpy_redo.h"
#include "pyext/bind/numpy/request_check.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/signals.h"
#include "pyext/bind/sites/variables.h"

namespace ufuse::pyext {
namespace {

// Arrays that others may write are copied up to this size. Copying larger ones costs more than
// fusing the operations on them saves.
constexpr std::size_t kCopyBytes = 64 * 1024;

// Of the time that preparing loops takes, so much counts as a cost of tracing; nanoseconds.
constexpr std::int64_t kLongestPreparing = 5'000'000;

// So many requests of a call may be left to NumPy until their loops are compiled. Where there are
// more, the call has a loop in Python. A request for each value that Python wants takes NumPy about
// twice as long as the plain function, which computes no intermediate value again.
constexpr std::int64_t kFewRedone = 32;

// After so many operations tracing stops, whatever it costs: for tests. Below zero: it does not.
std::int64_t most_operations = -1;

// Calls of threads that have ended. Such a thread has no Python lock any more, and taking it while
// Python ends would end the process. So the calls are kept in a list, and the next call that begins
// on any thread frees them. The list has no lock, which a forked child might find held.
struct Leftover {
  std::vector<std::shared_ptr<Call>> calls;
  Leftover* next = nullptr;
};
std::atomic<Leftover*> leftovers{nullptr};

void free_leftovers() {
  if (leftovers.load(std::memory_order_relaxed) == nullptr) return;
  Leftover* leftover = leftovers.exchange(nullptr, std::memory_order_acquire);
  while (leftover != nullptr) {
    const std::unique_ptr<Leftover> freed(leftover);
    leftover = freed->next;
  }
}

// The calls of one thread. Destroyed with the thread, without Python's lock and perhaps after
// Python.
struct Calls {
  std::vector<std::shared_ptr<Call>> stack;
  std::vector<std::shared_ptr<Call>> stopped;  // whose functions still run
  std::shared_ptr<Call> last;
  std::int64_t traced_ns = 0;
  const Call::Recorder* recorder = nullptr;
  const void* owner = nullptr;
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    if (stack.empty() && stopped.empty() && !last) return;
    auto* leftover = new Leftover{std::move(stack), leftovers.load(std::memory_order_relaxed)};
    leftover->calls.insert(leftover->calls.end(), stopped.begin(), stopped.end());
    stopped.clear();
    leftover->calls.push_back(std::move(last));
    while (!leftovers.compare_exchange_weak(leftover->next, leftover, std::memory_order_release,
                                            std::memory_order_relaxed)) {
    }
  }
};

thread_local Calls calls;

py::object array_at(const ir::Buffer& buffer, bool writeable) {
  return array_on({buffer.dtype, buffer.shape, buffer.strides}, buffer.data, writeable, nullptr);
}

}  // namespace

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Memory memory_of(PyObject* owner, void* data) {
  Py_INCREF(owner);
  return {data, std::shared_ptr<void>(owner, [](void* object) {
            const WithGil lock;
            if (lock.taken()) Py_DECREF(static_cast<PyObject*>(object));
          })};
}

Call::Call()
    : session_(*this, loop_table(), 0),
      recorder_(calls.recorder),
      owner_(std::exchange(calls.owner, nullptr)),
      patience_(codegen::Compiler::longest_wait()) {
  session_.version = numpy().version;
  look_at_error_state();
}

Call::~Call() = default;

Call* Call::active() { return calls.stack.empty() ? nullptr : calls.stack.back().get(); }
std::shared_ptr<Call> Call::last() { return calls.last; }
bool Call::is_recording() { return calls.recorder != nullptr; }
const Call::Recorder* Call::set_recorder(const Recorder* recorder) {
  return std::exchange(calls.recorder, recorder);
}
int Call::next_argument_number() {
  const auto is_attribute = [&](const auto& each) { return each.number == argument_numbers_; };
  while (std::ranges::any_of(recorder_->signature.attribute_numbers, is_attribute))
    ++argument_numbers_;
  return argument_numbers_++;
}

bool Call::is_number_site() const {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr || recorder_ == nullptr) return false;
  const py::object code = steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  return recorder_->sites.contains({code.ptr(), PyFrame_GetLasti(frame)});
}
Call::Aside::Aside() : recorder_(std::exchange(calls.recorder, nullptr)) {
  calls.stack.push_back(nullptr);
}
Call::Aside::~Aside() {
  calls.stack.pop_back();
  calls.recorder = recorder_;
}
void Call::push(std::shared_ptr<Call> call) {
  free_leftovers();
  call->listen();
  call->frames_.emplace();
  calls.stack.push_back(call);
  if (call->recorder_ == nullptr) return;
  const Signature& signature = call->recorder_->signature;
  call->objects_.begin(call->recorder_->schemas, signature.owners, signature.containers());
  for (PyObject* number : signature.numbers) call->numbers_.add_argument(number);
  for (const auto& [owner, name, number] : signature.attribute_numbers)
    call->objects_.set_number(signature.owners[owner], name, number);
  // Arrays in attributes are arguments as well; their order must not depend on when they are read.
  if (call->objects_.any())
    for (PyObject* array : signature.arguments) call->add_argument(array);
}

void Call::before_put(PyObject* value) {
  if (is_busy() || !session_.may_take_long()) return;
  std::vector<LazyArray> arrays;
  ContainerWalk walk(value, Into::All);
  while (PyObject* inside = walk.next())
    if (is_lazy(inside)) arrays.push_back(as_lazy(inside)->array);
  session_.show(arrays);
}

void Call::answer_signals() {
  if (!may_stop_ || std::this_thread::get_id() != thread_ || !handles_signals()) return;
  if (!handler_raises()) return;
  stopped_ = true;
  throw py::error_already_set();
}

// Gives the lock away between two looks, for the thread that traces the call needs it to go on.
// While this thread has the lock, that one stands still, so a value can then be computed here.
void Call::await_rest(const tracer::Storage& storage) {
  const auto is_mine = [&] {
    return std::ranges::any_of(
        calls.stack, [&](const auto& call) { return call && &call->session() == storage.session; });
  };
  while (storage.session != nullptr && storage.session->is_computing() && !is_mine()) {
    const WithoutGil released;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool Call::is_open() const {
  return std::ranges::any_of(calls.stack, [&](const auto& call) { return call.get() == this; });
}

bool Call::is_busy() const { return is_at_work() || session_.is_computing(); }

void Call::flush_and_share() {
  if (is_busy()) return;
  session_.mark_impure();
  session_.flush();
  share_containers();
}

void Call::show_containers() {
  holders_.make_real(copies_);
  copies_.update_originals();
}

void Call::share_containers() {
  show_containers();
  copies_.update_copies([&](const py::object& object) {
    if (py::object mine = known(object.ptr())) return mine;
    return PyArray_CheckExact(object.ptr()) ? find(object.ptr(), false) : object;
  });
}

// The user's exception is being raised, and errors in computing the rest must not hide it. Only an
// exception of a signal's handler takes its place; then only what is due is computed.
void Call::abort(const std::vector<LazyArray>& due, bool quickly) {
  constexpr int kTries = 4;
  if (session_.is_described()) {
    session_.discard();
    return;
  }
  record(tracer::Event::Kind::Force, Reason::Exception);
  quickly |= std::exchange(stopped_, false);
  std::optional<py::error_already_set> signal;
  for (int tries = 1;; ++tries) {
    try {
      may_stop_ = !quickly;
      if (quickly)
        session_.abort_with(due);
      else
        session_.abort();
      break;
    } catch (py::error_already_set& error) {
      const bool interrupted = stopped_ || error.matches(PyExc_KeyboardInterrupt);
      if (interrupted) signal.emplace(error);
      const bool no_memory = !quickly && error.matches(PyExc_MemoryError);
      quickly = true;
      if (tries < kTries && (interrupted || no_memory)) continue;
      if (!interrupted)
        error.discard_as_unraisable("ufuse: writes at the end of a call that raised");
      break;
    }
  }
  if (signal) throw py::error_already_set(*signal);
}

std::shared_ptr<Call> Call::pop() {
  std::shared_ptr<Call> call = std::move(calls.stack.back());
  calls.stack.pop_back();
  call->close();
  return call;
}

void Call::close() {
  arguments_.clear();
  objects_.end();
  recorder_ = nullptr;
  watch_.stop();
  frames_.reset();
  calls.last = shared_from_this();
  calls.traced_ns = traced_before_ + steady_ns() - began_;
}

std::int64_t Call::traced_ns() { return calls.traced_ns; }

void Call::set_owner(const void* owner) { calls.owner = owner; }

bool Call::is_slow_for(const void* owner) {
  return std::ranges::any_of(
      calls.stopped, [&](const auto& call) { return call->owner_ == owner && call->is_too_slow_; });
}

Call* Call::stopped() { return calls.stopped.empty() ? nullptr : calls.stopped.back().get(); }

std::size_t Call::depth() { return calls.stack.size(); }

void Call::leave(std::size_t depth) {
  while (calls.stack.size() > depth) {
    if (calls.stack.back())
      pop();
    else
      calls.stack.pop_back();
  }
  std::erase_if(calls.stopped, [&](const auto& call) { return call.get() == this; });
  take_from_stack(this);
}

bool Call::is_slow() const {
  if (most_operations >= 0) return false;
  // Measured: recording an operation costs up to 2.5 us more than running NumPy's, and a run 10 us.
  // Any other call costs 0.1 to 0.8 us more, and 2 us where it has to be found out what runs; to
  // look whether an array has certain memory 10 ns.
  constexpr std::int64_t kOperation = 2'500, kRun = 10'000, kSite = 400, kResolved = 2'000,
                         kLookedAt = 10;
  // Less than 50 ms is not worth stopping for. Fusing operations is taken to save at most twice the
  // time that their loops take; nothing is saved by what answers until these are compiled.
  constexpr std::int64_t kWorthIt = 50'000'000, kShare = 2;
  // Of a call that may leave a recording the runs are counted, not timed: whether it is recorded
  // should not depend on how busy the machine is.
  const std::int64_t runs = session_.is_pure() ? static_cast<std::int64_t>(runs_.size()) * kRun
                                               : session_.in_requests().count() - in_preparing_ -
                                                     in_loops_ - in_meanwhile_ - in_numpy_;
  // A program that waits for its loops wants all of them.
  const std::int64_t preparing = options_.waits || waits_for_loops() ? 0 : prepared_in_;
  const std::int64_t overhead = operations_ * kOperation + sites_ * kSite + resolved_ * kResolved +
                                operands_ns() + session_.looked_at() * kLookedAt + runs +
                                preparing + in_numpy_again_ / 2;
  return overhead >= kWorthIt && overhead >= kShare * in_loops_;
}

std::int64_t Call::set_most_operations(std::int64_t operations) {
  return std::exchange(most_operations, operations);
}

std::optional<std::vector<py::object>> Call::stop_if_slow() {
  constexpr std::int64_t kLookEach = 32;
  ++operations_;
  const bool is_enough = most_operations < 0 ? operations_ % kLookEach == 0 && is_slow()
                                             : operations_ >= most_operations;
  return is_enough ? stop(Reason::SlowTracing) : std::nullopt;
}

std::optional<std::vector<py::object>> Call::stop_at_slow_site(std::span<PyObject* const> given) {
  constexpr std::int64_t kLookEach = 4'096;
  return ++sites_ % kLookEach == 0 && is_slow() ? stop(Reason::SlowTracing, given) : std::nullopt;
}

std::optional<std::vector<py::object>> Call::stop_at_slow_loop() {
  return is_slow() ? stop(Reason::SlowTracing) : std::nullopt;
}

// Looks at all that is in the containers, and may fail for the rest of the call. So after each time
// that it has, it is not tried again for many times as long.
bool Call::finds_all_copies(std::span<PyObject* const> given) {
  constexpr std::int64_t kTimesAsLong = 20;
  const std::int64_t start = steady_ns();
  if (start < no_stop_before_ && most_operations < 0) return false;
  References found = references_of_running_code(copies_, given);
  holders_.count(found);
  if (copies_.are_all_found(found)) return true;
  const std::int64_t now = steady_ns();
  no_stop_before_ = now + kTimesAsLong * (now - start);
  return false;
}

std::optional<std::vector<py::object>> Call::stop(Reason reason, std::span<PyObject* const> given) {
  if (in_untraced_code_ || is_busy()) return {};
  if (calls.stack.back().get() != this || !is_at_traced_code()) return {};
  // The caller's containers take the places of their copies. These may be where they cannot be
  // replaced, in an iterator for example.
  if (!copies_.empty() && !finds_all_copies(given)) return {};
  is_too_slow_ = reason == Reason::SlowTracing;
  stopped_before_loops_ = is_too_slow_ && std::ranges::any_of(runs_, [](const Run& run) {
                            return run.executable && !run.executable->is_final();
                          });
  session_.mark_impure();
  record(tracer::Event::Kind::Flush, reason);
  session_.abort();
  const std::shared_ptr<Call> kept = shared_from_this();
  calls.stack.back() = nullptr;  // nothing is traced while the rest of the function runs
  calls.stopped.push_back(kept);
  calls.recorder = nullptr;
  close();
  show_containers();
  return make_variables_real(copies_);
}

py::object Call::add_argument(PyObject* object) {
  if (const auto it = arguments_.find(object); it != arguments_.end()) return it->second;
  py::object lazy;
  if (is_supported_array(object)) {
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    lazy = make_lazy(session_.argument(layout_of(array), memory_of(object, PyArray_DATA(array)),
                                       PyArray_ISWRITEABLE(array)),
                     object);
  } else if (const auto dtype = scalar_dtype(object); dtype && !is_long(*dtype)) {
    lazy = make_lazy(session_.scalar_argument(*dtype, scalar_bits(object, *dtype)), object);
  } else {
    return borrow(object);
  }
  ++argument_count_;
  arguments_.emplace(object, lazy);
  return lazy;
}

py::object Call::known(PyObject* object) {
  if (!PyArray_CheckExact(object)) {
    PyObject* copy = copies_.copy_of(object);
    return copy == object ? py::object() : borrow(copy);
  }
  if (const auto it = arguments_.find(object); it != arguments_.end()) return it->second;
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  if (is_supported_array(object))
    if (py::object view = view_of_known(*this, array)) {
      session_.mark_impure();
      return view;
    }
  // It stays real. Of its memory the session may know parts, through views.
  session_.write_pending(byte_range(array));
  return {};
}

py::object Call::find(PyObject* object, bool fresh) {
  if (py::object lazy = known(object)) return lazy;
  session_.mark_impure();
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  if (fresh && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA))
    return make_lazy(adopt_temporary(object), object);
  return add_argument(object);
}

// The nearest frame whose code is `wanted`; its code object is noted.
template <class Wanted>
tracer::Site Call::frame_where(Wanted wanted) {
  PyFrameObject* frame = PyEval_GetFrame();
  py::object held;
  while (frame != nullptr) {
    const py::object code = steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const auto [it, is_new] =
        code_index_.try_emplace(code.ptr(), static_cast<std::uint32_t>(codes_.size()));
    if (is_new) {
      const py::object globals = steal(PyFrame_GetGlobals(frame));
      PyObject* name = PyDict_GetItemString(globals.ptr(), "__name__");
      // What Python itself says for code without a module.
      const py::object module =
          name && PyUnicode_Check(name) ? borrow(name) : py::object(py::str("<string>"));
      const std::string text = text_of(module.ptr());
      codes_.push_back({code, module, text.starts_with("ufuse."), is_library(text)});
    }
    if (wanted(codes_[it->second])) return {it->second, PyFrame_GetLasti(frame)};
    frame = PyFrame_GetBack(frame);
    held = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(frame));
  }
  return {};
}

// Functions of this package may stand between the caller's line and the operation. Warnings name
// the caller's line, which is often one of NumPy's own source.
tracer::Site Call::here() {
  return frame_where([](const Code& code) { return !code.ours; });
}

tracer::Site Call::users_line() {
  return frame_where([](const Code& code) { return !code.ours && !code.library; });
}

bool Call::is_of_library(const tracer::Site& site) const {
  return site.code < codes_.size() && codes_[site.code].library;
}

tracer::Site Call::users_line_of(const tracer::Site& site) const {
  return is_of_library(site) ? users_line_ : site;
}

int Call::frames_to(int level) {
  int all = 0;
  const tracer::Site found = frame_where([&](const Code& code) {
    ++all;
    return !code.ours && --level <= 0;
  });
  return found == tracer::Site{} ? all + level : all;
}

// The error state in force counts, whoever has set it: the program, a decorator, a library.
void Call::look_at_error_state() {
  if (error_state_.is_current()) return;
  error_state_ = ErrorState::now();
  const std::optional<std::uint8_t> mask = current_report_mask();
  traceable_ = mask.has_value();
  session_.set_report_mask(mask.value_or(0));
}

void Call::enter(bool scalar_operator) {
  look_at_error_state();
  listen();
  const tracer::Site site = here();
  if (is_of_library(site)) users_line_ = users_line();
  session_.enter(site, scalar_operator);
  if (error_state_is_traceable()) return;
  session_.flush();  // warnings of earlier operations come before this one's
  throw Unsupported(Reason::ErrorState);
}

void Call::enter_special() {
  asked_special_ = true;
  if (special_errors_are_ignored()) return;
  session_.flush();  // warnings of earlier operations come before this one's
  throw Unsupported(Reason::ErrorState);
}

void Call::enter_method(const char* name) {
  static PyObject* imported = nullptr;  // no initialiser: see operator_function
  if (imported == nullptr)
    imported =
        py::module_::import((std::string(numpy().version.core_package()) + "._methods").c_str())
            .release()
            .ptr();
  const py::object methods = borrow(imported);
  const py::object code = methods.attr(name).attr("__code__");
  const auto [it, is_new] =
      code_index_.try_emplace(code.ptr(), static_cast<std::uint32_t>(codes_.size()));
  if (is_new) codes_.push_back({code, methods.attr("__name__"), false, true});
  // The reduction is on the last line of these functions.
  std::int32_t last = 0;
  for (py::handle row : code.attr("co_lines")())
    last = row.cast<py::tuple>()[0].cast<std::int32_t>();
  users_line_ = users_line();
  session_.set_site({it->second, last});
}

SourceLine Call::line_of(const tracer::Site& site) const {
  if (site.code >= codes_.size()) return {py::str(""), 0, py::str("<string>")};
  const Code& known = codes_[site.code];
  if (site.instruction < 0) return {py::str(""), 0, known.module_name};
  auto* code = reinterpret_cast<PyCodeObject*>(known.code.ptr());
  return {borrow(code->co_filename), PyCode_Addr2Line(code, site.instruction), known.module_name};
}

void Call::record(tracer::Event::Kind kind, Reason reason, std::string detail, bool repeated) {
  session_.record({kind, reason, std::move(detail), users_line(), nullptr}, repeated);
}

LazyArray Call::capture(PyArrayObject* array) {
  auto* object = reinterpret_cast<PyObject*>(array);
  session_.mark_impure();
  // It may be an argument that traced code has reached by another name.
  if (const auto it = arguments_.find(object); it != arguments_.end() && is_lazy(it->second.ptr()))
    return as_lazy(it->second.ptr())->array;
  const bool shared = session_.write_pending(byte_range(array));
  const bool fixed =
      !shared && !PyArray_ISWRITEABLE(array) && PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA);
  const bool small = static_cast<std::size_t>(PyArray_NBYTES(array)) <= kCopyBytes;
  if (fixed || !small) {
    immediate_ |= !fixed;
    return session_.adopt(layout_of(array), memory_of(object, PyArray_DATA(array)), false,
                          tracer::Role::Captured);
  }
  const py::object copy = steal(PyArray_NewCopy(array, NPY_KEEPORDER));
  auto* owned = reinterpret_cast<PyArrayObject*>(copy.ptr());
  return session_.adopt(layout_of(owned), memory_of(copy.ptr(), PyArray_DATA(owned)), false,
                        tracer::Role::Captured);
}

LazyArray Call::adopt_temporary(PyObject* object) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  session_.mark_impure();
  return session_.adopt(layout_of(array), memory_of(object, PyArray_DATA(array)), true,
                        tracer::Role::Temporary);
}

Memory Call::allocate(const Layout& layout) {
  if (!tracer::fits_new_memory(layout)) throw InternalError("a layout to allocate has gaps");
  const py::object array = new_array(layout, descr_of(layout.dtype));
  return memory_of(array.ptr(), PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
}

void Call::copy(const ir::Buffer& to, const ir::Buffer& from) {
  const py::object target = array_at(to, true), source = array_at(from, false);
  if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.ptr()),
                       reinterpret_cast<PyArrayObject*>(source.ptr())) < 0)
    throw py::error_already_set();
}

std::shared_ptr<const ir::Executable> Call::prepare(const ir::Graph& graph,
                                                    const ir::RunArgs& layouts) {
  Run run;
  run.prepare_from = steady_ns();
  struct Spent {  // counts the time also where a signal ends the wait
    Call& call;
    const std::int64_t from;
    ~Spent() { call.patience_ -= std::chrono::nanoseconds(steady_ns() - from); }
  } spent{*this, run.prepare_from};
  run.executable =
      pyext::prepare(graph, layouts, options_.fast, options_.waits, patience_, brief_, run.note);
  run.prepare_to = run.run_from = run.run_to = steady_ns();
  // Where more time was spent on loops, they are expected to save more.
  const std::int64_t preparing = std::min(run.prepare_to - run.prepare_from, kLongestPreparing);
  prepared_in_ += preparing;
  in_preparing_ += run.prepare_to - run.prepare_from;
  if (!run.executable) return nullptr;
  if (!run.executable->is_final()) brief_ -= std::chrono::nanoseconds(preparing);
  run.fresh = run.executable->claim();
  if (run.fresh && codegen::Timeline::is_kept())
    codegen::Timeline::add(codegen::slice_of_waiting(run.executable->report()), run.prepare_from);
  runs_.push_back(std::move(run));
  return runs_.back().executable;
}

ir::RunStatus Call::run(tracer::Session& session, std::span<const tracer::Want> wants,
                        const ir::Executable& executable, const ir::RunArgs& args) {
  // What was prepared last is what runs.
  const std::size_t row = runs_.size() - 1;
  std::optional<RequestCheck> check;
  if (has_request_judge() && !options_.fast) check.emplace(*this, session, wants, args);
  const bool is_compiled = executable.is_final();
  runs_[row].run_from = steady_ns();
  ir::RunStatus status;
  {
    const AtWork computing;
    const codegen::Timed timed([&] { return codegen::slice_of_run(executable.report(), status); });
    if (std::this_thread::get_id() == thread_) {
      WithoutGil released;
      SignalWatch watch(released, may_stop_);
      ir::RunArgs watched = args;
      watched.watch = &watch;
      status = executable.run(watched);
    } else {
      status = executable.run(args);  // keeping the lock: see `await_rest`
    }
  }
  stopped_ = status.stopped;
  (is_compiled ? in_loops_ : in_meanwhile_) += steady_ns() - runs_[row].run_from;
  // A signal's handler may have raised it, or an inner loop of some library.
  if (PyErr_Occurred()) throw py::error_already_set();
  runs_[row].run_to = steady_ns();
  if (check && !status.redo && !status.stopped)
    check->compare(runs_[row].executable, args, line_of(session.site()));
  return status;
}

void Call::redo(tracer::Session& session, std::span<tracer::Want> targets,
                const std::vector<bool>& given) {
  const AtWork computing;
  const codegen::Timed timed([] {
    return codegen::Slice{codegen::Slice::Kind::Interruption, "the operations of a group",
                          "NumPy computes them one by one"};
  });
  const std::int64_t start = steady_ns();
  redo_with_numpy(*this, session, targets, given);
  const std::int64_t taken = steady_ns() - start;
  in_numpy_ += taken;
  if (++redone_ > kFewRedone) in_numpy_again_ += taken;
}

int Call::threads() const { return get_num_threads(); }

std::vector<LazyArray> Call::shown() { return lazies_in(holders_.lazies()); }

// The reason is the last thing that happened, if it happened in the line that runs now.
void Call::refuse() {
  const SourceLine here = line_of(users_line());
  const std::vector<tracer::Event>& events = session_.events();
  const tracer::Event* last = events.empty() ? nullptr : &events.back();
  if (last && (!last->reason || line_of(users_line_of(last->site)).line != here.line))
    last = nullptr;
  const std::string reason(last ? id_of(*last->reason) : ""), detail = last ? last->detail : "";
  PyErr_SetObject(needs_value_type(), py::make_tuple(reason, detail, here.file, here.line).ptr());
  throw py::error_already_set();
}

void Call::warn(const tracer::Site& site, const std::string& message) {
  pyext::warn(line_of(site), message);
}

void warn(const SourceLine& at, const std::string& message) {
  const OwnWords own;
  py::object registry = py::none();
  PyObject* modules = PyImport_GetModuleDict();
  if (PyObject* module = PyDict_GetItem(modules, at.module.ptr()))
    registry = py::object(borrow(module).attr("__dict__"))
                   .attr("setdefault")("__warningregistry__", py::dict());
  py::module_::import("warnings")
      .attr("warn_explicit")(message, borrow(PyExc_RuntimeWarning), at.file, at.line, at.module,
                             registry);
}

}  // namespace ufuse::pyext
