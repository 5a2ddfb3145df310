// Every number that decides how a graph is cut into loops, and whether one waits for the compiler.
// Changes speed, never results. Figures are nanoseconds or counts measured on current x86-64 server
// cores; bench/ shows what a change does.
#pragma once

#include <chrono>
#include <cstdint>

#include "ir/graph.h"

namespace ufuse::codegen::cost {

// Work per element, in units of a vectorised addition.
inline constexpr double kNsPerOp = 0.15;
inline constexpr double kLoad = 1;
inline constexpr double kCall = 8;
constexpr double of_op(ir::Op op) {
  switch (op) {
    case ir::Op::Divide:
    case ir::Op::Sqrt:
    case ir::Op::Reciprocal:
      return 4;
    default:
      return 1;
  }
}

inline constexpr std::int64_t kUnrollBudget = 64;  // elements of unrolled reductions in one another
inline constexpr std::int64_t kMaxRow = 1 << 14;   // longest row of scratch: stays in L2
inline constexpr double kFewRuns = 8;              // so few runs are shared out inside, not between
inline constexpr std::int64_t kParallelRun = 1 << 15;  // from this length on
inline constexpr std::int64_t kParallelExtent = 64;    // a loop this long feeds all threads

// Memory that is only written, from this size on, goes past the caches: they could not keep it, and
// would read it first. Worth 1.25x to 1.5x where memory is the limit.
inline constexpr std::int64_t kStreamBytes = std::int64_t{64} << 20;

// A graph of more nodes is cut into parts of this many: g++ takes some 5 ms a node for 100 nodes
// and 10 ms for 400, and every value that crosses a cut is written to memory and read again.
inline constexpr std::size_t kFewestNodes = 100, kMostNodes = 200;

// Loops that are expected to take longer on one thread run in pieces, between which they can be
// given up. Expected is what simple arithmetic takes: a call of some library may take a
// hundredfold.
inline constexpr double kWatched = 1e6;
// Loops that are expected to take so long write into memory that lasts by a detour, so that they
// can be given up, where each byte costs so many nanoseconds to compute: a tenth of it pays for the
// copy.
inline constexpr double kLong = 100e6, kWorthDetour = 3;

// What the interpreter and NumPy take, in nanoseconds: for a node, and for each of its elements.
// Until loops are compiled the interpreter answers where it takes little, and NumPy where it takes
// no more than kWorthWaiting, which is what the compiler takes on a busy machine; else, and where
// NumPy would need much memory for a value, one waits.
inline constexpr double kInterpretedNode = 1000, kInterpretedElement = 2;
inline constexpr double kInterpretedMost = 200e3;
inline constexpr double kNumPyNode = 800, kNumPyElement = 0.8;
inline constexpr double kWorthWaiting = 100e6, kWorthWaitingBytes = 256e6;
// What compiling a part after the first takes, which is worth as much of NumPy's time.
inline constexpr double kCompiledPart = 0.4e9;
// First one waits as long as it takes to load a loop from the disk cache.
inline constexpr std::chrono::milliseconds kPatience{4};
// A call waits no longer than this for the compiler, whatever it does; the user may choose
// another number of seconds below a year.
inline constexpr std::uint64_t kLongestWait = 5, kMostPatience = 31'536'000;
// A compiler is slow where one build takes longer than a call waits, but for the most impatient.
inline constexpr std::chrono::seconds kNotSlow{1};

}  // namespace ufuse::codegen::cost
