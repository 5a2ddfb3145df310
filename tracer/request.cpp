// Requests: which values are computed together, on which memory, and what is known afterwards.
#include <algorithm>

#include "ir/build.h"
#include "ir/support/checked.h"
#include "numpy_shim/layout.h"
#include "tracer/session.h"

namespace ufuse::tracer {
namespace {

ir::Buffer buffer_of(const Memory& memory, const Layout& layout) {
  return {memory.data, layout.dtype, layout.shape, layout.strides};
}

// Computing these again costs nothing, so they are no reason to put an array into memory early.
bool is_free(const ir::Node& node) { return ir::is_leaf(node.op) || node.op == ir::Op::Broadcast; }

// The memory that computing arrays overwrites.
std::vector<ByteRange> written_by(const std::vector<std::shared_ptr<Storage>>& wanted) {
  std::vector<ByteRange> written;
  for (const auto& storage : wanted)
    if (storage->value && storage->is_dirty()) written.push_back(storage->bytes());
  return written;
}

// Writing an array once and reading another one for it.
double pass_ns(const Storage& storage) {
  return kPassByte * static_cast<double>(numpy_shim::bytes_of(storage.layout));
}

}  // namespace

Session::Storages Session::live() {
  Storages found;
  std::erase_if(listed_, [&](const std::weak_ptr<Storage>& weak) {
    auto storage = weak.lock();
    const bool is_live = storage && storage->value;
    if (storage) storage->listed = is_live;
    if (is_live) found.push_back(std::move(storage));
    return !is_live;
  });
  std::ranges::sort(found, {}, [](const auto& storage) { return storage->number; });
  return found;
}

void Session::list(const std::shared_ptr<Storage>& storage) {
  if (std::exchange(storage->listed, true)) return;
  listed_.push_back(storage);
}

// The nodes that computing `roots` goes through, operands first. Nodes that stand in memory are
// gone to but not through.
std::vector<NodeId> Session::needed(std::span<const NodeId> roots) const {
  std::vector<bool> seen(graph_.size());
  std::vector<NodeId> stack(roots.begin(), roots.end()), found;
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (seen[id.value]) continue;
    seen[id.value] = true;
    found.push_back(id);
    if (computed_.contains(id.value)) continue;
    const auto& inputs = graph_[id].inputs;
    stack.insert(stack.end(), inputs.begin(), inputs.end());
  }
  std::ranges::sort(found, {}, &NodeId::value);
  return found;
}

std::vector<ByteRange> Session::reads(const std::vector<NodeId>& cone) const {
  std::vector<ByteRange> ranges;
  for (NodeId id : cone) {
    if (const Want* standing = computed(id))
      ranges.push_back(standing->bytes());
    else if (graph_[id].op == ir::Op::Input)
      ranges.push_back(inputs_[graph_[id].id].bytes());
  }
  return ranges;
}

// Adds the live arrays that the wanted ones are made of (a loop must not compute them again), and
// those that still need memory which writing the wanted ones overwrites.
void Session::close_over(Storages& wanted) {
  Storages others = live();
  std::erase_if(others,
                [&](const auto& s) { return std::ranges::find(wanted, s) != wanted.end(); });
  for (bool grown = true; grown && !others.empty();) {
    grown = false;
    std::vector<NodeId> roots;
    for (const auto& storage : wanted)
      if (storage->value) roots.push_back(storage->value);
    const std::vector<ByteRange> written = written_by(wanted);
    const std::vector<NodeId> cone = needed(roots);
    const auto belongs = [&](const std::shared_ptr<Storage>& s) {
      if (!is_free(graph_[s->value]) &&
          std::ranges::binary_search(cone, s->value.value, {}, &NodeId::value))
        return true;
      return !written.empty() && any_overlap(reads(needed({&s->value, 1})), written);
    };
    for (std::size_t i = 0; i < others.size();) {
      if (!belongs(others[i])) {
        ++i;
        continue;
      }
      wanted.push_back(others[i]);
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      grown = true;
    }
  }
}

