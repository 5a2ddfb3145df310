// One traced call: its graph, the arrays it met, what is still pending, and what happened. Values
// are computed as late as possible and together ("requests"); memory is overwritten only when
// everything that still needs the old contents has been computed. Used by pyext, one per traced
// call, from the thread that began it. Knows no Python: the Host does.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>

#include "ir/support/reasons.h"
#include "numpy_shim/advanced_index.h"
#include "numpy_shim/reduce.h"
#include "numpy_shim/ufunc.h"
#include "tracer/description.h"
#include "tracer/expected.h"
#include "tracer/host.h"
#include "tracer/plan.h"
#include "tracer/storage.h"

namespace ufuse::tracer {

using numpy_shim::Operand;
using numpy_shim::Result;

struct NodeInfo {
  Site site;
  std::uint8_t report_mask = 0;  // the flags that the error state of that line reports
  bool scalar_operator = false;  // np.float64's own operator, whose warnings say "scalar add"
  bool computed = false;         // some request has been through it
  bool moved = false;            // another node, made in its place, tells what it first warned of
  bool named_at = false;         // ufunc.at whose warnings name the ufunc, as those of one axis do
};

struct Event {
  enum class Kind : std::uint8_t { Force, NumpyCall, Flush, Escape, Redo, Run } kind = Kind::Run;
  std::optional<Reason> reason;  // of all but runs
  std::string detail;            // name of the function, attribute ...
  Site site;
  std::shared_ptr<const ir::Executable> executable;  // of a run; its report says the rest
};

// What a ufunc was called with, before numpy_shim put casts that may warn: NumPy casts inside the
// call and warns under its name.
struct CallRecord {
  std::vector<NodeId> operands;  // unset: a Python number
};

// What a reduction was asked to reduce, before numpy_shim put casts: NumPy's order of summation
// depends on it.
struct ReduceRecord {
  NodeId operand;
  Layout layout;
};

class Session final : public numpy_shim::Context {
 public:
  Session(Host& host, ir::LoopTable& loops, std::uint8_t report_mask);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // numpy_shim::Context
  ir::Graph& graph() override { return graph_; }
  ir::LoopTable& loops() override { return loops_; }
  using Context::param;
  NodeId param(DType dtype, ir::Scalar bits, int number) override;

  // Before each operation: where it stands. A loop that comes around with much pending is flushed
  // here, and what is due is computed where that takes long.
  void enter(Site site, bool scalar_operator = false);
  // NumPy's own line for what follows: a method whose body is Python inside NumPy.
  void set_site(Site site) { current_.site = site; }
  // The same operation in another error state warns of other things: it is another node then.
  void set_report_mask(std::uint8_t mask) {
    current_.report_mask = mask;
    graph_.keep_apart(static_cast<std::uint16_t>(mask == first_mask_ ? 0 : 1 + mask));
  }
  std::uint8_t report_mask() const { return current_.report_mask; }
  const Site& site() const { return current_.site; }

  // Arrays that exist. Arguments are numbered in the order of the calls.
  LazyArray argument(const Layout& layout, Memory memory, bool writeable);
  LazyArray scalar_argument(DType dtype, ir::Scalar bits);
  LazyArray adopt(const Layout& layout, Memory memory, bool writeable, Role role);
  LazyArray literal(DType dtype, ir::Scalar bits);
  // What the host made of these by a call that a recording repeats: arrays that it has adopted.
  void record_host_call(std::shared_ptr<const HostCall> call, std::span<const LazyArray> given,
                        std::span<const LazyArray> made);
  // An array that is the same in each call that goes this way, and that nobody else knows.
  LazyArray constant(const Layout& layout, Memory memory);

  // A call that is only described (description.h) has arguments without memory. Where a value made
  // of them is needed, the Host refuses.
  LazyArray placeholder(const Layout& layout);
  Description described(std::span<const LazyArray> results);
  bool is_described() const { return !placeholders_.empty(); }
  // Whether this placeholder still is what it was: nothing has been written to it.
  bool is_unchanged(const LazyArray& placeholder) const {
    return placeholder.storage->value == placeholders_[placeholder.storage->argument];
  }

