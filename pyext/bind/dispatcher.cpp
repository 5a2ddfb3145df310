// See dispatcher.h. A Dispatcher is a callable: it looks the arguments' signature up among its
// plans; where there is none, or a guard has changed, or a warning is due, it calls the tracing
// function, which is right for every call, and records the plan it leaves.
#include "pyext/bind/dispatcher.h"

#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <new>

#include "pyext/bind/call.h"
#include "pyext/bind/new_array.h"
#include "pyext/bind/numpy_replay.h"
#include "pyext/bind/race.h"
#include "pyext/bind/signature.h"

namespace ufuse::pyext {
namespace {

constexpr std::size_t kMaxPlans = 64;
// Below this much memory the loops take less time than giving the interpreter's lock away and
// getting it back.
constexpr std::size_t kKeepLockBytes = 64 * 1024;

// The nest of a returned value: which result of the plan stands where, and what is always the same.
struct Shape {
  enum class Kind { Result, Constant, Tuple, List, Dict } kind = Kind::Constant;
  int result = -1;
  py::object constant;  // Constant; of a Dict: the keys, as a tuple
  std::vector<Shape> items;
};

// A value that is the same in each call and that nobody can change.
bool is_constant(PyObject* object) {
  return object == Py_None || object == Py_Ellipsis || PyBool_Check(object) ||
         PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyComplex_CheckExact(object) ||
         PyUnicode_CheckExact(object);
}

std::optional<Shape> shape_of(PyObject* object, const py::list& results,
                              const std::vector<PyObject*>& containers) {
  Shape shape;
  // The caller's own list is no new one.
  if (std::ranges::find(containers, object) != containers.end()) return std::nullopt;
  for (std::size_t i = 0; i < results.size(); ++i)
    if (PyList_GET_ITEM(results.ptr(), static_cast<Py_ssize_t>(i)) == object) {
      shape.kind = Shape::Kind::Result;
      shape.result = static_cast<int>(i);
      return shape;
    }
  if (is_constant(object)) {
    shape.constant = borrow(object);
    return shape;
  }
  py::object items;
  if (PyTuple_CheckExact(object) || PyList_CheckExact(object)) {
    shape.kind = PyTuple_CheckExact(object) ? Shape::Kind::Tuple : Shape::Kind::List;
    items = borrow(object);
  } else if (PyDict_CheckExact(object)) {
    shape.kind = Shape::Kind::Dict;
    shape.constant = steal(PySequence_Tuple(object));
    for (py::handle key : shape.constant)
      if (!is_constant(key.ptr())) return std::nullopt;
    items = steal(PyDict_Values(object));
  } else {
    return std::nullopt;
  }
  for (py::handle item : items) {
    std::optional<Shape> inner = shape_of(item.ptr(), results, containers);
    if (!inner) return std::nullopt;
    shape.items.push_back(std::move(*inner));
  }
  return shape;
}

// Two places of one mutable result must be one object again; each result is made once per call.
py::object build(const Shape& shape, const std::vector<py::object>& results) {
  switch (shape.kind) {
    case Shape::Kind::Result:
      return results[static_cast<std::size_t>(shape.result)];
    case Shape::Kind::Constant:
      return shape.constant;
    case Shape::Kind::Tuple:
    case Shape::Kind::List: {
      const bool is_list = shape.kind == Shape::Kind::List;
      const auto size = static_cast<Py_ssize_t>(shape.items.size());
      py::object made = steal(is_list ? PyList_New(size) : PyTuple_New(size));
      for (Py_ssize_t i = 0; i < size; ++i) {
        PyObject* item = build(shape.items[static_cast<std::size_t>(i)], results).release().ptr();
        is_list ? PyList_SET_ITEM(made.ptr(), i, item) : PyTuple_SET_ITEM(made.ptr(), i, item);
      }
      return made;
    }
    case Shape::Kind::Dict: {
      py::dict made;
      std::size_t i = 0;
      for (py::handle key : shape.constant) made[key] = build(shape.items[i++], results);
      return made;
    }
  }
  return py::none();
}

// Buffers and parameters of one run, ready but for the addresses. One per concurrent call.
struct Slots {
  std::vector<ir::Buffer> inputs, outputs;
  std::vector<ir::Scalar> params;
  std::vector<int> alias;
};

struct Entry {
  std::uint64_t hash = 0;
  std::vector<std::uint64_t> words;
  std::vector<py::object> objects;
  std::shared_ptr<const tracer::Plan> plan;  // unset: such calls cannot be replayed
  py::object error_state;
  Shape shape;
  std::size_t bytes = 0;
  std::optional<Place> sole;  // of the plan's sole operation
  std::vector<py::object> output_descrs;
  std::vector<std::unique_ptr<Slots>> idle;
  Race race;  // of small calls against the plain function

