// The pool's rule of reuse: the last buffer given back that fits and is not twice too large.
#include "codegen/runtime/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace ufuse::codegen {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line, and the widest vector
constexpr std::size_t kHugePage = 2u << 20;
constexpr std::size_t kAdviseFrom = 4u << 20;  // as NumPy's allocator

// Sizes in steps of an eighth of their power of two, so that requests that differ a little share a
// buffer.
std::size_t rounded(std::size_t bytes) {
  bytes = std::max(bytes, kAlignment);
  const std::size_t step = std::max(std::bit_floor(bytes) / 8, kAlignment);
  if (bytes > SIZE_MAX - kHugePage - step) throw std::bad_alloc();
  return (bytes + step - 1) / step * step;
}

void* allocate(std::size_t capacity) {
  const bool large = capacity >= kAdviseFrom;
  const std::size_t alignment = large ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(alignment, (capacity + alignment - 1) / alignment * alignment);
  if (!data) throw std::bad_alloc();
  if (large) madvise(data, capacity, MADV_HUGEPAGE);
  return data;
}

constexpr std::size_t kMostHot = std::size_t{1} << 30;
// Idle buffers, all of which are looked at: more are freed.
constexpr std::size_t kMostIdle = 1024;

std::size_t memory_of_machine() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(size)
                               : std::size_t{2} << 30;
}

// Nobody needs the contents: the kernel may take whole pages of it.
void leave_to_kernel(void* data, std::size_t capacity) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + capacity) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_FREE);
}

}  // namespace

Scratch::Scratch(Scratch&& other) noexcept { *this = std::move(other); }

Scratch& Scratch::operator=(Scratch&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(data_, other.data_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

Scratch::~Scratch() {
  if (data_) pool_->give_back(data_, capacity_);
}

ScratchPool::ScratchPool(std::size_t keep_bytes, std::size_t hot_bytes)
    : keep_bytes_(keep_bytes != 0 ? keep_bytes : memory_of_machine() / 8),
      most_hot_(hot_bytes != 0 ? hot_bytes : std::min(memory_of_machine() / 32, kMostHot)) {}

ScratchPool::~ScratchPool() { clear(); }

// The lock is only ever tried: a busy pool is passed by, and so is one whose lock another thread
// held when this process was forked.
Scratch ScratchPool::take(std::size_t bytes) {
  const std::size_t capacity = rounded(bytes);
  if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) {
    // The last one given back is the likeliest to be in a cache. A much larger one is left for
    // whoever needs it.
    const auto fits = [&](const Block& block) {
      return block.capacity >= capacity && block.capacity <= 2 * capacity;
    };
    const auto found = std::find_if(idle_.rbegin(), idle_.rend(), fits);
    if (found != idle_.rend()) {
      const Block block = *found;
      idle_.erase(std::next(found).base());
      idle_bytes_ -= block.capacity;
      if (block.hot) hot_bytes_ -= block.capacity;
      return Scratch(this, block.data, block.capacity);
    }
  }
  return Scratch(this, allocate(capacity), capacity);
}

void ScratchPool::give_back(void* data, std::size_t capacity) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || capacity > keep_bytes_) return std::free(data);
  try {
    idle_.push_back({data, capacity});
  } catch (const std::bad_alloc&) {
    return std::free(data);
  }
  idle_bytes_ += capacity;
  hot_bytes_ += capacity;
  cool_down();
}

void ScratchPool::cool_down() {
  std::size_t drop = 0;
  for (; idle_bytes_ > keep_bytes_ || idle_.size() - drop > kMostIdle; ++drop) {
    const Block& block = idle_[drop];
    std::free(block.data);
    idle_bytes_ -= block.capacity;
    if (block.hot) hot_bytes_ -= block.capacity;
  }
  idle_.erase(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(drop));
  for (Block& block : idle_) {
    if (hot_bytes_ <= most_hot_) break;
    if (!block.hot) continue;
    leave_to_kernel(block.data, block.capacity);
    block.hot = false;
    hot_bytes_ -= block.capacity;
  }
}

void ScratchPool::clear() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (const Block& block : idle_) std::free(block.data);
  idle_.clear();
  idle_bytes_ = hot_bytes_ = 0;
}

std::size_t ScratchPool::idle_bytes() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? idle_bytes_ : 0;
}

std::size_t ScratchPool::hot_bytes() const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? hot_bytes_ : 0;
}

}  // namespace ufuse::codegen