// The live values that a node is made of and that it takes longer to compute again than to store.
Session::Storages Session::worth_storing(NodeId node) {
  Storages found = live();
  std::erase_if(found, [&](const auto& s) {
    return s->memory || s->value == node || is_free(graph_[s->value]);
  });
  if (found.empty()) return found;
  const std::vector<NodeId> cone = needed({&node, 1});
  std::erase_if(found, [&](const auto& s) {
    return !std::ranges::binary_search(cone, s->value.value, {}, &NodeId::value);
  });
  std::ranges::sort(found, {}, [](const auto& s) { return s->value.value; });  // operands first
  std::unordered_set<std::uint32_t> stored;
  std::erase_if(found, [&](const auto& s) {
    const std::vector<NodeId> made_of = needed({&s->value, 1});
    double ns = 0;
    for (NodeId id : made_of)
      if (!stored.contains(id.value) && !computed(id)) ns += expected_ns_of(graph_, id);
    if (ns / host_.threads() < pass_ns(*s)) return true;
    for (NodeId id : made_of) stored.insert(id.value);
    return false;
  });
  return found;
}

std::vector<Want> Session::wants_of(const Storages& wanted) const {
  std::vector<Want> wants;
  for (const auto& storage : wanted)
    if (storage->value)
      wants.push_back({storage->value, storage->layout, storage->memory, storage});
  return wants;
}

// Values that nobody holds any more but whose computation may warn: NumPy would have computed them.
std::vector<Want> Session::dead_sinks(const std::vector<Want>& wants) const {
  std::vector<NodeId> roots;
  for (const Want& want : wants) roots.push_back(want.node);
  std::vector<bool> covered(graph_.size());
  for (NodeId id : needed(roots)) covered[id.value] = true;
  std::vector<Want> sinks;
  for (std::size_t i = graph_.size(); i-- > 0;) {
    const NodeId id = graph_.at(i);
    if (covered[i] || info_[i].computed || !(may_warn(id) || ir::may_fail(graph_[id]))) continue;
    const std::vector<NodeId> cone = needed({&id, 1});
    const bool readable = std::ranges::none_of(cone, [&](NodeId n) {
      return graph_[n].op == ir::Op::Input && !computed_.contains(n.value) &&
             inputs_[graph_[n].id].stale;
    });
    if (!readable) continue;
    for (NodeId n : cone) covered[n.value] = true;
    const ir::Node& node = graph_[id];
    sinks.push_back(
        {id,
         {node.dtype, node.shape, numpy_shim::c_strides(node.shape, ir::size_of(node.dtype))},
         {},
         nullptr});
  }
  return sinks;
}

// Those of them that read memory which is overwritten now: they cannot be computed later.
std::vector<Want> Session::last_readers(const std::vector<Want>& wants,
                                        const std::vector<ByteRange>& written) const {
  if (written.empty()) return {};
  std::vector<Want> sinks = dead_sinks(wants);
  std::erase_if(sinks, [&](const Want& sink) {
    return !any_overlap(reads(needed({&sink.node, 1})), written);
  });
  return sinks;
}

// Whether computing these is expected to take so many times what is long for them.
bool Session::is_long(const Storages& wanted, double times) const {
  std::vector<NodeId> roots;
  double ns = 0, largest = 0;
  for (const auto& storage : wanted) {
    if (!storage->value) continue;
    roots.push_back(storage->value);
    const double pass = pass_ns(*storage);
    ns += pass;
    largest = std::max(largest, pass);
  }
  for (NodeId id : needed(roots))
    if (!computed(id)) ns += expected_ns_of(graph_, id);
  return ns / host_.threads() >= times * std::max(kLongDue, kPasses * largest / host_.threads());
}

// What has to be computed even where a signal ends the call: what is pending for memory that others
// see, and these.
Session::Storages Session::due(std::span<const LazyArray> shown) {
  Storages found = live();
  std::erase_if(found, [&](const auto& storage) {
    return !storage->is_due() && std::ranges::none_of(shown, [&](const LazyArray& array) {
      return array.storage == storage;
    });
  });
  return found;
}