  bool matches(const Signature& signature) const {
    if (hash != signature.hash || words != signature.words ||
        objects.size() != signature.objects.size())
      return false;
    for (std::size_t i = 0; i < objects.size(); ++i) {
      PyObject *a = objects[i].ptr(), *b = signature.objects[i];
      if (a == b) continue;
      if (!PyUnicode_CheckExact(a) || !PyUnicode_CheckExact(b) || PyUnicode_Compare(a, b) != 0)
        return false;
    }
    return true;
  }

  std::unique_ptr<Slots> take_slots() {
    if (!idle.empty()) {
      std::unique_ptr<Slots> slots = std::move(idle.back());
      idle.pop_back();
      return slots;
    }
    auto slots = std::make_unique<Slots>();
    for (const tracer::PlanInput& input : plan->inputs)
      slots->inputs.push_back(
          {nullptr, input.layout.dtype, input.layout.shape, input.layout.strides});
    for (const tracer::PlanOutput& output : plan->outputs) {
      slots->outputs.push_back(
          {nullptr, output.layout.dtype, output.layout.shape, output.layout.strides});
      slots->alias.push_back(output.alias);
    }
    for (const tracer::PlanParam& param : plan->params) slots->params.push_back(param.bits);
    return slots;
  }
};

struct Guard {
  py::object dictionary, name, value;
};

struct State {
  py::object trace;
  py::object plain;  // the function itself, where small calls may be answered by it; else unset
  std::vector<Guard> guards;
  std::list<std::shared_ptr<Entry>> entries;  // the last used first; a replay holds its own
  Signature signature;  // reused; the interpreter's lock is held while it is read
  std::uint64_t replayed = 0, traced = 0;

  // `...` as the value: the name must be missing.
  bool guards_hold() const {
    for (const Guard& guard : guards) {
      PyObject* wanted = guard.value.ptr() == Py_Ellipsis ? nullptr : guard.value.ptr();
      if (PyDict_GetItemWithError(guard.dictionary.ptr(), guard.name.ptr()) != wanted) return false;
    }
    return true;
  }
};

struct DispatcherObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  State* state;
};

py::object result_of(const tracer::PlanResult& result, const std::vector<py::object>& outputs,
                     const std::vector<PyObject*>& arguments) {
  PyObject* source = result.argument >= 0 ? arguments[static_cast<std::size_t>(result.argument)]
                                          : outputs[static_cast<std::size_t>(result.output)].ptr();
  if (!PyArray_Check(source)) return borrow(source);  // a NumPy scalar among the arguments
  auto* array = reinterpret_cast<PyArrayObject*>(source);
  char* data = PyArray_BYTES(array) + result.offset;
  if (result.scalar) return scalar_object(result.layout.dtype, data);
  if (result.whole) return borrow(source);
  return array_on(result.layout, data, PyArray_ISWRITEABLE(array) && !result.read_only, source);
}

// Null: a warning or a tie asks for a traced call.
py::object replay(Entry& entry, const Signature& signature) {
  const tracer::Plan& plan = *entry.plan;
  const std::vector<PyObject*>& arguments = signature.arguments;
  std::vector<py::object> outputs(plan.outputs.size());
  if (plan.executable) {
    std::unique_ptr<Slots> slots = entry.take_slots();
    for (std::size_t i = 0; i < plan.inputs.size(); ++i)
      slots->inputs[i].data = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(
                                  arguments[static_cast<std::size_t>(plan.inputs[i].argument)])) +
                              plan.inputs[i].offset;
    for (std::size_t i = 0; i < plan.params.size(); ++i)
      if (plan.params[i].argument >= 0)
        slots->params[i] = scalar_bits(arguments[static_cast<std::size_t>(plan.params[i].argument)],
                                       plan.params[i].dtype);
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      const tracer::PlanOutput& output = plan.outputs[i];
      if (output.alias >= 0) {
        slots->outputs[i].data = slots->inputs[static_cast<std::size_t>(output.alias)].data;
        continue;
      }
      outputs[i] = new_array(output.layout, entry.output_descrs[i]);
      slots->outputs[i].data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(outputs[i].ptr()));
    }
    const ir::RunArgs args{slots->inputs, slots->params, slots->outputs, slots->alias};
    ir::RunStatus status;
    if (entry.bytes <= kKeepLockBytes) {
      status = plan.executable->run(args);
    } else {
      const py::gil_scoped_release released;
      status = plan.executable->run(args);
    }
    const std::uint32_t raised = status.fp & plan.report_mask;
    if (status.redo || (raised != 0 && !plan.sole)) return {};
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      const tracer::PlanOutput& output = plan.outputs[i];
      if (output.argument < 0 || output.alias >= 0) continue;
      auto* target =
          reinterpret_cast<PyArrayObject*>(arguments[static_cast<std::size_t>(output.argument)]);
      if (PyArray_CopyInto(target, reinterpret_cast<PyArrayObject*>(outputs[i].ptr())) < 0)
        throw py::error_already_set();
    }
    entry.idle.push_back(std::move(slots));
    if (raised != 0)
      for (const std::string& message : tracer::messages_of(plan.sole->ufunc, raised))
        warn(*entry.sole, message);
  }
  std::vector<py::object> results;
  results.reserve(plan.results.size());
  for (const tracer::PlanResult& result : plan.results)
    results.push_back(result_of(result, outputs, arguments));
  return build(entry.shape, results);
}

