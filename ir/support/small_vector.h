// A vector whose first N elements need no allocation: shapes, strides and operands are short, and
// a traced operation makes dozens of them. Elements are plain data, copied as bytes. Like
// std::vector otherwise, with as much of its interface as is used.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>

namespace ufuse::ir {

template <class T, std::uint32_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<T*>;
  using const_reverse_iterator = std::reverse_iterator<const T*>;

  SmallVector() noexcept {}
  explicit SmallVector(std::size_t n, const T& value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
  template <std::input_iterator It>
  SmallVector(It first, It last) {
    insert(end(), first, last);
  }
  SmallVector(const SmallVector& other) {
    if (other.size_ <= N)
      copy_room(other);
    else
      append(other.data_, other.size_);
  }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  ~SmallVector() { release(); }
  SmallVector& operator=(const SmallVector& other) {
    if (this == &other) return *this;
    size_ = 0;
    if (is_inside() && other.size_ <= N)
      copy_room(other);
    else
      append(other.data_, other.size_);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this == &other) return *this;
    release();
    take(other);
    return *this;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  iterator begin() { return data_; }
  iterator end() { return data_ + size_; }
  const_iterator begin() const { return data_; }
  const_iterator end() const { return data_ + size_; }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }

  void clear() { size_ = 0; }
  void reserve(std::size_t n) {
    if (n > capacity_) grow(n);
  }
  void resize(std::size_t n, const T& value = T{}) {
    const T filled = value;  // it may be one of these elements
    reserve(n);
    for (std::size_t i = size_; i < n; ++i) new (data_ + i) T(filled);
    size_ = static_cast<std::uint32_t>(n);
  }
  void assign(std::size_t n, const T& value) {
    const T filled = value;
    clear();
    resize(n, filled);
  }
  void push_back(const T& value) {
    const T added = value;
    if (size_ == capacity_) grow(std::size_t{size_} + 1);
    new (data_ + size_++) T(added);
  }
  void pop_back() { --size_; }
  iterator insert(const_iterator at, const T& value) {
    const std::ptrdiff_t place = at - data_;
    push_back(value);
    std::rotate(data_ + place, data_ + size_ - 1, data_ + size_);
    return data_ + place;
  }
  template <std::input_iterator It>
  iterator insert(const_iterator at, It first, It last) {
    const std::ptrdiff_t place = at - data_;
    const std::size_t before = size_;
    for (; first != last; ++first) push_back(*first);
    std::rotate(data_ + place, data_ + before, data_ + size_);
    return data_ + place;
  }
  iterator erase(const_iterator at) { return erase(at, at + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    const std::ptrdiff_t place = first - data_;
    std::copy(last, static_cast<const_iterator>(end()), data_ + place);
    size_ -= static_cast<std::uint32_t>(last - first);
    return data_ + place;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b) {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool is_inside() const { return data_ == inside(); }
  T* inside() { return reinterpret_cast<T*>(room_); }
  const T* inside() const { return reinterpret_cast<const T*>(room_); }

  void append(const T* values, std::size_t n) {
    reserve(size_ + n);
    if (n > 0) std::memcpy(static_cast<void*>(data_ + size_), values, n * sizeof(T));
    size_ += static_cast<std::uint32_t>(n);
  }
  // Of a vector that is short enough, to one whose elements stand inside: as many bytes as there is
  // room for, which takes less time than to count them.
  void copy_room(const SmallVector& other) {
    std::memcpy(room_, other.data_, other.is_inside() ? sizeof room_ : other.size_ * sizeof(T));
    size_ = other.size_;
  }
  void grow(std::size_t n) {
    n = std::max(n, 2 * std::size_t{capacity_});
    T* more = std::allocator<T>().allocate(n);
    if (size_ > 0) std::memcpy(static_cast<void*>(more), data_, size_ * sizeof(T));
    release();
    data_ = more;
    capacity_ = static_cast<std::uint32_t>(n);
  }
  void release() {
    if (!is_inside()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inside();
    capacity_ = N;
  }
  void take(SmallVector& other) noexcept {
    if (other.is_inside()) {
      copy_room(other);
    } else {
      size_ = other.size_;
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inside();
      other.capacity_ = N;
    }
    other.size_ = 0;
  }

  T* data_ = inside();
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  alignas(T) unsigned char room_[N * sizeof(T)] = {};
};

}  // namespace ufuse::ir
