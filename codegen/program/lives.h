// Which arrays may still be used behind a step?
//
// Memory that the program has made for an array may be taken for another one once no array that may
// be used any more lies in it. What has a place in the frame or a name always may be; an
// intermediate result is until the text mentions it for the last time.
#pragma once

#include <unordered_map>
#include <vector>

#include "codegen/program/frame.h"
#include "ir/program/program.h"

namespace ufuse::codegen {

class ArrayLives {
 public:
  ArrayLives(const ir::program::Program& program, const FrameLayout& frame);

  // In the order of their numbers; `step` is one of the program's NewArray steps.
  std::vector<ir::program::ArrayReg> beside(const ir::program::Step& step) const;

 private:
  struct Life {
    int first = -1, last = -1;
  };

  void walk(const ir::program::Steps& list);
  void mention(ir::program::ArrayReg a);

  std::vector<Life> lives_;
  std::unordered_map<const ir::program::Step*, int> places_;
  int place_ = 0;
};

}  // namespace ufuse::codegen
