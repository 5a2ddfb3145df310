// Every number that decides how a graph is cut into loops, and whether one waits for the compiler.
// Changes speed, never results. Figures are nanoseconds or counts, measured on x86-64 server cores
// with AVX-512; a number without a figure beside it was chosen by reasoning, which is told. bench/
// shows what a change does.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "ir/graph.h"

namespace ufuse::codegen::cost {

// ---- Work per element, in units of a vectorised addition, which takes kNsPerOp ----

inline constexpr double kNsPerOp = 0.15;
inline constexpr double kLoad = 1;
inline constexpr double kCall = 8;  // exp takes 0.5 to 1.1 ns, sin and cos of NumPy 2 eight
inline constexpr double kLoadAtPosition = 16;  // 2.5 ns where memory is larger than the caches
inline constexpr double kCarry = 10;           // a sum of doubles waits 4 cycles for the one before
inline constexpr double kListed = 5;           // a position of a true element
constexpr double of_op(ir::Op op) {
  return op == ir::Op::Divide || op == ir::Op::Sqrt || op == ir::Op::Reciprocal ? 4 : 1;
}

// ---- What is written out ----

// Extents and strides up to this are part of the text, and reductions of so few elements are
// written out: k-means of two columns takes 12.9 ms with its sizes in the text, 240 ms without.
inline constexpr std::int64_t kUnrolled = 16;
// Elements of unrolled reductions in one another: more text takes longer to compile than it saves.
inline constexpr std::int64_t kUnrollBudget = 64;
// An innermost axis of so few lanes is written out, and the next one runs in lanes: a vector of
// doubles has eight.
inline constexpr std::int64_t kFewLanes = 8;

// ---- Reductions and rows ----

inline constexpr std::int64_t kMaxRow = 1 << 14;  // longest row of scratch: 128 KiB stay in L2
inline constexpr double kFewRuns = 8;             // so few runs are shared out inside, not between
// From so many runs on that lie beside each other, and so many bytes from one element of a run to
// the next, lanes are better, though they are not shared out over threads: sums of 400,000 rows of
// 5 int32 took 1.03 ms run by run (0.53 on two threads) and 0.25 in lanes, of 8 int64 3.3 (1.3) and
// 0.5. Of 4 int64 it was 0.44 (0.27) and 0.15, and of 8 int8 0.28 and 0.14: threads even that out.
inline constexpr double kWovenRuns = 5, kWovenStep = 20;
inline constexpr std::int64_t kParallelRun =
    1 << 15;                            // a run this long takes what a team's start does
inline constexpr double kFarStep = 64;  // elements: steps as far or farther are equally bad

// ---- Threads ----

// Nanoseconds of work on one thread that are worth a team that is awake, and one that sleeps:
// measured with libomp, an empty region takes below a microsecond where the team spins, 36 to 120
// where it must be woken.
inline constexpr double kWorthAwake = 20e3, kWorthAsleep = 150e3;
// And one whose cores others may take: Linux lets a program that computes keep its core for about
// 4 ms while another waits for it.
inline constexpr double kWorthTakenCores = 20e6;
// A loop this long feeds all threads evenly; a shorter one is not shared out where a longer one
// stands in it.
inline constexpr std::int64_t kParallelExtent = 64;

// ---- Blocks of lanes ----

// NumPy's inner loops take their best time per element from 256 on (exp: 0.5 ns; 1.1 for 8), and
// what stands between two calls is still in L1: a chain of 40 operations took 5.3 ns an element in
// blocks of 64 to 256, 15.7 with a call for each vector.
inline constexpr std::int64_t kBlock = 256;
// Without calls, long stretches of each row are better, and the accumulators stay in L2, unless
// there are more than kWideArrays of them.
inline constexpr std::int64_t kWideBlock = 8192;
inline constexpr std::size_t kWideArrays = 4;
inline constexpr std::int64_t kStreamBlock = 1024;  // where nothing else asks for blocks: 8 KiB
// Rows at a time of a reduction beside few lanes, whose accumulators then stay in registers.
inline constexpr int kRowsAtOnce = 4;
// Of more lanes, the row after the next is fetched. Processors foresee what is read of one page of
// memory, so parts of rows, which lie in a page each, took up to twice as long: the sums of 1000
// columns of 40,000 doubles 8.6 ms in one go, 20 in two halves, 12.8 where rows are fetched.
// Where much is computed for each element, memory is not what the loop waits for.
inline constexpr int kRowsAhead = 2;
inline constexpr std::size_t kFetchedStatements = 16;

// ---- Streams ----

// Memory that is only written, from this size on, goes past the caches: they could not keep it, and
// would read it first. Worth 1.25x to 1.5x where memory is the limit. Stretches shorter than
// kStreamedLanes would each have to ask.
inline constexpr std::int64_t kStreamBytes = std::int64_t{64} << 20, kStreamedLanes = 1024;

// ---- Long graphs ----

// A graph of more nodes is cut into parts of this many: g++ takes some 5 ms a node for 100 nodes
// and 10 ms for 400, and every value that crosses a cut is written to memory and read again.
inline constexpr std::size_t kFewestNodes = 100, kMostNodes = 200;

// ---- Long loops ----

// Loops that are expected to take longer on one thread run in pieces, between which they can be
// given up. Expected is what simple arithmetic takes: a call of some library may take a
// hundredfold.
inline constexpr double kWatched = 1e6;
// What a piece is to take, and the first one: what is expected may be far too little.
inline constexpr double kPiece = 4e6, kFirstPiece = 250e3;
// Loops that are expected to take so long write into memory that lasts by a detour, so that they
// can be given up, where each byte costs so many nanoseconds to compute: a tenth of it pays for the
// copy.
inline constexpr double kLong = 100e6, kWorthDetour = 3;

// ---- Waiting for the compiler ----

// What the interpreter and NumPy take, in nanoseconds: for a node, and for each of its elements.
// Until loops are compiled the interpreter answers where it takes little, and NumPy where it takes
// no more than kWorthWaiting, which is what the compiler takes on a busy machine; else, and where
// NumPy would need much memory for a value, one waits.
inline constexpr double kInterpretedNode = 1000, kInterpretedElement = 2;
inline constexpr double kInterpretedMost = 200e3;
inline constexpr double kNumPyNode = 800, kNumPyElement = 0.8;
// What NumPy takes beyond that for each byte of a large new array: memory that nobody has used yet.
// Measured: float64 arrays of 9 million elements take 2.2 to 2.8 ns for an element.
inline constexpr double kFreshBytes = 4e6, kFreshByte = 0.25;
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
