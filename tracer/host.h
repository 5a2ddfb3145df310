// What a session asks of the world outside: memory, a backend, NumPy itself. pyext implements it
// with Python; the C++ tests without.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/backend.h"
#include "ir/support/error.h"
#include "tracer/storage.h"

namespace ufuse::tracer {

// A value that a request shall put into memory.
struct Want {
  NodeId node;
  Layout layout;
  Memory memory;                     // unset: allocated by the request
  std::shared_ptr<Storage> storage;  // unset: a partial write, or a value nobody holds

  ByteRange bytes() const { return byte_range(memory.data, layout); }
};

struct Site;

// A call of the host's that made arrays of others: NumPy's matmul, for example. What it knows
// beside the arrays is enough to repeat it.
class HostCall {
 public:
  HostCall() = default;
  virtual ~HostCall() = default;
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;
};

class Host {
 public:
  virtual ~Host() = default;
  // As np.empty with these strides.
  virtual Memory allocate(const Layout& layout) = 0;
  // Element by element; the two do not overlap.
  virtual void copy(const ir::Buffer& to, const ir::Buffer& from) = 0;
  // Null when no backend has a form for the graph: NumPy computes the request then.
  virtual std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph,
                                                        const ir::RunArgs& layouts) = 0;
  // Runs what was prepared last. The session's wants say what it computes; nothing has been written
  // to memory that these are made of. May throw when the run was given up: nothing that lasts has
  // been written then.
  virtual ir::RunStatus run(Session& session, std::span<const Want> wants,
                            const ir::Executable& executable, const ir::RunArgs& args) = 0;
  // Computes the targets node by node with NumPy, into their memory, and tells the session what
  // NumPy would have warned of. Targets that are not `given` may get other new memory of their
  // layout.
  virtual void redo(Session& session, std::span<Want> targets, const std::vector<bool>& given) = 0;
  // The user's line that led to a site, which may be one in NumPy's own code.
  virtual Site users_line_of(const Site& site) const = 0;
  // How many threads loops may use.
  virtual int threads() const { return 1; }
  // The arrays that others will find even if a signal ends the call now.
  virtual std::vector<LazyArray> shown() { return {}; }
  // A value is needed in a call that is only described. Throws.
  virtual void refuse() { throw InternalError("a call that is only described needs a value"); }
  // A RuntimeWarning at a line of the user's.
  virtual void warn(const Site& site, const std::string& message) = 0;
};

}  // namespace ufuse::tracer
