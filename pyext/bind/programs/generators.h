// How do programs draw from random generators? By the functions in C of NumPy's bit generators, or
// by the methods of Python's `random.Random`.
#pragma once

#include <cstdint>
#include <list>
#include <string_view>

#include "codegen/runtime/generators.h"
#include "pyext/bind/common.h"

namespace ufuse::pyext {

// The class of a generator that programs know, numpy.random's or random.Random itself; of anything
// else nothing.
std::string_view generator_class(PyObject* object);

// The generators of one run of a program, which holds Python's lock while it draws.
class Generators {
 public:
  // Its address for the program.
  std::uint64_t address(PyObject* generator);
  // Waits until no other thread draws from one of them: some do so without Python's lock. To be
  // called whenever others have had that lock. False where one of them draws from something else
  // than it did. Throws what a signal's handler raises.
  bool wait() const;
  // Throws what a method of Python's has raised.
  void check() const;

 private:
  struct Known {
    py::object generator, source, lock;  // source: the bit generator
    const rt::BitGenerator* interface = nullptr;
    rt::BitGenerator own{};            // Python's
    py::object real, bits, arguments;  // its methods, and what `bits` is called with
    bool has_raised = false;
  };
  static unsigned next_word(void* state);
  static double next_real(void* state);
  std::list<Known> known_;
};

}  // namespace ufuse::pyext
