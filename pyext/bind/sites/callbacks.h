// What do functions that traced code has made meet while others may call them?
//
// Others run a function's own code, which has no call sites. So while a call is with them, real
// arrays stand in the function's variables and default values, where lazy ones are.
#pragma once

#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

class RealVariables {
 public:
  // Everything pending must be flushed before.
  explicit RealVariables(const Call& call);
  ~RealVariables();
  RealVariables(const RealVariables&) = delete;
  RealVariables& operator=(const RealVariables&) = delete;

 private:
  struct Change {
    py::object place;  // a cell, or a function, of whose defaults this is
    py::object lazy, real;
  };
  std::vector<Change> changes_;
};

}  // namespace ufuse::pyext
