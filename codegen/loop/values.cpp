// How is a value of the schedule made? One function for each of its homes.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "codegen/loop/lowerer.h"
#include "codegen/loop/unrolled.h"
#include "codegen/schedule/cost.h"
#include "ir/support/error.h"

namespace ufuse::codegen::loop {

using ir::Op;
using Home = Wanted::Home;

ValueId Lowerer::value(WantedId id) {
  const auto i = static_cast<std::size_t>(id);
  if (memo_[i].value >= 0 && nest_.scopes().is_open(memo_[i].scope_uid)) return memo_[i].value;
  const ValueId made = make(group_.values[i]);
  memo_[i] = {made, nest_.scopes()[nest_.place(made)].uid};
  return made;
}

ValueId Lowerer::make(const Wanted& w) {
  switch (w.home) {
    case Home::Memory:
      return load(w);
    case Home::Chosen:
      return chosen(w);
    case Home::Position:
      return position(w);
    case Home::Carried:
      return carried(w);
    case Home::Inline:
      return compute(w);
    case Home::Call:
      return call(w);
    case Home::Unrolled:
      return unrolled(w);
    case Home::Loops:
      return loops(w);
    case Home::Row:
      return from_row(w);
  }
  throw InternalError("lower: no such home");
}

std::vector<ValueId> Lowerer::operands(const Wanted& w) {
  std::vector<ValueId> values(w.operands.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t k = w.order.empty() ? i : w.order[i];
    values[k] = value(w.operands[k]);
  }
  return values;
}

void Lowerer::note(ir::NodeId node, std::string op) {
  if (noted_.insert(node.value).second) nest_.kernel().ops.push_back(std::move(op));
}

// ---- Memory ----

ValueId Lowerer::load(const Wanted& w) {
  const ir::DType dtype = g_[w.node].dtype;
  Stmt stmt;
  stmt.kind = Stmt::Kind::Load;
  stmt.access = access(group_.addresses[static_cast<std::size_t>(w.detail)], dtype,
                       /*write=*/false, Streaming::No);
  stmt.index = static_cast<int>(w.has_one_stride);
  return nest_.define(std::move(stmt), dtype, w.vars);
}

ValueId Lowerer::chosen(const Wanted& w) {
  const ir::Node& n = g_[w.node];
  const Address& address = group_.addresses[static_cast<std::size_t>(w.detail)];
  Stmt stmt;
  stmt.kind = Stmt::Kind::Load;
  stmt.args = operands(w);
  stmt.access = access(address, n.dtype, /*write=*/false, Streaming::No);
  const ir::Dims& shape = g_[n.inputs[0]].shape;
  for (std::size_t k = 0; k < w.steps.size(); ++k)
    stmt.along.push_back({number(shape[static_cast<std::size_t>(n.ints[k])]),
                          stride(address, w.steps[k]), n.bounds});
  note(w.node, std::string(ir::op_info(n.op).name));
  return nest_.define(std::move(stmt), n.dtype, w.vars);
}

Access Lowerer::access(const Address& address, ir::DType dtype, bool write, Streaming streaming) {
  Access result;
  for (const Address::Term& term : address.terms)
    result.terms.push_back({term.var, stride(address, term.stride)});
  for (const Address::Fixed& fixed : address.fixed)
    result.fixed.emplace_back(fixed.factor, stride(address, fixed.stride));
  auto& buffers = nest_.kernel().buffers;
  auto known = std::ranges::find_if(buffers, [&](const Buffer& b) {
    return b.role == address.role && b.index == address.index && b.offset == address.offset;
  });
  if (known == buffers.end()) {
    buffers.push_back(
        {.role = address.role, .index = address.index, .offset = address.offset, .dtype = dtype});
    known = buffers.end() - 1;
  }
  if (write) {
    known->written = true;
    known->streaming = streaming;
  } else {
    known->read = true;
  }
  result.buffer = static_cast<int>(known - buffers.begin());
  return result;
}

Number Lowerer::stride(const Address& address, std::int64_t stride) {
  if (std::abs(stride) <= cost::kUnrolled) return Number{stride, -1};
  const auto key = std::make_tuple(address.role, address.index, stride);
  auto it = strides_.find(key);
  if (it == strides_.end()) it = strides_.emplace(key, nest_.symbol(stride)).first;
  return it->second;
}

Number Lowerer::number(std::int64_t value) {
  return value <= cost::kUnrolled ? Number{value, -1} : nest_.symbol(value);
}

// ---- Along an axis ----

// The address in an array of all positions.
ValueId Lowerer::position(const Wanted& w) {
  const Address& address = group_.addresses[static_cast<std::size_t>(w.detail)];
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = Op::Iota;
  for (const Address::Term& term : address.terms)
    stmt.access.terms.push_back({term.var, number(term.stride)});
  if (address.offset != 0) stmt.access.fixed.emplace_back(1, nest_.symbol(address.offset));
  for (const Address::Fixed& fixed : address.fixed)
    stmt.access.fixed.emplace_back(fixed.factor, number(fixed.stride));
  return nest_.define(std::move(stmt), g_[w.node].dtype, w.vars);
}

ValueId Lowerer::carried(const Wanted& w) {
  const ir::Node& n = g_[w.node];
  Stmt stmt;
  stmt.kind = Stmt::Kind::Carry;
  stmt.op = *n.combine;
  stmt.vars = {w.at};
  stmt.args = operands(w);
  note(w.node, std::string(ir::op_info(stmt.op).name) + ".accumulate");
  return nest_.define(std::move(stmt), n.dtype, w.vars);
}

// ---- Elementwise ----

ValueId Lowerer::compute(const Wanted& w) {
  const ir::Node& n = g_[w.node];
  if (n.op == Op::Const) return nest_.opaque(nest_.constant(n.dtype, n.constant));
  if (n.op == Op::Param) return param(n);
  std::vector<ValueId> args = operands(w);
  for (std::size_t i = 0; i < args.size(); ++i)
    if ((w.hidden >> i & 1) != 0) args[i] = nest_.unknown(args[i]);
  note(w.node, std::string(ir::op_info(n.op).name));
  return nest_.compute(n.op, n.dtype, std::move(args));
}

// The position in a list, where it is put if it is not there yet.
static int position_in(std::vector<std::uint32_t>& list, std::uint32_t id) {
  const auto it = std::ranges::find(list, id);
  const auto position = static_cast<int>(it - list.begin());
  if (it == list.end()) list.push_back(id);
  return position;
}

ValueId Lowerer::param(const ir::Node& n) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Compute;
  stmt.op = Op::Param;
  stmt.index = position_in(nest_.kernel().params, n.id);
  return nest_.define(std::move(stmt), n.dtype, {});
}

