// The entry of the C++ test program. The tests stand in test_*.cpp, here and in subfolders.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "codegen/runtime/openmp.h"

int main(int argc, char** argv) {
  // As the module does before its first loop: the tests run kernels, then fork, and libomp alone
  // does not survive what killed processes left in /dev/shm.
  if (!ufuse::codegen::start_openmp()) return 1;
  return doctest::Context(argc, argv).run();
}
