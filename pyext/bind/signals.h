// How is Ctrl-C answered while a loop runs without Python's lock, what must no fork come between,
// and who still runs loops when Python ends? One of these stands beside each run of loops that
// lasts.
#pragma once

#include <cstdint>

#include "ir/backend.h"
#include "pyext/bind/gil.h"

namespace ufuse::pyext {

// On Python's main thread it runs, 20 ms after the last time, in whatever run that was, the
// handlers of the signals that have come; where one raises, Python's error is set and the run ends.
// On any thread the run ends when Python does.
class SignalWatch final : public ir::Watch {
 public:
  // `may_stop`: unset where the run has to be finished whatever comes.
  explicit SignalWatch(WithoutGil& released, bool may_stop = true);
  ~SignalWatch() override;
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  bool stops(bool half_written) noexcept override;
  // With Python's lock, which whoever forks Python has.
  void without_forks(const std::function<void()>& body) override;

 private:
  WithoutGil& released_;
  const bool looks_;  // for signals
  bool raised_ = false;
};

// Whether this is Python's main thread, the only one on which handlers run.
bool handles_signals();
// Runs the handlers of the signals that have come, on that thread and with Python's lock. Whether
// Python's error is set now.
bool handler_raises();

// Once, when the module is imported.
void init_signals();

}  // namespace ufuse::pyext
