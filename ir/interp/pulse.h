// How does a long evaluation learn that it is to be given up? It asks after every few ten thousand
// elements, and leaves by an exception of its own.
#pragma once

#include "ir/backend.h"

namespace ufuse::ir::interp {

struct GivenUp {};

class Pulse {
 public:
  // Elements between two questions.
  static constexpr std::int64_t kElements = std::int64_t{1} << 16;

  explicit Pulse(Watch* watch) : watch_(watch) {}
  void beat() const {
    if (watch_ != nullptr && watch_->stops(/*half_written=*/false)) throw GivenUp{};
  }

 private:
  Watch* watch_;
};

}  // namespace ufuse::ir::interp
