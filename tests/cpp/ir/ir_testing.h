// What the tests of ir share: values as bits, special values of each dtype, and running a graph in
// the interpreter.
#pragma once

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "ir/graph.h"
#include "ir/interp/interpreter.h"
#include "ir/parse.h"

namespace ufuse::ir::testing {

inline std::vector<DType> all_dtypes() {
  std::vector<DType> dtypes;
  for (std::size_t i = 0; i < kDTypeCount; ++i) dtypes.push_back(static_cast<DType>(i));
  return dtypes;
}
inline std::vector<Op> all_rows() {
  return {
#define OP(id, name, arity, accepts, result, flags, cpp) Op::id,
#include "ir/ops.def"
#undef OP
  };
}
// Kinds and rows.
inline std::vector<Op> all_ops() {
  std::vector<Op> ops = {
#define KIND(id, ...) Op::id,
#include "ir/kinds.def"
#undef KIND
  };
  for (Op row : all_rows()) ops.push_back(row);
  return ops;
}
inline std::vector<Reduction> all_reductions() {
  return {
#define REDUCTION(id, name, combine, accepts, identity) Reduction::id,
#include "ir/reductions.def"
#undef REDUCTION
  };
}

template <class T>
Scalar bits_of(T value) {
  Scalar s;
  std::memcpy(s.bits, &value, sizeof value);
  const bool is_long = std::is_same_v<T, long double>;
  return is_long ? without_padding(s, DType::LongDouble) : s;
}
inline std::uint64_t mask_of(DType dtype) {
  return size_of(dtype) >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(dtype))) - 1;
}

template <class F>
std::vector<F> special_floats() {
  using L = std::numeric_limits<F>;
  return {F(0),          F(-0.0),        F(1),           F(-1),           F(0.5),
          F(-0.5),       F(1.5),         F(2.5),         F(-2.5),         F(3),
          F(127.5),      F(300),         F(-129),        F(70000),        L::max(),
          -L::max(),     L::min(),       -L::min(),      L::denorm_min(), -L::denorm_min(),
          L::infinity(), -L::infinity(), L::quiet_NaN(), -L::quiet_NaN()};
}

// Zero, one, signs, extremes, shift counts around the width, infinities, NaNs, subnormals.
inline std::vector<Scalar> special_values(DType dtype) {
  std::vector<Scalar> values;
  switch (info(dtype).kind) {
    case Kind::Bool:
      return {{{0, 0}}, {{1, 0}}};
    case Kind::Int:
    case Kind::UInt: {
      const std::uint64_t width = 8 * size_of(dtype), top = std::uint64_t{1} << (width - 1);
      for (std::uint64_t v :
           {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, width - 1,
            width, width + 1, top - 1, top, top + 1, ~std::uint64_t{0}, ~std::uint64_t{1}})
        values.push_back({{v & mask_of(dtype), 0}});
      return values;
    }
    case Kind::Float:
      if (dtype == DType::Float16) {  // the same, in the order of the bits
        for (std::uint64_t v : {0x0000, 0x3c00, 0x3800, 0x3e00, 0x4100, 0x4200, 0x57f8, 0x5cb0,
                                0x7bff, 0x0400, 0x03ff, 0x0001, 0x7c00, 0x7e00, 0x7e12})
          for (std::uint64_t sign : {0x0000, 0x8000}) values.push_back({{v | sign}});
      } else if (dtype == DType::LongDouble) {
        for (long double v : special_floats<long double>()) values.push_back(bits_of(v));
      } else if (dtype == DType::Float32) {
        for (float v : special_floats<float>()) values.push_back(bits_of(v));
      } else {
        for (double v : special_floats<double>()) values.push_back(bits_of(v));
      }
      return values;
    case Kind::Complex:
      for (const Scalar& re : special_values(real_part(dtype)))
        for (const Scalar& im : special_values(real_part(dtype)))
          values.push_back(complex_of(re, im, real_part(dtype)));
      return values;
  }
  return values;
}

// An array with memory of its own, C order unless strides are given.
struct Array {
  DType dtype;
  Dims shape, strides;
  std::vector<char> memory;
  std::size_t start = 0;  // of the first element

  Buffer buffer() { return {memory.data() + start, dtype, shape, strides}; }
  template <class T>
  T at(std::size_t i) const {
    T value;
    std::memcpy(&value, memory.data() + i * sizeof(T), sizeof(T));
    return value;
  }
};

// The first element.
inline Scalar scalar_at(const Array& a) {
  Scalar value;
  std::memcpy(value.bits, a.memory.data() + a.start, size_of(a.dtype));
  return without_padding(value, a.dtype);
}

inline Array empty(DType dtype, Dims shape) {
  Array a{dtype, shape, Dims(shape.size()), {}, 0};
  std::int64_t stride = static_cast<std::int64_t>(size_of(dtype));
  for (std::size_t i = shape.size(); i-- > 0;) {
    a.strides[i] = stride;
    stride *= shape[i];
  }
  a.memory.resize(static_cast<std::size_t>(stride));
  return a;
}
template <class T>
Array array(DType dtype, Dims shape, const std::vector<T>& values) {
  Array a = empty(dtype, std::move(shape));
  if (!values.empty()) std::memcpy(a.memory.data(), values.data(), a.memory.size());
  return a;
}

struct Outcome {
  std::vector<Array> outputs;
  RunStatus status;
};
inline Outcome run(const Graph& g, std::vector<Array> inputs,
                   const std::vector<Scalar>& params = {}, const LoopTable* loops = nullptr) {
  Outcome outcome;
  for (NodeId id : g.outputs) outcome.outputs.push_back(empty(g[id].dtype, g[id].shape));
  std::vector<Buffer> in, out;
  for (Array& a : inputs) in.push_back(a.buffer());
  for (Array& a : outcome.outputs) out.push_back(a.buffer());
  const RunArgs args{in, params, out, {}, {}};
  outcome.status = Interpreter(loops).prepare(g, args)->run(args);
  return outcome;
}

// The elements of the only output.
template <class T>
std::vector<T> values_of(const Graph& g, std::vector<Array> inputs,
                         const std::vector<Scalar>& params = {}) {
  const Outcome outcome = run(g, std::move(inputs), params);
  std::vector<T> values(outcome.outputs[0].memory.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), outcome.outputs[0].memory.data(), outcome.outputs[0].memory.size());
  return values;
}

}  // namespace ufuse::ir::testing
