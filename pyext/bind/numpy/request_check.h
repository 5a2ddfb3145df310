// Did a request give what NumPy gives? For finding the cause of a wrong value. While a judge is
// set, NumPy computes each request of a traced call as well, before its loops run. The judge, a
// Python function, is called with both results and all that is needed to look into a difference:
// the graph, the loops, the operands as they were, and a way to run the same loops once more.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

// `judge` is called with each request, as a dict; None: requests are not checked.
void set_request_judge(py::object judge);
bool has_request_judge();

class RequestCheck {
 public:
  // Before the loops run, which may write over their operands.
  RequestCheck(Call& call, tracer::Session& session, std::span<const tracer::Want> wants,
               const ir::RunArgs& args);
  // Afterwards. Throws what the judge raises.
  void compare(const std::shared_ptr<const ir::Executable>& executable, const ir::RunArgs& args,
               const SourceLine& at);

 private:
  // A copy of everything between the first and the last byte of an operand, so that the loops can
  // be run on it with the strides that they were made for.
  struct Operand {
    std::shared_ptr<std::vector<std::byte>> bytes;
    std::size_t offset = 0;  // of the first element
  };
  py::list run_again(const ir::Executable& executable, const ir::RunArgs& args) const;

  std::vector<Operand> operands_;
  py::list expected_;
};

}  // namespace ufuse::pyext