// Early, where it would take longer than a user waits for the answer to Ctrl-C.
void Session::compute_due(double times) {
  if (!may_take_long()) return;
  Storages found = due(host_.shown());
  if (!is_long(found, times)) return;
  record({Event::Kind::Flush, Reason::LongDue, {}, current_.site, nullptr});
  compute(std::move(found), false);
}

void Session::show(std::span<const LazyArray> arrays) {
  Storages pending;
  for (const LazyArray& array : arrays)
    if (array.storage->session == this) pending.push_back(array.storage);
  if (is_long(pending, 2)) force(arrays);
}

// Between the writes of two statements, memory is as no moment of the program leaves it, and a run
// must not be given up. So what is behind is written before a run that takes long.
void Session::catch_up(const Storages& wanted) {
  if (!behind_ || !may_take_long() || !is_long(wanted, 1)) return;
  behind_ = false;
  compute(due({}), false);
}

void Session::compute(Storages wanted, bool with_sinks) {
  const Computing computing(*this);
  catch_up(wanted);
  // NumPy warns once for all results of np.divmod, so they are computed in one request.
  if (!with_sinks && has_several_outputs_ && has_pending_warnings()) {
    wanted = live();
    with_sinks = true;
  }
  close_over(wanted);
  std::vector<Want> wants = wants_of(wanted);
  const auto sinks = with_sinks ? dead_sinks(wants) : last_readers(wants, written_by(wanted));
  wants.insert(wants.end(), sinks.begin(), sinks.end());
  run(wants);
  if (!with_sinks) run_what_warns_before();
  tell();
  holds_more_ = true;
}

// What stands before a line that warns, warns before it.
void Session::run_what_warns_before() {
  if (!has_untold() || !has_pending_warnings()) return;
  pure_ = false;  // a call that does not warn goes another way
  std::vector<Want> wants = wants_of(live());
  for (Want& sink : dead_sinks(wants)) wants.push_back(std::move(sink));
  run(wants);
}

