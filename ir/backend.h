// A backend is something that can compute a graph: codegen (compiled loops) and ir/interp (xtensor,
// no compiler) implement this interface, tracer prepares requests and runs them through it, and
// pyext chooses which. It knows no Python.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/support/reasons.h"
#include "ir/support/shared.h"

namespace ufuse::ir {

// Memory with NumPy's meaning of shape and byte strides. Elements are aligned for their dtype.
struct Buffer {
  void* data = nullptr;
  DType dtype = DType::Float64;
  Dims shape;
  Dims strides;
};

// Who has called run(), which is done on that thread while others go on: it may want the run to end
// early, and can keep the process from being forked.
class Watch {
 public:
  virtual ~Watch() = default;
  // Whether the run shall be given up now: asked every few milliseconds of a long one.
  // `half_written`: memory that lasts would be left half written.
  virtual bool stops(bool half_written) noexcept = 0;
  // Calls body() while no other thread forks the process: the child would have what body() changes
  // half done.
  virtual void without_forks(const std::function<void()>& body) = 0;
};

// Which memory a graph will run on. `alias[k]` = index of the input that output k shall overwrite
// in place (same memory, same shape and strides), or -1. Otherwise outputs overlap neither inputs
// nor each other; inputs may overlap inputs. prepare() may look at everything here but the
// contents; run() is then given buffers of the very same dtype, shape, strides and alignment class
// at other addresses.
struct RunArgs {
  std::span<const Buffer> inputs;
  std::span<const Scalar> params;
  std::span<const Buffer> outputs;     // one per graph.outputs, allocated by the caller
  std::span<const int> alias;          // empty: none
  std::span<const char> lasting = {};  // per output: its memory is somebody's already; empty: none
  Watch* watch = nullptr;              // null: the run is not given up, and nobody forks meanwhile
};

// Floating-point flags raised, bit for bit as NumPy's NPY_FPE_*: divide by zero 1, overflow 2,
// underflow 4, invalid 8.
struct RunStatus {
  std::uint32_t fp = 0;
  // The result may differ from NumPy's in the sign of a zero or a NaN's payload (Order::Extremum),
  // or a position is outside of its axis (Bounds::Signed), or there is no memory for what is
  // computed on the way, or nothing has been built yet: the caller must compute it anew with NumPy
  // itself. In-place outputs have not been written when this is set.
  bool redo = false;
  Reason why = Reason::Undecided;  // of `redo`
  // Given up: outputs hold anything.
  bool stopped = false;
};

// What was built, as data; explain and the logs turn it into text. Thousands are kept at once, and
// those of one loop share its texts.
struct GroupReport {
  Shared<std::string> source;            // C++ text; empty for the interpreter
  Shared<std::string> schedule;          // where its values live, printed
  Shared<std::string> passes;            // its loops after each pass, if somebody wants to see them
  Shared<std::string> loops;             // loop IR, printed
  Shared<std::vector<std::string>> ops;  // what was fused, in order
  std::string origin;  // "compiled", "memory cache", "disk cache", "interpreter", "NumPy"
  double compile_ms = 0;
  std::optional<Reason> reason;  // why it is not compiled, if so
  std::string note;              // more words of that
};
struct Report {
  Shared<std::string> graph;  // what was asked for, printed
  std::vector<GroupReport> groups;
  std::int64_t bytes_moved =
      0;  // estimate of what the groups read and write, intermediates included
  std::int64_t bytes_minimum = 0;  // inputs read once, outputs written once
  double numpy_ns = 0;             // estimate of what NumPy takes, an operation after the other
};

// How long a caller waits for something that is being built.
struct Patience {
  std::chrono::steady_clock::time_point end;
  // Called every few hundredths of a second; what it throws comes out, and the building goes on.
  std::function<void()> look_around = [] {};
};

class Executable {
 public:
  virtual ~Executable() = default;
  // Waits until it is final, where that can be expected to happen in time.
  virtual void await(const Patience&) const {}
  // Thread-safe; takes no lock of Python's; throws nothing but std::bad_alloc.
  virtual RunStatus run(const RunArgs& args) const = 0;
  virtual const Report& report() const = 0;
  // False while it runs in another way than it will later: its times say nothing yet.
  virtual bool is_final() const { return true; }
  // Roughly how long a run takes on one thread, in nanoseconds.
  virtual double expected_ns() const = 0;
  // Whether it was built for the caller: true for the first who asks. A backend may give the same
  // one for equal graphs, whose report then tells of work that an earlier request paid for.
  bool claim() const { return !claimed_.exchange(true, std::memory_order_relaxed); }

 private:
  mutable std::atomic<bool> claimed_{false};
};

class Backend {
 public:
  virtual ~Backend() = default;
  // Throws Unsupported (has no form here), CompileError, or InternalError.
  virtual std::shared_ptr<const Executable> prepare(const Graph& graph, const RunArgs& layouts) = 0;
};

}  // namespace ufuse::ir
