// Writes. A write to a whole storage is a new value of it (SSA), put into the caller's memory
// later; a write to a part of memory happens at once, after everything that still needs the old
// contents has been computed.
#include <algorithm>

#include "numpy_shim/assign.h"
#include "numpy_shim/layout.h"
#include "tracer/session.h"

namespace ufuse::tracer {

void Session::check_assignable(const LazyArray& target, const Operand& value) const {
  if (!target.is_writeable()) throw Unsupported(Reason::ReadOnly);
  numpy_shim::check_assignable(value, target.layout.dtype);
}

void Session::assign(const LazyArray& target, const Operand& value,
                     const std::shared_ptr<Storage>& donor, bool alone) {
  check_assignable(target, value);
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::assigned(*this, value, target.layout);
  note_nodes(first);
  store(target, node, donor.get(), alone);
}

void Session::write_output(const LazyArray& target, const Operand& value,
                           const std::shared_ptr<Storage>& donor, bool alone) {
  if (value.layout.dtype != target.layout.dtype) {
    const std::size_t first = graph_.size();
    const NodeId cast = ir::cast(graph_, value.node, target.layout.dtype);
    note_nodes(first);
    if (cast.value >= first) output_casts_.insert(cast.value);
  }
  assign(target, value, donor, alone);
}

void Session::assign_where(const LazyArray& target, const Operand& mask, const Operand& value) {
  check_assignable(target, value);
  const NodeId old = read(target);
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::assigned_where(*this, old, target.layout, mask, value);
  note_nodes(first);
  store(target, node);
}

void Session::store(const LazyArray& target, NodeId value, Storage* donor, bool alone) {
  const std::shared_ptr<Storage>& storage = target.storage;
  // What others may look at when nobody here holds it any more cannot wait.
  const bool waits = storage->role == Role::Argument || !storage->shown;
  if (target.is_whole() && (storage->value || (waits && !writes_at_once_))) {
    const NodeId before = std::exchange(storage->value, value);
    list(storage);
    storage->undefined = false;
    if (!storage->memory || !alone) return;
    try {
      compute_due(2);
    } catch (...) {
      // The statement has not been reached unless its value was computed.
      if (storage->value == value) storage->value = before;
      throw;
    }
    return;
  }

  const Computing computing(*this);
  // From here on memory is written at once. The value is held like an array of the user's, so that
  // whatever is computed or overwritten on the way leaves it readable.
  events_.push_back({Event::Kind::Force, Reason::Write, {}, current_.site, nullptr});
  const Dims strides = numpy_shim::c_strides(target.layout.shape, ir::size_of(target.layout.dtype));
  if (donor && !donor->memory) donor->value = {};
  const LazyArray held =
      from_result({value, {target.layout.dtype, target.layout.shape, strides}, false});
  catch_up({held.storage});
  if (storage->value) compute({storage}, false);
  void* data = static_cast<char*>(storage->memory.data) + target.offset;
  const ByteRange range = byte_range(data, target.layout);
  Storages readers;
  for (const auto& other : live()) {
    if (other == held.storage) continue;
    const auto touched = reads(needed({&other->value, 1}));
    const bool reads_it = any_overlap(touched, {&range, 1});
    if (reads_it || writes_at_once_) readers.push_back(other);
  }
  std::vector<Want> wants;
  wants.push_back({read(held), target.layout, {data, storage->memory.owner}, nullptr});
  // Also those that read what is computed now: nobody may hold it later, and then it is gone.
  std::vector<Want> sinks = last_readers(wants, {range});
  compute(std::move(readers), false);
  std::erase_if(sinks, [&](const Want& sink) { return info_[sink.node.value].computed; });
  run(sinks);
  for (Want& stored : wants_of(worth_storing(value))) wants.push_back(std::move(stored));
  run(wants);
  held.storage->value = {};
  run_what_warns_before();
  tell();
  holds_more_ = true;
}

}  // namespace ufuse::tracer
