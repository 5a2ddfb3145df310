// Which results can go past the caches? Those that every loop over lanes stores as one stretch of
// neighbours and that nobody reads in the same kernel.
#include <algorithm>

#include "codegen/loop/passes/passes.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

bool has_unit_stride(const Access& a, VarId var) {
  const auto is_var = [&](const Term& t) { return t.var == var; };
  const auto is_one = [](const Term& t) { return t.stride.literal() && t.stride.value == 1; };
  return std::ranges::count_if(a.terms, is_var) == 1 &&
         is_one(*std::ranges::find_if(a.terms, is_var));
}

// How the loops over lanes use one buffer.
class Uses {
 public:
  Uses(const Kernel& kernel, int buffer) : k_(kernel), buffer_(buffer) { look(k_.body, nullptr); }

  // Whether each of its loops stores a stretch of it once, and none reads it.
  bool fit() const { return fit_ && loops_ > 0; }
  bool are_long() const { return long_; }
  // Whether the stores stand inside of another loop than the one that is shared out.
  bool are_nested() const { return nested_; }

 private:
  // `lanes`: the loop over lanes whose body this is, if it is one.
  void look(const Body& body, const Stmt* lanes) {
    int stores = 0;
    for (const Stmt& s : body) {
      const bool here = s.access.buffer == buffer_;
      if (s.kind == Stmt::Kind::Load) fit_ &= !here;
      if (s.kind == Stmt::Kind::Store && here) {
        ++stores;
        fit_ &= s.along.empty();
        fit_ &= lanes != nullptr && has_unit_stride(s.access, lanes->vars[0]);
      }
      // Accumulators beside the lanes want wide blocks.
      if (s.kind == Stmt::Kind::Fold && lanes != nullptr) fit_ &= s.form != Stmt::Form::Lanes;
      const Stmt* inner = s.kind == Stmt::Kind::Loop && s.lanes ? &s : nullptr;
      look(s.body, inner);
      look(s.exact, inner);
    }
    fit_ &= stores <= 1;
    if (stores == 0 || lanes == nullptr) return;
    ++loops_;
    const Number& extent = k_.var(lanes->vars[0]).extent;
    fit_ &= !extent.literal();
    long_ &= extent.value >= cost::kStreamedLanes;
    nested_ |= lanes->vars[0] != k_.parallel;
  }

  const Kernel& k_;
  const int buffer_;
  int loops_ = 0;
  bool fit_ = true, long_ = true, nested_ = false;
};

}  // namespace

void stream(Kernel& kernel) {
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) {
    Buffer& b = kernel.buffers[i];
    if (b.streaming == Streaming::No) continue;
    const Uses uses(kernel, static_cast<int>(i));
    const bool streams = b.streaming == Streaming::Wanted && uses.are_long();
    if (!uses.fit() || (uses.are_nested() && !streams)) continue;
    b.streamable = true;
    kernel.streams |= streams;
  }
}

}  // namespace ufuse::codegen::loop
