// See byte_range.h.
#include "tracer/byte_range.h"

#include <algorithm>
#include <iterator>

namespace ufuse::tracer {

ByteRange byte_range(const void* data, std::span<const std::int64_t> shape,
                     std::span<const std::int64_t> strides, std::size_t itemsize) {
  // In integers, for pointers must not leave their memory, and null must not move at all.
  auto low = reinterpret_cast<std::intptr_t>(data);
  std::intptr_t high = low + static_cast<std::intptr_t>(itemsize);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 0) return {static_cast<const char*>(data), static_cast<const char*>(data)};
    const std::int64_t span = (shape[axis] - 1) * strides[axis];
    (span < 0 ? low : high) += span;
  }
  return {reinterpret_cast<const char*>(low), reinterpret_cast<const char*>(high)};
}

bool ReachedBytes::overlaps(const ByteRange& range) const {
  const auto after = parts_.lower_bound(range.high);
  return after != parts_.begin() && range.low < range.high && range.low < std::prev(after)->second;
}

void ReachedBytes::add(const ByteRange& range) {
  if (range.low == range.high) return;
  auto [low, high] = range;
  auto part = parts_.upper_bound(high);
  while (part != parts_.begin() && low <= std::prev(part)->second) {
    --part;
    low = std::min(low, part->first, std::less<>{});
    high = std::max(high, part->second, std::less<>{});
    part = parts_.erase(part);
  }
  parts_.emplace(low, high);
}

bool any_overlap(std::span<const ByteRange> some, std::span<const ByteRange> others) {
  return std::ranges::any_of(some, [&](const ByteRange& a) {
    return std::ranges::any_of(others, [&](const ByteRange& b) { return a.overlaps(b); });
  });
}

bool any_written_overlap(std::span<Reach> arrays) {
  std::ranges::sort(arrays, std::less<>{}, [](const Reach& array) { return array.bytes.low; });
  // How far the arrays before this one reach: all of them, and those that can be written.
  const char *high = nullptr, *written = nullptr;
  for (const auto& [bytes, writeable] : arrays) {
    if (bytes.low == bytes.high) continue;
    if (bytes.low < (writeable ? high : written)) return true;
    high = std::max(high, bytes.high, std::less<>{});
    if (writeable) written = std::max(written, bytes.high, std::less<>{});
  }
  return false;
}

}  // namespace ufuse::tracer
