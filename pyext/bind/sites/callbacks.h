// What if untraced code calls a function that traced code has made?
//
// It runs the function's original code, which has no call sites. So while untraced code runs, real
// arrays stand in the variables of enclosing functions and in the default values of such functions,
// in the places of lazy ones.
#pragma once

#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

class RealVariables {
 public:
  // All that is pending must have been computed.
  explicit RealVariables(const Call& call);
  ~RealVariables();
  RealVariables(const RealVariables&) = delete;
  RealVariables& operator=(const RealVariables&) = delete;

 private:
  struct Change {
    py::object place;  // a cell, or a function for its default values
    py::object lazy, real;
  };
  std::vector<Change> changes_;
};

}  // namespace ufuse::pyext
