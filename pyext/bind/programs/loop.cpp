// See loop.h.
#include "pyext/bind/programs/loop.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "codegen/program/effort.h"
#include "numpy_shim/program/draws.h"
#include "pyext/bind/call/backends.h"
#include "pyext/bind/numpy/ufunc_registry.h"
#include "pyext/bind/programs/text.h"

namespace ufuse::pyext {

using numpy_shim::program::Entered;
using numpy_shim::program::NotNative;
using numpy_shim::program::TypesChange;

namespace {

// Types that come again and again anew are not worth it.
constexpr std::size_t kMostVersions = 8;
constexpr std::size_t kMostChanges = 64;

// What heads may cost for nothing, about what it takes to make the code without them. Others of the
// same function go as well that have cost a good part of it.
constexpr std::int64_t kMostWasted = 1'000'000, kGoodPart = 8;
PyObject* the_drop_heads = nullptr;  // loops.drop_heads

// Of functions that live as long as their loops.
std::unordered_set<PyObject*>& continuation_codes() {
  static auto* codes = new std::unordered_set<PyObject*>;
  return *codes;
}

struct LoopObject {
  PyObject_HEAD LoopState* state;
};

PyTypeObject* loop_type = nullptr;

PyObject* create(PyTypeObject* type, PyObject* args, PyObject*) {
  return guard([&]() -> PyObject* {
    PyObject *tree, *variables, *outside, *assigned, *resume, *read_function;
    const char* why_not;
    if (!PyArg_ParseTuple(args, "OOOOsOO", &tree, &variables, &outside, &assigned, &why_not,
                          &resume, &read_function))
      throw py::error_already_set();
    auto state = std::make_unique<LoopState>();
    state->text.variables = read_names(variables);
    state->text.outside = read_names(outside);
    state->outside = borrow(outside);
    state->text.statement = read_statement(tree);
    state->read_first = numpy_shim::program::read_first(state->text);
    for (py::handle name : borrow(variables)) state->names.push_back(borrow(name.ptr()));
    for (const std::string& name : read_names(assigned))
      state->assigned.push_back(static_cast<int>(std::ranges::find(state->text.variables, name) -
                                                 state->text.variables.begin()));
    state->resume = borrow(resume);
    state->read_function = borrow(read_function);
    if (*why_not != '\0') state->close(why_not);
    PyObject* self = type->tp_alloc(type, 0);
    if (self == nullptr) throw py::error_already_set();
    reinterpret_cast<LoopObject*>(self)->state = state.release();
    return self;
  });
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<LoopObject*>(self)->state;
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* facts(PyObject* self, void*) {
  return guard([&] {
    const LoopState& state = loop_state(self);
    py::list versions;
    for (const auto& version : state.versions)
      versions.append(py::dict(
          py::arg("source") =
              codegen::print_cpp(version->program, version->layout, codegen::LineComments::Yes)
                  .text,
          py::arg("program") = ir::program::print(version->program),
          py::arg("ready") = version->kernel != nullptr, py::arg("native_ns") = version->native_ns,
          py::arg("python_ns") = version->python_ns, py::arg("exits") = version->exits));
    const bool told = state.is_closed || state.versions.empty();
    return py::dict(py::arg("line") = state.text.statement.line,
                    py::arg("why_not") = told ? state.why_not : std::string(),
                    py::arg("why_line") = state.why_line, py::arg("python_ns") = state.python_ns,
                    py::arg("versions") = versions)
        .release()
        .ptr();
  });
}

PyMethodDef kMethods[] = {
    {"head", make_head, METH_O, "What the loop goes over in the place of an iterable, or of None."},
    {nullptr, nullptr, 0, nullptr}};
PyObject* get_resume(PyObject* self, void*) { return Py_NewRef(loop_state(self).resume.ptr()); }
PyObject* get_is_useless(PyObject* self, void*) {
  return PyBool_FromLong(loop_state(self).is_useless());
}

PyGetSetDef kAttributes[] = {
    {"facts", facts, nullptr, "What has become of the loop.", nullptr},
    {"resume", get_resume, nullptr, "As it was given.", nullptr},
    {"is_useless", get_is_useless, nullptr, "Whether its heads only cost time.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

Version::Version(Entered e, std::unique_ptr<ProgramWorld> w, ir::program::Program p)
    : entered(std::move(e)), world(std::move(w)), program(std::move(p)), layout(program) {}

LoopState& loop_state(PyObject* loop) { return *reinterpret_cast<LoopObject*>(loop)->state; }

py::object LoopState::continuation(const py::object& globals, int statement) {
  auto& [of, known] = continuations[statement];
  if (!known || !of.is(globals)) {
    known = resume(globals, statement);
    of = globals;
    continuation_codes().insert(PyFunction_GET_CODE(known.ptr()));
  }
  return known;
}

bool LoopState::is_useless() const {
  const bool is_building = !versions.empty() && !is_ready;
  return wasted > kMostWasted / kGoodPart && !is_building && !program_tests().eager;
}

bool drop_if_useless(PyObject* loop) {
  LoopState& state = loop_state(loop);
  if (state.wasted <= kMostWasted || state.is_dropped || !state.is_useless()) return true;
  state.is_dropped = true;
  PyObject* const done = PyObject_CallOneArg(the_drop_heads, loop);
  Py_XDECREF(done);
  return done != nullptr;
}

void LoopState::close(const std::string& why) {
  why_not = why;
  is_closed = true;
}

std::shared_ptr<Version> LoopState::version_for(const Entered& entered,
                                                ProgramWorld::Variables variables,
                                                const Names& names,
                                                ProgramWorld::GivenOf given_of) {
  if (is_closed) return nullptr;
  const auto is_known = [&](const Entered& each) { return each == entered; };
  if (std::ranges::any_of(refused, is_known)) return nullptr;
  for (const auto& version : versions)
    if (version->entered == entered && version->world->is_of(names.globals)) {
      if (version->world->is_current(variables, given_of)) return version;
      std::erase(versions, version);
      break;
    }
  const auto change = std::ranges::find(changing, entered, &Changing::entered);
  if (change != changing.end() && !std::has_single_bit(++change->seen)) return nullptr;
  if (versions.size() + refused.size() >= kMostVersions || changing.size() >= kMostChanges) {
    close(versions.empty() && !why_not.empty() ? why_not : "its variables have too many types");
    return nullptr;
  }
  auto world = std::make_unique<ProgramWorld>(names.globals, names.builtins, outside, variables,
                                              given_of, read_function);
  try {
    ir::program::Program program = numpy_shim::program::typed(text, entered, *world);
    if (!world->is_current(variables, given_of))
      throw NotNative("two names stand for the object whose attribute is assigned",
                      text.statement.line);
#ifndef NDEBUG
    ir::program::verify(program, loop_table());
#endif
    auto made = std::make_shared<Version>(entered, std::move(world), std::move(program));
    made->printed = codegen::print_cpp(made->program, made->layout);
    made->build = build_program(codegen::program_preamble() + made->printed.text,
                                codegen::effort_for(made->program));
    versions.push_back(std::move(made));
    if (change != changing.end()) changing.erase(change);
    return versions.back();
  } catch (const TypesChange&) {
    if (change == changing.end()) changing.push_back({entered});
  } catch (const NotNative& why) {
    why_not = why.what();
    why_line = why.line();
    refused.push_back(entered);
  }
  return nullptr;
}

ProgramTests& program_tests() {
  static ProgramTests tests;
  return tests;
}

void hide_loops() {
  if (continuation_codes().empty()) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const auto is_continuation = [](PyObject* entry) {
    auto* frame = reinterpret_cast<PyTracebackObject*>(entry)->tb_frame;
    const py::object code = steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    return continuation_codes().contains(code.ptr());
  };
  PyTracebackObject* before = nullptr;
  for (PyObject* entry = trace; entry != nullptr;) {
    auto* at = reinterpret_cast<PyTracebackObject*>(entry);
    PyObject* next = reinterpret_cast<PyObject*>(at->tb_next);
    if (next != nullptr && is_continuation(next)) {
      Py_INCREF(next);
      if (before != nullptr)
        Py_SETREF(before->tb_next, reinterpret_cast<PyTracebackObject*>(next));
      else
        Py_SETREF(trace, next);
    } else {
      before = at;
    }
    entry = next;
  }
  PyErr_Restore(type, value, trace);
}

void bind_loop(py::module_& m) {
  py::list draws;
  for (const std::string& name : numpy_shim::program::names_of_draws()) draws.append(name);
  m.attr("draw_names") = py::tuple(draws);  // of methods of random generators
  m.def(
      "choose_programs",
      [](bool eager, std::uint64_t exits_after) {
        const ProgramTests before = program_tests();
        program_tests() = {eager, exits_after};
        return py::make_tuple(before.eager, before.exits_after);
      },
      py::arg("eager"), py::arg("exits_after") = 0,
      "For tests: loops become native in their first round, and exit after so many statements (0: "
      "where they have to). Returns what was asked for before.");
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(create)},
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_methods, kMethods},
      {Py_tp_getset, kAttributes},
      {Py_tp_doc, const_cast<char*>("Loop(tree, variables, outside, assigned, resume, "
                                    "read_function)\n\nA loop that may become native, as "
                                    "ufuse.source.reading reads it.")},
      {0, nullptr}};
  static PyType_Spec spec = {"ufuse._core.Loop", sizeof(LoopObject), 0, Py_TPFLAGS_DEFAULT, slots};
  const py::object type = steal(PyType_FromSpec(&spec));
  loop_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("Loop") = type;
  bind_hand_over(
      m, "set_drop_heads", "handler", the_drop_heads,
      "handler(loop) is called where the functions of a loop should do without its head.");
  bind_head(m);
}

}  // namespace ufuse::pyext
