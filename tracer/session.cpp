// A session's arrays and operations: what is there, what is read, what is made. Requests stand in
// request.cpp, writes in write.cpp.
#include "tracer/session.h"

#include <algorithm>
#include <array>
#include <utility>

#include "numpy_shim/accumulate.h"
#include "numpy_shim/assign.h"
#include "numpy_shim/create.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/view.h"

namespace ufuse::tracer {
namespace {

// Nodes that must be pending before a loop that comes around is flushed: enough to be worth a run,
// few enough to schedule well.
constexpr std::size_t kFlushNodes = 100;
// So many are flushed wherever the call stands. What is done with a graph takes time as its length
// says, mostly; statements that repeat should still be in one, for the sake of equal loops.
constexpr std::size_t kMostNodes = 10'000;
// Steps of a view that are remembered, each of which is looked at where the view is read.
constexpr std::size_t kLongestRecipe = 64;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  return (hash ^ value) * 0x9E3779B97F4A7C15ull + (hash >> 29);
}

std::uint64_t key_of(const void* data, const Layout& layout) {
  std::uint64_t hash =
      mix(reinterpret_cast<std::uintptr_t>(data), static_cast<std::uint64_t>(layout.dtype));
  for (std::int64_t n : layout.shape) hash = mix(hash, static_cast<std::uint64_t>(n));
  for (std::int64_t n : layout.strides) hash = mix(hash, static_cast<std::uint64_t>(n));
  return hash;
}

}  // namespace

Session::Session(Host& host, ir::LoopTable& loops, std::uint8_t report_mask)
    : host_(host), loops_(loops), first_mask_(report_mask) {
  current_.report_mask = report_mask;
}

Session::~Session() {
  for (const auto& storage : live()) storage->session = nullptr;
  for (const auto& weak : storages_)
    if (const auto storage = weak.lock()) storage->session = nullptr;
}

// A number that was used a few operations ago is the same one: so are operations with it then.
NodeId Session::param(DType dtype, ir::Scalar bits, int number) {
  constexpr std::size_t kRecent = 8;
  const ParamRow row{dtype, bits, -1, number};
  for (std::size_t i = params_.size(); i > 0 && i + kRecent > params_.size(); --i)
    if (params_[i - 1] == row) return ir::param(graph_, static_cast<std::uint32_t>(i - 1), dtype);
  params_.push_back(row);
  return ir::param(graph_, static_cast<std::uint32_t>(params_.size() - 1), dtype);
}

void Session::enter(Site site, bool scalar_operator) {
  prune_computed();
  current_.site = site;
  current_.scalar_operator = scalar_operator;
  const std::uint64_t key = mix(site.code, static_cast<std::uint64_t>(site.instruction));
  const bool known_site = !sites_.insert(key).second;
  if (is_described()) return;
  if (graph_.size() > (known_site ? kFlushNodes : kMostNodes)) {
    record({Event::Kind::Flush, Reason::Flush, {}, site, nullptr});
    flush();
    sites_.insert(key);
  } else if (known_site) {
    compute_due(1);
  }
}

std::shared_ptr<Storage> Session::make_storage(const Layout& layout) {
  auto storage = std::make_shared<Storage>();
  storage->session = this;
  storage->layout = layout;
  if (storages_.size() > 2 * storages_after_sweep_ + 64) {
    std::erase_if(storages_, [](const auto& weak) { return weak.expired(); });
    storages_after_sweep_ = storages_.size();
  }
  storages_.push_back(storage);
  storage->number = made_storages_++;
  return storage;
}

LazyArray Session::whole(std::shared_ptr<Storage> storage, bool scalar) {
  LazyArray array;
  array.layout = storage->layout;
  array.storage = std::move(storage);
  array.scalar = scalar;
  return array;
}

LazyArray Session::argument(const Layout& layout, Memory memory, bool writeable) {
  const ByteRange range = byte_range(memory.data, layout);
  if (given_writeable_.overlaps(range) || (writeable && given_.overlaps(range))) write_at_once();
  given_.add(range);
  if (writeable) given_writeable_.add(range);
  note_owned(memory, {arguments_, -1, -1, 0});
  LazyArray array = adopt(layout, std::move(memory), writeable, Role::Argument);
  array.storage->argument = arguments_++;
  return array;
}

LazyArray Session::scalar_argument(DType dtype, ir::Scalar bits) {
  LazyArray array = literal(dtype, bits);
  array.storage->role = Role::Argument;
  array.storage->argument = arguments_++;
  return array;
}

LazyArray Session::adopt(const Layout& layout, Memory memory, bool writeable, Role role) {
  auto storage = make_storage(layout);
  storage->memory = std::move(memory);
  storage->writeable = writeable;
  storage->role = role;
  return whole(std::move(storage));
}

