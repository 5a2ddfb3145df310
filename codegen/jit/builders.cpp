// See builders.h.
#include "codegen/jit/builders.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <utility>

namespace ufuse::codegen {
namespace {

// On a thread of its own, with a lower priority that the compilers it starts take over: whoever
// computes meanwhile keeps the cores. A thread cannot raise its priority again.
void run_behind_others(const std::function<void()>& task) {
  constexpr int kBehind = 10;
  try {
    std::thread([&] {
      setpriority(PRIO_PROCESS, 0, kBehind);  // of this thread
      task();
    }).join();
  } catch (const std::system_error&) {
    task();
  }
}

// A slow build of a running loop's holds up those for later calls no longer than that.
constexpr std::chrono::seconds kLongestHold{3};

}  // namespace

std::size_t Builders::waiting() const {
  std::size_t all = 0;
  for (const auto& queue : queues_) all += queue.size();
  return all;
}

bool Builders::post(std::function<void()> task, Urgency urgency) {
  const std::lock_guard lock(mutex_);
  if (closed_ || waiting() >= room_) return false;
  if (busy_ + waiting() >= threads_.size() && threads_.size() < most_) {
    try {
      start();
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;  // else those that run come to it
    }
  }
  queues_[static_cast<std::size_t>(urgency)].push_back(std::move(task));
  wake_.notify_one();
  return true;
}

bool Builders::keep_up() {
  const std::lock_guard lock(mutex_);
  return busy_ + waiting() <= threads_.size() && (waiting() == 0 || next() != queues_.end());
}

// Signals are for the program's own threads.
void Builders::start() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    threads_.emplace_back([this] { work(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The most urgent queue that has a task to begin now.
Builders::Queues::iterator Builders::next() {
  const auto found = std::ranges::find_if(queues_, [](const Queue& each) { return !each.empty(); });
  const bool later = found == queues_.begin() + static_cast<int>(Urgency::Later);
  return later && running_ > 0 && !stop_ && Clock::now() < held_until_ ? queues_.end() : found;
}

void Builders::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Queues::iterator queue;
    while ((queue = next()) == queues_.end() && !stop_)
      waiting() > 0 ? void(wake_.wait_until(lock, held_until_)) : wake_.wait(lock);
    if (queue == queues_.end()) return;
    const auto urgency = static_cast<Urgency>(queue - queues_.begin());
    std::function<void()> task = std::move(queue->front());
    queue->pop_front();
    ++busy_;
    if (urgency == Urgency::Running) {
      ++running_;
      held_until_ = Clock::now() + kLongestHold;
    }
    lock.unlock();
    urgency == Urgency::Awaited ? task() : run_behind_others(task);
    task = nullptr;  // what it holds may take long to free
    lock.lock();
    --busy_;
    if (urgency == Urgency::Running && --running_ == 0) wake_.notify_all();
    if (busy_ == 0 && waiting() == 0) idle_.notify_all();
    if (!tidy_ || waiting() > 0 || stop_) continue;
    lock.unlock();
    tidy_();
    lock.lock();
  }
}

void Builders::finish(std::chrono::milliseconds patience, const std::function<void()>& hurry) {
  std::vector<std::thread> threads;
  {
    std::unique_lock lock(mutex_);
    closed_ = true;
    idle_.wait_for(lock, patience, [this] { return busy_ == 0 && waiting() == 0; });
    stop_ = true;
    threads.swap(threads_);
  }
  hurry();
  wake_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

std::size_t builders_here() {
  cpu_set_t cores;
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  return std::clamp<std::size_t>(known ? static_cast<std::size_t>(CPU_COUNT(&cores)) : 2, 2, 4);
}

}  // namespace ufuse::codegen
