// Geometry of storages and views; see storage.h.
#include "tracer/storage.h"

namespace ufuse::tracer {

bool LazyArray::is_whole() const {
  return has_recipe && recipe.empty() && offset == 0 && layout == storage->layout;
}

ByteRange byte_range(const void* data, const Layout& layout) {
  const char* low = static_cast<const char*>(data);
  const char* high = low + ir::size_of(layout.dtype);
  for (std::size_t a = 0; a < layout.shape.size(); ++a) {
    if (layout.shape[a] == 0) return {low, low};
    const std::int64_t span = (layout.shape[a] - 1) * layout.strides[a];
    (span < 0 ? low : high) += span;
  }
  return {low, high};
}

}  // namespace ufuse::tracer
