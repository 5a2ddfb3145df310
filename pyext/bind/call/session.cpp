// See session.h. Functions here are called once or a few times in each traced call; operations are
// recorded by the functions in bind/lazy.
#include "pyext/bind/call/session.h"

#include "codegen/loop/passes/passes.h"
#include "codegen/runtime/openmp.h"
#include "codegen/runtime/threads.h"
#include "codegen/runtime/timeline.h"
#include "ir/support/reasons.h"
#include "numpy_shim/surface.h"
#include "pyext/bind/call/backends.h"
#include "pyext/bind/gil.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/lazy/recorded_number.h"
#include "pyext/bind/numpy/request_check.h"

namespace ufuse::pyext {
namespace {

PyObject* the_array_function_handler = nullptr;

void begin(bool fast, bool debug) {
  auto call = std::make_shared<Call>();
  call->set_options({.fast = fast, .debug = debug});
  Call::push(std::move(call));
}

py::object wrap(py::handle object) { return active_call().add_argument(object.ptr()); }

// Where a container has too many inside, its call is not recorded.
bool is_walked(py::handle container) {
  std::size_t containers = 0;
  const bool has_arrays = any_inside(container.ptr(), Into::All, [&](PyObject* each) {
    const bool is_plain = is_plain_container(each);
    containers += is_plain;
    const bool is_other = PyTuple_Check(each) && !is_plain;  // into which the walk does not look
    return is_other || is_lazy(each) || PyArray_Check(each) || PyArray_CheckScalar(each);
  });
  return has_arrays || (containers > 1 && containers <= kMaxContainers);
}

py::list finish(const py::list& results, py::handle returned, const py::list& arguments) {
  Call& call = active_call();
  if (Call::is_recording() && call.session().is_pure())
    if (const py::object outcome = call.objects().outcome(
            returned.ptr(), [&](int number) { return make_number(call, number); }))
      call.keep_result_tree(result_tree_of(outcome.ptr(), results, arguments, call.objects()));
  call.session().finish(lazies_in(results));
  const std::shared_ptr<Call> ended = Call::pop();
  ended->show_containers();
  py::list real;
  for (py::handle object : results) real.append(unwrap(object.ptr()));
  return real;
}

// Does the pending writes of a call that raised, and ends it whatever happens: all later operations
// of this thread would be recorded in a call that was left open.
void end_by_exception(Call& call, const py::list& due, bool quickly) {
  struct End {
    ~End() {
      while (call.is_open()) Call::pop();  // first those inside it that an interrupt left open
    }
    Call& call;
  } end{call};
  call.hurry();
  call.abort(lazies_in(due), quickly);
}

py::list held_lazies() {
  Holders& holders = active_call().holders();
  holders.forget_dead();
  return holders.lazies();
}

// Python's error, taken away while other things are done, and raised afterwards.
class Raised {
 public:
  Raised() { PyErr_Fetch(&type_, &value_, &trace_); }
  ~Raised() {
    for (PyObject* part : {type_, value_, trace_}) Py_XDECREF(part);
  }
  Raised(const Raised&) = delete;
  Raised& operator=(const Raised&) = delete;

  bool is_there() const { return type_ != nullptr; }
  bool is(PyObject* type) const { return is_there() && PyErr_GivenExceptionMatches(type_, type); }
  py::object object() {
    if (!is_there()) return py::none();
    PyErr_NormalizeException(&type_, &value_, &trace_);
    if (trace_ != nullptr) PyException_SetTraceback(value_, trace_);
    return borrow(value_);
  }
  // With the traceback that the exception has by now.
  [[noreturn]] void restore() {
    PyErr_NormalizeException(&type_, &value_, &trace_);
    Py_XDECREF(std::exchange(trace_, PyException_GetTraceback(value_)));
    PyErr_Restore(std::exchange(type_, nullptr), std::exchange(value_, nullptr),
                  std::exchange(trace_, nullptr));
    throw py::error_already_set();
  }

