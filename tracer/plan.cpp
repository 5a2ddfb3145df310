// What a session notes of a pure call, so that the dispatcher can repeat it; see plan.h.
#include "tracer/plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/inner_loops.h"
#include "tracer/session.h"

namespace ufuse::tracer {
namespace {

// Longer calls are traced: plans take memory, about a kilobyte for each run.
constexpr std::size_t kMaxRuns = 4096;

ir::Scalar bits_at(DType dtype, const void* data) {
  ir::Scalar bits{};
  std::memcpy(&bits, data, ir::size_of(dtype));
  return bits;
}

// As Python's bool() of the NumPy scalar, which is its cast to bool.
bool is_true(DType dtype, const void* data) {
  ir::Scalar bits = bits_at(dtype, data);
  bool truth = false;
  char* args[] = {reinterpret_cast<char*>(bits.bits), reinterpret_cast<char*>(&truth)};
  const std::int64_t one = 1, strides[] = {0, 0};
  ir::cast_loop(dtype, DType::Bool)(args, &one, strides, nullptr);
  return truth;
}

bool is_one(const Layout& layout) {
  return std::ranges::all_of(layout.shape, [](std::int64_t n) { return n == 1; });
}

}  // namespace

ir::Scalar outcome_of(const PlanForced& forced, const void* data) {
  if (!forced.truth) return bits_at(forced.dtype, data);
  return {{is_true(forced.dtype, data) ? 1u : 0u, 0}};
}

// The output or argument that owns this memory, and how far into it the memory begins.
std::optional<PlanPlace> Session::place_of(const Memory& memory) const {
  if (!memory.owner) return std::nullopt;
  const auto [begin, end] = owned_.equal_range(memory.owner.get());
  for (auto it = begin; it != end; ++it) {
    const Owned& owned = it->second;
    if (owned.owner.owner_before(memory.owner) || memory.owner.owner_before(owned.owner))
      continue;  // that one is gone, and another object has its address
    PlanPlace place = owned.place;
    place.offset = static_cast<const char*>(memory.data) - static_cast<const char*>(owned.data);
    return place;
  }
  return std::nullopt;
}

void Session::note_owned(const Memory& memory, const PlanPlace& place) {
  owned_.emplace(memory.owner.get(), Owned{memory.owner, memory.data, place});
}

// The place of the next output of a run that is being recorded.
PlanPlace Session::next_output(const PlanRun& row) const {
  return {-1, static_cast<int>(draft_.runs.size()), static_cast<int>(row.outputs.size()), 0};
}

void Session::record_memory(const Storages& made) {
  pure_ = draft_.runs.size() < kMaxRuns;
  if (!pure_) return;
  PlanRun row;
  for (const auto& storage : made) {
    note_owned(storage->memory, next_output(row));
    row.outputs.push_back({storage->layout, std::nullopt});
  }
  draft_.runs.push_back(std::move(row));
}

void Session::record_run(const RecordedRun& run, std::span<const Want> wants,
                         const std::vector<bool>& given) {
  pure_ = run.executable && draft_.runs.size() < kMaxRuns;
  if (!pure_) return;
  PlanRun row;
  row.executable = run.executable;
  row.report_mask = run.report_mask;
  row.may_redo = run.may_redo;
  row.may_stop = !behind_;
  for (const InputRow& input : run.inputs) {
    std::optional<PlanPlace> place = PlanPlace{input.argument, -1, -1, input.offset};
    if (input.argument < 0) place = place_of(input.memory);
    pure_ &= place.has_value();
    row.inputs.push_back({place.value_or(PlanPlace{}), input.layout});
  }
  for (const ParamRow& param : run.params)
    row.params.push_back({param.dtype, param.bits, param.argument, param.number});
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const Want& want = wants[i];
    PlanOutput output{run.layouts[i], std::nullopt, {}, run.direct[i] != 0, run.alias[i]};
    if (given[i]) {
      output.target = place_of(want.memory);
      output.held = want.layout;
      pure_ &= output.target.has_value();
    } else {
      note_owned(want.memory, next_output(row));
    }
    pure_ &= output.direct || fits_new_memory(output.layout);
    row.outputs.push_back(std::move(output));
  }
  draft_.sole.reset();
  if (run.sole)
    draft_.sole = {std::string(ir::op_info(graph_[*run.sole].op).name),
                   info_[run.sole->value].site};
  draft_.runs.push_back(std::move(row));
}

