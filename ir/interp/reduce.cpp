// A reduction brings the operand into the order of iteration first (kept axes, then the reduced
// ones in their order), so that what one result combines is one contiguous run. The combination
// itself is the inner loop of the reduction's row in ops.def, with an accumulator of stride 0 as in
// NumPy.
#include "ir/interp/reduce.h"

#include <algorithm>
#include <cstring>

#include "ir/inner_loops.h"
#include "ir/interp/pairwise.h"
#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"
#include "ir/support/error.h"

namespace ufuse::ir::interp {
namespace {

// x with the axes `last` moved to the end, contiguous, as a table: `rows` results of `length`
// elements each.
struct Table {
  Value value;
  Dims kept;  // shape of the result
  std::int64_t rows, length;
};

Table table_of(const Value& x, const Dims& last, const Pulse& pulse) {
  Table table{{x.dtype, {}, {}, x.data, x.owner}, {}, 1, 1};
  const auto move = [&](std::size_t axis) {
    table.value.shape.push_back(x.shape[axis]);
    table.value.strides.push_back(x.strides[axis]);
  };
  for (std::size_t a = 0; a < x.shape.size(); ++a) {
    if (std::ranges::find(last, static_cast<std::int64_t>(a)) != last.end()) continue;
    move(a);
    table.kept.push_back(x.shape[a]);
    table.rows *= x.shape[a];
  }
  for (std::int64_t a : last) {
    move(static_cast<std::size_t>(a));
    table.length *= x.shape[a];
  }
  table.value = contiguous(table.value, pulse);
  return table;
}

// acc = acc op x for n elements in order.
void combine(InnerLoop loop, char* acc, char* run, std::int64_t n, std::int64_t itemsize,
             const Pulse& pulse) {
  const std::int64_t strides[] = {0, itemsize, 0};
  for (std::int64_t i = 0; i < n; i += Pulse::kElements) {
    char* args[] = {acc, run + i * itemsize, acc};
    const std::int64_t count = std::min(n - i, Pulse::kElements);
    loop(args, &count, strides, nullptr);
    if (count == Pulse::kElements) pulse.beat();
  }
}

// Does NumPy's vector order decide the bits of this minimum or maximum? `acc` is the result of the
// sequential order.
template <class F, class Bits>
bool depends_on_order(const char* acc, const char* initial, const char* run, std::int64_t n) {
  F result;
  std::memcpy(&result, acc, sizeof result);
  if (result != 0 && !rt::isnan(result)) return false;
  Bits wanted;
  std::memcpy(&wanted, acc, sizeof wanted);
  const auto differs = [&](const char* p) {
    F x;
    Bits bits;
    std::memcpy(&x, p, sizeof x);
    std::memcpy(&bits, p, sizeof bits);
    return bits != wanted && (rt::isnan(result) ? rt::isnan(x) : x == 0);
  };
  if (initial != nullptr && differs(initial)) return true;
  for (std::int64_t i = 0; i < n; ++i)
    if (differs(run + i * static_cast<std::int64_t>(sizeof(F)))) return true;
  return false;
}

// Elements of one inner call in NumPy: the extents of the last run_axes axes.
std::int64_t run_length(const Node& node, const Value& x) {
  std::int64_t length = 1;
  for (std::size_t k = node.ints.size() - node.run_axes; k < node.ints.size(); ++k)
    length *= x.shape[node.ints[k]];
  return length;
}

void sum_pairwise(const Node& node, char* acc, const char* row, std::int64_t length,
                  std::int64_t run, const Pulse& pulse) {
  const auto itemsize = static_cast<std::int64_t>(size_of(node.dtype));
  const std::int64_t chunk = node.chunk == 0 ? run : node.chunk;
  for (std::int64_t start = 0; start < length; start += run)
    for (std::int64_t i = 0; i < run; i += chunk)
      add_pairwise(node.dtype, acc, row + (start + i) * itemsize, std::min(chunk, run - i), pulse);
}

template <class T>
std::int64_t first_extreme(const char* row, std::int64_t n, bool largest, const Pulse& pulse) {
  T best;
  std::memcpy(&best, row, sizeof best);
  std::int64_t position = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % Pulse::kElements == Pulse::kElements - 1) pulse.beat();
    T x;
    std::memcpy(&x, row + i * static_cast<std::int64_t>(sizeof x), sizeof x);
    if (x != x) return i;
    if (largest ? rt::less(best, x) : rt::less(x, best)) {
      best = x;
      position = i;
    }
  }
  return position;
}

