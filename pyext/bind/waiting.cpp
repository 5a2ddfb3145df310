// See waiting.h.
#include "pyext/bind/waiting.h"

#include "codegen/compiler.h"
#include "codegen/jit/fork.h"
#include "pyext/bind/signals.h"

namespace ufuse::pyext {
namespace {

void look_for_signals() {
  if (handler_raises()) throw py::error_already_set();
}

ir::Patience patience_for(std::chrono::nanoseconds left, WithoutGil& released) {
  ir::Patience patience{std::chrono::steady_clock::now() + left};
  if (left.count() > 0 && handles_signals())
    patience.look_around = [&released] { released.within(look_for_signals); };
  return patience;
}

}  // namespace

Waiting::Waiting(std::chrono::nanoseconds patience)
    : patience_(patience_for(patience, released_)) {}

void await_in_child(const ir::Executable& executable) {
  if (codegen::fork_generation() == 0 || executable.is_final()) return;
  const Waiting waiting(codegen::Compiler::longest_wait());
  executable.await(waiting.patience());
}

}  // namespace ufuse::pyext