// Traces the call, and keeps the plan if it leaves one (`kept`).
py::object trace(State& state, PyObject* const* args, std::size_t flags, PyObject* keywords,
                 bool readable, bool* kept = nullptr) {
  Entry entry;
  if (readable) {
    entry.hash = state.signature.hash;
    entry.words = state.signature.words;
    for (PyObject* object : state.signature.objects) entry.objects.push_back(borrow(object));
    entry.error_state = error_state();
  }
  const std::size_t argument_count = state.signature.arguments.size();
  const std::vector<PyObject*> containers = state.signature.containers;
  const std::shared_ptr<Call> before = Call::last();
  ++state.traced;
  const bool recording = Call::set_recording(true);
  py::object result = py::reinterpret_steal<py::object>(
      PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords));
  Call::set_recording(recording);
  if (!result) throw py::error_already_set();
  const std::shared_ptr<Call> call = Call::last();
  if (!readable || !call || call == before) return result;
  const std::shared_ptr<const tracer::Plan> plan = call->session().plan();
  std::optional<Shape> shape;
  if (plan && call->argument_count() == argument_count && same_error_state(entry.error_state))
    shape = shape_of(result.ptr(), call->results(), containers);
  call->drop_results();
  if (shape) {
    entry.plan = plan;
    if (plan->sole) entry.sole = call->place_of(plan->sole->origin);
    entry.shape = std::move(*shape);
    const auto add_bytes = [&](const Layout& layout) {
      auto bytes = static_cast<std::int64_t>(ir::size_of(layout.dtype));
      for (std::int64_t n : layout.shape) bytes *= n;
      entry.bytes += static_cast<std::size_t>(bytes);
    };
    for (const tracer::PlanInput& input : plan->inputs) add_bytes(input.layout);
    for (const tracer::PlanOutput& output : plan->outputs) {
      add_bytes(output.layout);
      entry.output_descrs.push_back(descr_of(output.layout.dtype));
    }
  }
  std::erase_if(state.entries, [&](const std::shared_ptr<Entry>& old) {
    return old->hash == entry.hash && old->words == entry.words;
  });
  if (kept != nullptr) *kept = entry.plan != nullptr;
  state.entries.push_front(std::make_shared<Entry>(std::move(entry)));
  if (state.entries.size() > kMaxPlans) state.entries.pop_back();
  return result;
}