void Session::run(std::vector<Want>& wants, bool recorded) {
  if (is_described()) check_described(wants);
  // What may hold anything only needs memory.
  Storages made;
  std::erase_if(wants, [&](Want& want) {
    if (!want.storage || !want.storage->undefined) return false;
    if (!want.storage->memory) {
      want.storage->memory = host_.allocate(want.layout);
      made.push_back(want.storage);
    }
    want.storage->value = {};
    want.storage->undefined = false;
    return true;
  });
  if (pure_ && !made.empty()) record_memory(made);
  if (wants.empty()) return;

  // A graph of its own, with inputs and parameters numbered anew.
  RecordedRun request;
  ir::Graph graph;
  std::vector<ir::Buffer> inputs, outputs;
  std::vector<ir::Scalar> params;
  std::unordered_map<std::uint32_t, NodeId> renamed;
  bool& may_redo = request.may_redo;
  std::optional<NodeId>& sole = request.sole;
  std::size_t computing = 0;
  std::vector<NodeId> roots, computed_now;
  for (const Want& want : wants) roots.push_back(want.node);
  for (NodeId id : needed(roots)) {
    ir::Node node = graph_[id];
    const Want* standing = computed(id);
    if (standing || node.op == ir::Op::Input) {
      const InputRow row =
          standing ? InputRow{standing->layout, standing->memory, -1, 0, false} : inputs_[node.id];
      renamed[id.value] =
          ir::input(graph, static_cast<std::uint32_t>(inputs.size()), node.dtype, node.shape);
      inputs.push_back(buffer_of(row.memory, row.layout));
      request.inputs.push_back(row);
      continue;
    }
    if (node.op == ir::Op::Param) {
      request.params.push_back(params_[node.id]);
      params.push_back(params_[node.id].bits);
      node.id = static_cast<std::uint32_t>(params.size() - 1);
    }
    for (NodeId& operand : node.inputs) operand = renamed.at(operand.value);
    if (may_warn(id)) request.report_mask |= info_[id.value].report_mask;
    may_redo |= ir::may_redo(node);
    if (!ir::is_leaf(node.op) && !ir::is_index_map(node.op)) {
      ++computing;
      sole = id;
    }
    computed_now.push_back(id);
    renamed[id.value] = graph.add(std::move(node));
  }
  for (NodeId root : roots) graph.outputs.push_back(renamed.at(root.value));
  if constexpr (kChecked) ir::verify(graph, &loops_);

  // Memory. Given memory that the request also reads is overwritten in place only where the read is
  // element by element the same and nothing could ask for a second computation, not even to learn
  // which operation raised a flag; otherwise the result goes elsewhere first.
  if (computing != 1 || !tells_by_flags(*sole)) sole.reset();
  const bool once = !may_redo && (request.report_mask == 0 || sole);
  std::vector<Want> targets;
  std::vector<bool> was_given;
  std::vector<char>& lasting = request.direct;
  for (Want& want : wants) {
    bool given = static_cast<bool>(want.memory);
    int same = -1;
    bool apart = true;
    if (given) {
      const ByteRange range = want.bytes();
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!range.overlaps(request.inputs[i].bytes())) continue;
        const bool identical =
            inputs[i].data == want.memory.data && request.inputs[i].layout == want.layout;
        if (!apart || !identical || !once) same = -2;
        if (same != -2) same = static_cast<int>(i);
        apart = false;
      }
    }
    const bool direct = given && (apart || same >= 0);
    if (!direct && want.storage && want.storage->spare) {
      want.memory = {};
      given = false;
    }
    was_given.push_back(given);
    Want target{want.node, want.layout, want.memory, nullptr};
    if (!direct) {
      // What is copied later must not have the gaps of the view it goes to.
      if (given)
        target.layout.strides =
            numpy_shim::like_strides(want.layout, ir::size_of(want.layout.dtype));
      target.memory = host_.allocate(target.layout);
    }
    request.alias.push_back(direct ? std::max(same, -1) : -1);
    lasting.push_back(direct);
    outputs.push_back(buffer_of(target.memory, target.layout));
    request.layouts.push_back(target.layout);
    targets.push_back(std::move(target));
  }

  const ir::RunArgs args{inputs, params, outputs, request.alias, lasting};
  request.executable = host_.prepare(graph, args);
  std::optional<Reason> why_redo;
  if (!request.executable) why_redo = Reason::NoBackend;
  if (request.executable) {
    const ir::RunStatus status = host_.run(*this, targets, *request.executable, args);
    const std::uint32_t raised = status.fp & request.report_mask;
    if (status.redo)
      why_redo = status.why;
    else if (raised != 0 && !sole)
      why_redo = Reason::Warning;
    else if (raised != 0)
      note_raised(*sole, numpy_shim::error_messages(ir::op_info(graph_[*sole].op).name, raised));
    record({Event::Kind::Run, {}, {}, current_.site, request.executable});
  }
  if (why_redo) {
    record({Event::Kind::Redo, why_redo, {}, current_.site, nullptr});
    // Where no loop had the choice, NumPy need not fill memory that is merely free to be used
    // again.
    for (std::size_t i = 0; i < wants.size() && !request.executable; ++i) {
      if (!wants[i].storage || !wants[i].storage->spare) continue;
      wants[i].memory = {};
      was_given[i] = false;
    }
    host_.redo(*this, targets, was_given);
  }

  for (NodeId id : computed_now) info_[id.value].computed = true;
  for (std::size_t i = 0; i < wants.size(); ++i) {
    Want& want = wants[i];
    if (!want.memory) {
      want.memory = targets[i].memory;
    } else {
      if (outputs[i].data != want.memory.data)
        host_.copy(buffer_of(want.memory, want.layout), outputs[i]);
      overwritten(want.bytes());
    }
  }
  for (Want& want : wants) {
    if (!want.storage) continue;
    want.storage->memory = want.memory;
    want.storage->value = {};
    want.storage->spare = false;
    // A copy of memory has the memory's node, and outlives what is written there.
    if (!is_free(graph_[want.node]) || graph_[want.node].op == ir::Op::Input)
      computed_[want.node.value] = {want.node, want.layout, want.memory, nullptr};
  }
  if (pure_ && recorded) record_run(request, wants, was_given);
  if (std::ranges::find(was_given, true) != was_given.end()) behind_ = !due({}).empty();
}