 private:
  PyObject *type_, *value_, *trace_;
};

// Calls a function that has to be called, once more where Ctrl-C ends it. The KeyboardInterrupt is
// raised at the end.
py::object insist(py::handle function, const py::object& argument,
                  std::unique_ptr<Raised>& raised) {
  constexpr int kTries = 4;
  for (int tries = 1;; ++tries) {
    py::object made =
        py::reinterpret_steal<py::object>(PyObject_CallOneArg(function.ptr(), argument.ptr()));
    if (made) return made;
    auto error = std::make_unique<Raised>();
    const bool interrupted = error->is(PyExc_KeyboardInterrupt);
    if (interrupted || !raised || !raised->is_there()) raised = std::move(error);
    if (!interrupted || tries == kTries) return py::none();
  }
}

// What the twin has to do of a traced call. Its frame lies on that of the caller: the package's own
// Python code runs before and after it, never below it.
void run_twin(py::handle steps, const py::args& args, const py::kwargs& kwargs) {
  {
    const py::tuple begun = steps.attr("begin")(args, kwargs);
    Call::active()->copies().note_references();
    const auto part = [&](Py_ssize_t i) { return PyTuple_GET_ITEM(begun.ptr(), i); };
    steps.attr("result") = steal(PyObject_Call(part(0), part(1), part(2)));
  }
  steps.attr("end")();
}

// A traced call from beginning to end, in one C++ function: no signal's handler runs between its
// steps, which ufuse/tracing/run.py describes.
py::object traced(const py::object& steps, bool fast, bool debug, bool waits, const py::args& args,
                  const py::kwargs& kwargs) {
  const auto call = std::make_shared<Call>();
  call->set_options({.fast = fast, .debug = debug, .waits = waits});
  const std::size_t depth = Call::depth();
  Call::push(call);
  try {
    run_twin(steps, args, kwargs);
  } catch (py::error_already_set& error) {
    error.restore();
  }
  auto raised = std::make_unique<Raised>();
  const bool quickly = raised->is(PyExc_KeyboardInterrupt);
  const py::object error = raised->object();
  // Where tracing has stopped, the function went on with the caller's own containers.
  const bool has_stopped = Call::stopped() == call.get();
  if (!call->is_open()) call->leave(depth);
  if (call->is_open()) {
    const py::object values = insist(steps.attr("due"), error, raised);
    try {
      end_by_exception(*call, py::isinstance<py::list>(values) ? py::list(values) : py::list(),
                       quickly);
    } catch (py::error_already_set& interrupt) {
      interrupt.restore();
      raised = std::make_unique<Raised>();
    }
  }
  if (!has_stopped && (raised->is_there() || !error.is_none())) call->show_containers();
  py::object result = insist(steps.attr("conclude"), error, raised);
  call->copies().clear();
  insist(steps.attr("leave"), raised->object(), raised);
  if (raised->is_there()) raised->restore();
  return result;
}

py::object call_numpy(py::handle func, const py::tuple& args, const py::dict& kwargs,
                      const std::string& reason, bool pure) {
  return numpy_call(func.ptr(), args.ptr(), kwargs.ptr(), reason_of(reason), pure);
}

const char* kind_name(tracer::Event::Kind kind) {
  switch (kind) {
    case tracer::Event::Kind::Force:
      return "force";
    case tracer::Event::Kind::NumpyCall:
      return "numpy_call";
    case tracer::Event::Kind::Flush:
      return "flush";
    case tracer::Event::Kind::Escape:
      return "escape";
    case tracer::Event::Kind::Redo:
      return "redo";
    case tracer::Event::Kind::Run:
      return "run";
  }
  return "";
}

std::string id_or_empty(std::optional<Reason> reason) {
  return reason ? std::string(id_of(*reason)) : std::string();
}

std::shared_ptr<Call> described_call() {
  if (Call* call = Call::active()) return call->shared_from_this();
  return Call::last();
}

py::list events() {
  py::list rows;
  const std::shared_ptr<Call> call = described_call();
  if (!call) return rows;
  for (const tracer::Event& event : call->session().events()) {
    const SourceLine at = call->line_of(event.site);
    py::dict row;
    row["kind"] = kind_name(event.kind);
    row["reason"] = id_or_empty(event.reason);
    row["detail"] = event.detail;
    row["file"] = at.file;
    row["line"] = at.line;
    rows.append(row);
  }
  return rows;
}

// A path as Python has it: bytes that are no UTF-8 become surrogates.
py::object file_name(const std::string& path) {
  return steal(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
}

// A message of a compiler or of the file system, which need not be UTF-8.
py::object readable(const std::string& words) {
  return steal(
      PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "replace"));
}

// Why loops are not compiled, in words; `otherwise` where the group does not tell.
std::string note_of(const ir::GroupReport& group, const std::string& otherwise) {
  std::string note;
  if (group.reason) note = sentence_of(*group.reason);
  if (!note.empty() && !group.note.empty()) note += ' ';
  note += group.note;
  return note.empty() ? otherwise : note;
}

py::list reports() {
  py::list rows;
  const std::shared_ptr<Call> call = described_call();
  if (!call) return rows;
  for (const Call::Run& run : call->runs()) {
    const ir::Report& report = run.executable->report();
    py::list groups;
    for (const ir::GroupReport& group : report.groups) {
      py::dict made;
      py::list ops;
      for (const std::string& op : *group.ops) ops.append(op);
      made["ops"] = ops;
      made["source"] = *group.source;
      made["schedule"] = *group.schedule;
      made["passes"] = *group.passes;
      made["loops"] = *group.loops;
      made["origin"] = group.origin;
      made["compile_ms"] = group.compile_ms;
      made["reason"] = id_or_empty(group.reason);
      made["note"] = readable(note_of(group, run.note));
      groups.append(made);
    }
    py::dict row;
    row["groups"] = groups;
    row["graph"] = *report.graph;
    row["bytes_moved"] = report.bytes_moved;
    row["bytes_minimum"] = report.bytes_minimum;
    row["fresh"] = run.fresh;
    row["prepared"] = py::make_tuple(run.prepare_from, run.prepare_to);
    row["ran"] = py::make_tuple(run.run_from, run.run_to);
    rows.append(row);
  }
  return rows;
}

const char* kind_name(codegen::Slice::Kind kind) {
  using Kind = codegen::Slice::Kind;
  switch (kind) {
    case Kind::Prepare:
      return "prepare";
    case Kind::Compile:
      return "compile";
    case Kind::Loops:
      return "loops";
    case Kind::Program:
      return "program";
    case Kind::Interruption:
      return "interruption";
  }
  return "";
}

py::list slices(std::size_t first) {
  py::list rows;
  for (const codegen::Slice& slice : codegen::Timeline::since(first)) {
    py::dict row;
    row["kind"] = kind_name(slice.kind);
    row["name"] = readable(slice.name);
    row["detail"] = readable(slice.detail);
    row["times"] = py::make_tuple(slice.from_ns, slice.to_ns);
    row["thread"] = slice.thread;
    row["bytes_moved"] = slice.bytes_moved;
    row["bytes_minimum"] = slice.bytes_minimum;
    rows.append(row);
  }
  return rows;
}

py::list loop_passes() {
  py::list rows;
  for (const codegen::loop::Pass& pass : codegen::loop::passes())
    rows.append(py::make_tuple(std::string(pass.name), std::string(pass.about)));
  return rows;
}

py::dict jit_statistics() {
  const codegen::JitStats stats = jit_stats();
  py::dict made;
  made["compiler"] = readable(stats.compiler);
  made["cache_dir"] = file_name(stats.cache_dir);
  made["cache_note"] = readable(stats.cache_note);
  made["trouble"] = readable(stats.trouble);
  made["compiled"] = stats.compiled;
  made["disk_hits"] = stats.disk_hits;
  made["memory_hits"] = stats.memory_hits;
  made["failed"] = stats.failed;
  made["compile_ms"] = stats.compile_ms;
  return made;
}

py::dict cache(bool clear) {
  const CacheFacts facts = cache_facts(clear);
  py::dict made;
  made["folder"] = file_name(facts.folder);
  made["note"] = readable(facts.note);
  made["most_bytes"] = facts.most_bytes;
  made["files"] = facts.content.files;
  made["bytes"] = facts.content.bytes;
  made["foreign"] = facts.content.foreign;
  return made;
}

py::object kept_entry(const py::bytes& key) {
  const std::optional<std::string> found = kept_entries().read(std::string_view(key));
  return found ? py::object(py::bytes(*found)) : py::none();
}

bool keep_entry(const py::bytes& key, const py::bytes& payload) {
  return kept_entries().put(std::string_view(key), std::string_view(payload));
}

py::list reasons() {
  py::list rows;
  for (const ReasonRow& reason : ufuse::reasons())
    rows.append(py::make_tuple(std::string(reason.id), std::string(reason.sentence)));
  return rows;
}

// The rows of surface.def: (module, name, form, what, whether it writes to an argument).
py::list surface() {
  py::list rows;
  for (const numpy_shim::SurfaceRow& row : numpy_shim::surface()) {
    constexpr const char* kForms[] = {"Native", "Twin", "NumPy", "Repeated"};
    rows.append(py::make_tuple(std::string(row.module), std::string(row.name),
                               kForms[static_cast<int>(row.form)], std::string(row.what),
                               row.writes.argument));
  }
  return rows;
}

// A Python context manager, `with backend("interpreted"):`, while which something is set.
// exchange(value) sets it and gives what was set before.
template <auto exchange, class Value>
class Setting {
 public:
  explicit Setting(Value value) : value_(std::move(value)) {}
  void enter() { before_ = exchange(value_); }
  void exit(const py::args&) { exchange(before_); }

