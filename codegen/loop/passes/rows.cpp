// How do elements go into accumulators beside lanes? Where the elements of a row are made in one
// segment, the loop over rows moves into the loop over lanes: some rows at a time stay in a
// register on the way.
#include <algorithm>
#include <iterator>
#include <utility>

#include "codegen/loop/passes/passes.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

// The reduction `fold`, in a block of the lanes `var`.
void take_rows(const Kernel& k, Stmt& fold, VarId var) {
  const bool one_segment = fold.body.size() == 1 && fold.body[0].kind == Stmt::Kind::Segment;
  if (!one_segment || fold.vars.size() != 1 || k.value(fold.element).array > 0) return;
  const bool few_lanes = k.var(var).extent.literal();
  fold.rows = few_lanes ? cost::kRowsAtOnce : 1;
  std::size_t statements = 0;
  walk(fold.body, [&](const Stmt&) { ++statements; });
  if (!few_lanes && statements <= cost::kFetchedStatements) fold.ahead = cost::kRowsAhead;
  // What does not differ from row to row stands before the loop over the rows.
  Body& body = fold.body[0].body;
  const auto first = std::ranges::find_if(body, [&](const Stmt& s) {
    return s.result < 0 || contains(k.value(s.result).vars, fold.vars[0]);
  });
  Stmt loop;
  loop.kind = Stmt::Kind::Loop;
  loop.vars = fold.vars;
  loop.body.assign(std::make_move_iterator(first), std::make_move_iterator(body.end()));
  body.erase(first, body.end());
  body.push_back(std::move(loop));
}

void rows(const Kernel& k, Body& body, VarId lanes) {
  for (Stmt& s : body) {
    if (s.kind == Stmt::Kind::Fold && s.lanes) take_rows(k, s, lanes);
    rows(k, s.body, s.block > 0 ? lanes_of(s) : lanes);
  }
}

}  // namespace

void rows(Kernel& kernel) { rows(kernel, kernel.body, -1); }

}  // namespace ufuse::codegen::loop
