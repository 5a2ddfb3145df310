// Where are the lanes of a block cut, and what does each segment keep for the next ones? Values
// that cross a cut become arrays, loads are repeated, and calls are told which memory they may read
// and write themselves. A body stays whole where it has neither calls nor accumulators beside
// lanes.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <unordered_map>
#include <utility>

#include "codegen/loop/passes/passes.h"
#include "codegen/schedule/cost.h"
#include "ir/support/error.h"

namespace ufuse::codegen::loop {
namespace {

// Segments are numbered from 1.
constexpr int kInCall = -1;  // used by a call
constexpr int kKept = -2;    // made into an array

bool ends_segment(const Stmt& s) {
  return s.kind == Stmt::Kind::Call || s.kind == Stmt::Kind::Carry || s.kind == Stmt::Kind::Fold ||
         s.kind == Stmt::Kind::Loop;
}

// One loop or run in blocks. First it is found out which segment makes each value and which ones
// use it, then the body is cut.
class Cutter {
 public:
  Cutter(Kernel& kernel, Stmt& blocked) : k_(kernel), blocked_(blocked), var_(lanes_of(blocked)) {}

  void run() {
    Body body = std::move(blocked_.body[0].body);
    find_direct_stores(body);
    int segment = 0;
    find_uses(body, segment);
    if (blocked_.kind == Stmt::Kind::Fold && depends(blocked_.element)) keep(blocked_.element);
    // Many wide arrays would not stay in the cache.
    if (arrays_.size() > cost::kWideArrays) blocked_.block = cost::kBlock;
    for (ValueId v : arrays_)
      k_.values[static_cast<std::size_t>(v)].array = array_length(k_, blocked_);
    blocked_.body = cut(std::move(body), -1);
  }

 private:
  struct Loaded {
    Access access;
    int has_one_stride;
  };

  bool depends(ValueId v) const { return v >= 0 && contains(k_.value(v).vars, var_); }

  // Whether the statement differs from lane to lane; the others stand before the inner loops.
  bool is_lane(const Stmt& s) const {
    const auto any = [&](const std::vector<ValueId>& values) {
      return std::ranges::any_of(values, [&](ValueId v) { return depends(v); });
    };
    if (s.kind == Stmt::Kind::Store)
      return any(s.args) ||
             std::ranges::find(s.access.terms, var_, &Term::var) != s.access.terms.end();
    return depends(s.result) || any(s.results) || (s.kind == Stmt::Kind::Redo && any(s.args));
  }

  // ---- Which segment makes and uses what ----

  // A call's result that is only stored, to neighbouring elements, needs no array on the way.
  void find_direct_stores(const Body& body) {
    std::unordered_map<ValueId, int> uses;
    walk(body, [&](const Stmt& s) {
      for (ValueId v : s.args) ++uses[v];
      ++uses[s.element];
      ++uses[s.initial];
    });
    ++uses[blocked_.element];
    std::set<int> loaded;  // what is overwritten in place is stored last
    const auto note_load = [&](const Stmt& s) {
      if (s.kind == Stmt::Kind::Load && k_.buffer(s.access).role != Buffer::Role::Row)
        loaded.insert(s.access.buffer);
    };
    walk(k_.body, note_load);
    walk(body, note_load);
    std::set<ValueId> made;
    for (const Stmt& s : body) {
      if (s.kind == Stmt::Kind::Call) made.insert(s.results.begin(), s.results.end());
      if (s.kind != Stmt::Kind::Store || !made.contains(s.args[0]) || uses[s.args[0]] != 1 ||
          loaded.contains(s.access.buffer))
        continue;
      const Number step = s.access.stride_along(var_);
      if (step.literal() && step.value == 1) stores_[s.args[0]] = s.access;
    }
  }

  void find_uses(const Body& body, int& segment) {
    ++segment;
    for (const Stmt& s : body) {
      if (!is_lane(s)) continue;
      if (s.kind == Stmt::Kind::Call) {
        for (ValueId v : s.args) use_in(v, kInCall);
        for (ValueId v : s.results)
          if (v >= 0 && !stores_.contains(v)) keep(v);
        ++segment;
      } else if (s.kind == Stmt::Kind::Carry) {
        use_in(s.args[0], ++segment);
        segment_of_[s.result] = segment++;
      } else if (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes) {
        keep(s.result);
        find_uses(s.body, segment);
        use_in(s.element, segment);  // the update is the last statement of the last segment
        ++segment;
      } else if (s.kind == Stmt::Kind::Fold) {
        find_uses_of_run(s, ++segment);
        segment_of_[s.result] = segment++;
      } else {
        for (ValueId v : s.args) use_in(v, segment);
        if (s.result < 0) continue;
        segment_of_[s.result] = segment;
        if (s.kind == Stmt::Kind::Load && s.along.empty() && !k_.buffer(s.access).written)
          loads_[s.result] = {s.access, s.index};
      }
    }
  }

