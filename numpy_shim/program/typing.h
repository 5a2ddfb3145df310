// From the text of a loop to a Program: what are the types, and what do the operators mean for
// them?
//
// The text is run once with types in the place of values, as they are when the loop is entered.
// Where a type changes in the first rounds of an inner loop, these rounds are written out, until it
// stays. What has no native form throws NotNative, with its line; the loop then runs as Python.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "numpy_shim/program/source.h"

namespace ufuse::numpy_shim::program {

// Why a loop stays Python's.
class NotNative : public std::runtime_error {
 public:
  NotNative(const std::string& why, int line) : std::runtime_error(why), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

// A variable has another type at the end of a round than at its beginning: a later round may begin
// with the types that stay.
class TypesChange : public NotNative {
 public:
  explicit TypesChange(int line) : NotNative("a variable changes its type in each round", line) {}
};

// What a loop goes over.
struct Walked {
  enum class Kind : std::uint8_t { Range, Items, Enumerate, Zip, Nothing } kind = Kind::Nothing;
  Given items;             // Items: an array or a list
  bool counts_up = false;  // Range, Enumerate: no number is negative from here on
  std::vector<Walked> parts;
  friend bool operator==(const Walked&, const Walked&) = default;
};

// What there is when the loop is entered.
struct Entered {
  std::vector<Given> variables;  // by number
  Walked over;
  bool has_chances = false;  // for tests: the program may be told to exit at any statement
  friend bool operator==(const Entered&, const Entered&) = default;
};

// Which variables a round may read before it assigns them, by number. What the other ones hold when
// the loop is entered does not matter to its program.
std::vector<bool> read_first(const Loop& loop);

ir::program::Program typed(const Loop& loop, const Entered& entered, World& world);

}  // namespace ufuse::numpy_shim::program
