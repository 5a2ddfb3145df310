// See launch.h. Kernels that write into memory that lasts (an array of the caller's) come as late
// as they can; from the first of them on a run is not given up. A long one that computes much for
// each byte writes elsewhere first, and can be.
#include "codegen/launch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "codegen/runtime/share.h"
#include "codegen/schedule/cost.h"

namespace ufuse::codegen {
namespace {

using Role = loop::Buffer::Role;

// How a kernel asks an ir::Watch: between pieces that take a few milliseconds.
class Pieces {
 public:
  Pieces(ir::Watch& host, bool half_written, int threads, double cost_ns)
      : watch_{next,
               std::clamp<rt::Index>(static_cast<rt::Index>(cost_ns / cost::kFirstPiece) / threads,
                                     4, 1024),
               false},
        host_(host),
        half_written_(half_written) {}
  rt::Watch* watch() { return &watch_; }
  bool given_up() const { return watch_.given_up; }

 private:
  static rt::Index next(rt::Watch* watch, bool caller, rt::Index last, rt::Index* since) {
    auto& self = *reinterpret_cast<Pieces*>(watch);
    std::atomic_ref<bool> given_up(watch->given_up);
    if (caller && self.host_.stops(self.half_written_)) given_up = true;
    if (given_up) return 0;
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::int64_t before = std::exchange(*since, now);
    if (before == 0) return last;  // nothing is known yet
    const double factor = cost::kPiece / static_cast<double>(now - before + 1);
    return static_cast<rt::Index>(static_cast<double>(last) * std::min(factor, 2.0)) + 1;
  }

  rt::Watch watch_;  // first: its address is this one's
  ir::Watch& host_;
  const bool half_written_;
};

std::size_t bytes_of(const Temp& temp) {
  return static_cast<std::size_t>(temp.elements) * ir::size_of(temp.dtype);
}

// The bytes of a buffer without gaps that lies from its first element upwards; 0: it is another.
std::size_t bytes_of_block(const ir::Buffer& buffer) {
  const auto size = static_cast<std::int64_t>(ir::size_of(buffer.dtype));
  std::int64_t count = 1, reach = 0;
  for (std::size_t a = 0; a < buffer.shape.size(); ++a) {
    if (buffer.shape[a] > 1 && buffer.strides[a] < 0) return 0;
    count *= buffer.shape[a];
    reach += (buffer.shape[a] - 1) * buffer.strides[a];
  }
  return reach + size == count * size ? static_cast<std::size_t>(count * size) : 0;
}

}  // namespace

// What the kernels of one run share.
struct CompiledGraph::Run {
  const ir::RunArgs& args;
  std::vector<Scratch> slots;
  ir::RunStatus status;
  bool half_written = false;
  std::vector<void*> buffers;
  std::vector<rt::Param> params;
};

// An output that a kernel writes elsewhere first.
struct CompiledGraph::Detour {
  int output;
  std::size_t bytes;
  Scratch scratch;
};

CompiledGraph::CompiledGraph(std::vector<BoundKernel> kernels, std::vector<Temp> temps,
                             std::vector<int> alias, ir::Report report, Threads& threads,
                             ScratchPool& pool)
    : kernels_(std::move(kernels)),
      temps_(std::move(temps)),
      report_(std::move(report)),
      needs_(kernels_.size()),
      threads_(threads),
      pool_(pool) {
  share_memory();
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    cost_ns_ += kernels_[i].loops.cost_ns;
    for (std::size_t j = 0; j < i; ++j)
      if (must_follow(kernels_[i].loops, kernels_[j].loops, alias)) needs_[i].push_back(j);
    for (const loop::Buffer& b : kernels_[i].loops.buffers) {
      if (b.role != Role::Output) continue;
      const auto k = static_cast<std::size_t>(b.index);
      if (writers_.size() <= k) writers_.resize(k + 1);
      // One that is read as well counts as two: its elements must be where they are.
      writers_[k] += b.read ? 2 : 1;
    }
  }
}

