// How is a loop run on several threads, and in pieces?
//
// What stands behind rt::Threads::share. Used by whoever calls kernels; how many threads there may
// be is known to threads.h. It knows nothing of what a loop does.
#pragma once

#include "codegen/runtime/abi.h"

namespace ufuse::codegen {

// A kernel's leave to use so many threads; `watch` as in rt::Threads.
rt::Threads team_of(int count, rt::Watch* watch = nullptr);

}  // namespace ufuse::codegen
