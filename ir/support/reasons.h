// Why something did not run natively: one enumerator per row of reasons.def, with what users read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ufuse {

enum class Reason : std::uint8_t {
#define REASON(reason, id, sentence) reason,
#include "ir/support/reasons.def"
#undef REASON
};

struct ReasonRow {
  std::string_view id;  // what the Python package and the logs call it
  std::string_view sentence;
};
std::span<const ReasonRow> reasons();  // by Reason

std::string_view id_of(Reason reason);
std::string_view sentence_of(Reason reason);
std::optional<Reason> reason_named(std::string_view id);

}  // namespace ufuse
