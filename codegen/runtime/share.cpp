// See share.h. Parts of a loop depend on nothing but its length, its grain and the number of
// threads.
#include "codegen/runtime/share.h"

#include <algorithm>
#include <atomic>

#include "codegen/runtime/openmp.h"
#include "codegen/runtime/threads.h"

namespace ufuse::codegen {
namespace {

struct Loop {
  rt::Index n, grain;
  rt::LoopPart part;
  const void* body;
  rt::Watch* watch;
  std::atomic<unsigned> bits = 0;
  std::atomic<std::int64_t> parts_ns = 0;  // what its parts have taken, together
};

// One range on one thread, a piece at a time where somebody watches.
void run(Loop& loop, bool caller, rt::Index lo, rt::Index hi) {
  unsigned bits = 0;
  if (loop.watch == nullptr) {
    bits = loop.part(loop.body, lo, hi);
  } else {
    rt::Index since = 0, piece = (hi - lo) / loop.watch->pieces + 1;
    while (lo < hi && (piece = loop.watch->next(loop.watch, caller, piece, &since)) != 0) {
      const rt::Index most = (piece + loop.grain - 1) / loop.grain * loop.grain;
      const rt::Index end = hi - lo < most ? hi : lo + most;
      bits |= loop.part(loop.body, lo, end);
      lo = end;
    }
  }
  loop.bits.fetch_or(bits, std::memory_order_relaxed);
}

rt::Index grains_of(const Loop& loop) { return (loop.n + loop.grain - 1) / loop.grain; }

void run_share(void* data, int thread, int team) {
  Loop& loop = *static_cast<Loop*>(data);
  const rt::Index grains = grains_of(loop);
  const rt::Index lo = grains * thread / team * loop.grain;
  const rt::Index hi = std::min(grains * (thread + 1) / team * loop.grain, loop.n);
  if (lo >= hi) return;
  const std::int64_t start = Threads::now_ns();
  run(loop, thread == 0, lo, hi);
  loop.parts_ns.fetch_add(Threads::now_ns() - start, std::memory_order_relaxed);
}

unsigned share(const rt::Threads& threads, rt::Index n, rt::Index grain, rt::LoopPart part,
               const void* body) {
  Loop loop{n, grain, part, body, threads.watch};
  const rt::Index count = std::min<rt::Index>(grains_of(loop), threads.count);
  if (count <= 1) {
    run(loop, true, 0, n);
    return loop.bits;
  }
  const std::int64_t start = Threads::now_ns();
  run_on_team(static_cast<int>(count), run_share, &loop);
  const std::int64_t now = Threads::now_ns();
  Contention::here().ran(now - start, loop.parts_ns, now);
  return loop.bits;
}

}  // namespace

rt::Threads team_of(int count, rt::Watch* watch) { return {count, watch, share}; }

}  // namespace ufuse::codegen
