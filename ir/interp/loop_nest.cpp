// The nest of loops around an inner loop: axes sorted, merged where all operands' strides chain,
// then an odometer over what is left.
#include "ir/interp/loop_nest.h"

#include <algorithm>

namespace ufuse::ir::interp {
namespace {

std::int64_t magnitude(std::int64_t stride) { return stride < 0 ? -stride : stride; }

// Must axis `a` stand outside of axis `b`, which is inside it so far? 1 yes, 0 no, -1 no operand
// tells.
int must_be_outside(const std::vector<Value>& operands, std::int64_t a, std::int64_t b) {
  int answer = -1;
  for (const Value& x : operands) {
    const std::int64_t sa = x.shape[a] == 1 ? 0 : x.strides[a],
                       sb = x.shape[b] == 1 ? 0 : x.strides[b];
    if (sa == 0 || sb == 0) continue;
    if (magnitude(sb) <= magnitude(sa)) return 1;  // one operand that is in order already decides
    answer = 0;
  }
  return answer;
}

struct Axis {
  std::int64_t extent;
  std::vector<std::int64_t> strides;  // one per operand
};

// Inner first, without axes of one element, neighbours merged.
std::vector<Axis> merged_axes(const std::vector<Value>& operands, std::uint32_t repeated) {
  std::vector<Axis> axes;
  const Dims order = walking_order(operands);
  for (auto a = order.rbegin(); a != order.rend(); ++a) {
    const std::int64_t extent = operands[0].shape[*a];
    if (extent == 1) continue;
    Axis axis{extent, {}};
    for (const Value& x : operands) axis.strides.push_back(x.strides[*a]);
    bool chains = !axes.empty();
    for (std::size_t k = 0; chains && k < operands.size(); ++k)
      chains = axes.back().strides[k] * axes.back().extent == axis.strides[k];
    if (chains)
      axes.back().extent *= extent;
    else
      axes.push_back(std::move(axis));
  }
  if (axes.empty()) {
    // One element, as packed: the loops' vector code asks for that.
    axes.push_back({1, {}});
    for (std::size_t k = 0; k < operands.size(); ++k)
      axes.back().strides.push_back(
          (repeated >> k & 1) != 0 ? 0 : static_cast<std::int64_t>(size_of(operands[k].dtype)));
  }
  return axes;
}

}  // namespace

Dims walking_order(const std::vector<Value>& operands) {
  const auto nd = static_cast<std::int64_t>(operands[0].shape.size());
  Dims inner_first;
  for (std::int64_t a = nd - 1; a >= 0; --a) {
    // Insertion sort, as npyiter_find_best_axis_ordering has it: an axis moves inwards past those
    // it must not stand outside of, and past undecided ones only when a decided one lies behind
    // them.
    std::size_t position = inner_first.size();
    for (std::size_t i = inner_first.size(); i-- > 0;) {
      const int outside = must_be_outside(operands, a, inner_first[i]);
      if (outside == 1) break;
      if (outside == 0) position = i;
    }
    inner_first.insert(inner_first.begin() + static_cast<std::ptrdiff_t>(position), a);
  }
  std::ranges::reverse(inner_first);
  return inner_first;
}

void run_loop(InnerLoop loop, void* data, const std::vector<Value>& operands, const Pulse& pulse,
              std::uint32_t repeated) {
  if (count(operands[0].shape) == 0) return;
  const std::vector<Axis> axes = merged_axes(operands, repeated);
  std::vector<char*> at;
  for (const Value& x : operands) at.push_back(x.data);
  std::vector<std::int64_t> index(axes.size(), 0);
  std::int64_t done = 0;  // elements since the last beat
  while (true) {
    for (std::int64_t i = 0; i < axes[0].extent; i += Pulse::kElements) {
      const std::int64_t n = std::min(axes[0].extent - i, Pulse::kElements);
      std::vector<char*> args = at;  // NumPy's loops may advance theirs
      for (std::size_t k = 0; k < args.size(); ++k) args[k] += i * axes[0].strides[k];
      loop(args.data(), &n, axes[0].strides.data(), data);
      if ((done += n) < Pulse::kElements) continue;
      pulse.beat();
      done = 0;
    }
    std::size_t d = 1;
    for (; d < axes.size(); ++d) {
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += axes[d].strides[k];
      if (++index[d] < axes[d].extent) break;
      for (std::size_t k = 0; k < at.size(); ++k) at[k] -= axes[d].strides[k] * axes[d].extent;
      index[d] = 0;
    }
    if (d == axes.size()) return;
  }
}

}  // namespace ufuse::ir::interp
