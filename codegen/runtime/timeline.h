// What ran when, and on which thread?
//
// While somebody keeps a timeline, as a profile does, each run of loops, each build of them and
// each call that interrupts a traced one leaves a slice. Otherwise it costs a look at one number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/runtime/threads.h"
#include "ir/backend.h"

namespace ufuse::codegen {

struct Slice {
  enum class Kind : std::uint8_t {
    Prepare,       // a call waits until its loops can run
    Compile,       // the compiler runs
    Loops,         // of a traced or replayed call
    Program,       // a loop of the user's own text, as a native program
    Interruption,  // what NumPy or Python runs in a traced call
  };
  Kind kind;
  std::string name;
  std::string detail = {};                          // where the code came from; why it interrupts
  std::int64_t bytes_moved = 0, bytes_minimum = 0;  // of Loops, as in ir::Report
  std::int64_t from_ns = 0, to_ns = 0;              // of the steady clock
  int thread = 0;                                   // the number that the system gives it
};

// Of a call that waits for loops, and of a run of them.
Slice slice_of_waiting(const ir::Report& report);
Slice slice_of_run(const ir::Report& report, const ir::RunStatus& status);

// Thread-safe. All functions but is_kept may throw std::bad_alloc.
class Timeline {
 public:
  static bool is_kept();
  // Each who keeps it lets it go again; the last one empties it.
  static void keep();
  static void let_go();
  // A slice of this thread, which ends now.
  static void add(Slice slice, std::int64_t from_ns);
  // How many slices there have been; and those from a number on.
  static std::size_t size();
  static std::vector<Slice> since(std::size_t first);
};

// What happens while one lives is the slice that `describe()` gives.
template <class Describe>
class Timed {
 public:
  explicit Timed(Describe describe)
      : describe_(std::move(describe)), from_ns_(Timeline::is_kept() ? Threads::now_ns() : 0) {}
  ~Timed() {
    if (from_ns_ == 0) return;
    try {
      Timeline::add(describe_(), from_ns_);
    } catch (...) {  // there is no memory left: one slice less
    }
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  const Describe describe_;
  const std::int64_t from_ns_;
};

}  // namespace ufuse::codegen
