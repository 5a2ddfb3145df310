// A request computed node by node by NumPy itself: for warnings, for ties the loops do not decide,
// and where no backend has a form.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "pyext/bind/call/call.h"

namespace ufuse::pyext {

// Hears what NumPy would have warned of, in NumPy's words: Python's warnings machinery would ask
// who is calling.
class WarningLog {
 public:
  WarningLog();
  // Computes with these flags logged and all others ignored.
  py::object run(std::uint8_t mask, const std::function<py::object()>& compute);
  // What was said since it was asked last.
  std::vector<std::string> take();

 private:
  py::list lines_;
  py::object log_;
};

// Fills the wants' memory, and tells the session what its nodes warn of.
void replay_with_numpy(Call& call, tracer::Session& session, std::span<tracer::Want> targets,
                       const std::vector<bool>& given);

// What NumPy gives for the wants. The arrays may be views of the operands' memory. The session is
// told nothing.
std::vector<py::object> numpy_values(Call& call, tracer::Session& session,
                                     std::span<const tracer::Want> wants);

}  // namespace ufuse::pyext
