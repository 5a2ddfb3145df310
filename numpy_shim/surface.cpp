// See surface.h.
#include "numpy_shim/surface.h"

#include <array>
#include <unordered_map>

namespace ufuse::numpy_shim {

std::span<const SurfaceRow> surface() {
  static constexpr std::array kRows = {
#define SURFACE(module, name, form, what, writes) \
  SurfaceRow{module, name, Form::form, what, Writes::writes},
#include "numpy_shim/surface.def"
#undef SURFACE
  };
  return kRows;
}

Writes writes_of(std::string_view name) {
  static const auto known = [] {
    std::unordered_map<std::string_view, Writes> by_name;
    for (const SurfaceRow& row : surface()) {
      Writes& writes = by_name[row.name];
      writes.argument |= row.writes.argument;
      if (row.writes.out_place) writes.out_place = row.writes.out_place;
    }
    return by_name;
  }();
  const auto found = known.find(name);
  return found == known.end() ? Writes::nothing() : found->second;
}

}  // namespace ufuse::numpy_shim