LazyArray Session::literal(DType dtype, ir::Scalar bits) {
  auto storage = make_storage({dtype, {}, {}});
  storage->literal = bits;
  storage->writeable = false;
  return whole(std::move(storage), true);
}

LazyArray Session::constant(const Layout& layout, Memory memory) {
  if (pure_) {
    constants_.push_back(memory);
    note_owned(memory, {-1, -1, -1, 0, memory.data});
  }
  return adopt(layout, std::move(memory), false, Role::Captured);
}

LazyArray Session::from_result(const Result& result) {
  auto storage = make_storage(result.layout);
  storage->value = result.node;
  list(storage);
  return whole(std::move(storage), result.scalar);
}

LazyArray Session::full(const Layout& layout, NodeId value) {
  const std::size_t first = graph_.size();
  const NodeId node = ir::broadcast_to(graph_, ir::cast(graph_, value, layout.dtype), layout.shape);
  note_nodes(first);
  return from_result({node, layout, false});
}

LazyArray Session::empty(const Layout& layout) {
  LazyArray array = full(layout, ir::constant(graph_, layout.dtype, {}));
  array.storage->undefined = true;
  return array;
}

LazyArray Session::arange(std::int64_t start, std::int64_t step, std::int64_t elements,
                          DType dtype) {
  return made([&] { return numpy_shim::arange(*this, start, step, elements, dtype); });
}

Operand Session::operand(const LazyArray& array) {
  return {read(array), array.layout, array.scalar, std::nullopt};
}

NodeId Session::read(const LazyArray& array) {
  const std::shared_ptr<Storage>& storage = array.storage;
  if (storage->literal) {
    const auto [it, is_new] = literals_.try_emplace(storage);
    if (is_new) {
      const std::size_t first = graph_.size();
      it->second = param(storage->layout.dtype, *storage->literal);
      params_.back().argument = storage->argument;
      note_nodes(first);
    }
    return it->second;
  }
  if (storage->value && !array.has_recipe) force({&array, 1});
  const std::size_t first = graph_.size();
  const NodeId node =
      storage->value ? numpy_shim::apply(graph_, storage->value, array.recipe) : input_of(array);
  note_nodes(first);
  return node;
}

Operand Session::loop_operand(const LazyArray& array) {
  Operand operand = this->operand(array);
  if (!array.storage->value || !ir::is_in(array.layout.dtype, ir::kInexact)) return operand;
  if (!numpy_shim::is_packed_inside(array.layout)) {
    force({&array, 1});
    return this->operand(array);
  }
  // A copy of memory has the memory's node.
  NodeId base = operand.node;
  while (is_index_map(graph_[base].op)) base = graph_[base].inputs[0];
  const bool plain =
      base == operand.node && (graph_[base].op != ir::Op::Input ||
                               numpy_shim::is_packed_inside(inputs_[graph_[base].id].layout));
  if (graph_[base].op == ir::Op::Input && !plain) {
    const std::size_t first = graph_.size();
    operand.node = ir::elementwise(graph_, ir::Op::Copy, {operand.node});
    note_nodes(first);
  }
  return operand;
}

NodeId Session::input_of(const LazyArray& array) {
  const Storage& storage = *array.storage;
  void* data = static_cast<char*>(storage.memory.data) + array.offset;
  const std::uint64_t key = key_of(data, array.layout);
  const auto [begin, end] = input_index_.equal_range(key);
  for (auto it = begin; it != end; ++it) {
    const InputRow& row = inputs_[it->second];
    if (!row.stale && row.memory.data == data && row.layout == array.layout)
      return ir::input(graph_, it->second, array.layout.dtype, array.layout.shape);
  }
  const auto id = static_cast<std::uint32_t>(inputs_.size());
  inputs_.push_back(
      {array.layout, {data, storage.memory.owner}, storage.argument, array.offset, false});
  input_index_.emplace(key, id);
  return ir::input(graph_, id, array.layout.dtype, array.layout.shape);
}

// Gives nodes made since `first` the current line, and notes who asked for a node that was
// there already: another line, or the same one again.
void Session::note_nodes(std::size_t first, std::span<const NodeId> results) {
  for (std::size_t i = info_.size(); i < graph_.size(); ++i)
    recorded_ns_ += expected_ns_of(graph_, graph_.at(i));
  if (graph_.size() > info_.size()) info_.resize(graph_.size(), current_);
  for (NodeId node : results)
    if (node.value < first && may_warn(node))
      repeats_.push_back({node, current_.site, graph_.size()});
}

void Session::disown_since(std::size_t mark) {
  note_nodes(mark);
  for (std::size_t i = mark; i < info_.size(); ++i) info_[i].computed = true;
}