ValueId Lowerer::call(const Wanted& w) {
  const ir::Node& n = g_[w.node];
  std::vector<ValueId> args = operands(w);
  const Vars where = nest_.vars(args);
  const int row = position_in(nest_.kernel().calls, n.id);
  // Another output of a call that is there already.
  Body& body = nest_.body(nest_.scopes().place(where));
  const auto same = std::find_if(body.rbegin(), body.rend(), [&](const Stmt& s) {
    return s.kind == Stmt::Kind::Call && s.index == row && s.args == args;
  });
  if (same != body.rend()) {
    ValueId& slot = same->results[n.slot];
    if (slot < 0) slot = nest_.new_value(n.dtype, where);
    return slot;
  }
  note(w.node, loops_[n.id].ufunc);
  Stmt stmt;
  stmt.kind = Stmt::Kind::Call;
  stmt.index = row;
  stmt.args = std::move(args);
  stmt.results.assign(loops_[n.id].outputs.size(), -1);
  const ValueId result = stmt.results[n.slot] = nest_.new_value(n.dtype, where);
  nest_.emit(std::move(stmt), where);
  return result;
}

// ---- Reductions ----

static std::string reduction_name(const ir::Node& n) {
  if (n.op == Op::ArgReduce) return n.id == 0 ? "argmin" : "argmax";
  return std::string(ir::reduction_info(n.reduction).name) + ".reduce";
}

ValueId Lowerer::initial(const Wanted& w) {
  if (w.initial >= 0) return value(w.initial);
  const ir::Node& n = g_[w.node];
  if (ir::reduction_info(n.reduction).identity == ir::Identity::None) return -1;
  return nest_.constant(n.dtype, ir::identity_bits(n.reduction, n.dtype));
}

