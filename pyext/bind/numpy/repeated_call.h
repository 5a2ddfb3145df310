// Which of NumPy's own calls does a recording repeat? Those of functions that make a new array, or
// a number, of their arguments' values and of nothing else (form Repeated of surface.def): matmul,
// dot, argsort. A recording has the function and its other arguments; the arrays are the repeated
// call's.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

class RepeatedCall final : public tracer::HostCall {
 public:
  // Null where a recording could not repeat the call. `given` gets the lazy arrays among the
  // arguments, in the order in which `repeat` takes them.
  static std::shared_ptr<const RepeatedCall> of(Call& call, PyObject* func, PyObject* args,
                                                PyObject* kwargs, std::vector<LazyArray>& given);
  // The arrays that it makes; none where NumPy raises or warns, or the result is another: Python
  // has to run the call.
  std::vector<py::object> repeat(std::span<const py::object> given) const;
  // The arrays in the result of such a call, to which the caller has the only reference: itself, or
  // those in a tuple or list. In the place of a NumPy scalar stands an array without axes. None
  // where any of them is not new.
  static std::vector<py::object> new_arrays(PyObject* result);

 private:
  // An argument, or what stands in one that is a list or a tuple.
  struct Item {
    py::object constant;
    int given = -1;
    bool is_list = false;
    std::vector<Item> items;

    py::object made(std::span<const py::object> values) const;
  };
  static bool read(Call& call, PyObject* object, Item& item, std::vector<LazyArray>& given,
                   int depth = 0);

  py::object func_, names_;  // and those of the last arguments, or unset
  std::vector<Item> args_;
  std::uint8_t report_mask_ = 0;  // flags of which NumPy would warn
  std::string name_;
};

// Once, when the module is imported.
void init_repeated_calls();

}  // namespace ufuse::pyext
