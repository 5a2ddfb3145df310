// Which backends compute graphs, and in which order are they tried? One order for the process,
// chosen by `_core.set_backend`.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "codegen/jit/cache.h"
#include "codegen/jit/jit.h"
#include "ir/backend.h"

namespace ufuse::pyext {

// What the first backend that can compute the graph makes of it: compiled loops (with the
// interpreter or NumPy in the meantime), then the interpreter; null: NumPy, node by node. `note`:
// why an earlier one could not. Called with Python's lock, which other threads get while this one
// plans, compiles and waits. It waits for the compiler at most as long as `patience`, and only
// `brief` where another backend can answer, unless the caller `waits`.
std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph, const ir::RunArgs& layouts,
                                              bool fast, bool waits,
                                              std::chrono::nanoseconds patience,
                                              std::chrono::nanoseconds brief, std::string& note);
// Begins to build a program's text in the background.
std::shared_future<codegen::Built> build_program(const std::string& text, codegen::Effort effort);
// What the compiler and its caches did in this process, and where they are.
codegen::JitStats jit_stats();
// The folder that a process started now would use, why it cannot use it (else empty), and what is
// in it. `clear`: what is in it is removed.
struct CacheFacts {
  std::string folder, note;
  std::uint64_t most_bytes;
  codegen::CacheContent content;
};
CacheFacts cache_facts(bool clear);
// The part of that folder in which the Python package keeps things for later processes.
codegen::EntryStore& kept_entries();
// Waits at most so long for compilers that run in the background, and kills those that are left.
void finish_builds(std::chrono::milliseconds patience);
// "deferred" (the default: the interpreter or NumPy answers what takes less time than compiling,
// and loops are compiled meanwhile), "compiled", "interpreted" or "numpy": what is tried first.
// Returns what was tried first before.
std::string set_backend(const std::string& name);
std::string current_backend();
// Whether calls wait for the compiler, whatever there is to do.
bool waits_for_loops();
void set_num_threads(int threads);
int get_num_threads();
// Why loops got fewer threads; empty: none did.
std::string threads_note();

}  // namespace ufuse::pyext
