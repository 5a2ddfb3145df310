// See reasons.h.
#include "ir/support/reasons.h"

#include <array>
#include <unordered_map>

namespace ufuse {

std::span<const ReasonRow> reasons() {
  static constexpr std::array kRows = {
#define REASON(reason, id, sentence) ReasonRow{#id, sentence},
#include "ir/support/reasons.def"
#undef REASON
  };
  return kRows;
}

std::string_view id_of(Reason reason) { return reasons()[static_cast<std::size_t>(reason)].id; }

std::string_view sentence_of(Reason reason) {
  return reasons()[static_cast<std::size_t>(reason)].sentence;
}

std::optional<Reason> reason_named(std::string_view id) {
  static const auto known = [] {
    std::unordered_map<std::string_view, Reason> by_id;
    for (std::size_t i = 0; i < reasons().size(); ++i)
      by_id[reasons()[i].id] = static_cast<Reason>(i);
    return by_id;
  }();
  const auto found = known.find(id);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace ufuse