void Session::overwritten(const ByteRange& range) {
  for (InputRow& row : inputs_) row.stale |= range.overlaps(row.bytes());
  std::erase_if(computed_, [&](const auto& entry) { return range.overlaps(entry.second.bytes()); });
  std::erase_if(stood_, [&](const auto& entry) { return range.overlaps(entry.second.bytes); });
}

void Session::prune_computed() {
  if (!std::exchange(holds_more_, false) || (computed_.empty() && redone_.empty())) return;
  const std::vector<NodeId> cone = needed(pending());
  const auto is_needless = [&](const auto& entry) {
    return !std::ranges::binary_search(cone, entry.first, {}, &NodeId::value);
  };
  std::erase_if(computed_, is_needless);
  std::erase_if(redone_, is_needless);
}

std::vector<NodeId> Session::pending() {
  std::vector<NodeId> nodes;
  for (const auto& storage : live()) nodes.push_back(storage->value);
  return nodes;
}

void Session::force(std::span<const LazyArray> arrays) {
  Storages wanted;
  for (const LazyArray& array : arrays)
    if (array.storage->value && std::ranges::find(wanted, array.storage) == wanted.end())
      wanted.push_back(array.storage);
  if (!wanted.empty()) compute(std::move(wanted), false);
}

void Session::flush() {
  compute(live(), true);
  draft_.sole.reset();  // who asked for it again will be forgotten
  restart();
}

void Session::forget_memory() { restart(); }

std::int64_t Session::largest_value() const {
  std::int64_t largest = largest_before_;
  for (std::size_t i = 0; i < graph_.size(); ++i) {
    const ir::Node& node = graph_[graph_.at(i)];
    if (node.op == ir::Op::Input) continue;
    auto bytes = static_cast<std::int64_t>(ir::size_of(node.dtype));
    for (std::int64_t n : node.shape) bytes *= n;
    largest = std::max(largest, bytes);
  }
  return largest;
}

// Nothing is pending: the graph is of no further use.
void Session::restart() {
  largest_before_ = largest_value();
  graph_ = {};
  set_report_mask(current_.report_mask);
  info_.clear();
  repeats_.clear();
  raised_.clear();
  reduce_records_.clear();
  call_records_.clear();
  output_casts_.clear();
  has_several_outputs_ = false;
  told_.clear();
  within_.clear();
  inputs_.clear();
  input_index_.clear();
  params_.clear();
  literals_.clear();
  computed_.clear();
  redone_.clear();
  masks_.clear();
  stood_.clear();
  sites_.clear();
  recorded_ns_ = 0;
}

void Session::finish(std::span<const LazyArray> results) {
  Storages wanted = live();
  for (const auto& storage : wanted) {
    const bool returned =
        std::ranges::any_of(results, [&](const LazyArray& r) { return r.storage == storage; });
    if (!returned && storage->role == Role::Temporary)
      record({Event::Kind::Escape, Reason::Escape, {}, current_.site, nullptr});
  }
  compute(std::move(wanted), true);
  if (pure_) record_plan(results);
  end();
}

void Session::abort() {
  compute(live(), true);
  end();
}

void Session::abort_with(std::span<const LazyArray> wanted) {
  std::vector<Want> wants = wants_of(due(wanted));
  run(wants);
  tell();
  end();
}

void Session::end() {
  restart();
  for (const auto& weak : storages_)
    if (const auto storage = weak.lock()) storage->session = nullptr;
  storages_.clear();
}

}  // namespace ufuse::tracer
