// Kernel -> Kernel, in one named array: each pass makes a kernel faster and keeps its meaning, and
// any of them may be left out. They do what the schedule asked for in the fields of loops, and
// decide what only the statements tell: which values are kept in arrays, how long a block is.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/loop/ir.h"
#include "ir/support/checked.h"

namespace ufuse::codegen::loop {

struct Pass {
  std::string_view name;
  void (*run)(Kernel&);
  std::string_view about;  // one sentence for the logs
};

struct PassOptions {
  std::vector<std::string> leave_out = {};  // names; InternalError for an unknown one
  bool verify = kChecked;                   // before the first pass and after each
  std::function<void(std::string_view pass, const Kernel& after)> dump_after = {};
};

std::span<const Pass> passes();  // in the order in which run_passes runs them
Kernel run_passes(Kernel kernel, const PassOptions& options);

// Nested loops of which each merges with the next become one: contiguous arrays of any rank need
// one loop.
void collapse(Kernel& kernel);

// The loop that is to be shared out becomes the kernel's range, cut at multiples of a grain.
void parallelise(Kernel& kernel);

// Lets results too large for the caches go past them: marks the buffers of which each loop over
// lanes stores a stretch once, and does not read it. Whether they go is known before the loops
// begin and is not in the kernel's text; short rows would each have to ask, and are left alone.
void stream(Kernel& kernel);

// Loops over lanes that have something to do for many lanes at once run in blocks: a loop over
// blocks, and in it one over the block's lanes. So do runs whose elements are made in an array.
void block(Kernel& kernel);
// Whether a body over lanes has something to do for many of them at once, or in order: calls,
// accumulators, carried values.
bool takes_many_lanes(const Body& body);

// Cuts the lanes of a block at block calls and reductions: each stretch between two of them becomes
// an inner loop of its own, which g++ vectorises. What crosses a cut is kept in an array of one
// block, except loads, which are done again, and what a call reads from or writes to memory itself.
void segment(Kernel& kernel);

// Accumulators beside the lanes of a block take row after row, as they lie in memory; several at a
// time where the lanes are so few that one row is a trifle.
void rows(Kernel& kernel);

}  // namespace ufuse::codegen::loop