  // Arrays to be.
  LazyArray from_result(const Result& result);
  LazyArray full(const Layout& layout, NodeId value);  // a 0-d node everywhere
  LazyArray empty(const Layout& layout);
  LazyArray arange(std::int64_t start, std::int64_t step, std::int64_t elements, DType dtype);

  // Reading.
  Operand operand(const LazyArray& array);
  NodeId read(const LazyArray& array);

  // Operations. Throw Unsupported where NumPy must be asked.
  std::vector<LazyArray> call(const numpy_shim::Ufunc& ufunc, std::span<const Operand> operands,
                              const numpy_shim::UfuncOptions& options = {});
  // A result of an operator that is put where its operand was, an array that nobody will look at
  // any more.
  void reuse_memory(const LazyArray& result, const LazyArray& operand);
  LazyArray reduce(std::string_view ufunc, const Operand& x,
                   const numpy_shim::ReduceOptions& options);
  LazyArray arg_reduce(bool largest, const Operand& x, std::optional<std::int64_t> axis,
                       bool keepdims);
  LazyArray where(const Operand& condition, const Operand& x, const Operand& y);
  // What NumPy makes of it where it takes an array: a Python number has its default dtype then.
  Operand as_array(const Operand& operand);
  // Its elements in C order, along one axis.
  Operand flattened(const Operand& operand);
  LazyArray accumulate(const numpy_shim::Ufunc& ufunc, const Operand& x, std::int64_t axis,
                       std::optional<DType> dtype);

  // Elements at positions that are values, and of masks. What a position depends on is computed
  // when it is first used: one that is outside of its axis is NumPy's to complain about, at once.
  // Throw Unsupported there.
  enum class Use : std::uint8_t { Read, Write };
  using KeyItem = std::variant<numpy_shim::IndexItem, Operand>;  // an array of integers, or a mask
  numpy_shim::Selection select(const LazyArray& x, std::span<const KeyItem> key,
                               Use use = Use::Read);
  LazyArray gather(const LazyArray& x, const numpy_shim::Selection& selection);
  void assign_at(const LazyArray& x, const numpy_shim::Selection& selection, const Operand& value);
  // ufunc.at
  void combine_at(const LazyArray& x, const numpy_shim::Selection& selection,
                  const numpy_shim::Ufunc& ufunc, const std::optional<Operand>& value);
  LazyArray take(const Operand& x, const Operand& positions, std::optional<std::int64_t> axis,
                 ir::Bounds mode);
  void put(const LazyArray& x, const Operand& positions, const Operand& values, ir::Bounds mode);
  // Of a mask: the positions of what is true, one row each.
  LazyArray nonzero(const Operand& mask);
  LazyArray argwhere(const Operand& mask);
  LazyArray compress(const Operand& x, const Operand& mask, std::optional<std::int64_t> axis);
  LazyArray bincount(const Operand& positions, const std::optional<Operand>& weights,
                     std::int64_t at_least);

  // The array as NumPy's inner loops are handed it, for block calls: what is reversed or spaced in
  // memory is read there, what is packed is packed.
  Operand loop_operand(const LazyArray& array);
  LazyArray view(const LazyArray& array, const numpy_shim::View& view);
  // A copy with this dtype and this layout of the same shape.
  LazyArray copy(const LazyArray& array, DType dtype, Dims strides);
  // Real or imaginary part of a complex scalar.
  LazyArray part(const LazyArray& array, ir::Op op);
  // A C- or F-ordered copy of another shape, of which one extent may be -1.
  LazyArray reshaped_copy(const LazyArray& array, const Dims& shape, bool fortran);

  // target[...] = value; broadcasts and casts without asking. The target is a view as basic
  // indexing gives it. `donor`: the array that the value was read from, when nobody will look at it
  // any more; it need not be computed for itself. `alone`: the statement writes to nothing else. If
  // not, nothing is computed meanwhile: a signal would leave one target written and one not.
  void assign(const LazyArray& target, const Operand& value,
              const std::shared_ptr<Storage>& donor = nullptr, bool alone = true);
  // The same for an output of a function, which casts it itself.
  void write_output(const LazyArray& target, const Operand& value,
                    const std::shared_ptr<Storage>& donor, bool alone);
  // Where the mask, which broadcasts to the target, is true: target = value.
  void assign_where(const LazyArray& target, const Operand& mask, const Operand& value);

