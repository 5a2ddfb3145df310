// A value that never changes and that all copies hold together: texts that many reports repeat.
#pragma once

#include <memory>
#include <utility>

namespace ufuse::ir {

template <class T>
class Shared {
 public:
  Shared() = default;
  Shared(T value) : held_(std::make_shared<const T>(std::move(value))) {}

  const T& operator*() const {
    static const T empty{};
    return held_ ? *held_ : empty;
  }
  const T* operator->() const { return &**this; }

 private:
  std::shared_ptr<const T> held_;
};

}  // namespace ufuse::ir