// A temporary lives from its first kernel to its last; then another of about its size may have its
// memory.
void CompiledGraph::share_memory() {
  std::vector<std::size_t> last_use(temps_.size());
  const auto each_temp = [&](std::size_t k, const auto& visit) {
    for (const loop::Buffer& b : kernels_[k].loops.buffers)
      if (b.role == Role::Temp) visit(static_cast<std::size_t>(b.index));
  };
  for (std::size_t k = 0; k < kernels_.size(); ++k)
    each_temp(k, [&](std::size_t i) { last_use[i] = k; });
  constexpr std::size_t kNone = SIZE_MAX;
  slot_of_.assign(temps_.size(), kNone);
  std::vector<std::size_t> idle;
  for (std::size_t k = 0; k < kernels_.size(); ++k) {
    each_temp(k, [&](std::size_t i) {
      if (slot_of_[i] == kNone) slot_of_[i] = slot_for(bytes_of(temps_[i]), idle);
    });
    each_temp(k, [&](std::size_t i) {
      const bool is_idle = std::ranges::find(idle, slot_of_[i]) != idle.end();
      if (last_use[i] == k && !is_idle) idle.push_back(slot_of_[i]);
    });
  }
}

std::size_t CompiledGraph::slot_for(std::size_t bytes, std::vector<std::size_t>& idle) {
  const auto fits = [&](std::size_t slot) {
    return slots_[slot] >= bytes && slots_[slot] <= 2 * bytes;
  };
  if (const auto it = std::ranges::find_if(idle, fits); it != idle.end()) {
    const std::size_t slot = *it;
    idle.erase(it);
    return slot;
  }
  slots_.push_back(bytes);
  return slots_.size() - 1;
}

// Which memory a buffer is: an output that overwrites an input is that input, and temporaries that
// share a slot are one.
std::pair<loop::Buffer::Role, std::size_t> CompiledGraph::memory_of(
    const loop::Buffer& b, const std::vector<int>& alias) const {
  const auto i = static_cast<std::size_t>(b.index);
  if (b.role == Role::Output && i < alias.size() && alias[i] >= 0)
    return {Role::Input, static_cast<std::size_t>(alias[i])};
  return {b.role, b.role == Role::Temp ? slot_of_[i] : i};
}

// Whether `later` reads what `earlier` writes, or writes what it reads or writes.
bool CompiledGraph::must_follow(const loop::Kernel& later, const loop::Kernel& earlier,
                                const std::vector<int>& alias) const {
  for (const loop::Buffer& a : later.buffers)
    for (const loop::Buffer& b : earlier.buffers)
      if ((a.written || b.written) && a.role != Role::Row && b.role != Role::Row &&
          memory_of(a, alias) == memory_of(b, alias))
        return true;
  return false;
}

ir::RunStatus CompiledGraph::run(const ir::RunArgs& args) const {
  Run run{args, {}, {}, false, {}, {}};
  try {
    for (const std::size_t bytes : slots_) run.slots.push_back(pool_.take(bytes));
  } catch (const std::bad_alloc&) {
    run.status.redo = true;  // nothing is written yet
    run.status.why = Reason::OutOfMemory;
    return run.status;
  }
  const std::vector<char> late = after_lasting(args);
  for (const bool now : {false, true}) {
    if (now && late.empty()) break;
    for (std::size_t i = 0; i < kernels_.size(); ++i)
      if ((!late.empty() && late[i] != 0) == now && !launch(kernels_[i], run)) return run.status;
  }
  return run.status;
}

bool CompiledGraph::writes_lasting(const BoundKernel& kernel, const ir::RunArgs& args) const {
  return std::ranges::any_of(kernel.loops.buffers, [&](const loop::Buffer& b) {
    const auto i = static_cast<std::size_t>(b.index);
    return b.role == Role::Output && b.written && i < args.lasting.size() && args.lasting[i] != 0;
  });
}

// The kernels that write into memory that lasts, and those that stand behind them; empty: the order
// does not matter.
std::vector<char> CompiledGraph::after_lasting(const ir::RunArgs& args) const {
  if (args.watch == nullptr || kernels_.size() < 2 || cost_ns_ < cost::kWatched) return {};
  std::vector<char> late(kernels_.size());
  for (std::size_t i = 0; i < kernels_.size(); ++i)
    late[i] = writes_lasting(kernels_[i], args) ||
              std::ranges::any_of(needs_[i], [&](std::size_t j) { return late[j] != 0; });
  return late;
}

