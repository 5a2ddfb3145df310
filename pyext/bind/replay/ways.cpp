// See ways.h.
#include "pyext/bind/replay/ways.h"

#include <algorithm>
#include <cstdio>

namespace ufuse::pyext {
namespace {

// Bytes that programs can have without swapping; 0 where nobody says.
std::int64_t free_memory() {
  std::FILE* facts = std::fopen("/proc/meminfo", "r");
  if (facts == nullptr) return 0;
  long long kib = 0;
  char line[128];
  while (std::fgets(line, sizeof line, facts) != nullptr)
    if (std::sscanf(line, "MemAvailable: %lld kB", &kib) == 1) break;
  std::fclose(facts);
  return kib << 10;
}

}  // namespace

Choices Choices::of(const std::string& who) {
  if (who == "clock") return {};
  if (who == "ours") return {Ours};
  const bool is_number = !who.empty() && who.size() < 19 &&
                         std::ranges::all_of(who, [](char c) { return '0' <= c && c <= '9'; });
  if (!is_number)
    throw py::value_error("choices are by 'clock', 'ours' or a number, not '" + who + "'");
  return {Chance, std::stoull(who)};
}

std::string Choices::text() const {
  return by == Clock ? "clock" : by == Ours ? "ours" : std::to_string(random);
}

tracer::Ledger::Turn Choices::next(tracer::Ledger& ledger, const tracer::Account& account,
                                   bool asks, bool building, bool doubtful) {
  if (by == Clock) return ledger.next(account, asks, building, doubtful);
  if (by == Ours) return {};
  random = random * 6364136223846793005u + 1442695040888963407u;
  return {(random >> 63) != 0, false};
}

Choices& choices() {
  static Choices one;
  return one;
}

bool plain_could_win(const Call& call, std::int64_t taken) {
  constexpr double kFaster = 3;              // than estimated
  constexpr std::int64_t kTemporaries = 16;  // at once
  const std::int64_t needed = kTemporaries * call.session().largest_value();
  double numpy = 0;
  for (const Call::Run& run : call.runs()) {
    taken -= run.prepare_to - run.prepare_from;
    if (!run.executable) continue;
    if (!run.executable->is_final()) return false;
    numpy += run.executable->report().numpy_ns;
  }
  // Asking for the free memory takes longer than many a small call.
  return kFaster * static_cast<double>(taken) > numpy &&
         (needed <= kHeavyBytes || needed <= free_memory());
}

bool Kind::is_building() {
  std::erase_if(building, [](const auto& each) { return each->is_final(); });
  return !building.empty();
}

std::int64_t Kind::learn(const Call& call, std::int64_t taken) {
  std::int64_t in_loops = 0, preparing = 0;
  building.clear();
  for (const Call::Run& run : call.runs()) {
    in_loops += run.run_to - run.run_from;
    preparing += run.prepare_to - run.prepare_from;
    if (run.executable && !run.executable->is_final()) building.push_back(run.executable);
  }
  ledger.ran_loops(!call.runs().empty());
  ledger.spent_in_loops(in_loops, taken - preparing);
  heavy = call.session().largest_value() > kHeavyBytes;
  plain_could_win = pyext::plain_could_win(call, taken);
  // The loops will mostly take less than half the time of what stands in for them.
  return preparing + (building.empty() ? 0 : call.stood_in() / 2);
}

}  // namespace ufuse::pyext
