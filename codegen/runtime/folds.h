// What do reductions along a run need? The order-free, extremum and arg-extremum folds over a
// callable element, serial and shared out over threads. Embedded after support.h into each
// generated source; unit tests compile it through the Jit. Pairwise sums stand in support.h.
#ifndef UFUSE_CODEGEN_RUNTIME_FOLDS_H_
#define UFUSE_CODEGEN_RUNTIME_FOLDS_H_

namespace rt {

template <class T>
inline T param(const Param& p) {
  T value;
  __builtin_memcpy(&value, p.bits, sizeof(T));
  return value;
}
inline Index block(Index left, Index size) { return left < size ? left : size; }

// n elements to memory, past the caches: they would read a line first, and could not keep it.
template <class T>
inline void stream(T* to, const T* from, Index n) {
  Index i = 0;
#if defined(__AVX__)
#if defined(__AVX512F__)
  typedef long long Line __attribute__((vector_size(64), aligned(1)));
#else
  typedef long long Line __attribute__((vector_size(32), aligned(1)));
#endif
// clang has one name for it, g++ one for each size.
#if __has_builtin(__builtin_nontemporal_store)
#define RT_STREAM(to, line) __builtin_nontemporal_store(line, to)
#elif defined(__AVX512F__)
#define RT_STREAM __builtin_ia32_movntdq512
#else
#define RT_STREAM __builtin_ia32_movntdq256
#endif
  typedef long long Aligned __attribute__((vector_size(sizeof(Line))));
  for (; i < n && (unsigned long)(to + i) % sizeof(Line) != 0; ++i) to[i] = from[i];
  constexpr Index kStep = sizeof(Line) / sizeof(T);
  for (; i + kStep <= n; i += kStep) RT_STREAM((Aligned*)(to + i), *(const Line*)(from + i));
#undef RT_STREAM
#endif
  for (; i < n; ++i) to[i] = from[i];
}
// Whether it pays to fetch, before they are read, parts of n elements of `rows` rows that lie
// `stride` elements apart. Whole rows one behind the other are foreseen by the processor; what is
// small is in its cache already; and what is long would not stay there until it is read.
template <class T>
inline bool pays_to_fetch(Index n, Index stride, Index rows) {
  constexpr Index kLeast = (2 << 20) / sizeof(T), kMost = (32 << 10) / sizeof(T);
  return n != stride && n <= kMost && rows * stride >= kLeast;
}
template <class T>
inline void fetch(const T* from, Index n) {
  constexpr Index kLine = 64 / sizeof(T);
  for (Index i = 0; i < n; i += kLine) __builtin_prefetch(from + i);
}

// What was streamed is there for all threads.
inline void end_streams() {
#if defined(__AVX__)
  __builtin_ia32_sfence();
#endif
}

// Scratch of one thread for one range.
template <class T>
inline T* row(Index n) {
  return (T*)__builtin_malloc((unsigned long)(n > 0 ? n : 1) * sizeof(T));
}
inline void release(void* p) { __builtin_free(p); }

template <class T, class F>
inline T sum(T acc, Index n, Index chunk, const F& f) {
  using Sum = typename Term<T>::type;
  return pairwise_runs<Sum>(acc, n, chunk, kLeaf<Sum>,
                            [&](Index lo, Index m) { return pairwise_leaf<Sum>(lo, m, f); });
}
template <class T, class F>
inline T parallel_sum(T acc, Index n, Index chunk, const F& f, const Threads& threads,
                      Flags& flags) {
  using Sum = typename Term<T>::type;
  flags.add(
      parallel_pairwise<Sum>(threads, acc, n, chunk, 64 * kLeaf<Sum>,
                             [&](Index lo, Index m, Flags&) { return pairwise<Sum>(lo, m, f); }));
  return acc;
}

// The same where f(lo, count, flags) gives the sum of a whole block of elements.
template <class T, Index kBlock, class F>
inline T sum_blocks(T acc, Index n, Index chunk, const F& f, Flags& flags) {
  return pairwise_runs<typename Term<T>::type>(acc, n, chunk, kBlock,
                                               [&](Index lo, Index m) { return f(lo, m, flags); });
}
template <class T, Index kBlock, class F>
inline T parallel_sum_blocks(T acc, Index n, Index chunk, const F& f, const Threads& threads,
                             Flags& flags) {
  using Sum = typename Term<T>::type;
  flags.add(parallel_pairwise<Sum>(
      threads, acc, n, chunk, 64 * kBlock, [&](Index lo, Index m, Flags& own) {
        return pairwise_tree<Sum>(lo, m, kBlock,
                                  [&](Index at, Index count) { return f(at, count, own); });
      }));
  return acc;
}

// Pieces of a run that threads work on; their number depends on the length only.
constexpr Index kPieces = 256;
inline Index piece_count(Index n) { return n < kPieces * 4096 ? (n + 4095) / 4096 : kPieces; }
inline Index piece_start(Index n, Index pieces, Index i) {
  return n / pieces * i + n % pieces * i / pieces;
}

// How many elements are true. They are counted in bytes, as far as these reach.
template <class F>
inline Index count(Index n, const F& f) {
  constexpr Index kLanes = 64, kRows = 255;
  Index all = 0, i = 0;
  while (i + kLanes <= n) {
    u8 lanes[kLanes] = {};
    for (Index row = 0; row < kRows && i + kLanes <= n; ++row, i += kLanes)
      for (Index k = 0; k < kLanes; ++k) lanes[k] += f(i + k);
    for (Index k = 0; k < kLanes; ++k) all += lanes[k];
  }
  for (; i < n; ++i) all += f(i);
  return all;
}
template <class T>
constexpr bool is_truth = false;
template <>
inline constexpr bool is_truth<bool> = true;

// Any order gives the same bits. Truths are added up.
template <class T, class F, class G>
inline T fold(T acc, Index n, const F& f, const G& op) {
  if constexpr (is_truth<decltype(f(n))>) return op(acc, (T)count(n, f));
  for (Index i = 0; i < n; ++i) acc = op(acc, f(i));
  return acc;
}
template <class T, class F, class G>
inline T parallel_fold(T acc, Index n, const F& f, const G& op, T identity, const Threads& threads,
                       Flags& flags) {
  T part[kPieces];
  const Index pieces = piece_count(n);
  flags.add(parallel(threads, pieces, 1, [&](Index first, Index last, Flags&) {
    for (Index p = first; p < last; ++p) {
      const Index lo = piece_start(n, pieces, p), hi = piece_start(n, pieces, p + 1);
      part[p] = fold(
          identity, hi - lo, [&](Index i) { return f(lo + i); }, op);
    }
  }));
  for (Index p = 0; p < pieces; ++p) acc = op(acc, part[p]);
  return acc;
}

// Whether an element of [lo, hi) is true (or, for kAll, none is false). kStop: nothing is lost when
// elements after the answer are not looked at.
template <bool kAll, bool kStop, class F>
inline bool any_or_all(Index lo, Index hi, const F& f) {
  constexpr Index kStep = 1024;
  u8 found = 0;
  for (Index b = lo; b < hi && !(kStop && found); b += kStep) {
    const Index end = hi - b < kStep ? hi : b + kStep;
    for (Index i = b; i < end; ++i) found |= (u8)(truth(f(i)) != kAll);
  }
  return (found != 0) != kAll;
}
template <bool kAll, bool kStop, class F>
inline bool parallel_any_or_all(Index n, const F& f, const Threads& threads, Flags& flags) {
  bool known = kAll;  // read and written by all threads, only ever towards the answer
  const Index pieces = piece_count(n);
  flags.add(parallel(threads, pieces, 1, [&](Index first, Index last, Flags&) {
    for (Index p = first; p < last; ++p) {
      if (kStop && __atomic_load_n(&known, __ATOMIC_RELAXED) != kAll) return;
      if (any_or_all<kAll, kStop>(piece_start(n, pieces, p), piece_start(n, pieces, p + 1), f) !=
          kAll)
        __atomic_store_n(&known, !kAll, __ATOMIC_RELAXED);
    }
  }));
  return known;
}

// Does x replace `best`? The first NaN wins, and of equals the first.
template <bool kMax, class T>
inline bool beats(T x, T best) {
  return (kMax ? less(best, x) : less(x, best)) | ((x != x) & (best == best));
}
template <bool kMax, class T>
inline T better(T acc, T x) {
  return kMax ? maximum(acc, x) : minimum(acc, x);
}

inline u32 unsigned_of(i32 x) { return (u32)x; }
inline u64 unsigned_of(i64 x) { return (u64)x; }

// Numbers as integers in the order of their values (-0 below +0): vector units compare these
// without raising flags.
template <class T>
inline auto order_key(T x) {
  if constexpr (sizeof(T) == 8 && is_float<T>) {
    const i64 bits = __builtin_bit_cast(i64, x);
    return bits ^ (bits >> 63 & 0x7fffffffffffffff);
  } else if constexpr (is_float<T>) {
    const i32 bits = __builtin_bit_cast(i32, x);
    return bits ^ (bits >> 31 & 0x7fffffff);
  } else if constexpr (is_bool<T>) {
    return (u8)(bool)x;
  } else {
    return x;
  }
}

// An integer whose order is argmin's (or argmax's) preference: a NaN before all, the zeros equal.
template <bool kMax, class T>
inline auto arg_key(T x) {
  using Key = decltype(order_key(x));
  constexpr Key kLowest = (Key)((Key)1 << (8 * sizeof(Key) - 1));
  const Key key = order_key((T)(x + 0));
  return x != x ? (kMax ? (Key)~kLowest : kLowest) : key;
}

template <class T, bool kMax, class F>
inline Index arg_extremum(Index n, const F& f);

// The extreme of f(lo) ... f(hi - 1), at least one element. In integers, which g++ 12 takes
// extremes of in vectors; it takes those of floats one by one.
template <class T, bool kMax, class F>
inline T extreme(Index lo, Index hi, const F& f) {
  if constexpr (is_half<T>) {
    // NumPy compares halves one by one: the first of equal ones, the first NaN.
    return f(lo + arg_extremum<f32, kMax>(hi - lo, [&](Index i) { return (f32)f(lo + i); }));
  } else if constexpr (is_float<T>) {
    using Key = decltype(order_key(T{}));
    // As signed numbers the bits of positive floats are ordered as these, of negative ones against
    // them; as unsigned ones all negative floats are above all positive ones. NaNs are at both
    // ends.
    using Unsigned = decltype(unsigned_of(Key{}));
    const Key infinity = infinite(T{});
    const Unsigned minus_infinity = ~((Unsigned) ~(Unsigned)0 >> 1) | (Unsigned)infinity;
    const auto bits = [&](Index i) { return __builtin_bit_cast(Key, f(i)); };
    Key high = bits(lo), low = high;
    Unsigned far = (Unsigned)high;
    const auto high_and_far = [&] {
      for (Index i = lo; i < hi; ++i) {
        const Key x = bits(i);
        high = x > high ? x : high;
        far = (Unsigned)x > far ? (Unsigned)x : far;
      }
    };
    const auto low_and_far = [&] {
      for (Index i = lo; i < hi; ++i) {
        const Key x = bits(i);
        low = x < low ? x : low;
        far = (Unsigned)x > far ? (Unsigned)x : far;
      }
    };
    bool negative = false;
    if (!kMax)
      for (Index i = lo; i < (hi - lo < 64 ? hi : lo + 64); ++i) negative |= bits(i) < 0;
    if (kMax || negative) {
      high_and_far();
      if (kMax && high < 0) low_and_far();
    } else {
      low_and_far();
      if ((Key)far < 0) high_and_far();
    }
    if (high > infinity || far > minus_infinity || (Key)far > infinity) {
      T first = f(lo);
      for (Index i = lo + 1; i < hi; ++i) first = better<kMax>(first, f(i));
      return first;
    }
    const Key best = kMax ? (high >= 0 ? high : low) : ((Key)far < 0 ? (Key)far : low);
    return __builtin_bit_cast(T, best);
  } else {
    auto best = order_key(f(lo));
    for (Index i = lo; i < hi; ++i) {
      const auto x = order_key(f(i));
      best = (kMax ? x > best : x < best) ? x : best;
    }
    return (T)best;
  }
}

// minimum and maximum over runs. Where NumPy's own vector order would show (kOrder: zeros of both
// signs tie, or NaNs with different bits meet), result() asks for the answer to be computed by
// NumPy.
template <class T, bool kMax, bool kOrder>
class Extremum {
  static constexpr bool kDoubt = kOrder && !is_half<T>;

