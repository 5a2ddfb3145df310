// How do programs draw from random generators? By the functions in C of NumPy's bit generators, or
// by the methods of Python's `random.Random`.
#pragma once

#include <cstdint>
#include <list>
#include <string_view>
#include <vector>

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
  // Tells the generators what the program has kept for them. To be called before others have
  // Python's lock. Throws what a method of Python's has raised.
  void put_back();

 private:
  struct Known : rt::Generator {
    py::object generator, source, lock;  // source: the bit generator
    const rt::BitGenerator* interface = nullptr;
    py::object real, bits_of, arguments;  // Python's methods, and what `bits_of` is called with
    std::vector<py::object> methods;      // NumPy's, by number
    bool had_second = false;              // as it was read
    double second_read = 0;
    bool has_raised = false;
    py::object state() const { return generator.attr("get_state")(py::arg("legacy") = false); }
    void read();
    void put_back();
    // What raises is raised when the program has ended.
    template <class Do>
    void guarded(const Do& what);
    // Calls a method; null: it has raised.
    py::object call(int method, int count, const double* given);
  };
  static unsigned next_word(void* state);
  static double next_real(void* state);
  static double draw_by_method(const rt::BitGenerator* bits, const char* name);
  static double normal(const rt::BitGenerator* bits);
  static double exponential(const rt::BitGenerator* bits);
  static void read_second(rt::Generator* of);
  static bool call_real(rt::Generator* of, int method, int count, const double* given,
                        double* drawn);
  static bool call_integer(rt::Generator* of, int method, int count, const double* given,
                           std::int64_t* drawn);
  std::list<Known> known_;
};

}  // namespace ufuse::pyext
