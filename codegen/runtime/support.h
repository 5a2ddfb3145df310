// What does every kernel need beside its own loops?
//
// Ranges of loops, the floating-point flags, and NumPy's pairwise summation. This text is embedded
// after abi.h and prelude.h into each generated source and parsed at each compile, so it is short
// and includes nothing; unit tests compile it through the Jit. It knows no kernel: loops come in as
// callables.
#ifndef UFUSE_CODEGEN_RUNTIME_SUPPORT_H_
#define UFUSE_CODEGEN_RUNTIME_SUPPORT_H_

#if !defined(__x86_64__)
#include <fenv.h>
#endif

namespace rt {

// The same number, which the compiler does not know: what is computed with it happens at run time
// and raises its flags.
template <class T>
inline T opaque(T x) {
  asm("" : "+m"(x));
  return x;
}
// Zero, which the compiler does not know, so that `unknown(x, unset())` may be anything to it.
// Asked for before the loops: they are vectorised all the same.
inline u8 unset() { return opaque(u8{0}); }
inline bool unknown(bool x, u8 zero) { return x ^ (zero != 0); }
template <class T>
inline T unknown(T x, u8 zero) {
  return (T)(x ^ (T)zero);
}
template <class Bits, class T>
inline T unknown_bits(T x, u8 zero) {
  Bits bits;
  __builtin_memcpy(&bits, &x, sizeof(T));
  bits ^= (Bits)zero;
  __builtin_memcpy(&x, &bits, sizeof(T));
  return x;
}
inline f32 unknown(f32 x, u8 zero) { return unknown_bits<u32>(x, zero); }
inline f64 unknown(f64 x, u8 zero) { return unknown_bits<u64>(x, zero); }
template <class F>
inline complex<F> unknown(complex<F> x, u8 zero) {
  return {unknown(x.re, zero), unknown(x.im, zero)};
}

// The flags that one thread raises over one range. Begins with clear flags and leaves the caller's
// as they were. NumPy's inner loops may clear the flags, so `collect()` stands before each of their
// calls.
class Flags {
 public:
#if defined(__x86_64__)
  // SSE arithmetic raises flags in MXCSR; libm's feraiseexcept, which NumPy's loops call, raises
  // overflow in the x87 unit.
  Flags() : saved_(read_mxcsr()) {
    write_mxcsr(saved_ & ~0x3fu);
    if (read_x87() & 0x3f) asm volatile("fnclex");
  }
  ~Flags() { write_mxcsr((read_mxcsr() & ~0x3fu) | (saved_ & 0x3f)); }
  void collect() {
    unsigned raised = read_mxcsr() | read_x87();
    bits_ |= (raised >> 2 & 1) * kDivideByZero | (raised >> 3 & 1) * kOverflow |
             (raised >> 4 & 1) * kUnderflow | (raised & 1) * kInvalid;
  }
#else
  Flags() {
    fegetenv(&saved_);
    feclearexcept(FE_ALL_EXCEPT);
  }
  ~Flags() { fesetenv(&saved_); }
  void collect() {
    int raised = fetestexcept(FE_ALL_EXCEPT);
    bits_ |= (raised & FE_DIVBYZERO ? kDivideByZero : 0) | (raised & FE_OVERFLOW ? kOverflow : 0) |
             (raised & FE_UNDERFLOW ? kUnderflow : 0) | (raised & FE_INVALID ? kInvalid : 0);
  }
#endif
  Flags(const Flags&) = delete;
  void add(unsigned bits) { bits_ |= bits; }  // what a nested call returned
  // Whether one is raised at this time that NumPy reports by default; and none is from then on.
  static bool any_reported() {
#if defined(__x86_64__)
    return ((read_mxcsr() | read_x87()) & kReported) != 0;
#else
    return fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID) != 0;
#endif
  }
  static void clear() {
#if defined(__x86_64__)
    write_mxcsr(read_mxcsr() & ~0x3fu);
    asm volatile("fnclex");
#else
    feclearexcept(FE_ALL_EXCEPT);
#endif
  }
  // The result cannot be trusted to be NumPy's. Any thread may say so.
  void redo() { __atomic_store_n(&redo_, true, __ATOMIC_RELAXED); }
  unsigned bits() {
    collect();
    return bits_ | (redo_ ? kRedo : 0);
  }

