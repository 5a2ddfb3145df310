// Every value is made before it is used, where its loops are open; operations have the dtypes that
// the tables demand; numbers are those that are handed in; and what runs in blocks is cut as the
// printer expects it.
#include "codegen/loop/verify.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "ir/support/error.h"

namespace ufuse::codegen::loop {
namespace {

using ir::DType;
using ir::Op;
using Kind = Stmt::Kind;

class Verifier {
 public:
  Verifier(const Kernel& kernel, std::string_view after)
      : k_(kernel), after_(after), made_(kernel.values.size()) {}

  void run() {
    for (const Buffer& b : k_.buffers) {
      if (b.role == Buffer::Role::Row) check(b.length);
      require(!b.streamable || (b.written && b.streaming != Streaming::No),
              "a buffer that is not written for good is streamable");
    }
    body(k_.body);
    require(k_.parallel < 0 || shared_, "the loop that is shared out does not exist");
    require(k_.grain > 0, "the grain is not positive");
  }

 private:
  void require(bool holds, const std::string& what) const {
    if (!holds)
      throw InternalError("malformed kernel after '" + std::string(after_) + "': " + what +
                          ", at statement " + std::to_string(statements_));
  }

  // ---- Numbers, variables, addresses ----

  void check(const Number& n) const {
    if (n.literal()) return;
    const auto i = static_cast<std::size_t>(n.symbol);
    require(i < k_.sizes.size() && k_.sizes[i] == n.value, "a number is not the one handed in");
  }
  bool is_open(VarId var) const { return std::ranges::find(open_, var) != open_.end(); }
  void check(const Access& a) const {
    require(a.buffer >= 0 && static_cast<std::size_t>(a.buffer) < k_.buffers.size(),
            "an address is in no buffer");
    for (const Term& t : a.terms) {
      require(is_open(t.var), "an address varies with a loop that is not open");
      check(t.stride);
    }
    for (const auto& fixed : a.fixed) check(fixed.second);
  }
  void open(VarId var) {
    require(var >= 0 && static_cast<std::size_t>(var) < k_.vars.size() && !is_open(var),
            "a loop's variable is open already");
    check(k_.var(var).extent);
    open_.push_back(var);
  }

  // ---- Values ----

  DType dtype(ValueId v) const { return k_.value(v).dtype; }
  void use(ValueId v) const {
    require(
        v >= 0 && static_cast<std::size_t>(v) < made_.size() && made_[static_cast<std::size_t>(v)],
        "a value is used before it is made");
  }
  // Segments of one block may load the same value.
  void make(ValueId v, bool again = false) {
    require(v >= 0 && static_cast<std::size_t>(v) < made_.size(), "there is no such value");
    require(again || !made_[static_cast<std::size_t>(v)], "a value is made twice");
    const Vars& vars = k_.value(v).vars;
    require(std::ranges::all_of(vars, [&](VarId var) { return is_open(var); }),
            "a value varies with a loop that is not open");
    made_[static_cast<std::size_t>(v)] = true;
    made_here_.push_back(v);
  }
  // What a body made is gone behind it, but for what arrays keep as long as their block is open.
  template <class Visit>
  void scope(bool keeps_arrays, const Visit& visit) {
    const std::size_t before = made_here_.size(), open = open_.size();
    visit();
    open_.resize(open);
    std::vector<ValueId> kept;
    for (std::size_t i = before; i < made_here_.size(); ++i) {
      const ValueId v = made_here_[i];
      if (keeps_arrays && k_.value(v).array > 0)
        kept.push_back(v);
      else
        made_[static_cast<std::size_t>(v)] = false;
    }
    made_here_.resize(before);
    made_here_.insert(made_here_.end(), kept.begin(), kept.end());
  }

  // ---- Statements ----

  void body(const Body& stmts) {
    for (const Stmt& s : stmts) statement(s);
  }

  void statement(const Stmt& s) {
    ++statements_;
    for (std::size_t i = 0; i < s.args.size(); ++i)
      if (i >= s.direct.size() || s.direct[i].buffer < 0) use(s.args[i]);
    require(s.block == 0 || s.kind == Kind::Loop || s.kind == Kind::Fold,
            "a statement that is no loop runs in blocks");
    switch (s.kind) {
      case Kind::Load:
        check(s.access);
        along(s, 0);
        require(dtype(s.result) == k_.buffer(s.access).dtype, "a load changes the dtype");
        return make(s.result, in_segment_ && s.along.empty());
      case Kind::Carry:
        require(s.vars.size() == 1 && is_open(s.vars[0]) && s.vars[0] != k_.parallel,
                "a value is carried along no loop");
        require(dtype(s.result) == dtype(s.args[0]), "what is carried changes its dtype");
        return make(s.result);
      case Kind::List:
        check(s.access);
        check(s.mask);
        require(k_.buffer(s.access).written && k_.buffer(s.access).dtype == DType::Int64 &&
                    k_.buffer(s.mask).dtype == DType::Bool && open_.empty() && s.along.size() > 1,
                "a list of positions is malformed");
        for (const Along& a : s.along) check(a.extent), check(a.stride);
        return;
      case Kind::Compute:
        compute(s);
        return make(s.result);
      case Kind::Call:
        return call(s);
      case Kind::Store:
        check(s.access);
        along(s, 1);
        require(k_.buffer(s.access).written, "a buffer that is only read is written");
        require(dtype(s.args[0]) == k_.buffer(s.access).dtype, "a store changes the dtype");
        return;
      case Kind::Redo:
      case Kind::Doubt:
        return require(!s.args.empty(), "nothing is in doubt");
      case Kind::Loop:
        return loop(s);
      case Kind::Segment:
        return segment(s);
      case Kind::Fold:
        return fold(s);
    }
  }

