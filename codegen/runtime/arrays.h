// What do programs do with whole arrays?
//
// Programs start with this text, behind scalars.h. It includes nothing. What is long and called
// from many places is not inlined: it would take the compiler as long as all the rest.
#ifndef UFUSE_CODEGEN_RUNTIME_ARRAYS_H_
#define UFUSE_CODEGEN_RUNTIME_ARRAYS_H_

namespace rt {

// Larger arrays are left to NumPy: it writes over temporaries from 256 KiB on, which changes the
// order of operands, and gains little by a program.
constexpr i64 kMostBytes = (i64{256} << 10) - 1;
inline bool is_large(i64 elements, i64 bytes) { return elements > kMostBytes / bytes; }
constexpr i64 kMostProducts = i64{1} << 21;

// Memory that is kept for the next time.
class Room {
 public:
  Room() = default;
  ~Room() { __builtin_free(at_); }
  Room(const Room&) = delete;
  char* take(i64 bytes) {
    if (bytes > bytes_) {
      __builtin_free(at_);
      at_ = (char*)__builtin_malloc((unsigned long)bytes);
      bytes_ = at_ == nullptr ? 0 : bytes;
    }
    return at_;
  }

 private:
  char* at_ = nullptr;
  i64 bytes_ = 0;
};

// A part of an array: where its first element is, and the strides in bytes.
template <int N>
struct Part {
  char* at;
  i64 length[N], stride[N];

