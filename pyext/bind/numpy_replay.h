// A request computed node by node by NumPy itself: for warnings, for ties the loops do not decide,
// and where no backend has a form.
#pragma once

#include <span>

#include "pyext/bind/call.h"

namespace ufuse::pyext {

// Fills the wants' memory; then issues the warnings that came up, at the lines of the nodes that
// caused them.
void replay_with_numpy(Call& call, tracer::Session& session, std::span<const tracer::Want> wants);

}  // namespace ufuse::pyext