ValueId Lowerer::unrolled(const Wanted& w) {
  const ir::Node& n = g_[w.node];
  const Reduction& reduction = group_.reductions[static_cast<std::size_t>(w.detail)];
  std::vector<ValueId> elements;
  for (WantedId id : w.operands) elements.push_back(value(id));
  ValueId result = -1;
  if (reduction.from_squares)
    result = unrolled_arg_of_roots(nest_, elements, n.id == 1);
  else if (n.op == Op::ArgReduce)
    result = unrolled_arg(nest_, elements, n.id == 1);
  else
    result = unrolled_reduce(nest_, n, elements, reduction.extents,
                             reduction.starts_bare ? -1 : initial(w));
  note(w.node, reduction_name(n));
  return result;
}

ValueId Lowerer::loops(const Wanted& w) {
  const ir::Node& n = g_[w.node];
  const Reduction& reduction = group_.reductions[static_cast<std::size_t>(w.detail)];
  Stmt fold;
  fold.kind = Stmt::Kind::Fold;
  fold.form = reduction.form;
  fold.order = n.order;
  fold.chunk = n.chunk;
  fold.reduction = n.reduction;
  fold.vars = reduction.vars;
  fold.in_blocks = reduction.in_blocks;
  fold.stops = reduction.stops;
  if (n.op == Op::ArgReduce) fold.arg = static_cast<int>(n.id);
  // As if no loops were open but those that the result varies with.
  fold.element = nest_.scopes().within(nest_.scopes().place(w.vars), [&] {
    if (fold.arg < 0) fold.initial = initial(w);
    Vars vars;
    for (VarId var : reduction.vars) {
      open_var(var);
      join(vars, {var});
    }
    nest_.push(std::move(vars), fold.body);
    const ValueId element = value(w.operands[0]);
    const bool keyed = fold.arg >= 0 && fold.form == Stmt::Form::Lanes;
    const ValueId combined = keyed ? arg_key(nest_, element, fold.arg == 1) : element;
    nest_.pop();
    return combined;
  });
  const ValueId result = fold.result = nest_.new_value(n.dtype, w.vars);
  nest_.emit(std::move(fold), w.vars);
  note(w.node, reduction_name(n));
  return result;
}

// ---- Rows of scratch ----

ValueId Lowerer::from_row(const Wanted& w) {
  const ir::DType dtype = g_[w.node].dtype;
  int& buffer = row_buffers_[static_cast<std::size_t>(w.detail)];
  if (buffer < 0) fill_row(w.detail, dtype);
  Stmt stmt;
  stmt.kind = Stmt::Kind::Load;
  stmt.access.buffer = buffer;
  stmt.access.terms = {{w.at, Number{1, -1}}};
  return nest_.define(std::move(stmt), dtype, w.vars);
}

// A loop of its own before the run, which stores the value for all of it.
void Lowerer::fill_row(int index, ir::DType dtype) {
  const Row& row = group_.rows[static_cast<std::size_t>(index)];
  Kernel& kernel = nest_.kernel();
  const Number length = kernel.var(row.run).extent;
  kernel.vars[static_cast<std::size_t>(row.var)] = {"i" + std::to_string(row.var), length};
  const auto filled =
      static_cast<int>(std::ranges::count(kernel.buffers, Buffer::Role::Row, &Buffer::role));
  Buffer scratch{.role = Buffer::Role::Row, .index = filled, .dtype = dtype, .written = true};
  scratch.length = length;
  kernel.buffers.push_back(std::move(scratch));
  const auto buffer = static_cast<int>(kernel.buffers.size() - 1);
  row_buffers_[static_cast<std::size_t>(index)] = buffer;
  Stmt loop;
  loop.kind = Stmt::Kind::Loop;
  loop.vars = {row.var};
  loop.lanes = true;
  nest_.push({row.var}, loop.body);
  Stmt store;
  store.kind = Stmt::Kind::Store;
  store.args = {value(row.filled)};
  store.access.buffer = buffer;
  store.access.terms = {{row.var, Number{1, -1}}};
  loop.body.push_back(std::move(store));
  nest_.pop();
  nest_.body(nest_.scopes().place({row.run}) - 1).push_back(std::move(loop));
}

}  // namespace ufuse::codegen::loop