  // The positions are the operands from `first` on.
  void along(const Stmt& s, std::size_t first) const {
    require(s.along.size() + first == s.args.size(), "an axis has no position");
    for (std::size_t i = 0; i < s.along.size(); ++i) {
      check(s.along[i].extent);
      check(s.along[i].stride);
      require(dtype(s.args[first + i]) == DType::Int64, "a position is no int64");
    }
  }

  void compute(const Stmt& s) const {
    if (s.helper != Stmt::Helper::None || s.op == Op::Const || s.op == Op::Param ||
        s.op == Op::Iota || s.op == Op::Cast)
      return;
    require(ir::is_elementwise_row(s.op), "an operation has no row");
    const ir::OpInfo& row = ir::op_info(s.op);
    require(s.args.size() == static_cast<std::size_t>(row.arity),
            "the number of operands is wrong");
    const DType of = dtype(s.args.back());
    for (std::size_t i = s.op == Op::Where ? 1 : 0; i < s.args.size(); ++i)
      require(dtype(s.args[i]) == of, "operands differ in dtype");
    require(ir::is_accepted(of, row.accepts), "an operation does not accept the dtype");
    if (row.result == ir::ResultRule::Same) require(dtype(s.result) == of, "the dtype is wrong");
    if (row.result == ir::ResultRule::Bool)
      require(dtype(s.result) == DType::Bool, "the dtype is wrong");
  }

  void call(const Stmt& s) {
    require(static_cast<std::size_t>(s.index) < k_.calls.size(), "there is no such inner loop");
    require(s.direct.size() == (s.lanes ? s.args.size() + s.results.size() : 0),
            "a call's operands are not told");
    require(!s.lanes || (in_blocks_ && !in_segment_), "a call of lanes stands in no block");
    for (const Access& a : s.direct)
      if (a.buffer >= 0) check(a);
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      if (s.results[i] < 0) continue;
      const bool direct = s.lanes && s.direct[s.args.size() + i].buffer >= 0;
      require(!s.lanes || direct || k_.value(s.results[i]).array > 0,
              "a call's lanes are kept nowhere");
      make(s.results[i]);
    }
  }

  void loop(const Stmt& s) {
    require(s.vars.size() == 1, "a loop has one variable");
    shared_ |= s.vars[0] == k_.parallel;
    require(!s.merges || (s.body.size() == 1 && s.body[0].kind == Kind::Loop),
            "a loop merges with more than a loop");
    for (const Body* stmts : {&s.body, &s.exact})
      scope(false, [&] {
        open(s.vars[0]);
        blocks(s, *stmts);
      });
  }

  // The body of a loop or reduction, which may run in blocks.
  void blocks(const Stmt& s, const Body& stmts) {
    const bool around = in_blocks_, segment = in_segment_;
    in_blocks_ = s.block > 0 || (s.lanes && s.kind == Kind::Fold);
    in_segment_ = in_segment_ && !in_blocks_;
    body(stmts);
    in_blocks_ = around;
    in_segment_ = segment;
  }

  void segment(const Stmt& s) {
    require(in_blocks_ && !in_segment_, "a segment stands in no block");
    in_segment_ = true;
    scope(true, [&] { body(s.body); });
    in_segment_ = false;
  }

  void fold(const Stmt& s) {
    if (s.initial >= 0) use(s.initial);
    require(!s.vars.empty(), "a reduction has no variables");
    require(s.block == 0 || s.order == ir::Order::Pairwise, "only sums run in blocks");
    require(!s.lanes || (in_blocks_ && !in_segment_ && s.form == Stmt::Form::Lanes &&
                         k_.value(s.result).array > 0 && !s.body.empty() &&
                         s.body.back().kind == Kind::Segment),
            "accumulators beside the lanes of no block");
    require(s.rows == 0 || (s.lanes && s.body.size() == 1 && !s.body[0].body.empty() &&
                            s.body[0].body.back().kind == Kind::Loop),
            "rows that end with no loop over them");
    scope(false, [&] {
      for (VarId var : s.vars)
        if (s.rows == 0) open(var);
      blocks(s, s.body);
      if (!s.lanes) use(s.element);
    });
    make(s.result);
  }

  const Kernel& k_;
  const std::string_view after_;
  int statements_ = 0;
  std::vector<VarId> open_;
  std::vector<bool> made_;          // by ValueId: may be used here
  std::vector<ValueId> made_here_;  // in the order in which they were made
  bool in_blocks_ = false, in_segment_ = false, shared_ = false;
};

}  // namespace

void verify(const Kernel& kernel, std::string_view after) { Verifier(kernel, after).run(); }

}  // namespace ufuse::codegen::loop
