// What is an array while a call is traced? A storage is one allocation as NumPy would make it; a
// lazy array is an affine view of one.
//
// A storage is in one of three states, told by `memory` and `value`:
//   pending   no memory yet; `value` is its node in the session's graph
//   concrete  memory, no value: reading it makes a graph input of the view's address and strides
//   dirty     memory that is older than `value`; written no later than the call's end
// A literal is a NumPy scalar handed in by the caller: always known, never pending.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "numpy_shim/operand.h"
#include "tracer/byte_range.h"

namespace ufuse::tracer {

using ir::Dims;
using ir::DType;
using ir::NodeId;
using numpy_shim::Layout;
using numpy_shim::ViewStep;

class Session;

// Bytes and whoever keeps them alive. pyext's owner is the ndarray that a view of the memory has as
// its base.
struct Memory {
  void* data = nullptr;
  std::shared_ptr<void> owner;
  explicit operator bool() const { return data != nullptr; }
};

enum class Role : std::uint8_t {
  Argument,   // the caller's array
  Captured,   // met in an operation: an array of somebody else's
  Temporary,  // made in this call
};

struct Storage {
  Session* session = nullptr;  // null once the call is over
  Layout layout;
  NodeId value;
  Memory memory;
  Role role = Role::Temporary;
  bool writeable = true;
  bool undefined = false;    // np.empty: its value may be anything until it is written
  bool spare = false;        // its memory was a dead operand's: used where the value can be written
                             // over what it is made of, given up otherwise
  bool shown = false;        // somebody else may hold a real array on its memory
  bool listed = false;       // the session has it among those that may be pending
  std::uint64_t number = 0;  // the session's storages in the order in which they were made
  int argument = -1;         // position among the session's arguments
  std::optional<ir::Scalar> literal;

  bool is_concrete() const { return literal || (memory && !value); }
  bool is_dirty() const { return memory && value; }
  // Dirty memory that others see: it is written even where a signal ends the call.
  bool is_due() const { return is_dirty() && (role != Role::Temporary || shown); }
  ByteRange bytes() const { return byte_range(memory.data, layout); }
};

struct LazyArray {
  std::shared_ptr<Storage> storage;
  Layout layout;
  std::int64_t offset = 0;       // bytes from the storage's first element
  std::vector<ViewStep> recipe;  // from the storage to the view, in index space
  bool has_recipe = true;  // false: only memory can tell (a view with another dtype, as_strided)
  bool scalar = false;     // a NumPy scalar, which is no 0-d array
  bool read_only = false;  // np.broadcast_to
  bool warned = false;     // NumPy warns when it is written to: np.broadcast_arrays
  bool is_view = false;    // an object of its own, even where it shows the whole storage

  // The same value as an object of its own, as NumPy's methods of scalars make.
  LazyArray another() const;
  // Whether it may be written to here; NumPy raises or warns at any other.
  bool is_writeable() const { return storage->writeable && !read_only && !warned; }
  bool is_whole() const;  // the storage itself: same elements in the same places
  // Where there is no memory yet, those of one storage can be compared.
  ByteRange bytes() const;
};

// Whether an array of this layout, from its first byte on, stays within new memory, of which there
// is as much as its elements take.
bool fits_new_memory(const Layout& layout);

}  // namespace ufuse::tracer