PyObject* call(PyObject* self, PyObject* const* args, std::size_t flags, PyObject* keywords) {
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    if (Call::active()) return PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords);
    const bool readable = state.signature.read(args, PyVectorcall_NARGS(flags), keywords);
    if (!state.guards_hold()) {
      state.entries.clear();
      return PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords);
    }
    if (readable) {
      for (auto it = state.entries.begin(); it != state.entries.end(); ++it) {
        if (!(*it)->matches(state.signature)) continue;
        if (it != state.entries.begin())
          state.entries.splice(state.entries.begin(), state.entries, it);
        // Other threads may drop the entry while this one runs without the GIL.
        const std::shared_ptr<Entry> entry = state.entries.front();
        if (!entry->plan) return PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords);
        if (!same_error_state(entry->error_state)) break;
        const bool races = state.plain && entry->bytes <= kKeepLockBytes &&
                           (!entry->plan->executable || entry->plan->executable->settled());
        const Race::Turn turn = races ? entry->race.next() : Race::Turn{};
        const std::int64_t start = turn.timed ? steady_ns() : 0;
        // Allocating may run Python code, which may call this dispatcher again.
        Signature signature = std::move(state.signature);
        py::object result = turn.plain ? py::reinterpret_steal<py::object>(PyObject_Vectorcall(
                                             state.plain.ptr(), args, flags, keywords))
                                       : replay(*entry, signature);
        state.signature = std::move(signature);
        if (turn.timed) entry->race.took(turn, steady_ns() - start);
        if (turn.plain) return result.release().ptr();
        if (result) {
          ++state.replayed;
          return result.release().ptr();
        }
        return PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords);
      }
    }
    return trace(state, args, flags, keywords, readable).release().ptr();
  });
}

// A call that is traced in any case: what it recorded can be read afterwards.
PyObject* record(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    const auto flags = static_cast<std::size_t>(count);
    bool kept = false;
    if (Call::active() == nullptr && state.guards_hold())
      trace(state, args, flags, keywords, state.signature.read(args, count, keywords), &kept);
    else
      steal(PyObject_Vectorcall(state.trace.ptr(), args, flags, keywords));
    return py::bool_(kept).release().ptr();
  });
}

// Whether calls like this one are answered by the plain function, which was measured to be faster.
PyObject* prefers_plain(PyObject* self, PyObject* const* args, Py_ssize_t count,
                        PyObject* keywords) {
  return guard([&] {
    State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    bool found = false;
    if (state.signature.read(args, count, keywords))
      for (const std::shared_ptr<Entry>& entry : state.entries)
        if (entry->matches(state.signature)) found |= entry->race.plain_wins();
    return py::bool_(found).release().ptr();
  });
}

PyObject* create(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guard([&]() -> PyObject* {
    static const char* names[] = {"trace", "guards", "plain", nullptr};
    PyObject *callable, *guards = nullptr, *plain = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO", const_cast<char**>(names), &callable,
                                     &guards, &plain))
      throw py::error_already_set();
    auto state = std::make_unique<State>();
    state->trace = borrow(callable);
    if (plain != Py_None) state->plain = borrow(plain);
    if (guards)
      for (py::handle row : borrow(guards)) {
        const auto triple = row.cast<py::tuple>();
        if (triple.size() != 3 || !PyDict_Check(triple[0].ptr()))
          throw py::type_error("a guard is (dict, name, value)");
        state->guards.push_back({triple[0], triple[1], triple[2]});
      }
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
  Py_VISIT(state->plain.ptr());
  for (const Guard& guard : state->guards) {
    Py_VISIT(guard.dictionary.ptr());
    Py_VISIT(guard.value.ptr());
  }
  return 0;
}

int clear(PyObject* self) {
  State* state = reinterpret_cast<DispatcherObject*>(self)->state;
  if (state == nullptr) return 0;
  state->entries.clear();
  state->guards.clear();
  state->trace = py::none();
  state->plain = py::object();
  return 0;
}

PyObject* get_counts(PyObject* self, void*) {
  return guard([&] {
    const State& state = *reinterpret_cast<DispatcherObject*>(self)->state;
    return py::make_tuple(state.replayed, state.traced, state.entries.size()).release().ptr();
  });
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
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"counts", get_counts, nullptr, "(replayed, traced, plans kept).", nullptr},
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
                      "Dispatcher(trace, guards=(), plain=None)\n\nCalls trace(*args, **kwargs), "
                      "which must be pure, and replays the plan that such a "
                      "call leaves for later calls of the same signature. A guard is "
                      "(dict, name, value): where dict[name] is no longer "
                      "the same object, all plans are dropped. Small calls are "
                      "answered by `plain` where that is measured to be faster.")},
      {0, nullptr}};
  static PyType_Spec spec = {"ufuse._core.Dispatcher", sizeof(DispatcherObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
                             slots};
  m.attr("Dispatcher") = steal(PyType_FromSpec(&spec));
}

}  // namespace ufuse::pyext
