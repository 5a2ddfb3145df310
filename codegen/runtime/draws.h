// Random numbers: what do the methods of generators draw, one at a time?
//
// Programs have this text behind scalars.h and generators.h. As many bits are drawn as NumPy or
// Python draw, and what is done with them is what they do. It includes nothing.
#ifndef UFUSE_CODEGEN_RUNTIME_DRAWS_H_
#define UFUSE_CODEGEN_RUNTIME_DRAWS_H_

namespace rt {

inline Generator& generator(u64 address) { return *(Generator*)address; }
inline const BitGenerator& bit_generator(u64 address) { return generator(address).bits; }

inline f64 draw_real(u64 from) {
  const BitGenerator& g = bit_generator(from);
  return g.next_real(g.state);
}

// An integer from 0 to `largest`: as many bits are drawn as NumPy draws, and what is done with them
// is what NumPy does. The upper half of a product of `largest + 1` and a random word, drawn again
// where the lower half shows that not all integers would be as likely.
inline u64 draw_within(u64 from, u64 largest) {
  using Word = u64;
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

// `first`, `second`: the bits of the numbers that are given.
inline bool draw_called(u64 from, u64 method, u64 count, u64 first, u64 second, f64& drawn) {
  const f64 given[] = {__builtin_bit_cast(f64, first), __builtin_bit_cast(f64, second)};
  return generator(from).call_real(&generator(from), (int)method, (int)count, given, &drawn);
}
inline bool draw_called(u64 from, u64 method, u64 count, u64 first, u64 second, i64& drawn) {
  const f64 given[] = {__builtin_bit_cast(f64, first), __builtin_bit_cast(f64, second)};
  return generator(from).call_integer(&generator(from), (int)method, (int)count, given, &drawn);
}

// How many bits a number above zero has.
inline int bits_in(u64 x) { return 64 - __builtin_clzll(x); }

// The same as NumPy's older generators do it: so many bits as `largest` has, drawn again where they
// are more.
inline u64 draw_masked(u64 from, u64 largest) {
  using Word = u64;
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
inline u64 draw_below(u64 from, u64 largest) {
  using Word = u64;
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

inline f64 draw_normal(u64 from) {
  const Generator& g = generator(from);
  return g.normal(&g.bits);
}
inline f64 draw_exponential(u64 from) {
  const Generator& g = generator(from);
  return g.exponential(&g.bits);
}

// Of NumPy's older generators.
inline f64 draw_logarithm(u64 from) { return -log(opaque(1.0 - draw_real(from))); }

// Whether a normal number is there that has been made with another one; it is taken away.
inline bool takes_second(Generator& g, f64& drawn) {
  if (!g.knows_second) g.read_second(&g);
  if (!g.has_second) return false;
  drawn = g.second;
  g.has_second = false;
  g.second = 0;
  return true;
}
inline void keep_second(Generator& g, f64 second) {
  g.has_second = true;
  g.second = second;
}

// NumPy's older generators: a point in the unit circle, by the polar method.
inline f64 draw_polar(u64 from) {
  Generator& g = generator(from);
  f64 drawn;
  if (takes_second(g, drawn)) return drawn;
  f64 x, y, square;
  do {
    x = 2.0 * draw_real(from) - 1.0;
    y = 2.0 * draw_real(from) - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  const f64 factor = __builtin_sqrt(-2.0 * log(opaque(square)) / square);
  keep_second(g, factor * x);
  return factor * y;
}

// Python's: an angle and a radius.
inline f64 draw_gauss(u64 from) {
  Generator& g = generator(from);
  f64 drawn;
  if (takes_second(g, drawn)) return drawn;
  const f64 angle = draw_real(from) * 6.283185307179586;
  const f64 radius = __builtin_sqrt(-2.0 * log(opaque(1.0 - draw_real(from))));
  keep_second(g, sin(opaque(angle)) * radius);
  return cos(opaque(angle)) * radius;
}

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_DRAWS_H_