std::vector<LazyArray> Session::call(const numpy_shim::Ufunc& ufunc,
                                     std::span<const Operand> operands,
                                     const numpy_shim::UfuncOptions& options) {
  const std::size_t first = graph_.size();
  const std::vector<Result> results = numpy_shim::call(*this, ufunc, operands, options);
  note_nodes(first);
  const bool inexact = std::ranges::any_of(operands, [](const Operand& x) {
    return !x.weak && ir::is_in(x.layout.dtype, ir::kInexact);
  });
  for (const Result& result : results) {
    const auto& inputs = graph_[result.node].inputs;
    if (!inexact || result.node.value < first || inputs.size() != operands.size()) continue;
    bool casts = false;
    CallRecord record;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      record.operands.push_back(operands[i].node);
      casts |= !operands[i].weak && operands[i].layout.dtype != graph_[inputs[i]].dtype;
    }
    if (casts) call_records_.emplace(result.node.value, std::move(record));
  }
  has_several_outputs_ |= results.size() > 1;
  std::vector<LazyArray> arrays;
  arrays.reserve(results.size());
  for (const Result& result : results) {
    note_nodes(first, {&result.node, 1});
    arrays.push_back(from_result(result));
  }
  return arrays;
}

void Session::reuse_memory(const LazyArray& result, const LazyArray& operand) {
  Storage& storage = *result.storage;
  if (!operand.storage->memory || storage.layout != operand.storage->layout) return;
  storage.memory = operand.storage->memory;
  storage.spare = true;
}

LazyArray Session::reduce(std::string_view ufunc, const Operand& x,
                          const numpy_shim::ReduceOptions& options) {
  const std::size_t first = graph_.size();
  const Result result = numpy_shim::reduce(*this, ufunc, x, options);
  NodeId reduced = result.node;  // what gives it axes of extent 1 asks for nothing again
  while (graph_[reduced].op == ir::Op::Reshape) reduced = graph_[reduced].inputs[0];
  note_nodes(first, {&reduced, graph_[reduced].op == ir::Op::Reduce ? 1u : 0u});
  for (std::size_t i = first; i < graph_.size(); ++i)
    if (graph_[graph_.at(i)].op == ir::Op::Reduce)
      reduce_records_.try_emplace(static_cast<std::uint32_t>(i), ReduceRecord{x.node, x.layout});
  return from_result(result);
}

LazyArray Session::arg_reduce(bool largest, const Operand& x, std::optional<std::int64_t> axis,
                              bool keepdims) {
  return made([&] { return numpy_shim::arg_reduce(*this, largest, x, axis, keepdims); });
}

Operand Session::as_array(const Operand& operand) {
  if (!operand.weak) return operand;
  const DType dtype = numpy_shim::default_dtype(*operand.weak);
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::as_dtype(*this, operand, dtype);
  note_nodes(first);
  return {node, {dtype, {}, {}}, false, std::nullopt};
}

Operand Session::flattened(const Operand& operand) {
  const std::size_t first = graph_.size();
  Operand flat = numpy_shim::flattened(graph_, operand);
  note_nodes(first);
  return flat;
}

LazyArray Session::accumulate(const numpy_shim::Ufunc& ufunc, const Operand& x, std::int64_t axis,
                              std::optional<DType> dtype) {
  return made([&] { return numpy_shim::accumulate(*this, ufunc, x, axis, dtype); });
}

LazyArray Session::where(const Operand& condition, const Operand& x, const Operand& y) {
  return made([&] { return numpy_shim::where(*this, condition, x, y); });
}

LazyArray Session::view(const LazyArray& array, const numpy_shim::View& view) {
  LazyArray result = array;
  result.layout = view.layout;
  result.offset += view.offset;
  result.is_view = true;
  // A view of a view of a view, as `x = x[1:]` makes in a loop: memory tells it as well.
  if (result.recipe.size() + view.steps.size() > kLongestRecipe) {
    result.recipe.clear();
    result.has_recipe = false;
  } else if (result.has_recipe) {
    result.recipe.insert(result.recipe.end(), view.steps.begin(), view.steps.end());
  }
  result.scalar = false;
  return result;
}

LazyArray Session::copy(const LazyArray& array, DType dtype, Dims strides) {
  const NodeId source = read(array);
  const Layout layout{dtype, array.layout.shape, std::move(strides)};
  return made(
      [&] {
        return Result{ir::cast(graph_, source, dtype), layout, array.scalar};
      },
      source);
}

LazyArray Session::part(const LazyArray& array, ir::Op op) {
  return made([&] {
    const NodeId node = ir::elementwise(graph_, op, {read(array)});
    return Result{node, {ir::real_part(array.layout.dtype), {}, {}}, true};
  });
}

LazyArray Session::reshaped_copy(const LazyArray& array, const Dims& shape, bool fortran) {
  const NodeId source = read(array);
  return made(
      [&] { return numpy_shim::reshaped_copy(graph_, source, array.layout, shape, fortran); },
      source);
}

