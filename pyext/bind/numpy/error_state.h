// NumPy's error state (np.errstate): what becomes of floating-point errors, and who is told of
// them? Asked at each operation of a traced call, compared with what a recording was made under,
// and set for the time in which NumPy computes a request and its warnings are collected.
#pragma once

#include <cstdint>
#include <optional>

#include "pyext/bind/common.h"

namespace ufuse::pyext {

// The state at one time, the size of NumPy's buffers included. One that is made empty is equal to
// none.
class ErrorState {
 public:
  static ErrorState now();
  // Whether the present state is equal to this one. Remembers the object in which NumPy keeps an
  // equal state, so that it is looked into once within a `with np.errstate(...)`.
  bool is_current();
  // Makes it part of this state that SciPy's special functions ignore their errors.
  void add_special() { special_ = true; }

 private:
  py::object holder_, contents_;
  bool special_ = false;
};

// The flags that the present error state reports, as NPY_FPE_* bits; unset when a mode is neither
// "warn" nor "ignore".
std::optional<std::uint8_t> current_report_mask();

// Whether scipy.special ignores its own errors, as it does unless it is told otherwise.
bool special_errors_are_ignored();

// While one lives, NumPy writes these flags to a log, which has a method `write`, and ignores all
// others. The state is set through C functions of NumPy: np.errstate is Python code, and Ctrl-C in
// the middle of it would leave the state set.
class LoggedErrors {
 public:
  LoggedErrors(std::uint8_t mask, const py::object& log) : LoggedErrors(state(mask, log)) {}
  ~LoggedErrors();
  LoggedErrors(const LoggedErrors&) = delete;
  LoggedErrors& operator=(const LoggedErrors&) = delete;

 protected:
  explicit LoggedErrors(const py::object& state);
  static py::object state(std::uint8_t mask, const py::object& log);

 private:
  py::object before_;  // the context that was made for it, or the list that was there
};

// The same where it is enough to know whether there was an error; quicker to set.
class WatchedErrors : public LoggedErrors {
 public:
  explicit WatchedErrors(std::uint8_t mask);
  ~WatchedErrors();
  // Since it was made.
  bool any() const;

 private:
  static py::object watching_state(std::uint8_t mask);

  bool before_;  // what the one around it has seen: Python's finalizers run anywhere
};

// Once, when the module is imported.
void init_error_state();

}  // namespace ufuse::pyext
