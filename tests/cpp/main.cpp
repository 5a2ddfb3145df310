// The entry of the C++ test program. The tests stand in test_*.cpp, here and in subfolders.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
