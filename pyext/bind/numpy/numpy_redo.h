// Computes a request node by node with NumPy itself: for the right warnings, where loops do not
// decide which of equal values is the extremum, and where no backend can compute the graph.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

// Collects what NumPy would warn of, in NumPy's words, without Python's warnings, which would look
// for the line of the caller.
class WarningLog {
 public:
  WarningLog();
  // Computes with these flags logged and all others ignored.
  py::object run(std::uint8_t mask, const std::function<py::object()>& compute);
  // The messages since it was asked last.
  std::vector<std::string> take();

 private:
  py::list lines_;
  py::object log_;
};

// Computes the targets into their memory, and tells the session what its nodes warn of. A target
// that is not `given` may get other new memory.
void redo_with_numpy(Call& call, tracer::Session& session, std::span<tracer::Want> targets,
                     const std::vector<bool>& given);

// What NumPy gives for the wants. The arrays may be views of the operands' memory. The session is
// told nothing.
std::vector<py::object> numpy_values(Call& call, tracer::Session& session,
                                     std::span<const tracer::Want> wants);

}  // namespace ufuse::pyext
