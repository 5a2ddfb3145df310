// A loop of a function's, and the programs that have been made of it for the types of its
// variables.
//
// While Python runs the loop, its heads (head.cpp) count what it takes; once that is worth a
// compiler's work the loop is typed, and its program compiled in the background. One of these
// stands in the code of the function, and has what all its calls have found out.
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/jit/jit.h"
#include "codegen/program/printer.h"
#include "numpy_shim/program/typing.h"
#include "pyext/bind/common.h"
#include "pyext/bind/programs/boxes.h"
#include "pyext/bind/programs/world.h"

namespace ufuse::pyext {

// A loop typed for one kind of variables.
struct Version {
  numpy_shim::program::Entered entered;
  std::unique_ptr<ProgramWorld> world;  // it holds what the program's names stood for
  ir::program::Program program;
  codegen::FrameLayout layout;
  codegen::PrintedProgram printed;
  std::shared_future<codegen::Built> build;
  std::shared_ptr<const codegen::Kernel> kernel;  // once it has been built
  // What its runs have taken, what Python took to go on where they exited, and how often it did.
  std::int64_t native_ns = 0, python_ns = 0, exits = 0;

  Version(numpy_shim::program::Entered entered, std::unique_ptr<ProgramWorld> world,
          ir::program::Program program);
};

// Where the function that runs a loop looks up names.
struct Names {
  py::object globals, builtins;
};

struct LoopState {
  numpy_shim::program::Loop text;
  std::vector<bool> read_first;   // numpy_shim::program::read_first of the text
  std::vector<py::object> names;  // of the variables
  py::object outside;             // the other names
  std::vector<int> assigned;      // variables, in the order in which they are handed back
  py::object resume;              // gives the function that goes on from a statement
  py::object read_function;
  std::unordered_map<int, std::pair<py::object, py::object>> continuations;
  std::vector<std::shared_ptr<Version>> versions;
  // What Python's rounds have taken, and how many they were.
  std::int64_t python_ns = 0, python_rounds = 0;
  bool is_ready = false;   // a program has been built
  std::string why_not;     // why it was Python's the last time that no program could be made
  bool is_closed = false;  // it stays Python's
  int why_line = 0;
  std::vector<numpy_shim::program::Entered> refused;  // there is no program for such variables
  // Nor for such as long as a round changes their types, as the first one of each call may. What
  // that depends on may change: they are looked at again, ever more rarely.
  struct Changing {
    numpy_shim::program::Entered entered;
    std::uint64_t seen = 1;
  };
  std::vector<Changing> changing;

  // Whether the program is faster than Python is tried where the first runs leave a doubt: a whole
  // run of the program, then one of Python's with as many rounds.
  struct Trial {
    bool is_over = false, is_pythons = false;  // who is the next
    std::int64_t native_ns = 0, rounds = 0;    // of the program's run
    bool is_whole = false;                     // that it began
    int lost = 0, runs = 0;
  } trial;

  // Whether nobody but the loop assigns a variable while its program runs. What its text has in
  // addition to the user's variables begins with a dot (ufuse/source/draws.py).
  bool is_own(std::size_t variable) const {
    return text.variables[variable].starts_with('.') ||
           std::ranges::find(assigned, static_cast<int>(variable)) != assigned.end();
  }

  // The function that goes on from a statement, among these global names.
  py::object continuation(const py::object& globals, int statement);
  // Whether a run of the loop is worth counting. Where all kinds of variables have been refused so
  // far, others are looked for now and then.
  bool may_become_native() {
    constexpr std::uint32_t kLookEach = 64;
    if (is_closed) return false;
    return refused.empty() || !versions.empty() || ++looked_for % kLookEach == 0;
  }
  // Whether it is known if there is a program.
  bool is_decided() const {
    return is_closed || is_ready || (versions.empty() && !refused.empty());
  }
  std::uint32_t looked_for = 0, short_runs = 0;
  // For so many runs it is not asked what zip and the like go over; and for how many the last time.
  std::uint32_t unwalked = 0, skips_walks = 0;
  // What heads have cost since a program last ran, though no program could run, or none begin
  // before the loop was over; in nanoseconds, estimated.
  std::int64_t wasted = 0;
  bool is_dropped = false;  // the functions do without its heads
  // Whether heads have cost a good part of that which is too much.
  bool is_useless() const;
  // The program for variables of these types, if there is one or one may be made. Why not otherwise
  // is remembered.
  void close(const std::string& why);
  std::shared_ptr<Version> version_for(const numpy_shim::program::Entered& entered,
                                       ProgramWorld::Variables variables, const Names& names,
                                       ProgramWorld::GivenOf given_of = pyext::given_of);
};

// What tests ask for.
struct ProgramTests {
  bool eager = false;             // programs are compiled at once, and waited for
  std::uint64_t exits_after = 0;  // so many statements; 0: only where they have to
};
ProgramTests& program_tests();

// Without the frame of a looped function at the loop, where the frame of a continuation comes next:
// the traceback of the exception that is set.
void hide_loops();

// `_core.Loop` objects.
LoopState& loop_state(PyObject* loop);
void bind_loop(py::module_& m);
// Has the functions of a loop do without its heads, where these have taken too long for nothing.
// False where a signal's handler has raised.
bool drop_if_useless(PyObject* loop);
// `_core.Loop.head`: what a `for` or `while` goes over.
PyObject* make_head(PyObject* loop, PyObject* iterable);
void bind_head(py::module_& m);

}  // namespace ufuse::pyext