  // Puts values into memory: these (and live arrays they are made of), or all that live.
  void force(std::span<const LazyArray> arrays);
  void flush();
  // Before others get to see these: they are computed if that is expected to take long. A signal
  // that ends the call meanwhile leaves them unseen.
  void show(std::span<const LazyArray> arrays);
  // Whether that can be, for some array.
  bool may_take_long() const { return recorded_ns_ >= kLongDue / 4; }
  // Before memory is read past the session: what is pending for it is written. Whether the session
  // may write to it at all.
  bool write_pending(const ByteRange& range);
  // Somebody else may look at memory that the session knows at any moment: from now on each write
  // happens at once.
  void write_at_once();
  // Memory of somebody else's may have changed: what is known of it is forgotten. Everything must
  // be flushed before.
  void forget_memory();
  // What has been computed and nothing pending needs is let go of; between operations.
  void prune_computed();
  // Values may have lost their last holder: their memory goes before the next operation.
  void prune_soon() { holds_more_ = true; }
  // The end: results, dirty arguments and what is still referenced, in one request. Afterwards the
  // arrays are concrete.
  void finish(std::span<const LazyArray> results);
  // The end by an exception: dirty memory is written, the rest is made concrete too.
  void abort();
  // The end of a call that was only described.
  void discard() { end(); }
  // Where that takes too long, or failed for want of memory: what is pending for memory of the
  // caller's is written, and these are made concrete. Other values are lost.
  void abort_with(std::span<const LazyArray> wanted);

  // `repeated`: a recording repeats it, as runs are repeated.
  void record(Event event, bool repeated = false);
  const std::vector<Event>& events() const { return events_; }
  // A value of one element that has been computed is looked at by Python: its truth, or all of it.
  // The plan goes one way for each outcome.
  void record_outcome(Event event, const LazyArray& array, bool truth);
  // Unset when the call was not pure or finish has not been reached.
  const std::shared_ptr<const Plan>& plan() const { return plan_; }
  // A request is on its way: nothing else may be asked for.
  bool is_computing() const { return computing_; }
  void mark_impure() { pure_ = false; }
  bool is_pure() const { return pure_; }
  // Spent on computing what was asked for, loops and all.
  std::chrono::nanoseconds in_requests() const { return in_requests_; }
  // Bytes of the largest value that was recorded so far: NumPy would have made an array of it.
  std::int64_t largest_value() const;
  // How many storages have been looked at to find those with certain memory.
  std::int64_t looked_at() const { return looked_at_; }
  // The live storage whose memory holds all of this range; null: none.
  std::shared_ptr<Storage> storage_at(const ByteRange& range) const;
  // Whether some live storage's memory, but for what was captured, has a part of this range.
  bool knows_part_of(const ByteRange& range) const;

  // For a redo: what leaves of the graph stand for, and what is known of its nodes.
  struct InputRow {
    Layout layout;
    Memory memory;  // `data` is the view's first element
    int argument = -1;
    std::int64_t offset = 0;
    bool stale = false;  // its memory has been overwritten: only nodes that have been computed
                         // already may be made of it

    ByteRange bytes() const { return byte_range(memory.data, layout); }
  };
  struct ParamRow {
    DType dtype;
    ir::Scalar bits;
    int argument = -1, number = -1;
    friend bool operator==(const ParamRow&, const ParamRow&) = default;
  };
  const InputRow& input_row(std::uint32_t id) const { return inputs_[id]; }
  const ParamRow& param_row(std::uint32_t id) const { return params_[id]; }
  const NodeInfo& node_info(NodeId node) const { return info_[node.value]; }
  const ReduceRecord* reduce_record(NodeId node) const;
  const CallRecord* call_record(NodeId node) const;
  // Whether a node is the cast of a function's output.
  bool is_output_cast(NodeId node) const { return output_casts_.contains(node.value); }
  const Want* computed(NodeId node) const;
  // Values that are pending and that NumPy has made in a redo on the way to others. Requests know
  // nothing of them, or there would be other loops where NumPy stands in; further redos do.
  const Want* redone(NodeId node) const;
  void keep_redone(NodeId node, const Layout& layout, const Memory& memory) {
    redone_[node.value] = {node, layout, memory, nullptr};
    holds_more_ = true;
  }
  // The nodes of all values that are pending.
  std::vector<NodeId> pending();
  // Each further time that an equal node was asked for, and how many nodes there were then: NumPy
  // would warn every time.
  struct Repeat {
    NodeId node;
    Site site;
    std::size_t position;
    bool told = false;
  };
  // What NumPy says when it computes a node, as a redo found it.
  void note_raised(NodeId node, std::vector<std::string> messages) {
    raised_.try_emplace(node.value, Raised{std::move(messages)});
  }
  // Whether something pending may warn.
  bool has_pending_warnings() const;
  bool may_warn(NodeId node) const;

