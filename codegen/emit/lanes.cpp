#include "codegen/emit/lanes.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace ufuse::codegen {

using loop::Body;
using loop::Buffer;
using loop::Number;
using loop::Stmt;
using loop::Term;
using loop::ValueId;

namespace {

// Segments are numbered from 1.
constexpr int kInCall = -1;  // used by a call, or before the lanes
constexpr int kKept = -2;    // made into an array

// Elements between one array and the next: NumPy 1.x takes operands that touch for overlapping,
// and then computes otherwise.
constexpr std::int64_t kGap = 8;

}  // namespace

Lanes::Lanes(const loop::Kernel& kernel, loop::VarId var, const Body& body, ValueId element)
    : k_(kernel), var_(var) {
  find_direct_stores(body);
  int segment = 0;
  plan_segments(body, segment);
  if (element >= 0 && depends(element)) keep(element);
  bool calls = false;
  walk(body, [&](const Stmt& s) { calls |= s.kind == Stmt::Kind::Call; });
  block_ = calls || arrays_.size() > 4 ? loop::kBlock : loop::kWideBlock;
}

bool Lanes::needs_blocks(const Body& body) {
  return std::any_of(body.begin(), body.end(), [](const Stmt& s) {
    return s.kind == Stmt::Kind::Call ||
           (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes);
  });
}

bool Lanes::ends_segment(const Stmt& s) {
  return s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Fold || s.kind == Stmt::Kind::Loop;
}

std::int64_t Lanes::array_size() const {
  const Number& extent = k_.vars[static_cast<std::size_t>(var_)].extent;
  return kGap + (extent.literal() ? std::max<std::int64_t>(1, extent.value) : block_);
}

bool Lanes::depends(ValueId v) const {
  const auto& vars = k_.values[static_cast<std::size_t>(v)].vars;
  return std::binary_search(vars.begin(), vars.end(), var_);
}

bool Lanes::is_lane(const Stmt& s) const {
  const auto any = [&](const std::vector<ValueId>& values) {
    return std::any_of(values.begin(), values.end(),
                       [&](ValueId v) { return v >= 0 && depends(v); });
  };
  if (s.kind == Stmt::Kind::Store) {
    return any(s.args) || std::any_of(s.access.terms.begin(), s.access.terms.end(),
                                      [&](const Term& t) { return t.var == var_; });
  }
  return (s.result >= 0 && depends(s.result)) || any(s.results) ||
         (s.kind == Stmt::Kind::Redo && any(s.args));
}

const Stmt* Lanes::load_of(ValueId v) const {
  const auto it = loads_.find(v);
  return it == loads_.end() ? nullptr : it->second;
}

const Stmt* Lanes::store_of(ValueId v) const {
  const auto it = stores_.find(v);
  return it == stores_.end() ? nullptr : it->second;
}

bool Lanes::stored_by_call(const Stmt& s) const {
  return s.kind == Stmt::Kind::Store && store_of(s.args[0]) == &s;
}

Number Lanes::stride(const Stmt& load) const {
  for (const Term& t : load.access.terms)
    if (t.var == var_) return t.stride;
  return {};
}

// A call's result that is only stored, to neighbouring elements, needs no array on the way.
void Lanes::find_direct_stores(const Body& body) {
  std::unordered_map<ValueId, int> uses;
  walk(body, [&](const Stmt& s) {
    for (ValueId v : s.args) ++uses[v];
    ++uses[s.element];
    ++uses[s.initial];
  });
  std::set<int> loaded;  // what is overwritten in place is stored last
  walk(k_.body, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::Load &&
        k_.buffers[static_cast<std::size_t>(s.access.buffer)].role != Buffer::Role::Row)
      loaded.insert(s.access.buffer);
  });
  std::set<ValueId> made;
  for (const Stmt& s : body) {
    if (s.kind == Stmt::Kind::Call) made.insert(s.results.begin(), s.results.end());
    if (s.kind != Stmt::Kind::Store || !made.contains(s.args[0]) || uses[s.args[0]] != 1 ||
        loaded.contains(s.access.buffer))
      continue;
    const Number step = stride(s);
    if (step.literal() && step.value == 1) stores_[s.args[0]] = &s;
  }
}

void Lanes::plan_segments(const Body& body, int& segment) {
  ++segment;
  for (const Stmt& s : body) {
    if (!is_lane(s)) continue;
    if (s.kind == Stmt::Kind::Call) {
      plan_call(s);
      ++segment;
    } else if (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes) {
      keep(s.result);
      if (s.initial >= 0) use_in(s.initial, kInCall);
      plan_segments(s.body, segment);
      use_in(s.element, segment);  // the update is the last statement of the body's last segment
      ++segment;
    } else if (s.kind == Stmt::Kind::Fold) {
      plan_run(s, ++segment);
      segment_of_[s.result] = segment++;
    } else {
      for (ValueId v : s.args) use_in(v, segment);
      if (s.result < 0) continue;
      segment_of_[s.result] = segment;
      if (s.kind == Stmt::Kind::Load &&
          !k_.buffers[static_cast<std::size_t>(s.access.buffer)].written)
        loads_[s.result] = &s;
    }
  }
}

void Lanes::plan_call(const Stmt& s) {
  for (ValueId v : s.args) use_in(v, kInCall);
  for (ValueId v : s.results)
    if (v >= 0 && !stores_.contains(v)) keep(v);
}

// A reduction along a run uses in its segment what its body takes from outside.
void Lanes::plan_run(const Stmt& s, int segment) {
  std::set<ValueId> inside;
  walk(s.body, [&](const Stmt& t) {
    if (t.result >= 0) inside.insert(t.result);
  });
  const auto outer = [&](ValueId v) {
    if (v >= 0 && !inside.contains(v)) use_in(v, segment);
  };
  walk(s.body, [&](const Stmt& t) {
    for (ValueId v : t.args) outer(v);
  });
  outer(s.element);
  outer(s.initial);
}

void Lanes::keep(ValueId v) {
  arrays_.insert(v);
  segment_of_[v] = kKept;
}

void Lanes::use_in(ValueId v, int segment) {
  if (!depends(v)) return;
  const auto it = segment_of_.find(v);
  if (it == segment_of_.end() || it->second == segment || it->second == kKept) return;
  const Stmt* load = load_of(v);
  if (load != nullptr && segment != kInCall) return;     // loaded again there
  if (load != nullptr && as_numpy_walks(*load)) return;  // the call reads the memory itself
  arrays_.insert(v);
}

// NumPy's inner loops may give other bits for other strides, so they get what NumPy hands them:
// an operand of one stride as it is, where the lanes follow its shortest steps, and any other
// packed.
bool Lanes::as_numpy_walks(const Stmt& load) const {
  const std::int64_t step = stride(load).value;
  const auto& terms = load.access.terms;
  return load.index == 1 && step != 0 && load.access.fixed.empty() &&
         std::all_of(terms.begin(), terms.end(),
                     [&](const Term& t) { return std::abs(t.stride.value) >= std::abs(step); });
}

}  // namespace ufuse::codegen