  static void bind(py::module_& m, const char* name, const char* argument, const char* words) {
    py::class_<Setting>(m, name, words)
        .def(py::init<Value>(), py::arg(argument))
        .def("__enter__", &Setting::enter)
        .def("__exit__", &Setting::exit);
  }

 private:
  Value value_, before_{};
};

}  // namespace

PyObject* array_function_handler() { return the_array_function_handler; }

Call& active_call() {
  Call* call = Call::active();
  if (call == nullptr) throw std::runtime_error("no traced call is active on this thread");
  return *call;
}

void bind_session(py::module_& m) {
  m.def("begin", begin, py::arg("fast") = false, py::arg("debug") = false,
        "Begin a traced call on this thread; finish or abort must follow. The arguments are "
        "options of jit.");
  m.def("traced", traced,
        "traced(steps, fast, debug, waits, *args, **kwargs): a traced call. steps.begin(args, "
        "kwargs) gives a callable and its arguments; its result is put into steps.result, and "
        "steps.end() ends with finish. Where something raised, steps.due(error) gives the lazy "
        "arrays that have to be computed all the same, and pending writes are done. Then the "
        "result of steps.conclude(error or None), and at last steps.leave(error or None). Whatever "
        "signals come, the call is closed at the end.");
  m.def(
      "frames_to",
      [](int level) {
        Call* call = Call::active() ? Call::active() : Call::stopped();
        return call != nullptr ? call->frames_to(level) : level;
      },
      py::arg("level"),
      "How many frames there are down to the user's `level`-th one, the caller's as the first one "
      "and those of this package included.");
  m.def(
      "session_active", [] { return Call::active() != nullptr; },
      "Whether a call is being traced on this thread.");
  m.def("any_lazy", any_lazy, "Whether there is a lazy array anywhere.");
  m.def(
      "wrap_number", [](py::handle object) { return wrap_number(object.ptr()); }, py::arg("object"),
      "A Python int, float or complex of the active call that is an operand and nothing else, "
      "where "
      "a dispatcher records what is done with it; any other object as it is.");
  m.def(
      "add_copy",
      [](py::handle copy, py::handle original) {
        active_call().copies().add(copy.ptr(), original.ptr());
      },
      py::arg("copy"), py::arg("original"),
      "Traced code has `copy` in the place of the caller's list, dict or tuple `original`, "
      "whatever name it goes by. Others have the original, with real arrays.");
  m.def(
      "changed_copies",
      [] {
        py::list found;
        for (const py::object& copy : active_call().copies().changed()) found.append(copy);
        return found;
      },
      "The copies that traced code has changed.");
  m.def("is_walked", is_walked, py::arg("container"),
        "Whether a container of the caller's holds arrays or scalars of NumPy's, or containers "
        "that a recording may have to know as the caller's own.");
  m.def("walked", ContainerWalk::walked,
        "How many objects in containers have been looked at in this process.");
  m.def("wrap", wrap, py::arg("object"),
        "A supported ndarray or NumPy scalar as a lazy array on its own memory (the same object "
        "gives the same lazy array); anything "
        "else is returned as it is.");
  m.def(
      "unwrap", [](py::handle object) { return unwrap(object.ptr()); }, py::arg("object"),
      "The real object for a lazy array, computed if need be; also inside tuples, lists and "
      "dicts.");
  m.def("finish", finish, py::arg("results"), py::arg("returned") = py::none(),
        py::arg("arguments") = py::list(),
        "End the traced call: compute the results and all pending writes in one request; real "
        "objects in the order of `results`. They stand in `returned`, whose nest a recording "
        "repeats; what stands there for `arguments` are the caller's own objects.");
  m.def("held_lazies", held_lazies,
        "The lazy arrays that the active call has put into attributes, lists and dicts.");
  m.def(
      "mark_impure", [] { active_call().session().mark_impure(); },
      "The active call did more than its plan would: it is not to be replayed.");
  m.def(
      "warns_at_once", [](bool at_once) { active_call().set_warns_at_once(at_once); },
      "Whether floating-point warnings of the active call must not come late from here on.");
  m.def(
      "abort", [] { end_by_exception(active_call(), py::list(), false); },
      "End a traced call that raised: pending writes to the caller's arrays are done.");
  m.def("numpy_call", call_numpy, py::arg("func"), py::arg("args"), py::arg("kwargs"),
        py::arg("reason"), py::arg("pure"),
        "Call func on real arrays, recorded with a reason (a row of reasons()); arrays that nobody "
        "else holds come back lazy. "
        "Not pure: it may change memory, so everything pending is computed first.");
  m.def("events", events,
        "What happened in the active or last call: dicts of kind, reason, detail, file, line.");
  m.def("reports", reports,
        "What ran natively in the active or last call: dicts of groups, graph, bytes_moved, "
        "bytes_minimum, fresh (built for this call), and when it was prepared and ran (from, to: "
        "nanoseconds of time.perf_counter_ns).");
  m.def(
      "keep_timeline",
      [] {
        codegen::Timeline::keep();
        return codegen::Timeline::size();
      },
      "From now on, what runs leaves slices; how many there are already.");
  m.def("let_go_timeline", codegen::Timeline::let_go,
        "For each keep_timeline(): after the last one there are no slices any more.");
  m.def(
      "slices", slices, py::arg("first"),
      "What has run since the timeline is kept, from slice number `first` on: dicts of kind, name, "
      "detail, times (from, to: nanoseconds of time.perf_counter_ns), thread, bytes_moved and "
      "bytes_minimum.");
  m.def(
      "jit_statistics", jit_statistics,
      "The compiler and what is wrong with it, the folder for compiled loops or why none is used, "
      "and what was compiled or found there by this process. The compiler is empty before its "
      "first use.");
  m.def("cache", cache, py::arg("clear") = false,
        "The folder for compiled loops, why it is not used, how many bytes it may hold, how many "
        "files and bytes it holds (with clear: held, before they were removed), and how many of "
        "the files are never used because other users own or can write them.");
  m.def("kept_entry", kept_entry, py::arg("key"),
        "What an earlier process kept in the folder for compiled loops under this key, or None.");
  m.def("keep_entry", keep_entry, py::arg("key"), py::arg("payload"),
        "Keep bytes there for later processes; False where that is not possible.");
  m.def("loop_passes", loop_passes,
        "The passes that rewrite loops before they are printed: (name, sentence), in their order. "
        "UFUSE_LEAVE_OUT names some that are left out.");
  m.def("surface", surface, "Rows of numpy_shim/surface.def: (module, name, form, what).");
  m.def("reasons", reasons, "Rows of ir/support/reasons.def: (id, sentence).");
  m.def(
      "set_array_function",
      [](py::object handler) {
        Py_XDECREF(the_array_function_handler);
        the_array_function_handler = handler.is_none() ? nullptr : handler.release().ptr();
      },
      py::arg("handler"),
      "handler(func, types, args, kwargs) answers NumPy functions called with lazy arrays.");
  m.def(
      "set_request_judge", set_request_judge, py::arg("judge"),
      "judge(row) is called with each request of a traced call, beside what NumPy gives for it: a "
      "dict that ufuse/tools/requests.py describes. None: nobody looks.");
  m.def(
      "set_backend", [](const std::string& name) { set_backend(name); }, py::arg("name"),
      "'deferred' (the default), 'compiled', 'interpreted' or 'numpy': the first backend that is "
      "tried.");
  m.def("current_backend", current_backend, "The first backend that is tried.");
  m.def(
      "finish_builds",
      [](double seconds) {
        const WithoutGil released;
        finish_builds(std::chrono::milliseconds(static_cast<int>(seconds * 1e3)));
      },
      py::arg("seconds"),
      "The end of the program: wait at most so long for loops being compiled in the background, "
      "and compile no more there.");
  m.def("set_num_threads", set_num_threads, py::arg("threads"),
        "The most threads a loop may use; below 1: the default.");
  m.def("get_num_threads", get_num_threads, "The most threads a loop may use.");
  m.def("limit_threads", codegen::Threads::set_own_limit, py::arg("threads"),
        "The most threads a loop that this thread starts may use; what was set before.");
  m.def("threads_note", threads_note,
        "Why a loop got fewer threads than it may use; empty: none did.");
  m.def("start_openmp", codegen::start_openmp,
        "Start libomp, which reads the environment now; whether it runs.");
  m.def("openmp_survives", codegen::openmp_survives,
        "Whether libomp starts and runs a loop with this environment, tried in a child process.");
  Setting<Call::set_most_operations, std::int64_t>::bind(
      m, "most_operations", "operations",
      "Context manager, for tests: tracing stops in the middle of a call after so many operations, "
      "where it can.");
  Setting<set_backend, std::string>::bind(m, "backend", "name",
                                          "Context manager: another backend while it is open.");
}

}  // namespace ufuse::pyext
