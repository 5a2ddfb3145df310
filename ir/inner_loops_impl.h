// How a row of ops.def becomes an inner loop for one element type. Included by the
// inner_loops_*.cpp only, one per group of dtypes, so that no translation unit grows slow to
// compile.
#pragma once

#include <cstring>

#include "ir/inner_loops.h"
#include "ir/scalar/prelude.h"
#include "ir/scalar/prelude_half.h"

namespace ufuse::ir::loops {

// One struct per row: its expression as a function. Rows of fewer operands ignore the rest.
#define OP(id, name, arity, accepts, result, flags, cpp)                                  \
  struct id##Row {                                                                        \
    template <class X, class T>                                                           \
    static auto at([[maybe_unused]] X x0, [[maybe_unused]] T x1, [[maybe_unused]] T x2) { \
      return cpp;                                                                         \
    }                                                                                     \
  };
#include "ir/ops.def"
#undef OP

template <class T>
T load(const char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

// X is the type of the first operand (bool for `where`), T that of the others, R the result's.
template <class Row, int arity, class X, class T, class R>
void elementwise(char** args, const std::int64_t* dims, const std::int64_t* strides, void*) {
  for (std::int64_t i = 0; i < dims[0]; ++i) {
    const X x0 = load<X>(args[0] + i * strides[0]);
    T x1{}, x2{};
    if constexpr (arity > 1) x1 = load<T>(args[1] + i * strides[1]);
    if constexpr (arity > 2) x2 = load<T>(args[2] + i * strides[2]);
    const R r = static_cast<R>(Row::at(x0, x1, x2));
    std::memcpy(args[arity] + i * strides[arity], &r, sizeof r);
  }
}

template <class From, class To>
void cast(char** args, const std::int64_t* dims, const std::int64_t* strides, void*) {
  for (std::int64_t i = 0; i < dims[0]; ++i) {
    const To r = rt::cast<To>(load<From>(args[0] + i * strides[0]));
    std::memcpy(args[1] + i * strides[1], &r, sizeof r);
  }
}

template <class T>
struct RealOf {
  using type = T;
};
template <class F>
struct RealOf<rt::complex<F>> {
  using type = F;
};
template <class T, ResultRule rule>
struct ResultOf {
  using type = T;
};
template <class T>
struct ResultOf<T, ResultRule::Bool> {
  using type = rt::b8;
};
template <class T>
struct ResultOf<T, ResultRule::Real> : RealOf<T> {};

template <class Row, bool is_where, int arity, ResultRule rule, class T>
constexpr InnerLoop loop_of() {
  using First = std::conditional_t<is_where, rt::b8, T>;
  return &elementwise<Row, arity, First, T, typename ResultOf<T, rule>::type>;
}

// Of each row of ops.def; null where it does not accept the dtype.
template <class T, DType dtype>
InnerLoop find(Op op) {
  static constexpr InnerLoop kLoops[] = {
#define OP(id, name, arity, accepts, result, flags, cpp)                            \
  [] {                                                                              \
    if constexpr (is_accepted(dtype, accepts))                                      \
      return loop_of<id##Row, Op::id == Op::Where, arity, ResultRule::result, T>(); \
    else                                                                            \
      return InnerLoop{};                                                           \
  }(),
#include "ir/ops.def"
#undef OP
  };
  const auto kinds = static_cast<std::size_t>(NodeKind::Elementwise);
  return is_elementwise_row(op) ? kLoops[static_cast<std::size_t>(op) - kinds] : nullptr;
}

// One function per dtype, each defined in one of the inner_loops_*.cpp.
#define DTYPE(id, name, ch, kind, size, cpp) InnerLoop find_##id(Op op);
#include "ir/dtypes.def"
#undef DTYPE

}  // namespace ufuse::ir::loops
