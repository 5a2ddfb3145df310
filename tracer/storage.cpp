// Geometry of storages and views; see storage.h.
#include "tracer/storage.h"

#include "numpy_shim/layout.h"

namespace ufuse::tracer {

LazyArray LazyArray::another() const {
  LazyArray result = *this;
  result.is_view = true;
  return result;
}

bool LazyArray::is_whole() const {
  return has_recipe && recipe.empty() && offset == 0 && layout == storage->layout;
}

ByteRange LazyArray::bytes() const {
  const auto first = reinterpret_cast<std::intptr_t>(storage->memory.data) + offset;
  return byte_range(reinterpret_cast<const void*>(first), layout);
}

bool fits_new_memory(const Layout& layout) {
  const ByteRange reach = byte_range(nullptr, layout);
  return reach.low == nullptr &&
         reinterpret_cast<std::uintptr_t>(reach.high) <= numpy_shim::bytes_of(layout);
}

}  // namespace ufuse::tracer
