// See reasons.h.
#include "tracer/reasons.h"

#include <array>

namespace ufuse::tracer {

std::span<const Reason> reasons() {
  static constexpr std::array kReasons = {
#define REASON(id, sentence) Reason{#id, sentence},
#include "tracer/reasons.def"
#undef REASON
  };
  return kReasons;
}

}  // namespace ufuse::tracer
