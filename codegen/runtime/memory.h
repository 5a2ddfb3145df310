// Where do intermediates that no caller sees live, and large results?
//
// Buffers that are 64-byte aligned, uninitialised, with huge pages for large ones, and kept for the
// next call, because fresh memory costs more in page faults than most kernels cost in arithmetic.
// Used by codegen's launch for what lies between the kernels of a graph, and by pyext for the
// memory of large new arrays.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ufuse::codegen {

class ScratchPool;

// One buffer on loan; it goes back to its pool when this dies. Moves, never copies.
class Scratch {
 public:
  Scratch() = default;
  Scratch(Scratch&& other) noexcept;
  Scratch& operator=(Scratch&& other) noexcept;
  ~Scratch();

  void* data() const { return data_; }
  // The owner gives it back himself: ScratchPool::give_back(data, capacity).
  void* release() { return std::exchange(data_, nullptr); }
  std::size_t capacity() const { return capacity_; }  // at least what was asked for

 private:
  friend class ScratchPool;
  Scratch(ScratchPool* pool, void* data, std::size_t capacity)
      : pool_(pool), data_(data), capacity_(capacity) {}

  ScratchPool* pool_ = nullptr;
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// Thread-safe. It must outlive what it lent. Keeps at most 1,024 idle buffers, and `keep_bytes` of
// them (0: an eighth of this machine's memory). Those above `hot_bytes` (0: a 32nd of the memory, 1
// GiB at most), oldest first, are left to the kernel, which takes their pages when it needs memory;
// telling it so is not free, and nor are pages that it took.
class ScratchPool {
 public:
  explicit ScratchPool(std::size_t keep_bytes = 0, std::size_t hot_bytes = 0);
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  Scratch take(std::size_t bytes);  // throws std::bad_alloc
  void give_back(void* data, std::size_t capacity) noexcept;
  void clear();  // frees what is idle
  std::size_t idle_bytes() const;
  std::size_t hot_bytes() const;

 private:
  struct Block {
    void* data;
    std::size_t capacity;
    bool hot = true;
  };
  void cool_down();

  const std::size_t keep_bytes_, most_hot_;
  mutable std::mutex mutex_;
  std::size_t idle_bytes_ = 0, hot_bytes_ = 0;
  std::vector<Block> idle_;  // oldest first
};

}  // namespace ufuse::codegen
