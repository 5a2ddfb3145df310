// See timeline.h.
#include "codegen/runtime/timeline.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <string_view>

#include "codegen/jit/fork.h"

namespace ufuse::codegen {
namespace {

std::atomic<int> keepers{0};

struct Kept {
  std::mutex mutex;
  std::vector<Slice> slices;
};

// Threads may outlive what is destroyed when the process ends.
Kept& kept() {
  static auto* one = new Kept;
  return *one;
}

// The slices, which no other thread and no fork touches meanwhile.
template <class Use>
auto with_slices(const Use& use) {
  const NoFork no_fork;
  const std::lock_guard lock(kept().mutex);
  return use(kept().slices);
}

}  // namespace

Slice slice_of_waiting(const ir::Report& report) {
  Slice slice{Slice::Kind::Prepare, ""};
  const auto add = [](std::string& text, std::string_view separator, const std::string& word) {
    if (!text.empty()) text += separator;
    text += word;
  };
  for (const ir::GroupReport& group : report.groups) {
    for (const std::string& op : *group.ops) add(slice.name, " ", op);
    add(slice.detail, ", ", group.origin);
  }
  if (slice.name.empty()) slice.name = "copy or fill";
  return slice;
}

Slice slice_of_run(const ir::Report& report, const ir::RunStatus& status) {
  Slice slice = slice_of_waiting(report);
  slice.kind = Slice::Kind::Loops;
  if (status.redo) {
    slice.detail = "left to NumPy";
  } else {
    slice.bytes_moved = report.bytes_moved;
    slice.bytes_minimum = report.bytes_minimum;
  }
  return slice;
}

bool Timeline::is_kept() { return keepers.load(std::memory_order_relaxed) != 0; }

void Timeline::keep() { ++keepers; }

void Timeline::let_go() {
  if (--keepers == 0) with_slices([](auto& slices) { slices.clear(); });
}

void Timeline::add(Slice slice, std::int64_t from_ns) {
  slice.from_ns = from_ns;
  slice.to_ns = Threads::now_ns();
  slice.thread = static_cast<int>(syscall(SYS_gettid));
  with_slices([&](auto& slices) { slices.push_back(std::move(slice)); });
}

std::size_t Timeline::size() {
  return with_slices([](const auto& slices) { return slices.size(); });
}

std::vector<Slice> Timeline::since(std::size_t first) {
  return with_slices([&](const auto& slices) {
    return std::vector<Slice>(slices.begin() + static_cast<std::ptrdiff_t>(first), slices.end());
  });
}

}  // namespace ufuse::codegen
