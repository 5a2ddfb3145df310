// The rows of surface.def as data, for pyext, the docs and the tests.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace ufuse::numpy_shim {

enum class Form { Native, Twin, NumPy, Repeated };

// What a function may write to of what it is given, beside `out=`.
struct Writes {
  bool argument = false;
  std::optional<int> out_place;  // where `out` may stand without its name

  static constexpr Writes nothing() { return {}; }
  static constexpr Writes out(int place) { return {false, place}; }
  static constexpr Writes an_argument() { return {true, {}}; }
};

struct SurfaceRow {
  std::string_view module, name;
  Form form;
  std::string_view what;  // the primitive, the Python function, or the id of a reason
  Writes writes;
};
std::span<const SurfaceRow> surface();

// Whether NumPy's own call answers.
constexpr bool runs_numpy(Form form) { return form == Form::NumPy || form == Form::Repeated; }

// By the name alone, which functions and methods share: what all rows of it say together.
Writes writes_of(std::string_view name);

}  // namespace ufuse::numpy_shim
