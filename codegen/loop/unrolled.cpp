#include "codegen/loop/unrolled.h"

#include <algorithm>
#include <utility>

namespace ufuse::codegen::loop {
namespace {

using ir::DType;
using ir::Op;

// NumPy's pairwise sum of at most kMaxUnroll elements.
ValueId pairwise(Nest& nest, const std::vector<ValueId>& x, std::size_t lo, std::size_t count,
                 DType dtype) {
  const auto add = [&](ValueId a, ValueId b) { return nest.compute(Op::Add, dtype, {a, b}); };
  const std::size_t lanes = is_in(dtype, ir::kComplex) ? 4 : 8;
  if (count < lanes) {
    ValueId sum = x[lo];  // -0.0 + x is x
    for (std::size_t i = 1; i < count; ++i) sum = add(sum, x[lo + i]);
    return sum;
  }
  std::vector<ValueId> r(x.begin() + static_cast<std::ptrdiff_t>(lo),
                         x.begin() + static_cast<std::ptrdiff_t>(lo + lanes));
  std::size_t i = lanes;
  for (; i + lanes <= count; i += lanes)
    for (std::size_t k = 0; k < lanes; ++k) r[k] = add(r[k], x[lo + i + k]);
  while (r.size() > 1) {
    for (std::size_t k = 0; k < r.size() / 2; ++k) r[k] = add(r[2 * k], r[2 * k + 1]);
    r.resize(r.size() / 2);
  }
  for (; i < count; ++i) r[0] = add(r[0], x[lo + i]);
  return r[0];
}

// NumPy's vector order decides which of two zeros or NaNs comes out; that is its own business. It
// has none for halves.
void doubt_extremum(Nest& nest, ValueId result, const std::vector<ValueId>& x, DType dtype) {
  if ((dtype != DType::Float32 && dtype != DType::Float64) || x.size() < 2) return;
  const auto test = [&](Op op, std::vector<ValueId> args) {
    return nest.compute(op, DType::Bool, std::move(args));
  };
  ValueId minus_zero = -1;
  const ValueId zero = nest.constant(dtype, {});
  for (ValueId e : x) {
    const ValueId is_zero = test(Op::Equal, {e, zero});
    const ValueId negative = test(Op::SignBit, {e});
    const ValueId both = test(Op::LogicalAnd, {is_zero, negative});
    minus_zero = minus_zero < 0 ? both : test(Op::LogicalOr, {minus_zero, both});
  }
  const ValueId at_zero = test(Op::Equal, {result, zero});
  const ValueId tie = test(Op::LogicalAnd, {at_zero, minus_zero});
  const ValueId nan = test(Op::IsNan, {result});
  Stmt stmt;
  stmt.kind = Stmt::Kind::Redo;
  stmt.args = {test(Op::LogicalOr, {tie, nan})};
  const Vars where = nest.vars(stmt.args[0]);
  nest.emit(std::move(stmt), where);
}

// The innermost scope's body is to run again, in full, where the numbers have no roots or roots
// that may be equal.
void doubt_roots(Nest& nest, std::vector<ValueId> squares) {
  Stmt stmt;
  stmt.kind = Stmt::Kind::Doubt;
  stmt.args = std::move(squares);
  nest.body(nest.scopes().depth()).push_back(std::move(stmt));
}

}  // namespace

ValueId unrolled_reduce(Nest& nest, const ir::Node& n, const std::vector<ValueId>& x,
                        const ir::Dims& extents, ValueId initial) {
  const Op op = ir::reduction_info(n.reduction).combine;
  ValueId acc = initial;
  const auto add = [&](ValueId a, ValueId b) { return nest.compute(op, n.dtype, {a, b}); };
  if (n.order == ir::Order::Pairwise && !x.empty()) {
    // NumPy adds the halves of a run as floats.
    const DType terms = n.dtype == DType::Float16 ? DType::Float32 : n.dtype;
    const auto as = [&](ValueId v, DType dtype) {
      return terms == n.dtype ? v : nest.compute(Op::Cast, dtype, {v});
    };
    std::vector<ValueId> wide;
    for (ValueId v : x) wide.push_back(as(v, terms));
    std::size_t run = 1;
    for (std::size_t i = extents.size() - n.run_axes; i < extents.size(); ++i)
      run *= static_cast<std::size_t>(extents[i]);
    const std::size_t chunk = n.chunk > 0 ? static_cast<std::size_t>(n.chunk) : run;
    for (std::size_t lo = 0; lo < x.size(); lo += run)
      for (std::size_t c = lo; c < lo + run; c += chunk) {
        const ValueId sum = pairwise(nest, wide, c, std::min(chunk, lo + run - c), terms);
        acc = as(acc < 0 ? sum : nest.compute(op, terms, {as(acc, terms), sum}), n.dtype);
      }
    return acc;
  }
  if (x.empty()) return nest.opaque(acc);
  std::size_t i = 0;
  if (acc < 0) acc = x[i++];
  for (; i < x.size(); ++i) acc = add(acc, x[i]);
  if (n.order == ir::Order::Extremum) doubt_extremum(nest, acc, x, n.dtype);
  return acc;
}

ValueId unrolled_arg(Nest& nest, const std::vector<ValueId>& x, bool largest) {
  ValueId best = arg_key(nest, x[0], largest), at = nest.constant(DType::Int64, {});
  for (std::size_t i = 1; i < x.size(); ++i) {
    const ValueId key = arg_key(nest, x[i], largest);
    const ValueId take = nest.compute(largest ? Op::Greater : Op::Less, DType::Bool, {key, best});
    at = nest.compute(Op::Where, DType::Int64, {take, nest.constant(DType::Int64, {{i, 0}}), at});
    if (i + 1 < x.size()) best = nest.compute(Op::Where, nest.dtype(best), {take, key, best});
  }
  return at;
}

ValueId unrolled_arg_of_roots(Nest& nest, const std::vector<ValueId>& squares, bool largest) {
  const DType dtype = nest.dtype(squares[0]);
  ValueId best = squares[0], at = nest.constant(DType::Int64, {});
  doubt_roots(nest, {best});
  for (std::size_t i = 1; i < squares.size(); ++i) {
    doubt_roots(nest, {squares[i], best});
    const std::vector<ValueId> pair =
        largest ? std::vector{best, squares[i]} : std::vector{squares[i], best};
    const ValueId take = nest.compute(Stmt::Helper::RootLess, DType::Bool, pair);
    at = nest.compute(Op::Where, DType::Int64, {take, nest.constant(DType::Int64, {{i, 0}}), at});
    if (i + 1 < squares.size()) best = nest.compute(Op::Where, dtype, {take, squares[i], best});
  }
  return at;
}

ValueId arg_key(Nest& nest, ValueId x, bool largest) {
  const DType dtype = nest.dtype(x);
  if (!is_in(dtype, ir::kFloat)) return x;
  return nest.compute(largest ? Stmt::Helper::ArgMaxKey : Stmt::Helper::ArgMinKey,
                      dtype == DType::Float32 ? DType::Int32 : DType::Int64, {x});
}

}  // namespace ufuse::codegen::loop
