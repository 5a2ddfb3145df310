// The rows of reasons.def as data.
#pragma once

#include <span>
#include <string_view>

namespace ufuse::tracer {

struct Reason {
  std::string_view id;
  std::string_view sentence;
};
std::span<const Reason> reasons();

}  // namespace ufuse::tracer