 public:
  void start(T x) {
    seen_ = true;
    best_ = x;
    note(x);
  }
  template <class F>
  void run(Index n, const F& f) {
    range(0, n, f);
  }
  template <class F>
  void parallel_run(Index n, const F& f, const Threads& threads, Flags& flags) {
    Extremum part[kPieces];
    const Index pieces = piece_count(n);
    flags.add(parallel(threads, pieces, 1, [&](Index first, Index last, Flags&) {
      for (Index p = first; p < last; ++p)
        part[p].range(piece_start(n, pieces, p), piece_start(n, pieces, p + 1), f);
    }));
    for (Index p = 0; p < pieces; ++p) {
      if (!part[p].seen_) continue;
      best_ = seen_ ? better<kMax>(best_, part[p].best_) : part[p].best_;
      seen_ = true;
      plus_ |= part[p].plus_;
      minus_ |= part[p].minus_;
      if (kDoubt && part[p].best_ != part[p].best_) nan(part[p].best_);
      doubt_ |= part[p].doubt_;
    }
  }
  T result(Flags& flags) {
    if (doubt_ || (plus_ && minus_ && !truth(best_))) flags.redo();
    return best_;
  }

 private:
  template <class F>
  void range(Index lo, Index hi, const F& f) {
    if (lo >= hi) return;
    const T here = extreme<T, kMax>(lo, hi, f);
    best_ = seen_ ? better<kMax>(best_, here) : here;
    seen_ = true;
    if constexpr (kDoubt)
      if (!(here < 0 || here > 0))
        for (Index i = lo; i < hi; ++i) note(f(i));
  }
  void note(T x) {
    if constexpr (kDoubt) {
      if (x != x) nan(x);
      plus_ |= (x == 0) & !signbit(x);
      minus_ |= (x == 0) & signbit(x);
    }
  }
  void nan(T x) {
    doubt_ |= had_nan_ && __builtin_memcmp(&x, &nan_, sizeof x) != 0;
    had_nan_ = true;
    nan_ = x;
  }
  T best_ = {}, nan_ = {};
  bool seen_ = false, plus_ = false, minus_ = false, had_nan_ = false, doubt_ = false;
};

// Where in [lo, hi) the first element stands that equals `best`, or the first NaN when it is one.
template <class T, class F>
inline Index position(Index lo, Index hi, const F& f, T best) {
  constexpr Index kChunk = 64;
  u8 found = 0;
  if (best == best)
    for (; lo + kChunk <= hi; lo += kChunk) {
      for (Index k = 0; k < kChunk; ++k) found |= f(lo + k) == best;
      if (found) break;
    }
  while (!(f(lo) == best || (best != best && f(lo) != f(lo)))) ++lo;
  return lo;
}

// Position of the first smallest or largest of n elements, or of the first NaN: the extreme of each
// piece first, then a search in the first piece that has it.
template <class T, bool kMax, class F>
inline Index arg_extremum(Index n, const F& f) {
  constexpr Index kStep = 4096 / sizeof(T);
  Index at = 0;
  T best = extreme<T, kMax>(0, n < kStep ? n : kStep, f);
  for (Index b = kStep; b < n && best == best; b += kStep) {
    const T here = extreme<T, kMax>(b, n - b < kStep ? n : b + kStep, f);
    if (!beats<kMax>(here, best)) continue;
    best = here;
    at = b;
  }
  return position(at, n - at < kStep ? n : at + kStep, f, best);
}
template <class T, bool kMax, class F>
inline Index parallel_arg_extremum(Index n, const F& f, const Threads& threads, Flags& flags) {
  T part[kPieces];
  const Index pieces = piece_count(n);
  flags.add(parallel(threads, pieces, 1, [&](Index first, Index last, Flags&) {
    for (Index p = first; p < last; ++p)
      part[p] = extreme<T, kMax>(piece_start(n, pieces, p), piece_start(n, pieces, p + 1), f);
  }));
  if (threads.watch && threads.watch->given_up) return 0;
  Index best = 0;
  for (Index p = 1; p < pieces; ++p)
    if (beats<kMax>(part[p], part[best])) best = p;
  return position(piece_start(n, pieces, best), piece_start(n, pieces, best + 1), f, part[best]);
}

// Comparing square roots without taking them. Bits of floats from +0 to infinity are in the order
// of their values; eight units in the last place apart, the roots round to different numbers.
// Closer ones, NaNs and negative numbers are in doubt.
inline i32 root_bits(f32 x) { return __builtin_bit_cast(i32, x); }
inline i64 root_bits(f64 x) { return __builtin_bit_cast(i64, x); }
template <class T>
inline bool root_less(T x, T y) {
  return root_bits(x) < root_bits(y);
}
// `nearest`: the shortest distance less one, so that 0 wraps to the longest; `most`: of the bits.
template <class Int, class UInt, class T>
struct RootExtremes {
  static constexpr UInt kApart = 7;
  UInt nearest = ~(UInt)0, most = 0;
  void look(T x) { most = (UInt)root_bits(x) > most ? (UInt)root_bits(x) : most; }
  void compare(T x, T y) {
    look(x);
    const Int apart = root_bits(x) - root_bits(y);
    const UInt less_one = (UInt)(apart < 0 ? -apart : apart) - 1;
    nearest = less_one < nearest ? less_one : nearest;
  }
  bool any() const { return (nearest < kApart) | (most > (UInt)infinite(T{})); }
};
struct RootDoubt {
  RootExtremes<i64, u64, f64> doubles;
  RootExtremes<i32, u32, f32> floats;
  void look(f64 x) { doubles.look(x); }
  void look(f32 x) { floats.look(x); }
  void compare(f64 x, f64 y) { doubles.compare(x, y); }
  void compare(f32 x, f32 y) { floats.compare(x, y); }
  bool any() const { return doubles.any() | floats.any(); }
};

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_FOLDS_H_
