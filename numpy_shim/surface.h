// The rows of surface.def as data, for pyext, the docs and the tests.
#pragma once

#include <span>
#include <string_view>

namespace ufuse::numpy_shim {

enum class Form { Native, Twin, NumPy };

struct SurfaceRow {
  std::string_view module, name;
  Form form;
  std::string_view what;  // the primitive, the Python function, or the id of a reason
};
std::span<const SurfaceRow> surface();

}  // namespace ufuse::numpy_shim