std::shared_ptr<Storage> Session::storage_at(const ByteRange& range) const {
  looked_at_ += static_cast<std::int64_t>(storages_.size());
  for (const auto& weak : storages_) {
    auto storage = weak.lock();
    if (!storage || !storage->memory || storage->role == Role::Captured) continue;
    if (storage->bytes().contains(range)) return storage;
  }
  return nullptr;
}

bool Session::knows_part_of(const ByteRange& range) const {
  looked_at_ += static_cast<std::int64_t>(storages_.size());
  return std::ranges::any_of(storages_, [&](const auto& weak) {
    const auto storage = weak.lock();
    return storage && storage->memory && storage->role != Role::Captured &&
           range.overlaps(storage->bytes());
  });
}

void Session::write_at_once() {
  if (!writes_at_once_) flush();
  writes_at_once_ = true;
}

bool Session::has_untold() const {
  return std::ranges::any_of(raised_, [](const auto& row) { return !row.second.told; }) ||
         // A value that raised when it was computed was asked for again, which computed nothing.
         std::ranges::any_of(
             repeats_, [&](const Repeat& r) { return !r.told && raised_.contains(r.node.value); });
}

// One warning for each time that a node's value was asked for, in the program's order.
void Session::tell() {
  if (!has_untold()) return;
  struct Told {
    std::size_t position;
    Site site;
    std::string message;
  };
  std::vector<Told> told;
  // A repeat stands before the node that was made next and has the number.
  for (Repeat& repeat : repeats_) {
    const auto it = raised_.find(repeat.node.value);
    if (it == raised_.end() || std::exchange(repeat.told, true)) continue;
    for (const std::string& message : it->second.messages)
      told.push_back({repeat.position, repeat.site, message});
  }
  for (auto& [node, raised] : raised_) {
    if (std::exchange(raised.told, true) || info_[node].moved) continue;
    for (const std::string& message : raised.messages)
      told.push_back({node, info_[node].site, message});
  }
  std::ranges::stable_sort(told, {}, &Told::position);
  for (const Told& one : told) host_.warn(one.site, one.message);
}

bool Session::has_pending_warnings() const {
  for (std::size_t i = 0; i < info_.size(); ++i)
    if (!info_[i].computed && may_warn(graph_.at(i))) return true;
  return false;
}

bool Session::write_pending(const ByteRange& range) {
  bool shared = false;
  std::vector<LazyArray> dirty;
  looked_at_ += static_cast<std::int64_t>(storages_.size());
  for (const auto& weak : storages_) {
    auto storage = weak.lock();
    if (!storage || !storage->memory || storage->role == Role::Captured) continue;
    if (!range.overlaps(storage->bytes())) continue;
    shared |= storage->writeable;
    if (storage->value) dirty.push_back(whole(std::move(storage)));
  }
  if (!dirty.empty()) force(dirty);
  return shared;
}

void Session::record(Event event, bool repeated) {
  const bool own = event.kind == Event::Kind::Run || event.kind == Event::Kind::Redo ||
                   event.kind == Event::Kind::Flush;
  pure_ &= own || repeated;
  event.site = host_.users_line_of(event.site);
  events_.push_back(std::move(event));
}

const ReduceRecord* Session::reduce_record(NodeId node) const {
  const auto it = reduce_records_.find(node.value);
  return it == reduce_records_.end() ? nullptr : &it->second;
}

const CallRecord* Session::call_record(NodeId node) const {
  const auto it = call_records_.find(node.value);
  return it == call_records_.end() ? nullptr : &it->second;
}

const Want* Session::computed(NodeId node) const {
  const auto it = computed_.find(node.value);
  return it == computed_.end() ? nullptr : &it->second;
}

const Want* Session::redone(NodeId node) const {
  const auto it = redone_.find(node.value);
  return it == redone_.end() ? nullptr : &it->second;
}

// A node that may raise a floating-point flag, which its line has reported.
bool Session::may_warn(NodeId id) const {
  if (id.value < info_.size() && info_[id.value].report_mask == 0) return false;
  return ir::may_raise(graph_, graph_[id]);
}

// Arithmetic of one rounding: the flags of the loop are those that NumPy reports. Halves are
// rounded by more arithmetic, of which g++ computes lanes that nobody asked for.
bool Session::tells_by_flags(NodeId id) const {
  const ir::Node& node = graph_[id];
  const bool exact_flags = node.op == ir::Op::Add || node.op == ir::Op::Subtract ||
                           node.op == ir::Op::Multiply || node.op == ir::Op::Divide;
  return exact_flags && ir::is_in(node.dtype, ir::kFloat) && node.dtype != DType::Float16 &&
         !info_[id.value].scalar_operator;
}

}  // namespace ufuse::tracer
