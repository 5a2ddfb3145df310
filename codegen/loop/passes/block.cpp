// Which loops over lanes need blocks, and how long is a block? It is the lanes that a call of an
// inner loop takes at once, or accumulators in the cache, or a stretch that is streamed; where a
// comparison was in doubt, it is what runs again.
#include <algorithm>
#include <utility>

#include "codegen/loop/passes/passes.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

Body one_segment(Body body) {
  Stmt segment;
  segment.kind = Stmt::Kind::Segment;
  segment.body = std::move(body);
  Body segments;
  segments.push_back(std::move(segment));
  return segments;
}

bool wants_short_blocks(const Body& body) {
  bool any = false;
  walk(body,
       [&](const Stmt& s) { any |= s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Carry; });
  return any;
}

// Lanes per block of a loop, 0 where it needs none.
std::int64_t block_of(const Kernel& k, const Stmt& loop) {
  if (!loop.exact.empty()) return cost::kBlock;
  if (takes_many_lanes(loop.body))
    return wants_short_blocks(loop.body) ? cost::kBlock : cost::kWideBlock;
  const bool streams = std::ranges::any_of(loop.body, [&](const Stmt& s) {
    return s.kind == Stmt::Kind::Store && k.buffer(s.access).streamable;
  });
  return streams ? cost::kStreamBlock : 0;
}

void block(Kernel& k, Body& body) {
  for (Stmt& s : body) {
    block(k, s.body);
    if (s.kind == Stmt::Kind::Loop && s.lanes) s.block = block_of(k, s);
    if (s.kind == Stmt::Kind::Fold && s.in_blocks) {
      s.block = cost::kBlock;
      Value& element = k.values[static_cast<std::size_t>(s.element)];
      if (contains(element.vars, lanes_of(s))) element.array = array_length(k, s);
    }
    if (s.block == 0) continue;
    s.body = one_segment(std::move(s.body));
    if (!s.exact.empty()) s.exact = one_segment(std::move(s.exact));
  }
}

}  // namespace

bool takes_many_lanes(const Body& body) {
  return std::ranges::any_of(body, [](const Stmt& s) {
    return s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Carry ||
           (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes);
  });
}

void block(Kernel& kernel) { block(kernel, kernel.body); }

}  // namespace ufuse::codegen::loop
