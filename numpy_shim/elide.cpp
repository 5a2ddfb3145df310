// Which operand does `a * b + c` overwrite? NumPy's operators reuse the memory of a large temporary
// (temp_elide.c), and the result then has the temporary's layout instead of the one nditer would
// choose. Calls of ufuncs (np.add) never do.
#include <algorithm>
#include <array>

#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim {

namespace {

constexpr std::size_t kMinimumBytes = 256 * 1024;

bool takes_result(const Layout& temporary, const Operand& other) {
  if (bytes_of(temporary) < kMinimumBytes) return false;
  const DType from = other.weak ? default_dtype(*other.weak) : other.layout.dtype;
  const bool fits =
      other.weak || other.layout.shape.empty() || other.layout.shape == temporary.shape;
  return fits && can_cast_safely(from, temporary.dtype);
}

}  // namespace

std::optional<std::size_t> elided_operand(std::string_view ufunc, std::span<const Operand> operands,
                                          std::array<bool, 2> is_temporary) {
  if (!is_temporary[0] && !is_temporary[1]) return std::nullopt;  // as for most calls
  constexpr std::array<std::string_view, 5> kCommutative = {"add", "multiply", "bitwise_and",
                                                            "bitwise_or", "bitwise_xor"};
  constexpr std::array<std::string_view, 5> kLeftOnly = {"subtract", "divide", "floor_divide",
                                                         "left_shift", "right_shift"};
  const bool commutative = std::ranges::count(kCommutative, ufunc) != 0;
  if (operands.size() != 2 || (!commutative && !std::ranges::count(kLeftOnly, ufunc)))
    return std::nullopt;
  const auto elides = [&](std::size_t i) {
    const Operand& x = operands[i];
    return is_temporary[i] && !x.weak && takes_result(x.layout, operands[1 - i]) &&
           (ufunc != "divide" || ir::is_in(x.layout.dtype, ir::kInexact));
  };
  if (elides(0)) return 0;
  if (commutative && elides(1)) return 1;
  return std::nullopt;
}

}  // namespace ufuse::numpy_shim
