// What is a kernel, seen from outside?
//
// The one struct that a compiled kernel is called with and the bits it returns. Included by
// codegen/runtime and codegen/jit, and embedded as the first text of every generated source, so it
// holds plain types only and includes nothing.
#ifndef UFUSE_CODEGEN_RUNTIME_ABI_H_
#define UFUSE_CODEGEN_RUNTIME_ABI_H_

namespace rt {

using Index = __INT64_TYPE__;

// A scalar argument as raw bits in its dtype's layout; bits[1] is the imaginary part of a
// complex128.
struct Param {
  __UINT64_TYPE__ bits[4];
};

// An inner loop of NumPy's (or SciPy's): dims[0] elements, byte strides, one pointer per operand,
// outputs last.
struct Loop {
  void (*call)(char** operands, const Index* dims, const Index* strides, void* data);
  void* data;
};

// Who is asked whether a long loop goes on. Each thread of the loop runs its part in pieces, and
// asks before each of them.
struct Watch {
  // How many indices the next piece shall have; 0: none, the loop is given up. `caller`: the thread
  // that called the kernel. `last`: of the piece before; `since`: kept for the thread, 0 at first.
  Index (*next)(Watch* watch, bool caller, Index last, Index* since);
  Index pieces;   // into which a thread's part is cut at first
  bool given_up;  // the results are anything
};

// What a loop does for the indices [lo, hi); `loop` is what it needs. Returns the bits raised.
using LoopPart = unsigned (*)(const void* loop, Index lo, Index hi);

struct Threads {
  int count;     // the most that may be used; 1: no OpenMP call is made
  Watch* watch;  // null: the loop is short, and runs in one piece
  // Runs a loop over [0, n), n > 0, cut between threads, and into pieces, at multiples of `grain`.
  // Returns the bits of all of them. A function of ufuse's own, and not part of each kernel's
  // text: what OpenMP needs takes compilers as long as a short loop.
  unsigned (*share)(const Threads& threads, Index n, Index grain, LoopPart part, const void* loop);
};

struct Args {
  void* const*
      buffers;  // address of each operand's first element, inputs before outputs before scratch
  const Index* sizes;  // extents, strides and offsets in the kernel's own order
  const Param* params;
  const Loop* loops;
  Threads threads;
  bool stream = false;  // results that can be go past the caches
};

// An array that a program has made, in rows: its elements stand behind this. The program's caller
// frees them all.
struct NewArray {
  NewArray* next;
  Index capacity;  // bytes
  Index dtype;     // as ir::DType
  Index rank;
  Index lengths[8];
};

// What a kernel returns. The low four bits are NumPy's NPY_FPE_*.
enum : unsigned { kDivideByZero = 1, kOverflow = 2, kUnderflow = 4, kInvalid = 8, kRedo = 16 };

// Every kernel is `extern "C" unsigned ufuse_kernel(const rt::Args* args)`.
using Entry = unsigned (*)(const Args* args);

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_ABI_H_
