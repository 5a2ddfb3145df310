// See surface.h.
#include "numpy_shim/surface.h"

#include <array>

namespace ufuse::numpy_shim {

std::span<const SurfaceRow> surface() {
  static constexpr std::array kRows = {
#define SURFACE(module, name, form, what) SurfaceRow{module, name, Form::form, what},
#include "numpy_shim/surface.def"
#undef SURFACE
  };
  return kRows;
}

}  // namespace ufuse::numpy_shim
