// Random generators as the programs of loops see them: NumPy's, whose interface in C this is, or
// Python's behind the same interface. A generator is its address. Included by pyext, and part of
// the text of programs; what they draw stands in draws.h.
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

struct Generator {
  BitGenerator bits;
  // Of NumPy's newer generators: functions of NumPy's.
  double (*normal)(const BitGenerator* bits);
  double (*exponential)(const BitGenerator* bits);
  // The others make two normal numbers at once, and keep the second one, if it is known here.
  void (*read_second)(Generator* generator);
  bool knows_second, has_second;
  double second;
  // Calls a method of the generator with so many numbers. True where that raises: then it has drawn
  // nothing.
  bool (*call_real)(Generator* generator, int method, int count, const double* given,
                    double* drawn);
  bool (*call_integer)(Generator* generator, int method, int count, const double* given,
                       __INT64_TYPE__* drawn);
};

}  // namespace rt

#endif  // UFUSE_CODEGEN_RUNTIME_GENERATORS_H_