  i64 size() const {
    i64 all = 1;
    for (i64 each : length) all *= each;
    return all;
  }
};

// Whether each element of a part of an array has a place of its own. Else it matters in which order
// they are written.
template <int N>
[[gnu::noinline]] inline bool is_apart(const Part<N>& x, i64 bytes) {
  i64 reach[N], step[N];
  for (int axis = 0; axis < N; ++axis) {
    i64 own = x.stride[axis] < 0 ? -x.stride[axis] : x.stride[axis];
    if (x.length[axis] <= 1) own = 0;
    int at = axis;  // in the order of their steps
    for (; at > 0 && step[at - 1] > own; --at) {
      step[at] = step[at - 1];
      reach[at] = reach[at - 1];
    }
    step[at] = own;
    reach[at] = x.length[axis] <= 1 ? 0 : own * (x.length[axis] - 1);
    if (x.length[axis] > 1 && own < bytes) return false;
  }
  i64 taken = bytes;
  for (int axis = 0; axis < N; ++axis) {
    if (reach[axis] != 0 && step[axis] < taken) return false;
    taken += reach[axis];
  }
  return true;
}

template <class T, int N>
inline bool does_not_fit(const Part<N>& to) {
  return is_large(to.size(), sizeof(T)) || !is_apart(to, sizeof(T));
}
template <int M, int N>
[[gnu::noinline]] inline bool does_not_broadcast(const Part<M>& x, const Part<N>& to) {
  for (int axis = 0; axis < M; ++axis)
    if (x.length[axis] != 1 && x.length[axis] != to.length[axis + N - M]) return true;
  return false;
}

inline bool broadcast_length(i64 x, i64 y, i64& r) {
  r = x == 1 ? y : x;
  return x != y && x != 1 && y != 1;
}

// The array as it stands beside each element of the other.
template <int M, int N>
[[gnu::noinline]] inline Part<N> stretched(const Part<M>& x, const Part<N>& to) {
  Part<N> r;
  r.at = x.at;
  for (int axis = 0; axis < N; ++axis) {
    const int own = axis - (N - M);
    r.length[axis] = to.length[axis];
    r.stride[axis] = own < 0 || x.length[own < 0 ? 0 : own] == 1 ? 0 : x.stride[own < 0 ? 0 : own];
  }
  return r;
}

// One element, as often as a row needs it, or a block of a row. In shorter rows than kRepeated that
// takes longer than it saves.
constexpr i64 kBlock = 512, kRepeated = 16;
template <class T>
[[gnu::noinline]] inline void repeat(T* to, const char* element, i64 n) {
  const T value = *(const T*)element;
  for (i64 i = 0; i < (n < kBlock ? n : kBlock); ++i) to[i] = value;
}

inline i64 common_divisor(i64 x, i64 y) {
  while (y != 0) {
    const i64 rest = x % y;
    x = y;
    y = rest;
  }
  return x;
}

template <int N>
inline bool same(const Part<N>& a, const Part<N>& b) {
  for (int axis = 0; axis < N; ++axis)
    if (a.length[axis] != 1 && a.stride[axis] != b.stride[axis]) return false;
  return a.at == b.at;
}

// Where the memory of an array that is not empty begins and ends, in bytes from its first element.
template <int N>
inline void reach(const Part<N>& x, i64 bytes, i64& low, i64& high) {
  low = 0;
  high = bytes;
  for (int axis = 0; axis < N; ++axis) {
    const i64 all = (x.length[axis] - 1) * x.stride[axis];
    (all < 0 ? low : high) += all;
  }
}

// Whether an element of one may lie where one of the other does. They have the same lengths. Where
// the same elements do no harm, arrays that are the same do not count.
template <int N>
[[gnu::noinline]] inline bool overlap(const Part<N>& a, i64 a_bytes, const Part<N>& b, i64 b_bytes,
                                      bool may_be_same) {
  if (a.size() == 0 || (may_be_same && same(a, b))) return false;
  i64 low_a, high_a, low_b, high_b, common = 0;
  reach(a, a_bytes, low_a, high_a);
  reach(b, b_bytes, low_b, high_b);
  const i64 apart = (i64)b.at - (i64)a.at;
  if (apart + high_b <= low_a || apart + low_b >= high_a) return false;
  // Columns of one matrix: all steps are multiples of a number of bytes.
  for (int axis = 0; axis < N; ++axis) {
    if (a.length[axis] == 1) continue;
    common = common_divisor(common_divisor(common, a.stride[axis]), b.stride[axis]);
  }
  if (common == 0) return true;
  common = common < 0 ? -common : common;
  const i64 ahead = (apart % common + common) % common;
  return ahead < a_bytes || common - ahead < b_bytes;
}

// Gives an array of such elements the strides that it has in rows. Returns its size in bytes.
template <int N>
inline i64 put_in_rows(Part<N>& x, i64 bytes) {
  for (int axis = N - 1; axis >= 0; --axis) {
    x.stride[axis] = bytes;
    bytes *= x.length[axis];
  }
  return bytes;
}

// An array in memory of its own, in rows; without an address where there is no memory.
template <int N>
[[gnu::noinline]] inline Part<N> made(Room& room, const Part<N>& like, i64 bytes) {
  Part<N> r = like;
  r.at = room.take(put_in_rows(r, bytes));
  return r;
}

// Copies elements that lie so many bytes apart, between memory that is not shared; where those that
// are read lie no bytes apart, one as often as wanted.
template <class T>
inline void copy_run(char* to, i64 to_step, const char* from, i64 from_step, i64 count) {
  if (to_step == sizeof(T) && from_step == sizeof(T)) {
#pragma GCC ivdep
    for (i64 i = 0; i < count; ++i) ((T*)to)[i] = ((const T*)from)[i];
  } else if (to_step == sizeof(T) && from_step == 0) {
    const T value = *(const T*)from;
    for (i64 i = 0; i < count; ++i) ((T*)to)[i] = value;
  } else {
    for (i64 i = 0; i < count; ++i) *(T*)(to + i * to_step) = *(const T*)(from + i * from_step);
  }
}

template <class T, int N>
[[gnu::noinline]] inline void copy(Part<N> to, Part<N> from) {
  if constexpr (N == 1) {
    copy_run<T>(to.at, to.stride[0], from.at, from.stride[0], to.length[0]);
  } else {
    Part<N - 1> row_to{to.at, {}, {}}, row_from{from.at, {}, {}};
    for (int axis = 1; axis < N; ++axis) {
      row_to.length[axis - 1] = row_from.length[axis - 1] = to.length[axis];
      row_to.stride[axis - 1] = to.stride[axis];
      row_from.stride[axis - 1] = from.stride[axis];
    }
    for (i64 i = 0; i < to.length[0]; ++i) {
      copy<T>(row_to, row_from);
      row_to.at += to.stride[0];
      row_from.at += from.stride[0];
    }
  }
}

// The array as it stands beside each element of `to`, to be read while `to` is written. Where they
// share memory, a copy of it if it is much smaller (a row that is read beside each row), else
// `aside` becomes true. `may_be_same` as above.
template <class T, int M, int N>
[[gnu::noinline]] inline Part<N> beside(Room& room, const Part<M>& x, const Part<N>& to,
                                        i64 to_bytes, bool may_be_same, bool& aside) {
  constexpr i64 kMuchSmaller = 4;
  const Part<N> r = stretched(x, to);
  if (!overlap(to, to_bytes, r, sizeof(T), may_be_same)) return r;
  if (x.size() <= to.size() / kMuchSmaller) {
    const Part<M> copied = made(room, x, sizeof(T));
    if (copied.at != nullptr) {
      copy<T>(copied, x);
      return stretched(copied, to);
    }
  }
  aside = true;
  return r;
}

// ---- New arrays ----

inline u64 object_of(const char* elements) { return (u64)(elements - sizeof(NewArray)) | 1; }

// Memory for an array in rows: the smallest that is large enough and nobody holds any more, or new.
// Without an address where there is none, or where NumPy's layout is not known.
// `held`: the objects of the arrays that are still used.
template <int N>
[[gnu::noinline]] inline Part<N> new_array(NewArray*& first, const u64* held, int count,
                                           Index dtype, i64 element, Part<N> shape) {
  const i64 bytes = put_in_rows(shape, element);
  if (N > 1 && bytes == 0) return shape;
  NewArray* found = nullptr;
  for (NewArray* each = first; each != nullptr; each = each->next) {
    if (each->capacity < bytes || (found != nullptr && found->capacity <= each->capacity)) continue;
    bool is_held = false;
    for (int i = 0; i < count; ++i) is_held |= held[i] == ((u64)each | 1);
    if (!is_held) found = each;
  }
  if (found == nullptr) {
    i64 capacity = 256;  // few sizes, so that arrays that grow find one another's memory
    while (capacity < bytes) capacity *= 2;
    found = (NewArray*)__builtin_malloc(sizeof(NewArray) + (unsigned long)capacity);
    if (found == nullptr) return shape;
    found->next = first;
    found->capacity = capacity;
    first = found;
  }
  found->dtype = dtype;
  found->rank = N;
  for (int axis = 0; axis < N; ++axis) found->lengths[axis] = shape.length[axis];
  shape.at = (char*)(found + 1);
  return shape;
}

// Whether NumPy lays out what it computes of this array in rows.
template <int N>
inline bool lies_in_rows(const Part<N>& x) {
  i64 before = 0;
  for (int axis = N - 1; axis >= 0; --axis) {
    if (x.length[axis] == 1) continue;
    if (x.stride[axis] <= 0 || x.stride[axis] < before) return false;
    before = x.stride[axis];
  }
  return true;
}

// The elements of an array as they were.
template <class T, int N>
class Saved {
 public:
  // True where they are many, or there is no memory.
  bool save(const Part<N>& array) {
    if (is_large(array.size(), sizeof(T))) return true;
    if (array.size() == 0) return false;
    array_ = array;
    copy_ = made(room_, array, sizeof(T));
    is_saved_ = copy_.at != nullptr;
    if (is_saved_) copy<T>(copy_, array_);
    return !is_saved_;
  }
  void release() { is_saved_ = false; }
  void put_back() {
    if (is_saved_) copy<T>(array_, copy_);
  }

