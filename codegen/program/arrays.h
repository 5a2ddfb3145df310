// How do steps over whole arrays read as C++?
//
// Elements are computed in a function of their own, which stands before the program's: the compiler
// sees a plain loop there, and no arithmetic crosses the place where flags are looked at.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/program/names.h"

namespace ufuse::codegen {

// Numbers from outside that the elements of a step are computed with.
std::vector<ir::program::Reg> numbers_of(const ir::program::Step& elements);

class ArrayPrinter {
 public:
  // `line` writes a line of the program, `exit_where` one that exits where its condition holds.
  using Line = std::function<void(const std::string&)>;
  using ExitWhere = std::function<void(const std::string&, int)>;
  ArrayPrinter(const ProgramNames& names, Line line, ExitWhere exit_where)
      : n_(names), line_(std::move(line)), exit_where_(std::move(exit_where)) {}

  void fit(const ir::program::Step& s);
  void elements(const ir::program::Step& s);
  void in_rows(const ir::program::Step& s);
  void in_one_row(const ir::program::Step& s);
  // `loop`: NumPy's inner loop.
  void loop_over(const ir::program::Step& s, const std::string& loop);
  void reduce(const ir::program::Step& s, const std::string& loop);
  void count_true(const ir::program::Step& s);
  void within(const ir::program::Step& s);
  void gather(const ir::program::Step& s);
  void apart(const ir::program::Step& s);
  void scatter(const ir::program::Step& s);
  void product(const ir::program::Step& s, const std::string& loop);
  void dot(const ir::program::Step& s, const std::string& loop);
  void save(const ir::program::Step& s);
  void release(const ir::program::Step& s);

  // The functions that the lines call, the variables that they use, and what has to be done where
  // the program exits.
  const std::string& functions() const { return functions_; }
  std::vector<std::string> declarations() const;
  std::vector<std::string> endings() const;

 private:
  std::string room() { return "room" + std::to_string(rooms_++); }
  std::string part(ir::program::ArrayReg a) const;
  // Where steps about positions find them: how many axes of `of` they index, how many they have
  // themselves, and what rt calls them.
  struct Positions {
    int indexed = 0, axes = 1;
    std::string text;
  };
  Positions positions(const ir::program::Step& s, ir::program::ArrayReg of) const;
  std::map<ir::program::Reg, std::uint32_t> hidden_operands(const ir::program::Step& s) const;
  std::string function(const ir::program::Step& s, const std::vector<ir::program::Reg>& numbers);
  std::string function_text(const ir::program::Step& s,
                            const std::vector<ir::program::Reg>& numbers) const;

  const ProgramNames& n_;
  Line line_;
  ExitWhere exit_where_;
  std::string functions_;
  std::map<std::string, std::string> known_functions_;  // what they are but for names, their names
  int rooms_ = 0;
  std::vector<ir::program::ArrayReg> saved_;  // in the order of the text
};

}  // namespace ufuse::codegen
