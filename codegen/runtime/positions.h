// What do kernels need where positions are values? Where one points along an axis, and the list of
// those at which a mask is true. Embedded after folds.h into each generated source.
#ifndef UFUSE_CODEGEN_RUNTIME_POSITIONS_H_
#define UFUSE_CODEGEN_RUNTIME_POSITIONS_H_

namespace rt {

// Along an axis of n elements, of which there is one at least. A position outside of it is NumPy's
// to complain about; the first element stands in for it.
inline Index signed_position(Index p, Index n, Flags& flags) {
  const Index at = p < 0 ? p + n : p;
  if (__builtin_expect((u64)at < (u64)n, 1)) return at;
  flags.redo();
  return 0;
}
inline Index wrapped_position(Index p, Index n) {
  const Index left = p % n;
  return left < 0 ? left + n : left;
}
inline Index clipped_position(Index p, Index n) { return p < 0 ? 0 : p < n ? p : n - 1; }

// Whether none of kWords * 8 bytes is true.
template <int kWords>
inline bool all_false(const u8* mask) {
  u64 words[kWords], any = 0;
  __builtin_memcpy(words, mask, sizeof words);
  for (int k = 0; k < kWords; ++k) any |= words[k];
  return any == 0;
}

// Lists the positions in [lo, hi) of a mask at which it is true; all of them are one row long, and
// `at` is the position of the row. `next` and `end`: rows of the list.
template <int kAxes>
inline Index list_row(const u8* mask, Index lo, Index hi, const Index* at, Index* out, Index row,
                      const Index* columns, Index next, Index end) {
  const auto write = [&](Index i) {
    Index* const to = out + next * row;
    for (int a = 0; a + 1 < kAxes; ++a) to[columns[a]] = at[a];
    to[columns[kAxes - 1]] = at[kAxes - 1] + i - lo;
    next += mask[i] != 0;  // what is written for the others is written over
  };
  for (Index i = lo; i < hi && next < end;) {
    if (i + 64 <= hi && all_false<8>(mask + i)) {
      i += 64;
    } else if (i + 8 <= hi && all_false<1>(mask + i)) {
      i += 8;
    } else if (i + 8 <= hi && next + 8 <= end) {
      for (Index k = 0; k < 8; ++k) write(i + k);
      i += 8;
    } else {
      write(i++);
    }
  }
  return next;
}

// The positions at which a mask without gaps is true, in C order: of each a row of the list, with
// one column for each axis. There are `count` of them, or the answer is in doubt.
template <int kAxes>
inline void list(const u8* mask, const Index* extents, Index* out, Index row, const Index* columns,
                 Index count, const Threads& threads, Flags& flags) {
  constexpr Index kPart = 1 << 15;
  Index n = 1;
  for (int a = 0; a < kAxes; ++a) n *= extents[a];
  const Index parts = (n + kPart - 1) / kPart;
  const auto end_of = [&](Index part) { return (part + 1) * kPart < n ? (part + 1) * kPart : n; };
  Index* const first = rt::row<Index>(parts + 1);  // rows of the list, by part
  first[0] = 0;
  flags.add(parallel(threads, parts, 1, [&](Index lo, Index hi, Flags&) {
    for (Index p = lo; p < hi; ++p) {
      const u8* const part = mask + p * kPart;
      first[p + 1] = rt::count(end_of(p) - p * kPart, [part](Index i) { return part[i] != 0; });
    }
  }));
  const bool given_up = threads.watch && threads.watch->given_up;
  for (Index p = 0; p < parts && !given_up; ++p) first[p + 1] += first[p];
  if (first[parts] != count && !given_up) flags.redo();
  if (first[parts] == count && !given_up) {
    flags.add(parallel(threads, parts, 1, [&](Index lo, Index hi, Flags&) {
      for (Index p = lo; p < hi; ++p) {
        Index i = p * kPart, next = first[p], at[kAxes];
        for (Index rest = i, a = kAxes; a-- > 0; rest /= extents[a]) at[a] = rest % extents[a];
        while (i < end_of(p)) {
          const Index left = extents[kAxes - 1] - at[kAxes - 1];
          const Index end = end_of(p) - i < left ? end_of(p) : i + left;
          next = list_row<kAxes>(mask, i, end, at, out, row, columns, next, first[p + 1]);
          i = end;
          at[kAxes - 1] = 0;
          for (Index a = kAxes - 1; a-- > 0;) {
            if (++at[a] < extents[a]) break;
            at[a] = 0;
          }
        }
      }
    }));
  }
  release(first);
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_POSITIONS_H_
