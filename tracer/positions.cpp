// Elements at positions that are values themselves, and the elements that a mask picks: what must
// be computed at the operation, because NumPy would raise there or because a size depends on it,
// and what can wait.
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "ir/ranges.h"
#include "numpy_shim/assign.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/take.h"
#include "tracer/session.h"

namespace ufuse::tracer {
namespace {

// Loops that write at positions copy the elements that stay, where NumPy leaves them. That pays
// where there is something to write for one in so many.
constexpr std::int64_t kWorthCopying = 4;

std::int64_t count(const Dims& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

void check_worth(std::int64_t written, const Dims& shape) {
  if (written * kWorthCopying < count(shape)) throw Unsupported(Reason::FewPositions);
}

bool is_mask(const Operand& operand) { return operand.layout.dtype == DType::Bool; }

}  // namespace

// A position outside of its axis is an error at this operation, not where its elements are needed.
// The loops that use the positions look at them once more, so that a recorded call can be repeated
// with others: it is not recorded that they were looked at here. Gives what those loops have to
// look at.
ir::Bounds Session::check_positions(NodeId positions, std::int64_t extent) {
  const Dims& shape = graph_[positions].shape;
  if (std::ranges::find(shape, 0) != shape.end()) return ir::Bounds::Unsigned;
  const auto known = ir::known_range(graph_, positions);
  if (known && known->low >= 0 && known->high < extent) return ir::Bounds::Unsigned;
  if (known && known->low >= -extent && known->high < extent) return ir::Bounds::Signed;
  const auto key = std::pair(positions.value, extent);
  if (within_.contains(key)) return ir::Bounds::Signed;
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::are_within(graph_, positions, extent);
  note_nodes(first);
  events_.push_back({Event::Kind::Force, Reason::Positions, {}, current_.site, nullptr});
  Memory truth;
  if (pure_) {
    const Computing computing(*this);
    std::vector<Want> wants{{node, {DType::Bool, {}, {}}, {}, nullptr}};
    run(wants, /*recorded=*/false);
    truth = wants.front().memory;
    run_what_warns_before();
    tell();
    holds_more_ = true;
  } else {
    // Each call of this function comes here: the positions are kept.
    const LazyArray asked = from_result({node, {DType::Bool, {}, {}}, true});
    force({&asked, 1});
    truth = asked.storage->memory;
  }
  if (*static_cast<const char*>(truth.data) == 0) throw Unsupported(Reason::OutOfBounds);
  within_.insert(key);
  return ir::Bounds::Signed;
}

// A number on which the shape of what follows depends; a recorded call goes on where it is the
// same.
std::int64_t Session::told(NodeId number) {
  if (const auto known = told_.find(number.value); known != told_.end()) return known->second;
  const LazyArray asked = from_result({number, {DType::Int64, {}, {}}, true});
  force({&asked, 1});
  record_outcome({Event::Kind::Force, Reason::Count, {}, current_.site, nullptr}, asked, false);
  std::int64_t value;
  std::memcpy(&value, asked.storage->memory.data, sizeof value);
  told_.emplace(number.value, value);
  return value;
}

Result Session::true_positions(NodeId mask) {
  const std::size_t first = graph_.size();
  mask = known_mask(mask);
  const NodeId count = numpy_shim::count_of(graph_, mask);
  note_nodes(first);
  const Result rows = numpy_shim::nonzero(*this, mask, told(count));
  note_nodes(first);
  note_mask(mask);
  return rows;
}

numpy_shim::Selection Session::select(const LazyArray& x, std::span<const KeyItem> key, Use use) {
  std::vector<numpy_shim::KeyItem> items;
  for (const KeyItem& item : key) {
    const auto* array = std::get_if<Operand>(&item);
    if (array == nullptr) {
      items.emplace_back(std::get<numpy_shim::IndexItem>(item));
      continue;
    }
    const Layout& layout = array->layout;
    // Numbers of these kinds are no arrays to NumPy, or add an axis.
    if (array->weak || layout.shape.empty()) throw Unsupported(Reason::AdvancedIndex);
    if (!is_mask(*array)) {
      if (!ir::is_in(layout.dtype, ir::kInteger)) throw Unsupported(Reason::AdvancedIndex);
      items.emplace_back(numpy_shim::IndexArray{*array});
      continue;
    }
    const Result rows = true_positions(array->node);
    const std::size_t first = graph_.size();
    for (std::size_t a = 0; a < layout.shape.size(); ++a)
      items.emplace_back(numpy_shim::IndexArray{
          numpy_shim::column(*this, rows, static_cast<std::int64_t>(a)), layout.shape[a], true});
    note_nodes(first);
  }
  numpy_shim::Selection selection = numpy_shim::select(x.layout, items);
  if (use == Use::Write)
    check_worth(count(numpy_shim::shape_of(selection)), selection.view.layout.shape);
  if (std::ranges::find(selection.index_shape, 0) != selection.index_shape.end()) return selection;
  for (std::size_t i = 0; i < selection.arrays.size(); ++i) {
    numpy_shim::IndexArray& array = selection.arrays[i];
    if (array.within) continue;
    const std::size_t first = graph_.size();
    const NodeId positions = ir::cast(graph_, array.positions.node, DType::Int64);
    note_nodes(first);
    const auto axis = static_cast<std::size_t>(selection.axes[i]);
    array.within =
        check_positions(positions, selection.view.layout.shape[axis]) == ir::Bounds::Unsigned;
  }
  return selection;
}

LazyArray Session::gather(const LazyArray& x, const numpy_shim::Selection& selection) {
  const NodeId from = read(view(x, selection.view));
  std::optional<numpy_shim::View> transposed;
  const LazyArray result = made([&] {
    numpy_shim::Gathered gathered = numpy_shim::gather(*this, selection, from);
    transposed = std::move(gathered.view);
    return gathered.made;
  });
  return transposed ? view(result, *transposed) : result;
}

void Session::assign_at(const LazyArray& x, const numpy_shim::Selection& selection,
                        const Operand& value) {
  check_assignable(x, value);
  if (assign_picked(x, selection, value)) return;
  const LazyArray target = view(x, selection.view);
  LazyArray selected = target;
  selected.layout.shape = numpy_shim::shape_of(selection);
  const std::size_t before = graph_.size();
  const NodeId fresh = numpy_shim::assigned(*this, value, selected.layout);
  note_nodes(before);
  const NodeId old = read(target);
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::assigned(*this, selection, old, value, fresh);
  note_nodes(first);
  store(target, node);
}

void Session::combine_at(const LazyArray& x, const numpy_shim::Selection& selection,
                         const numpy_shim::Ufunc& ufunc, const std::optional<Operand>& value) {
  if (!x.is_writeable()) throw Unsupported(Reason::ReadOnly);
  const LazyArray target = view(x, selection.view);
  const NodeId old = read(target);
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::combined(*this, selection, old, ufunc, value);
  note_nodes(first, {&node, 1});
  const DType dtype = ir::combined_dtype(graph_, graph_[node]);
  info_[node.value].named_at =
      x.layout.shape.size() == 1 && x.layout.dtype == dtype &&
      (!value || (value->layout.shape.size() <= 1 && value->layout.dtype == dtype));
  store(target, node);
}

LazyArray Session::take(const Operand& x, const Operand& positions,
                        std::optional<std::int64_t> axis, ir::Bounds mode) {
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::as_positions(*this, positions);
  note_nodes(first);
  if (mode == ir::Bounds::Signed)
    mode = check_positions(node, numpy_shim::taken_extent(x.layout, axis));
  return made([&] { return numpy_shim::take(*this, x, node, axis, mode); });
}

void Session::put(const LazyArray& x, const Operand& positions, const Operand& values,
                  ir::Bounds mode) {
  check_assignable(x, values);
  check_worth(positions.weak ? 1 : count(positions.layout.shape), x.layout.shape);
  const NodeId old = read(x);
  const std::size_t first = graph_.size();
  const NodeId node = numpy_shim::as_positions(*this, positions);
  note_nodes(first);
  if (mode == ir::Bounds::Signed)
    mode = check_positions(node, numpy_shim::taken_extent(x.layout, std::nullopt));
  const NodeId written = numpy_shim::put(*this, old, node, values, mode);
  note_nodes(first);
  if (written != old) store(x, written);
}

LazyArray Session::nonzero(const Operand& mask) {
  if (mask.weak || mask.layout.shape.empty()) throw Unsupported(Reason::Arguments);
  const std::size_t first = graph_.size();
  const NodeId truths = ir::cast(graph_, mask.node, DType::Bool);
  note_nodes(first);
  return from_result(true_positions(truths));
}

LazyArray Session::argwhere(const Operand& mask) {
  const LazyArray rows = nonzero(mask);
  const NodeId node = read(rows);
  // NumPy stacks the columns, and transposes that.
  const LazyArray stacked = made([&] {
    const NodeId columns = ir::transpose(graph_, node, {1, 0});
    const Dims shape = graph_[columns].shape;
    return Result{columns, {DType::Int64, shape, numpy_shim::c_strides(shape, 8)}, false};
  });
  return view(stacked, numpy_shim::transpose(stacked.layout, std::nullopt));
}

LazyArray Session::compress(const Operand& x, const Operand& mask,
                            std::optional<std::int64_t> axis) {
  if (mask.weak || mask.layout.shape.size() != 1) throw Unsupported(Reason::Arguments);
  const std::size_t first = graph_.size();
  const NodeId truths = ir::cast(graph_, mask.node, DType::Bool);
  note_nodes(first);
  const Result rows = true_positions(truths);
  const Operand positions = numpy_shim::column(*this, rows, 0);
  note_nodes(first);
  // A mask may be longer than the axis, as long as what is behind it is false.
  const bool within = mask.layout.shape.front() <= numpy_shim::taken_extent(x.layout, axis);
  return take(x, positions, axis, within ? ir::Bounds::Unsigned : ir::Bounds::Signed);
}

LazyArray Session::bincount(const Operand& positions, const std::optional<Operand>& weights,
                            std::int64_t at_least) {
  const Layout& layout = positions.layout;
  if (positions.weak || layout.shape.size() != 1 || layout.shape.front() == 0 ||
      !ir::is_in(layout.dtype, ir::kBool | ir::kInteger))
    throw Unsupported(Reason::Arguments);
  const std::size_t first = graph_.size();
  const NodeId numbers = ir::cast(graph_, positions.node, DType::Int64);
  const auto extreme = [&](ir::Reduction r) { return ir::reduce(graph_, r, numbers, {0}, {}); };
  const NodeId zero = ir::constant(graph_, DType::Int64, {});
  const NodeId within =
      ir::elementwise(graph_, ir::Op::GreaterEqual, {extreme(ir::Reduction::Min), zero});
  const NodeId most = extreme(ir::Reduction::Max);
  note_nodes(first);
  const LazyArray asked[] = {from_result({within, {DType::Bool, {}, {}}, true}),
                             from_result({most, {DType::Int64, {}, {}}, true})};
  force(asked);
  const Event event{Event::Kind::Force, Reason::Count, {}, current_.site, nullptr};
  record_outcome(event, asked[0], true);
  record_outcome(event, asked[1], false);
  if (*static_cast<const char*>(asked[0].storage->memory.data) == 0)
    throw Unsupported(Reason::OutOfBounds);
  std::int64_t largest;
  std::memcpy(&largest, asked[1].storage->memory.data, sizeof largest);
  const std::size_t counted = graph_.size();
  const LazyArray result = made([&] {
    return numpy_shim::bincount(*this, positions, weights, std::max(largest + 1, at_least));
  });
  // NumPy adds weights up without a look at floating-point flags.
  for (std::size_t i = counted; i < info_.size(); ++i) info_[i].report_mask = 0;
  return result;
}

}  // namespace ufuse::tracer
