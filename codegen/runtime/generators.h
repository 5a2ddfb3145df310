// Random numbers as the programs of loops draw them: from a generator of NumPy's, whose interface
// in C this is, or from one of Python's behind the same interface. A generator is its address.
#ifndef UFUSE_CODEGEN_RUNTIME_GENERATORS_H_
#define UFUSE_CODEGEN_RUNTIME_GENERATORS_H_

namespace rt {

// What the capsule of a NumPy bit generator holds.
struct BitGenerator {
  void* state;
  __UINT64_TYPE__ (*next_64)(void* state);
  unsigned (*next_32)(void* state);
  double (*next_real)(void* state);  // from 0 on, below 1
  __UINT64_TYPE__ (*next_raw)(void* state);
};

inline const BitGenerator& bit_generator(__UINT64_TYPE__ address) {
  return *(const BitGenerator*)address;
}

inline double draw_real(__UINT64_TYPE__ from) {
  const BitGenerator& g = bit_generator(from);
  return g.next_real(g.state);
}

// An integer from 0 to `largest`: as many bits are drawn as NumPy draws, and what is done with them
// is what NumPy does. The upper half of a product of `largest + 1` and a random word, drawn again
// where the lower half shows that not all integers would be as likely.
inline __UINT64_TYPE__ draw_within(__UINT64_TYPE__ from, __UINT64_TYPE__ largest) {
  using Word = __UINT64_TYPE__;
  const BitGenerator& g = bit_generator(from);
  if (largest == 0) return 0;
  if (largest == ~Word{0}) return g.next_64(g.state);
  if (largest == 0xFFFFFFFF) return g.next_32(g.state);
  const Word count = largest + 1;
  if (largest < 0xFFFFFFFF) {
    Word product = g.next_32(g.state) * count;
    if ((unsigned)product < count) {
      const unsigned least = (unsigned)(0xFFFFFFFF - largest) % (unsigned)count;
      while ((unsigned)product < least) product = g.next_32(g.state) * count;
    }
    return product >> 32;
  }
  using Wide = unsigned __int128;
  Wide product = (Wide)g.next_64(g.state) * count;
  if ((Word)product < count) {
    const Word least = (~Word{0} - largest) % count;
    while ((Word)product < least) product = (Wide)g.next_64(g.state) * count;
  }
  return (Word)(product >> 64);
}

// How many bits a number above zero has.
inline int bits_in(__UINT64_TYPE__ x) { return 64 - __builtin_clzll(x); }

// The same as NumPy's older generators do it: so many bits as `largest` has, drawn again where they
// are more.
inline __UINT64_TYPE__ draw_masked(__UINT64_TYPE__ from, __UINT64_TYPE__ largest) {
  using Word = __UINT64_TYPE__;
  const BitGenerator& g = bit_generator(from);
  if (largest == 0) return 0;
  const Word mask = ~Word{0} >> (64 - bits_in(largest));
  while (true) {
    const Word drawn =
        (largest <= 0xFFFFFFFF ? (Word)g.next_32(g.state) : g.next_64(g.state)) & mask;
    if (drawn <= largest) return drawn;
  }
}

// The same as Python's `random` does it: so many of the highest bits as the number of integers has,
// of one word, or of two, the lower one first.
inline __UINT64_TYPE__ draw_below(__UINT64_TYPE__ from, __UINT64_TYPE__ largest) {
  using Word = __UINT64_TYPE__;
  const BitGenerator& g = bit_generator(from);
  const Word count = largest + 1;
  const int bits = bits_in(count);
  while (true) {
    Word drawn = g.next_32(g.state);
    if (bits <= 32)
      drawn >>= 32 - bits;
    else
      drawn |= (Word)(g.next_32(g.state) >> (64 - bits)) << 32;
    if (drawn < count) return drawn;
  }
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_GENERATORS_H_