std::int64_t first_extreme(DType dtype, const char* row, std::int64_t n, bool largest,
                           const Pulse& pulse) {
  switch (dtype) {
#define DTYPE(id, name, ch, kind, size, cpp)             \
  case DType::id:                                        \
    if constexpr (is_accepted(DType::id, kBool | kReal)) \
      return first_extreme<cpp>(row, n, largest, pulse); \
    break;
#include "ir/dtypes.def"
#undef DTYPE
  }
  throw InternalError("arg_reduce: no order of these numbers");
}

}  // namespace

Reduced reduce(const Node& node, const Value& x, const Value* initial, const Pulse& pulse) {
  const Table table = table_of(x, node.ints, pulse);
  const auto itemsize = static_cast<std::int64_t>(size_of(node.dtype));
  const bool starts_at_first =
      initial == nullptr && reduction_info(node.reduction).identity == Identity::None;
  const Scalar identity =
      initial == nullptr && !starts_at_first ? identity_bits(node.reduction, node.dtype) : Scalar{};
  const InnerLoop loop = elementwise_loop(reduction_info(node.reduction).combine, node.dtype);
  const std::int64_t run = node.order == Order::Pairwise ? run_length(node, x) : 0;
  const char* start =
      initial != nullptr ? initial->data : reinterpret_cast<const char*>(identity.bits);

  Reduced result{allocate(node.dtype, table.kept), false};
  std::int64_t done = 0;  // elements since the last beat
  for (std::int64_t r = 0; r < table.rows; ++r) {
    if ((done += table.length + 1) >= Pulse::kElements) {
      pulse.beat();
      done = 0;
    }
    char* acc = result.value.data + r * itemsize;
    char* row = table.value.data + r * table.length * itemsize;
    std::memcpy(acc, starts_at_first ? row : start, size_of(node.dtype));
    if (table.length == 0) continue;
    if (node.order == Order::Pairwise)
      sum_pairwise(node, acc, row, table.length, run, pulse);
    else
      combine(loop, acc, row, table.length, itemsize, pulse);
    if (node.order == Order::Extremum) {
      const char* first = initial != nullptr ? initial->data : nullptr;
      if (node.dtype == DType::Float32)
        result.redo |= depends_on_order<rt::f32, rt::u32>(acc, first, row, table.length);
      if (node.dtype == DType::Float64)
        result.redo |= depends_on_order<rt::f64, rt::u64>(acc, first, row, table.length);
    }
  }
  return result;
}

Value arg_reduce(const Node& node, const Value& x, const Pulse& pulse) {
  const Table table = table_of(x, node.ints, pulse);
  Value result = allocate(DType::Int64, table.kept);
  const auto bytes = table.length * static_cast<std::int64_t>(size_of(x.dtype));
  std::int64_t done = 0;
  for (std::int64_t r = 0; r < table.rows; ++r) {
    if ((done += table.length) >= Pulse::kElements) {
      pulse.beat();
      done = 0;
    }
    const std::int64_t position =
        first_extreme(x.dtype, table.value.data + r * bytes, table.length, node.id == 1, pulse);
    std::memcpy(result.data + r * 8, &position, 8);
  }
  return result;
}

}  // namespace ufuse::ir::interp