 private:
  unsigned bits_ = 0;
  bool redo_ = false;
#if defined(__x86_64__)
  static constexpr unsigned kReported = 1 | 4 | 8;  // invalid, division by zero, overflow
  // The memory clobber keeps stores, and so the arithmetic they need, on their side of the read.
  static unsigned read_mxcsr() {
    unsigned value;
    asm volatile("stmxcsr %0" : "=m"(value) : : "memory");
    return value;
  }
  static void write_mxcsr(unsigned value) { asm volatile("ldmxcsr %0" : : "m"(value) : "memory"); }
  static unsigned read_x87() {
    unsigned short value;
    asm volatile("fnstsw %0" : "=a"(value));
    return value & 0x3fu;
  }
  unsigned saved_;
#else
  fenv_t saved_;
#endif
};

// One range on one thread. Out of line: no arithmetic moves across the flags.
template <class Body>
__attribute__((noinline)) unsigned run_range(const Body& body, Index lo, Index hi) {
  Flags flags;
  body(lo, hi, flags);
  return flags.bits();
}

template <class Body>
unsigned part_of(const void* body, Index lo, Index hi) {
  return run_range(*(const Body*)body, lo, hi);
}

// body(lo, hi, flags) over [0, n), as Threads::share cuts it.
template <class Body>
inline unsigned parallel(const Threads& threads, Index n, Index grain, const Body& body) {
  return n <= 0 ? 0 : threads.share(threads, n, grain, part_of<Body>, &body);
}

// ---- Pairwise summation, as NumPy's loops_utils.h adds ----
//
// A run is added by a tree that depends on its length only: halves (the left one a multiple of
// eight reals) down to 128 reals, and there eight accumulators. Complex numbers count as two reals
// each. T is float, double, long double, or a struct {re, im} of one; halves are added as floats,
// and only the sum of a run is rounded.

template <class T>
struct Real {
  using type = T;
};
template <class F>
struct Real<complex<F>> {
  using type = F;
};

template <class T>
struct Term {
  using type = T;
};
template <>
struct Term<f16> {
  using type = f32;
};

// Elements per leaf at most.
template <class T>
constexpr Index kLeaf = is_complex<T> ? 64 : 128;

// Elements in the left half of a run of n.
template <class T>
inline Index pairwise_split(Index n) {
  return is_complex<T> ? (n - n % 8) / 2 : n / 2 - n / 2 % 8;
}

// At most kLeaf<T> elements f(lo), f(lo + 1), ... The accumulators are one vector: left to itself
// g++ 12 adds them one by one. The empty asm keeps the tail, which is short and sequential, out of
// the vectoriser's hands.
template <class T, class F>
inline T pairwise_leaf(Index lo, Index n, const F& f) {
  using R = typename Real<T>::type;
  constexpr Index kStep = is_complex<T> ? 4 : 8;
  T sum;
  Index i = 0;
  if (n < kStep) {
    if constexpr (is_complex<T>)
      sum = T{(R)-0.0, (R)-0.0};
    else
      sum = (R)-0.0;
  } else if constexpr (!is_float<R>) {  // no hardware has vectors of these
    T r[kStep];
    for (int k = 0; k < kStep; ++k) r[k] = f(lo + k);
    for (i = kStep; i + kStep <= n; i += kStep)
      for (int k = 0; k < kStep; ++k) r[k] = r[k] + f(lo + i + k);
    for (int k = 1; k < kStep; k *= 2)
      for (int m = 0; m < kStep; m += 2 * k) r[m] = r[m] + r[m + k];
    sum = r[0];
  } else {
    typedef R Lanes __attribute__((vector_size(8 * sizeof(R))));
    const auto load = [&](Index at) {
      Lanes x;
      for (int k = 0; k < kStep; ++k) {
        if constexpr (is_complex<T>) {
          const T value = f(at + k);
          x[2 * k] = value.re;
          x[2 * k + 1] = value.im;
        } else {
          x[k] = (T)f(at + k);
        }
      }
      return x;
    };
    Lanes r = load(lo);
    for (i = kStep; i + kStep <= n; i += kStep) r += load(lo + i);
    if constexpr (is_complex<T>)
      sum = T{(r[0] + r[2]) + (r[4] + r[6]), (r[1] + r[3]) + (r[5] + r[7])};
    else
      sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; i < n; ++i) {
    asm("");
    sum = sum + (T)f(lo + i);
  }
  return sum;
}

