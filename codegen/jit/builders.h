// Who builds? A few threads side by side, which take what is to be done by its urgency, and else in
// the order in which it came. What nobody waits for is done with a lower priority, so that it takes
// nothing from the program's own threads. Used by jit.cpp. It does not know what the tasks do; they
// throw nothing.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace ufuse::codegen {

// Awaited: somebody waits for it. Running: for a loop of the user's that runs. Later: for calls
// that may come; for some seconds none of these begins while a running loop's is built, with which
// it would share the cores.
enum class Urgency : std::uint8_t { Awaited, Running, Later };

class Builders {
 public:
  // At most so many threads, which start when there is work, and at most so much waiting work.
  // `tidy` is called where a thread has nothing left to do; it does not count as busy then.
  Builders(std::size_t threads, std::size_t waiting, std::function<void()> tidy = {})
      : most_(threads), room_(waiting), tidy_(std::move(tidy)) {}
  ~Builders() {
    finish(std::chrono::milliseconds(0), [] {});
  }
  Builders(const Builders&) = delete;
  Builders& operator=(const Builders&) = delete;

  // False when there is no room or no more is taken. Throws std::system_error when no thread can be
  // had.
  bool post(std::function<void()> task, Urgency urgency);

  // Whether there is a thread for each task: none waits for another to end.
  bool keep_up();

  // How many threads build just now.
  std::size_t busy() const { return busy_.load(std::memory_order_relaxed); }

  // Takes no more work, and waits at most so long for what there is. Then calls `hurry`, after
  // which the tasks that are left must end at once, and waits for them.
  void finish(std::chrono::milliseconds patience, const std::function<void()>& hurry);

 private:
  using Clock = std::chrono::steady_clock;
  using Queue = std::deque<std::function<void()>>;
  using Queues = std::array<Queue, 3>;  // by Urgency

  void start();
  void work();
  std::size_t waiting() const;
  Queues::iterator next();

  const std::size_t most_, room_;
  const std::function<void()> tidy_;
  std::mutex mutex_;  // of all below, but that anybody may read `busy_`
  Queues queues_;
  std::atomic<std::size_t> busy_ = 0;
  std::size_t running_ = 0;  // of those that are busy: Urgency::Running
  Clock::time_point held_until_;
  bool closed_ = false, stop_ = false;
  std::condition_variable wake_, idle_;
  std::vector<std::thread> threads_;
};

// As many builders as this process may use cores: two at least, so that one slow build does not
// hold up all others, and four at most.
std::size_t builders_here();

}  // namespace ufuse::codegen