  // A reduction along a run uses in its segment what its body takes from outside.
  void find_uses_of_run(const Stmt& s, int segment) {
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

  void keep(ValueId v) {
    arrays_.insert(v);
    segment_of_[v] = kKept;
  }

  void use_in(ValueId v, int segment) {
    if (!depends(v)) return;
    const auto it = segment_of_.find(v);
    if (it == segment_of_.end() || it->second == segment || it->second == kKept) return;
    if (const auto load = loads_.find(v); load != loads_.end()) {
      if (segment != kInCall) return;            // loaded again there
      if (as_numpy_walks(load->second)) return;  // the call reads the memory itself
    }
    arrays_.insert(v);
  }

  // NumPy's inner loops may give other bits for other strides, so they get what NumPy hands them:
  // an operand of one stride as it is, where the lanes follow its shortest steps, and any other
  // packed.
  bool as_numpy_walks(const Loaded& load) const {
    const std::int64_t step = load.access.stride_along(var_).value;
    return load.has_one_stride == 1 && step != 0 && load.access.fixed.empty() &&
           std::ranges::all_of(load.access.terms, [&](const Term& t) {
             return std::abs(t.stride.value) >= std::abs(step);
           });
  }

  // ---- Cutting ----

  // `element`: of the reduction whose body this is, which the last segment uses; -1: of none.
  Body cut(Body body, ValueId element) {
    Body result, open;
    const auto close = [&] {
      // Loads alone make no segment: whoever uses them loads again.
      const auto is_loaded_again = [&](const Stmt& s) {
        return loads_.contains(s.result) && !arrays_.contains(s.result);
      };
      if (!std::ranges::all_of(open, is_loaded_again))
        result.push_back(segment(std::move(open), -1));
      open.clear();
    };
    for (Stmt& s : body) {
      if (!is_lane(s)) {
        result.push_back(std::move(s));  // the same for all lanes
        continue;
      }
      if (s.kind == Stmt::Kind::Store && stores_.contains(s.args[0])) continue;
      if (!ends_segment(s)) {
        open.push_back(std::move(s));
        continue;
      }
      close();
      if (s.kind == Stmt::Kind::Call) {
        result.push_back(of_lanes(std::move(s)));
      } else if (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes) {
        s.lanes = true;
        const bool takes_rows = s.vars.size() == 1 && !arrays_.contains(s.element) &&
                                std::ranges::none_of(s.body, ends_segment);
        if (takes_rows)
          s.body = {segment(std::move(s.body), s.element)};
        else
          s.body = cut(std::move(s.body), s.element);
        result.push_back(std::move(s));
      } else if (s.kind == Stmt::Kind::Carry || s.kind == Stmt::Kind::Fold) {
        open.push_back(std::move(s));
        result.push_back(segment(std::move(open), -1));
        open.clear();
      } else {
        throw InternalError("segment: a loop among lanes");
      }
    }
    if (element >= 0 || !open.empty()) result.push_back(segment(std::move(open), element));
    return result;
  }

  // A segment of the statements, with the loads of other segments that they use: to load again is
  // cheaper than to keep them.
  Stmt segment(Body stmts, ValueId element) {
    Body body;
    std::set<ValueId> made;
    for (const Stmt& s : stmts)
      if (s.result >= 0) made.insert(s.result);
    const auto reload = [&](ValueId v) {
      const auto load = loads_.find(v);
      if (load == loads_.end() || arrays_.contains(v) || !made.insert(v).second) return;
      Stmt again;
      again.kind = Stmt::Kind::Load;
      again.result = v;
      again.access = load->second.access;
      again.index = load->second.has_one_stride;
      body.push_back(std::move(again));
    };
    for (const Stmt& s : stmts) {
      for (ValueId v : s.args) reload(v);
      if (s.kind != Stmt::Kind::Fold) continue;
      walk(s.body, [&](const Stmt& t) {
        for (ValueId v : t.args) reload(v);
      });
      reload(s.element);
      reload(s.initial);
    }
    reload(element);
    for (Stmt& s : stmts) body.push_back(std::move(s));
    Stmt result;
    result.kind = Stmt::Kind::Segment;
    result.body = std::move(body);
    return result;
  }

  // The call takes all lanes of the block, and memory as it is where it can.
  Stmt of_lanes(Stmt call) const {
    call.lanes = true;
    for (ValueId v : call.args) {
      const auto load = loads_.find(v);
      const bool reads = load != loads_.end() && !arrays_.contains(v);
      call.direct.push_back(reads ? load->second.access : Access{});
    }
    for (ValueId v : call.results) {
      const auto store = stores_.find(v);
      call.direct.push_back(store != stores_.end() ? store->second : Access{});
    }
    return call;
  }

  Kernel& k_;
  Stmt& blocked_;
  const VarId var_;
  std::unordered_map<ValueId, int> segment_of_;  // where made
  std::unordered_map<ValueId, Loaded> loads_;    // what is loaded again wherever it is used
  std::unordered_map<ValueId, Access> stores_;   // what a call stores itself
  std::set<ValueId> arrays_;
};

void segment(Kernel& k, Body& body) {
  for (Stmt& s : body) {
    segment(k, s.body);
    if (s.block > 0 && takes_many_lanes(s.body[0].body)) Cutter(k, s).run();
  }
}

}  // namespace

void segment(Kernel& kernel) { segment(kernel, kernel.body); }

}  // namespace ufuse::codegen::loop