 private:
  Room room_;
  Part<N> array_{}, copy_{};
  bool is_saved_ = false;
};

// Strides that NumPy gives to its inner loops in another form.
inline bool is_odd(i64 size, i64 stride, i64 bytes) {
  return stride <= 0 || (size == 1 && stride != bytes);
}

// Whether the elements, more than one, stand side by side in the order of their indices.
template <int N>
inline bool lies_in_one_row(const Part<N>& x, i64 bytes) {
  i64 size = 1;
  for (int axis = N - 1; axis >= 0; --axis) {
    if (x.length[axis] != 1 && x.stride[axis] != size * bytes) return false;
    size *= x.length[axis];
  }
  return size > 1;
}

// r = NumPy's reduction of all elements, from r on, or from the first one on. `run`: of so many
// elements each call of its loop takes care; 0: of all. True where a flag has been raised that
// NumPy reports, or NumPy would call its loop in another way.
template <class T, int N>
inline bool reduce(const Loop& loop, const Part<N>& x, i64 run, bool from_first, T& r) {
  const i64 bytes = sizeof(T), size = x.size();
  const bool is_vector = N == 1 && x.stride[0] > 0;
  if (size == 0 && from_first) return true;
  if (size > kMostProducts || (size > 1 && !is_vector && !lies_in_one_row(x, bytes))) return true;
  const i64 step = is_vector ? x.stride[0] : bytes;
  if (from_first) r = *(const T*)x.at;
  T all = r;
  const Index strides[] = {0, step, 0};
  const Raised flags;
  for (i64 begin = from_first ? 1 : 0; begin < size;) {
    const i64 next = run == 0 ? size : (begin / run + 1) * run, end = next < size ? next : size;
    const i64 n = end - begin;
    char* operands[] = {(char*)&all, x.at + begin * step, (char*)&all};
    loop.call(operands, &n, strides, loop.data);
    begin = end;
  }
  r = all;
  return flags.any();
}

// One axis of a reduction, or several that lie one behind the other: how many elements, and the
// strides of what is reduced and of the result; zero where the result has one element for all.
struct Reduced {
  i64 length, step, to_step;
};

// to = NumPy's reduction along the axes in which it has one element, from *from on; null: from the
// first elements on. As NumPy's iterator goes over an array in rows. True as above, and where NumPy
// would copy elements before it reduces them.
template <class T, int N>
[[gnu::noinline]] inline bool reduce_axes(const Loop& loop, const Part<N>& x, const T* from,
                                          const Part<N>& to) {
  constexpr i64 kLongestRun = 8192;
  const i64 size = x.size();
  if (size < 2 || size > kMostProducts || !lies_in_rows(x)) return true;
  Reduced dims[N];  // innermost first
  int count = 0;
  for (int axis = N - 1; axis >= 0; --axis) {
    const i64 length = x.length[axis], step = x.stride[axis];
    if (length == 1) continue;
    const i64 to_step = to.length[axis] == 1 ? 0 : to.stride[axis];
    Reduced* last = count > 0 ? dims + count - 1 : nullptr;
    if (last != nullptr && last->length * last->step == step &&
        last->length * last->to_step == to_step)
      last->length *= length;
    else
      dims[count++] = {length, step, to_step};
  }
  const Reduced inner = dims[0];
  const bool in_runs = inner.to_step == 0;
  if (in_runs && (inner.length > kLongestRun || (count > 1 && dims[1].to_step == 0))) return true;
  const Raised flags;
  i64 position[N] = {};
  char *at = x.at, *into = to.at;
  for (;;) {
    bool is_first = true;
    for (int k = 1; k < count; ++k) is_first &= dims[k].to_step != 0 || position[k] == 0;
    const i64 skipped = is_first && from == nullptr ? (in_runs ? 1 : inner.length) : 0;
    for (i64 i = 0; i < (is_first ? (in_runs ? 1 : inner.length) : 0); ++i)
      *(T*)(into + i * inner.to_step) = from == nullptr ? *(const T*)(at + i * inner.step) : *from;
    if (const i64 n = inner.length - skipped; n > 0) {
      char* operands[] = {into, at + skipped * inner.step, into};
      const Index strides[] = {inner.to_step, inner.step, inner.to_step};
      loop.call(operands, &n, strides, loop.data);
    }
    int k = 1;
    for (; k < count; ++k) {
      at += dims[k].step;
      into += dims[k].to_step;
      if (++position[k] < dims[k].length) break;
      at -= dims[k].length * dims[k].step;
      into -= dims[k].length * dims[k].to_step;
      position[k] = 0;
    }
    if (k >= count) break;
  }
  return flags.any();
}

// ---- Matrix products ----

// The operands of matmul's inner loop as NumPy gives them to it: an axis that an operand lacks, or
// of one element, has a stride of zero.
struct Matrix {
  char* at;
  i64 rows, columns, row_stride, column_stride;
};
inline i64 step_of(i64 length, i64 stride) { return length == 1 ? 0 : stride; }
inline Matrix left(const Part<1>& x) {
  return {x.at, 1, x.length[0], 0, step_of(x.length[0], x.stride[0])};
}
inline Matrix right(const Part<1>& x) {
  return {x.at, x.length[0], 1, step_of(x.length[0], x.stride[0]), 0};
}
inline Matrix left(const Part<2>& x) {
  return {x.at, x.length[0], x.length[1], step_of(x.length[0], x.stride[0]),
          step_of(x.length[1], x.stride[1])};
}
inline Matrix right(const Part<2>& x) { return left(x); }

// The result in rows. Whether a flag has been raised that NumPy reports, or it is too much work.
template <class T>
inline bool matmul(const Loop& loop, const Matrix& a, const Matrix& b, char* r) {
  if (a.rows * a.columns > kMostProducts / (b.columns + 1)) return true;
  char* operands[] = {a.at, b.at, r};
  const Index sizes[] = {1, a.rows, a.columns, b.columns};
  const Index strides[] = {0,
                           0,
                           0,
                           a.row_stride,
                           a.column_stride,
                           b.row_stride,
                           b.column_stride,
                           step_of(a.rows, b.columns * (i64)sizeof(T)),
                           step_of(b.columns, (i64)sizeof(T))};
  const Raised flags;
  loop.call(operands, sizes, strides, loop.data);
  return flags.any();
}

// np.dot copies what BLAS takes in no other way.
template <class T>
inline bool for_blas(Part<1>& x, Room& room) {
  const i64 bytes = sizeof(T);
  if (x.stride[0] > 0 && x.stride[0] % bytes == 0 && (i64)x.at % bytes == 0) return true;
  const Part<1> own = made(room, x, bytes);
  if (own.at == nullptr) return false;
  copy<T>(own, x);
  x = own;
  return true;
}

// np.dot of two vectors. True where there is no memory, and where a flag has been raised if NumPy
// `reports` it.
template <class T>
inline bool dot(const Loop& loop, Part<1> a, Part<1> b, Room& room_a, Room& room_b, bool reports,
                T& r) {
  const i64 n = a.length[0];
  r = 0;
  if (n > kMostProducts / 2) return true;
  if (n == 0) return false;
  if (n == 1) {
    const Raised flags;
    r = multiply(*(const T*)a.at, *(const T*)b.at);
    return flags.any() && reports;
  }
  if (!for_blas<T>(a, room_a) || !for_blas<T>(b, room_b)) return true;
  return matmul<T>(loop, left(a), right(b), (char*)&r) && reports;
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_ARRAYS_H_
