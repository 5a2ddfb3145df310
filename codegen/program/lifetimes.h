// Which arrays may still be used while a step runs?
//
// A new array takes memory that none of them has. Without this every array of the program would
// count, and be compared for each new one.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "ir/program/program.h"

namespace ufuse::codegen {

class Lifetimes {
 public:
  explicit Lifetimes(const ir::program::Program& program);

  // Those that the steps behind this NewArray, or an exit, may use as they are before it.
  std::vector<ir::program::ArrayReg> held(const ir::program::Step& step) const;

 private:
  struct Block {
    std::size_t around = 0;  // position of the list of steps around it; the outermost has itself
    std::size_t first = 0, last = 0;
    bool is_loop = false;
  };
  struct Life {
    std::size_t first = 0, last = 0;
    std::size_t block = 0;  // where it is defined
    bool is_seen = false;
    bool always = false;
  };

  void steps(const ir::program::Program& program, const ir::program::Steps& list, bool is_loop);
  void step(const ir::program::Program& program, const ir::program::Step& s);
  void use(ir::program::ArrayReg a, bool defines);
  void use(const ir::program::Where& where);
  void use(const ir::program::Over& over);
  void keep(const ir::program::Where& where);
  bool is_inside(std::size_t block, std::size_t other) const;

  std::vector<Block> blocks_;
  std::vector<Life> lives_;
  std::size_t block_ = 0, position_ = 0;
  std::map<const ir::program::Step*, std::size_t> new_arrays_;
};

}  // namespace ufuse::codegen