  // An operation that turned out to have no native form may have left nodes behind. They are
  // nobody's: their warnings are not due.
  std::size_t mark() const { return graph_.size(); }
  void disown_since(std::size_t mark);

 private:
  using Storages = std::vector<std::shared_ptr<Storage>>;
  // While one lives, a request is on its way.
  class Computing {
   public:
    explicit Computing(Session& session)
        : session_(session), before_(std::exchange(session.computing_, true)) {}
    ~Computing() {
      session_.computing_ = before_;
      if (!before_) session_.in_requests_ += std::chrono::steady_clock::now() - start_;
    }
    Computing(const Computing&) = delete;
    Computing& operator=(const Computing&) = delete;

   private:
    Session& session_;
    const bool before_;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  // What a request ran, for the plan.
  struct RecordedRun {
    std::shared_ptr<const ir::Executable> executable;
    std::vector<InputRow> inputs;
    std::vector<ParamRow> params;
    std::vector<Layout> layouts;  // in which the run writes them
    std::vector<int> alias;
    std::vector<char> direct;  // whether it writes to given memory itself
    std::uint32_t report_mask = 0;
    bool may_redo = false;
    // What the flags of the run are about, when it computes one thing only and they tell all.
    std::optional<NodeId> sole;
  };

  std::shared_ptr<Storage> make_storage(const Layout& layout);
  LazyArray whole(std::shared_ptr<Storage> storage, bool scalar = false);
  NodeId input_of(const LazyArray& array);
  void note_nodes(std::size_t first, std::span<const NodeId> results = {});
  template <class Make>
  LazyArray made(Make make, NodeId source = {});
  ir::Bounds check_positions(NodeId positions, std::int64_t extent);
  std::int64_t told(NodeId number);
  Result true_positions(NodeId mask);
  // An equal mask that stands in memory and whose positions are known, or the mask itself.
  NodeId known_mask(NodeId mask) const;
  void note_mask(NodeId mask);
  void note_place(NodeId node, int depth);
  bool are_equal(NodeId fresh, NodeId known, int depth) const;
  // Whether values are computed from what the mask picks, and from numbers, by operations that can
  // be done for whole arrays; adds these.
  bool is_picked(NodeId values, NodeId mask, std::set<std::uint32_t>& operations) const;
  // An array of the mask's shape, in which the values stand where it is true.
  NodeId unpicked(NodeId values, NodeId mask, std::unordered_map<std::uint32_t, NodeId>& made);
  // x[selection] = value, where that can be done for the whole of x. False: it cannot.
  bool assign_picked(const LazyArray& x, const numpy_shim::Selection& selection,
                     const Operand& value);
  void store(const LazyArray& target, NodeId value, Storage* donor = nullptr, bool alone = true);
  void check_assignable(const LazyArray& target, const Operand& value) const;

  bool tells_by_flags(NodeId node) const;
  // Those with a value that is not in memory yet, in the order in which they were made.
  Storages live();
  void list(const std::shared_ptr<Storage>& storage);
  std::vector<NodeId> needed(std::span<const NodeId> roots) const;
  std::vector<ByteRange> reads(const std::vector<NodeId>& cone) const;
  void close_over(Storages& wanted);
  Storages worth_storing(NodeId node);
  std::vector<Want> wants_of(const Storages& wanted) const;
  std::vector<Want> dead_sinks(const std::vector<Want>& wants) const;
  std::vector<Want> last_readers(const std::vector<Want>& wants,
                                 const std::vector<ByteRange>& written) const;
  bool is_long(const Storages& wanted, double times) const;
  void check_described(std::span<const Want> wants);
  void refuse();
  Storages due(std::span<const LazyArray> shown);
  void compute_due(double times);
  void catch_up(const Storages& wanted);
  void compute(Storages wanted, bool with_sinks);
  void run(std::vector<Want>& wants, bool recorded = true);
  void run_what_warns_before();
  bool has_untold() const;
  void tell();
  void overwritten(const ByteRange& range);
  void restart();
  void end();
  void note_owned(const Memory& memory, const PlanPlace& place);
  PlanPlace next_output(const PlanRun& row) const;
  void record_memory(const Storages& made);
  void record_run(const RecordedRun& run, std::span<const Want> wants,
                  const std::vector<bool>& given);
  std::optional<PlanPlace> place_of(const Memory& memory) const;
  std::optional<PlanValue> plan_value(const LazyArray& array) const;
  void record_plan(std::span<const LazyArray> results);

