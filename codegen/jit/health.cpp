// See health.h.
#include "codegen/jit/health.h"

#include <algorithm>

namespace ufuse::codegen {
namespace {

constexpr std::chrono::hours kLongestPause{1};

}  // namespace

void Health::Use::begin() {
  if (since_) return;
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(health_.mutex_);
  if (!health_.trouble_.empty()) {
    if (health_.probing_ || now < health_.again_) throw CompilerRefused(health_.words());
    health_.probing_ = probes_ = true;
  }
  since_ = now;
  health_.running_.push_back(now);
}

Health::Use::~Use() {
  if (!since_) return;
  const std::lock_guard lock(health_.mutex_);
  health_.running_.erase(std::ranges::find(health_.running_, *since_));
  health_.last_ = std::chrono::ceil<Milliseconds>(Clock::now() - *since_);
  if (probes_) health_.probing_ = false;
}

void Health::Use::worked() {
  if (!since_) return;
  const std::lock_guard lock(health_.mutex_);
  health_.trouble_.clear();
  health_.pause_ = Milliseconds(0);
}

void Health::Use::met_trouble(const std::string& words) {
  const std::lock_guard lock(health_.mutex_);
  // Builds that ran side by side and met the same are one trouble.
  const bool known = !health_.trouble_.empty() && !probes_;
  health_.trouble_ = words;
  if (known) return;
  const Milliseconds longer = std::max(health_.first_pause_, 2 * health_.pause_);
  health_.pause_ = std::min<Milliseconds>(longer, kLongestPause);
  health_.again_ = Clock::now() + health_.pause_;
}

bool Health::is_prompt() const {
  const std::lock_guard lock(mutex_);
  if (!trouble_.empty() || last_ > slow_) return false;
  const Clock::time_point now = Clock::now();
  return std::ranges::none_of(running_, [&](Clock::time_point from) { return now - from > slow_; });
}

std::string Health::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_.empty() ? std::string() : words();
}

std::string Health::words() const {
  const auto left = std::chrono::ceil<std::chrono::seconds>(again_ - Clock::now()).count();
  return trouble_ + (probing_   ? "; it is being tried again"
                     : left > 0 ? "; it will be tried again in " + std::to_string(left) + " s"
                                : "; the next loop tries it again");
}

}  // namespace ufuse::codegen