// The tree above nodes of at most `limit` elements (at least kLeaf<T>): node(lo, n) gives such a
// node's sum.
template <class T, class Node>
T pairwise_tree(Index lo, Index n, Index limit, const Node& node) {
  if (n <= limit) return node(lo, n);
  const Index half = pairwise_split<T>(n);
  const T left = pairwise_tree<T>(lo, half, limit, node);
  return left + pairwise_tree<T>(lo + half, n - half, limit, node);
}

// The sum of f(lo) ... f(lo + n - 1).
template <class T, class F>
inline T pairwise(Index lo, Index n, const F& f) {
  return pairwise_tree<T>(lo, n, kLeaf<T>,
                          [&](Index at, Index count) { return pairwise_leaf<T>(at, count, f); });
}

// acc + the sum of each run of `chunk` elements (0: one run) of [0, n), in turn. node(lo, count)
// gives the sum of at most `limit` elements.
template <class T, class Acc, class Node>
inline Acc pairwise_runs(Acc acc, Index n, Index chunk, Index limit, const Node& node) {
  if (chunk <= 0) chunk = n;
  for (Index at = 0; at < n; at += chunk)
    acc = (Acc)((T)acc + pairwise_tree<T>(at, n - at < chunk ? n - at : chunk, limit, node));
  return acc;
}

// Narrows [lo, lo + n) to the subtree `depth` levels down at `path` (first turn in the top bit). A
// tree that ends before stands at the path that goes on to the left; other paths through it give
// false.
template <class T>
inline bool pairwise_subtree(Index& lo, Index& n, Index limit, int depth, Index path) {
  while (depth-- > 0) {
    if (n <= limit) return (path & ((Index{2} << depth) - 1)) == 0;
    const Index half = pairwise_split<T>(n);
    if (path >> depth & 1) {
      lo += half;
      n -= half;
    } else {
      n = half;
    }
  }
  return true;
}

// The whole tree's sum from those subtrees' sums.
template <class T>
T pairwise_join(const T* part, Index n, Index limit, int depth) {
  if (depth == 0 || n <= limit) return part[0];
  const Index half = pairwise_split<T>(n);
  const T left = pairwise_join(part, half, limit, depth - 1);
  return left + pairwise_join(part + (Index{1} << (depth - 1)), n - half, limit, depth - 1);
}

// pairwise_runs over [0, n) with many threads and the same bits for any number of them: the trees
// are cut at their own nodes. node(lo, count, flags) gives the sum of at most `limit` elements.
// Adds to `acc`; returns the bits raised.
template <class T, class Acc, class Node>
unsigned parallel_pairwise(const Threads& threads, Acc& acc, Index n, Index chunk, Index limit,
                           const Node& node) {
  constexpr Index kParts = 1024;
  if (n <= 0) return 0;
  if (chunk <= 0 || chunk > n) chunk = n;
  int depth = 0;
  const Index parts = threads.watch ? kParts : threads.count > 1 ? 8 * threads.count : 1;
  while (depth < 10 && (n / chunk) << depth < parts && chunk >> depth > 2 * limit) ++depth;
  const Index batch = kParts >> depth;
  T part[kParts];
  Flags flags;
  unsigned bits = 0;
  for (Index begin = 0; begin < n; begin += batch * chunk) {
    const Index runs = (n - begin - 1) / chunk + 1 < batch ? (n - begin - 1) / chunk + 1 : batch;
    const auto run_length = [&](Index run) {
      return n - begin - run * chunk < chunk ? n - begin - run * chunk : chunk;
    };
    bits |= parallel(threads, runs << depth, 1, [&](Index first, Index last, Flags& f) {
      for (Index task = first; task < last; ++task) {
        const Index run = task >> depth;
        Index lo = begin + run * chunk, count = run_length(run);
        if (pairwise_subtree<T>(lo, count, limit, depth, task & ((Index{1} << depth) - 1)))
          part[task] =
              pairwise_tree<T>(lo, count, limit, [&](Index at, Index m) { return node(at, m, f); });
      }
    });
    if (threads.watch && threads.watch->given_up) break;
    for (Index run = 0; run < runs; ++run)
      acc = (Acc)((T)acc + pairwise_join(part + (run << depth), run_length(run), limit, depth));
  }
  return bits | flags.bits();
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_SUPPORT_H_
