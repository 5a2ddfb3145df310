// Geometry of storages and views; see storage.h.
#include "tracer/storage.h"

#include "numpy_shim/layout.h"

namespace ufuse::tracer {

bool LazyArray::is_whole() const {
  return has_recipe && recipe.empty() && offset == 0 && layout == storage->layout;
}

ByteRange byte_range(const void* data, const Layout& layout) {
  // In integers: layouts are also measured from a null pointer, where pointers must not move.
  auto low = reinterpret_cast<std::intptr_t>(data);
  std::intptr_t high = low + static_cast<std::intptr_t>(ir::size_of(layout.dtype));
  const auto range = [&] {
    return ByteRange{reinterpret_cast<const char*>(low), reinterpret_cast<const char*>(high)};
  };
  for (std::size_t a = 0; a < layout.shape.size(); ++a) {
    if (layout.shape[a] == 0) {
      high = low;
      return range();
    }
    const std::int64_t span = (layout.shape[a] - 1) * layout.strides[a];
    (span < 0 ? low : high) += span;
  }
  return range();
}

bool fits_new_memory(const Layout& layout) {
  const ByteRange reach = byte_range(nullptr, layout);
  return reach.low == nullptr &&
         reinterpret_cast<std::uintptr_t>(reach.high) <= numpy_shim::bytes_of(layout);
}

}  // namespace ufuse::tracer
