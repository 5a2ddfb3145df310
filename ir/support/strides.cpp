#include "ir/support/strides.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

namespace ufuse::ir {

bool has_one_stride(const Dims& shape, const Dims& strides) {
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.emplace_back(strides[i], shape[i]);
  std::ranges::sort(axes, {}, [](const auto& axis) { return std::abs(axis.first); });
  for (std::size_t i = 0; i + 1 < axes.size(); ++i)
    if (axes[i + 1].first != axes[i].first * axes[i].second) return false;
  return true;
}

}  // namespace ufuse::ir