  Host& host_;
  ir::LoopTable& loops_;
  ir::Graph graph_;
  const std::uint8_t first_mask_;  // what was reported when the call began
  NodeInfo current_;
  std::vector<NodeInfo> info_;  // one per node
  std::vector<Repeat> repeats_;
  struct Raised {
    std::vector<std::string> messages;
    bool told = false;
  };
  std::unordered_map<std::uint32_t, Raised> raised_;
  std::unordered_map<std::uint32_t, ReduceRecord> reduce_records_;
  std::unordered_map<std::uint32_t, CallRecord> call_records_;
  std::set<std::uint32_t> output_casts_;
  bool has_several_outputs_ = false;  // the graph has calls of np.divmod or its like
  std::unordered_map<std::uint32_t, std::int64_t> told_;  // values of nodes, on which sizes depend
  std::set<std::pair<std::uint32_t, std::int64_t>> within_;  // positions and extents
  // Masks whose positions are known, the last ones; and where they and their operands stood then.
  std::vector<NodeId> masks_;
  struct Stood {
    std::weak_ptr<void> owner;
    ByteRange bytes;
    Layout layout;
  };
  std::unordered_map<std::uint32_t, Stood> stood_;
  std::vector<InputRow> inputs_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> input_index_;
  std::vector<ParamRow> params_;
  // Their nodes. Holds them: another literal at the address of a dead one has another value.
  std::unordered_map<std::shared_ptr<Storage>, NodeId> literals_;
  ReachedBytes given_, given_writeable_;  // by arguments
  std::vector<std::weak_ptr<Storage>> storages_;
  std::size_t storages_after_sweep_ = 0;
  std::uint64_t made_storages_ = 0;
  std::vector<std::weak_ptr<Storage>> listed_;  // all that have a value, and some that had
  mutable std::int64_t looked_at_ = 0;
  // Nodes that stand in memory, as long as something pending needs them, or the operation that
  // computed them, which has asked for them before.
  std::unordered_map<std::uint32_t, Want> computed_;
  std::unordered_map<std::uint32_t, Want> redone_;
  bool holds_more_ = false;                  // than what something pending needs
  std::unordered_set<std::uint64_t> sites_;  // where pending operations stand
  bool behind_ = false;     // something is due that stands before a write which is done
  double recorded_ns_ = 0;  // what the nodes of the graph take, also those that are computed

  int arguments_ = 0;
  std::vector<NodeId> placeholders_;
  bool is_refused_ = false;
  bool writes_at_once_ = false;  // arguments overlap, or others may look
  std::vector<Event> events_;

  bool pure_ = true;
  bool computing_ = false;
  std::chrono::nanoseconds in_requests_{0};
  std::int64_t largest_before_ = 0;  // value of the graphs before this one, bytes
  // The plan so far, and whose memory it knows: its arguments', and what its runs made. Owners are
  // held weakly: a loop's arrays may die.
  Plan draft_;
  struct Owned {
    std::weak_ptr<void> owner;
    const void* data;
    PlanPlace place;
  };
  std::unordered_multimap<const void*, Owned> owned_;  // by the owner's address
  std::vector<Memory> constants_;
  std::shared_ptr<const Plan> plan_;
};

// A copy of `source` that needs no node of its own does not compute, and so does not warn, again.
template <class Make>
LazyArray Session::made(Make make, NodeId source) {
  const std::size_t first = graph_.size();
  const Result result = make();
  note_nodes(first, {&result.node, result.node == source ? 0u : 1u});
  return from_result(result);
}

}  // namespace ufuse::tracer