void Session::record_outcome(Event event, const LazyArray& array, bool truth) {
  events_.push_back(std::move(event));
  if (!pure_) return;
  const Storage& storage = *array.storage;
  PlanForced forced{draft_.runs.size(), {}, array.layout.dtype, truth, {}};
  std::optional<PlanPlace> place = PlanPlace{storage.argument, -1, -1, array.offset};
  if (storage.argument < 0) place = place_of(storage.memory);
  pure_ = place && (array.layout.shape.empty() || (truth && is_one(array.layout)));
  if (!pure_) return;
  if (storage.argument < 0) place->offset += array.offset;
  forced.place = *place;
  const void* data = storage.literal ? static_cast<const void*>(&*storage.literal)
                                     : static_cast<const char*>(storage.memory.data) + array.offset;
  forced.outcome = outcome_of(forced, data);
  draft_.forced.push_back(forced);
}

// Unset where a repeated call does not know its memory.
std::optional<PlanValue> Session::plan_value(const LazyArray& array) const {
  const Storage& storage = *array.storage;
  std::optional<PlanPlace> place = PlanPlace{storage.argument, -1, -1, 0};
  if (storage.argument < 0) place = place_of(storage.memory);
  if (!place || place->constant) return std::nullopt;
  place->offset += array.offset;
  return PlanValue{*place,       array.is_whole() && !array.is_view,
                   array.scalar, array.read_only,
                   array.warned, array.layout};
}

void Session::record_host_call(std::shared_ptr<const HostCall> call,
                               std::span<const LazyArray> given, std::span<const LazyArray> made) {
  pure_ &= draft_.runs.size() < kMaxRuns;
  PlanRun row;
  row.host_call = std::move(call);
  for (const LazyArray& array : given) {
    std::optional<PlanValue> value = pure_ ? plan_value(array) : std::nullopt;
    pure_ &= value.has_value();
    if (pure_) row.given.push_back(*std::move(value));
  }
  if (!pure_) return;
  for (const LazyArray& array : made) {
    note_owned(array.storage->memory, next_output(row));
    row.outputs.push_back({array.layout, std::nullopt});
  }
  draft_.runs.push_back(std::move(row));
}

void Session::record_plan(std::span<const LazyArray> results) {
  auto plan = std::make_shared<Plan>(std::move(draft_));
  const bool one_run = plan->runs.size() == 1 && plan->forced.empty();
  if (!one_run || !repeats_.empty()) plan->sole.reset();
  for (const LazyArray& result : results) {
    std::optional<PlanValue> value = plan_value(result);
    if (!value) return;
    plan->results.push_back(*std::move(value));
  }
  for (PlanRun& run : plan->runs) run.until.assign(run.outputs.size(), 0);
  const auto keep = [&](const PlanPlace& place, std::size_t runs) {
    if (place.run < 0) return;
    std::size_t& until = plan->runs[static_cast<std::size_t>(place.run)]
                             .until[static_cast<std::size_t>(place.output)];
    until = std::max(until, runs);
  };
  for (std::size_t r = 0; r < plan->runs.size(); ++r) {
    for (const PlanInput& input : plan->runs[r].inputs) keep(input.place, r + 1);
    for (const PlanValue& value : plan->runs[r].given) keep(value.place, r + 1);
    for (const PlanOutput& output : plan->runs[r].outputs)
      if (output.target) keep(*output.target, r + 1);
  }
  for (const PlanForced& forced : plan->forced) keep(forced.place, forced.runs);
  for (const PlanValue& result : plan->results)
    keep(result.place, std::numeric_limits<std::size_t>::max());
  plan->constants = constants_;
  plan_ = std::move(plan);
}

}  // namespace ufuse::tracer
