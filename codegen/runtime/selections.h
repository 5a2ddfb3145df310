// What do programs do with the elements of an array at the integers of other arrays, or where a
// mask is true: `x[i]`, `x[i, j]`, `x[:, mask]`?
//
// Programs start with this text, behind arrays.h. It includes nothing.
#ifndef UFUSE_CODEGEN_RUNTIME_SELECTIONS_H_
#define UFUSE_CODEGEN_RUNTIME_SELECTIONS_H_

namespace rt {

// K axes of a part of an array from the F-th on, and the other ones.
template <int F, int K, int N>
inline Part<K> axes_of(const Part<N>& x) {
  Part<K> r{x.at, {}, {}};
  for (int axis = 0; axis < K; ++axis) {
    r.length[axis] = x.length[F + axis];
    r.stride[axis] = x.stride[F + axis];
  }
  return r;
}
template <int F, int K, int N>
inline Part<N - K> other_axes_of(const Part<N>& x) {
  Part<N - K> r{x.at, {}, {}};
  for (int axis = 0; axis < N - K; ++axis) {
    r.length[axis] = x.length[axis < F ? axis : axis + K];
    r.stride[axis] = x.stride[axis < F ? axis : axis + K];
  }
  return r;
}

// Integers of K arrays of one shape, one for each of the axes that they index; those below zero
// count from the end.
template <class I, int K, int B>
struct Positions {
  static constexpr int kAxes = B;
  Part<B> index[K];
  Part<K> axes;
};
// A mask of K axes, and the axes where it stands.
template <int K>
struct Mask {
  static constexpr int kAxes = 1;
  Part<K> mask, axes;
};

// Goes over all rows of a shape, in order: `row` is given the indices of its first element.
template <int N, class Row>
inline bool over_rows(const i64 (&length)[N], const Row& row) {
  i64 rows = 1, at[N] = {};
  for (int axis = 0; axis < N - 1; ++axis) rows *= length[axis];
  for (i64 r = 0; r < rows; ++r) {
    if (row(at)) return true;
    for (int axis = N - 2; axis >= 0 && ++at[axis] == length[axis]; --axis) at[axis] = 0;
  }
  return false;
}
template <int N>
inline char* row_of(const Part<N>& x, const i64 (&at)[N]) {
  char* row = x.at;
  for (int axis = 0; axis < N - 1; ++axis) row += at[axis] * x.stride[axis];
  return row;
}

// Calls `visit` for each position, in order: with its distance in bytes from the array's first
// element, and with the element of `beside` that belongs to it. True where a position is not there.
template <class I, int K, int B, class Visit>
inline bool at_each(const Positions<I, K, B>& p, const Part<B>& beside, const Visit& visit) {
  return over_rows(p.index[0].length, [&](const i64(&at)[B]) {
    const char* from[K];
    for (int k = 0; k < K; ++k) from[k] = row_of(p.index[k], at);
    char* const row = row_of(beside, at);
    for (i64 i = 0; i < p.index[0].length[B - 1]; ++i) {
      i64 distance = 0;
      for (int k = 0; k < K; ++k) {
        i64 position = *(const I*)(from[k] + i * p.index[k].stride[B - 1]);
        if (index(position, p.axes.length[k], position)) return true;
        distance += position * p.axes.stride[k];
      }
      visit(distance, row + i * beside.stride[B - 1]);
    }
    return false;
  });
}
// From i on: the first place in a row of a mask that is true, or is not; n where there is none.
inline i64 first_that_is(bool wanted, const char* row, i64 step, i64 i, i64 n) {
  const u64 others = wanted ? 0 : 0x0101010101010101;
  u64 eight = others;
  while (step == 1 && i + 8 <= n) {
    __builtin_memcpy(&eight, row + i, 8);
    if (eight != others) break;
    i += 8;
  }
  while (i < n && (*(const unsigned char*)(row + i * step) != 0) != wanted) ++i;
  return i;
}

// So many bytes of a mask at a time are looked at: whether they change often between true and
// false, so that where the runs end would be foreseen wrongly.
constexpr i64 kListed = 64;
inline bool changes_often(const char* mask) {
  u64 words[kListed / 8];
  __builtin_memcpy(words, mask, kListed);
  int mixed = 0;
  for (u64 word : words) mixed += (word != 0) & (word != 0x0101010101010101);
  return mixed > 2;
}
// Lists which of them are true, without a branch for each.
inline int list_true(const char* mask, unsigned char (&places)[kListed]) {
  int found = 0;
  for (int i = 0; i < kListed; ++i) {
    places[found] = (unsigned char)i;
    found += mask[i] != 0;
  }
  return found;
}

// Calls `run` for runs of a mask that are true: with the distance in bytes from the array's first
// element, with the element of `beside` that belongs to the first one, and with the length.
template <int K, class Run>
inline void over_runs(const Mask<K>& p, const Part<1>& beside, const Run& run) {
  char* next = beside.at;
  over_rows(p.mask.length, [&](const i64(&at)[K]) {
    const char* const mask = row_of(p.mask, at);
    const i64 row = row_of(p.axes, at) - p.axes.at;
    const i64 n = p.mask.length[K - 1], step = p.mask.stride[K - 1];
    const auto found = [&](i64 i, i64 count) {
      run(row + i * p.axes.stride[K - 1], next, count);
      next += count * beside.stride[0];
    };
    unsigned char places[kListed];
    for (i64 i = 0; i < n;) {
      if (step == 1 && i + kListed <= n && changes_often(mask + i)) {
        const int count = list_true(mask + i, places);
        for (int k = 0; k < count; ++k) found(i + places[k], 1);
        i += kListed;
        continue;
      }
      const i64 first = first_that_is(true, mask, step, i, n);
      i = first < n ? first_that_is(false, mask, step, first, n) : n;
      if (i > first) found(first, i - first);
    }
    return false;
  });
}
template <int K, class Visit>
inline bool at_each(const Mask<K>& p, const Part<1>& beside, const Visit& visit) {
  over_runs(p, beside, [&](i64 distance, char* at, i64 count) {
    for (i64 i = 0; i < count; ++i)
      visit(distance + i * p.axes.stride[K - 1], at + i * beside.stride[0]);
  });
  return false;
}

// How much of a mask is true. True where it does not have the lengths of the axes where it stands,
// or is large.
template <int K>
[[gnu::noinline]] inline bool count_true(const Mask<K> p, i64& r) {
  for (int axis = 0; axis < K; ++axis)
    if (p.mask.length[axis] != p.axes.length[axis]) return true;
  if (is_large(p.mask.size(), sizeof(bool))) return true;
  i64 all = 0;
  over_rows(p.mask.length, [&](const i64(&at)[K]) {
    const unsigned char* const row = (const unsigned char*)row_of(p.mask, at);
    const i64 n = p.mask.length[K - 1], step = p.mask.stride[K - 1];
    int in_row = 0;
    if (step == 1)
      for (i64 i = 0; i < n; ++i) in_row += row[i] != 0;
    else
      for (i64 i = 0; i < n; ++i) in_row += row[i * step] != 0;
    all += in_row;
    return false;
  });
  r = all;
  return false;
}

// Whether a position is not there, or they are many.
template <class I, int K, int B>
[[gnu::noinline]] inline bool is_outside(const Positions<I, K, B> p) {
  return is_large(p.index[0].size(), sizeof(I)) || at_each(p, p.index[0], [](i64, char*) {});
}

// Whether the steps of an array become no larger from axis to axis: NumPy then lays out in rows
// what it reads of them.
template <int N>
inline bool descends(const Part<N>& x) {
  for (int axis = 1; axis < N; ++axis)
    if (__builtin_llabs(x.stride[axis]) > __builtin_llabs(x.stride[axis - 1])) return false;
  return true;
}

// Reads the elements at some positions, or where a mask is true, of all axes of an array. True
// where one is not there.
template <class T, class I, int K, int B>
[[gnu::noinline]] inline bool gather(const Positions<I, K, B> p, const Part<B> to) {
  const char* const from = p.axes.at;
  return at_each(p, to, [from](i64 distance, char* at) { *(T*)at = *(const T*)(from + distance); });
}
template <class T, int K>
[[gnu::noinline]] inline bool gather(const Mask<K> p, const Part<1> to) {
  over_runs(p, to, [&](i64 distance, char* at, i64 count) {
    copy_run<T>(at, to.stride[0], p.axes.at + distance, p.axes.stride[K - 1], count);
  });
  return false;
}
// The same of some axes: `from` and `to_others` are the others, of the array and of what is made.
template <class T, class P, int M>
[[gnu::noinline]] inline bool gather(const P p, const Part<P::kAxes> to, const Part<M> from,
                                     const Part<M> to_others) {
  if (!descends(from)) return true;
  return at_each(p, to, [&](i64 distance, char* at) {
    Part<M> one = from, made = to_others;
    one.at += distance;
    made.at = at;
    copy<T>(made, one);
  });
}

// Writes them; all are there.
template <class T, int K>
[[gnu::noinline]] inline void scatter(const Mask<K> p, const Part<1> values) {
  over_runs(p, values, [&](i64 distance, const char* value, i64 count) {
    copy_run<T>(p.axes.at + distance, p.axes.stride[K - 1], value, values.stride[0], count);
  });
}
template <class T, class I, int K, int B>
[[gnu::noinline]] inline void scatter(const Positions<I, K, B> p, const Part<B> values) {
  char* const to = p.axes.at;
  at_each(p, values,
          [to](i64 distance, const char* value) { *(T*)(to + distance) = *(const T*)value; });
}
template <class T, class P, int M>
[[gnu::noinline]] inline void scatter(const P p, const Part<P::kAxes> values, const Part<M> to,
                                      const Part<M> other_values) {
  at_each(p, values, [&](i64 distance, char* value) {
    Part<M> one = to, given = other_values;
    one.at += distance;
    given.at = value;
    copy<T>(one, given);
  });
}

// Whether two arrays may share memory, or lie less than some bytes apart.
template <int M, int N>
[[gnu::noinline]] inline bool may_share(const Part<M>& a, i64 a_bytes, const Part<N>& b,
                                        i64 b_bytes, i64 gap) {
  if (a.size() == 0 || b.size() == 0) return false;
  i64 low_a, high_a, low_b, high_b;
  reach(a, a_bytes, low_a, high_a);
  reach(b, b_bytes, low_b, high_b);
  const i64 apart = (i64)b.at - (i64)a.at;
  return low_a < apart + high_b + gap && apart + low_b < high_a + gap;
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_SELECTIONS_H_
