// Where do intermediates that no caller sees live?
//
// Scratch buffers between the kernels of one graph: 64-byte aligned, uninitialised, with huge pages
// for large ones, and kept for the next call, because fresh memory costs more in page faults than
// most kernels cost in arithmetic. Used by codegen's launch. Results of a call are not allocated
// here: they belong to NumPy.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
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
  std::size_t capacity() const { return capacity_; }  // at least what was asked for

 private:
  friend class ScratchPool;
  Scratch(ScratchPool* pool, void* data, std::size_t capacity)
      : pool_(pool), data_(data), capacity_(capacity) {}

  ScratchPool* pool_ = nullptr;
  void* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// Thread-safe. Keeps at most `keep_bytes` of idle buffers. It must outlive what it lent.
class ScratchPool {
 public:
  explicit ScratchPool(std::size_t keep_bytes = std::size_t{256} << 20);
  ~ScratchPool();
  ScratchPool(const ScratchPool&) = delete;
  ScratchPool& operator=(const ScratchPool&) = delete;

  Scratch take(std::size_t bytes);  // throws std::bad_alloc
  void clear();                     // frees what is idle
  std::size_t idle_bytes() const;

 private:
  friend class Scratch;
  struct Block {
    void* data;
    std::size_t capacity;
  };
  void give_back(void* data, std::size_t capacity) noexcept;

  const std::size_t keep_bytes_;
  mutable std::mutex mutex_;
  std::size_t idle_bytes_ = 0;
  std::vector<Block> idle_;  // oldest first
};

}  // namespace ufuse::codegen
