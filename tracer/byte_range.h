// Which bytes does an array reach, and do two arrays overlap? Told by addresses, from the first to
// the last byte, gaps between elements included. This is the one test of it: sessions, recordings
// and the Python face ask here.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>

#include "numpy_shim/operand.h"

namespace ufuse::tracer {

struct ByteRange {
  const char* low = nullptr;   // the first byte
  const char* high = nullptr;  // one past the last; `low` where there are no elements

  // Whether a byte is in both.
  bool overlaps(const ByteRange& other) const {
    return low < high && other.low < other.high && low < other.high && other.low < high;
  }
  // Whether all of the other's bytes, of which there are some, are in this one.
  bool contains(const ByteRange& other) const {
    return low <= other.low && other.high <= high && other.low < other.high;
  }
};

// Of an array whose first element is at `data`, which may be null: places within one memory that
// does not exist yet can be compared as well.
ByteRange byte_range(const void* data, std::span<const std::int64_t> shape,
                     std::span<const std::int64_t> strides, std::size_t itemsize);
inline ByteRange byte_range(const void* data, const numpy_shim::Layout& layout) {
  return byte_range(data, layout.shape, layout.strides, ir::size_of(layout.dtype));
}

// The bytes that some arrays reach, all of them together. Both take little longer where there are
// many.
class ReachedBytes {
 public:
  void add(const ByteRange& range);
  bool overlaps(const ByteRange& range) const;

 private:
  std::map<const char*, const char*, std::less<>> parts_;  // apart from each other; low to high
};

// Whether one of these overlaps one of those.
bool any_overlap(std::span<const ByteRange> some, std::span<const ByteRange> others);

// The memory of an array, and whether it can be written through this array.
struct Reach {
  ByteRange bytes;
  bool writeable;
};
// Whether one that can be written overlaps another. Sorts them by address.
bool any_written_overlap(std::span<Reach> arrays);

}  // namespace ufuse::tracer
