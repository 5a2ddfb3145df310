// Finds the inner loop of an op for a dtype, holds those of the casts, and reads the floating-point
// flags they leave.
#include "ir/inner_loops.h"

#include <cfenv>

#include "ir/inner_loops_impl.h"

namespace ufuse::ir {
namespace {

template <class From>
InnerLoop cast_from(DType to) {
  switch (to) {
#define DTYPE(id, name, ch, kind, size, cpp) \
  case DType::id:                            \
    return &loops::cast<From, cpp>;
#include "ir/dtypes.def"
#undef DTYPE
  }
  return nullptr;
}

}  // namespace

InnerLoop elementwise_loop(Op op, DType dtype) {
  switch (dtype) {
#define DTYPE(id, name, ch, kind, size, cpp) \
  case DType::id:                            \
    return loops::find_##id(op);
#include "ir/dtypes.def"
#undef DTYPE
  }
  return nullptr;
}

InnerLoop cast_loop(DType from, DType to) {
  switch (from) {
#define DTYPE(id, name, ch, kind, size, cpp) \
  case DType::id:                            \
    return cast_from<cpp>(to);
#include "ir/dtypes.def"
#undef DTYPE
  }
  return nullptr;
}

void clear_fp_flags() { std::feclearexcept(FE_ALL_EXCEPT); }

std::uint32_t read_fp_flags() {
  const int raised = std::fetestexcept(FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID);
  return (raised & FE_DIVBYZERO ? 1U : 0U) | (raised & FE_OVERFLOW ? 2U : 0U) |
         (raised & FE_UNDERFLOW ? 4U : 0U) | (raised & FE_INVALID ? 8U : 0U);
}

}  // namespace ufuse::ir
