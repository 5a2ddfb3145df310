// Did a request give what NumPy gives? For hunting a wrong value: while a judge is set, NumPy
// computes what each traced request is asked for, before its loops run, and whatever differs is
// handed to the judge with all that is needed to look into it: the graph, the loops, operands and
// results as bytes, and what the same loops and the interpreter give when they are run once more.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

// `judge` is called with each request, as a dict; None: nobody looks.
void set_request_judge(py::object judge);
bool has_request_judge();

class RequestCheck {
 public:
  // Before the loops run, which may write over their operands.
  RequestCheck(Call& call, tracer::Session& session, std::span<const tracer::Want> wants,
               const ir::RunArgs& args);
  // Afterwards. Throws what the judge raises.
  void compare(const std::shared_ptr<const ir::Executable>& executable, const ir::RunArgs& args,
               const Place& place);

 private:
  // Everything between the first and the last byte of an operand: the loops can be given it again
  // with the strides that they were made for.
  struct Operand {
    std::shared_ptr<std::vector<std::byte>> bytes;
    std::size_t offset = 0;  // of the first element
  };
  py::list run_again(const ir::Executable& executable, const ir::RunArgs& args) const;

  std::vector<Operand> operands_;
  py::list expected_;
};

}  // namespace ufuse::pyext