// Whether the next kernel may run.
bool CompiledGraph::launch(const BoundKernel& kernel, Run& run) const {
  const ir::RunArgs& args = run.args;
  if (args.watch != nullptr && args.watch->stops(run.half_written)) {
    run.status.stopped = true;
    return false;
  }
  rt::Args kernel_args{};
  kernel_args.threads = team_of(threads_.choose(kernel.loops.cost_ns, args.watch));
  const std::vector<Detour> detours = this->detours(kernel, run, kernel_args.threads.count);
  if (detours.empty()) run.half_written |= writes_lasting(kernel, args);
  run.buffers.clear();
  run.params.clear();
  for (const loop::Buffer& b : kernel.loops.buffers) {
    const auto i = static_cast<std::size_t>(b.index);
    void* base = nullptr;
    switch (b.role) {
      case Role::Row:
        continue;
      case Role::Input:
        base = args.inputs[i].data;
        break;
      case Role::Output:
        base = args.outputs[i].data;
        for (const Detour& detour : detours)
          if (detour.output == b.index) base = detour.scratch.data();
        break;
      case Role::Temp:
        base = run.slots[slot_of_[i]].data();
        break;
    }
    run.buffers.push_back(static_cast<char*>(base) +
                          b.offset * static_cast<std::int64_t>(ir::size_of(b.dtype)));
  }
  for (std::uint32_t p : kernel.loops.params) {
    rt::Param param;
    std::memcpy(param.bits, args.params[p].bits, sizeof param.bits);
    run.params.push_back(param);
  }
  kernel_args.buffers = run.buffers.data();
  kernel_args.sizes = kernel.loops.sizes.data();
  kernel_args.params = run.params.data();
  kernel_args.loops = kernel.calls.data();
  kernel_args.stream = kernel.loops.streams;
  std::optional<Pieces> pieces;
  if (args.watch != nullptr && kernel.loops.cost_ns > cost::kWatched)
    kernel_args.threads.watch =
        pieces
            .emplace(*args.watch, run.half_written, kernel_args.threads.count, kernel.loops.cost_ns)
            .watch();
  const unsigned bits = (*kernel.code)(kernel_args);
  run.status.fp |= bits & 0xf;
  run.status.redo = (bits & rt::kRedo) != 0;
  run.status.stopped = pieces && pieces->given_up();
  if (run.status.redo || run.status.stopped) return false;
  for (const Detour& detour : detours)
    std::memcpy(args.outputs[static_cast<std::size_t>(detour.output)].data, detour.scratch.data(),
                detour.bytes);
  run.half_written |= !detours.empty();
  return true;
}

// For all the lasting outputs of a long kernel that is worth it; else for none.
std::vector<CompiledGraph::Detour> CompiledGraph::detours(const BoundKernel& kernel, const Run& run,
                                                          int threads) const {
  if (run.args.watch == nullptr || run.half_written || kernel.loops.cost_ns < cost::kLong ||
      !writes_lasting(kernel, run.args))
    return {};
  std::vector<Detour> detours;
  double bytes = 0;
  for (const loop::Buffer& b : kernel.loops.buffers) {
    const auto i = static_cast<std::size_t>(b.index);
    if (b.role != Role::Output || i >= run.args.lasting.size() || run.args.lasting[i] == 0)
      continue;
    const std::size_t block = bytes_of_block(run.args.outputs[i]);
    if (block == 0 || writers_[i] != 1 || b.offset != 0) return {};
    detours.push_back({b.index, block, {}});
    bytes += static_cast<double>(block);
  }
  if (kernel.loops.cost_ns / threads < cost::kWorthDetour * bytes) return {};
  try {
    for (Detour& detour : detours) detour.scratch = pool_.take(detour.bytes);
  } catch (const std::bad_alloc&) {
    return {};
  }
  return detours;
}

}  // namespace ufuse::codegen
