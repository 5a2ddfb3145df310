// What stands at one position (of all indexed axes together) is a block: the operand's other axes.
// Gathering copies blocks out of the operand, scattering copies them into it or combines them with
// what is there, one position after the other.
#include "ir/interp/positions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "ir/inner_loops.h"
#include "ir/interp/loop_nest.h"
#include "ir/support/error.h"

namespace ufuse::ir::interp {
namespace {

// Counted from the front of an axis of this extent; outside of it, if it was not to occur.
std::int64_t from_front(std::int64_t position, std::int64_t extent, Bounds bounds) {
  switch (bounds) {
    case Bounds::Unsigned:
      return position;
    case Bounds::Signed:
      return position < 0 ? position + extent : position;
    case Bounds::Wrap:
      if (extent == 0) return position;
      position %= extent;
      return position < 0 ? position + extent : position;
    case Bounds::Clip:
      return std::max<std::int64_t>(std::min(position, extent - 1), 0);
  }
  throw InternalError("interpreter: unknown bounds");
}

// Where the blocks of an operand begin, in C order of the positions.
class Blocks {
 public:
  Blocks(const Node& node, const Value& x, std::span<const Value> positions, const Pulse& pulse)
      : bounds_(node.bounds), count_(count(positions.front().shape)) {
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const auto axis = static_cast<std::size_t>(node.ints[k]);
      axes_.push_back({contiguous(positions[k], pulse), x.shape[axis], x.strides[axis]});
    }
    for (std::size_t a = 0; a < x.shape.size(); ++a) {
      if (std::ranges::find(node.ints, static_cast<std::int64_t>(a)) != node.ints.end()) continue;
      rest_shape_.push_back(x.shape[a]);
      rest_strides_.push_back(x.strides[a]);
    }
  }

  std::int64_t size() const { return count_; }
  // Bytes from the operand's first element; unset: outside.
  std::optional<std::int64_t> offset(std::int64_t i) const {
    std::int64_t offset = 0;
    for (const Axis& axis : axes_) {
      std::int64_t position;
      std::memcpy(&position, axis.positions.data + i * 8, 8);
      position = from_front(position, axis.extent, bounds_);
      if (position < 0 || position >= axis.extent) return std::nullopt;
      offset += position * axis.stride;
    }
    return offset;
  }
  const Dims& rest_shape() const { return rest_shape_; }
  const Dims& rest_strides() const { return rest_strides_; }

 private:
  struct Axis {
    Value positions;
    std::int64_t extent, stride;
  };
  const Bounds bounds_;
  const std::int64_t count_;
  std::vector<Axis> axes_;
  Dims rest_shape_, rest_strides_;
};

// Calls `visit(a, b)` for each element of two blocks of one shape, in C order.
template <class Visit>
void walk(const Dims& shape, char* a, const Dims& a_strides, char* b, const Dims& b_strides,
          Visit visit, std::size_t axis = 0) {
  if (axis == shape.size()) return visit(a, b);
  for (std::int64_t i = 0; i < shape[axis]; ++i)
    walk(shape, a + i * a_strides[axis], a_strides, b + i * b_strides[axis], b_strides, visit,
         axis + 1);
}

// old = old op new for one element; `dtype` is that of the new one, in which the op computes.
class Combiner {
 public:
  Combiner(Op op, DType old_dtype, DType dtype)
      : loop_(elementwise_loop(op, dtype)), is_binary_(op_info(op).arity == 2) {
    if (old_dtype == dtype) return;
    widen_ = cast_loop(old_dtype, dtype);
    narrow_ = cast_loop(dtype, old_dtype);
  }
  void operator()(char* old, char* added) const {
    Scalar wide{};
    char* at = old;
    if (widen_) {
      at = reinterpret_cast<char*>(wide.bits);
      call(widen_, {old, at, nullptr});
    }
    if (is_binary_)
      call(loop_, {at, added, at});
    else
      call(loop_, {at, at, nullptr});
    if (narrow_) call(narrow_, {at, old, nullptr});
  }

 private:
  static void call(InnerLoop loop, std::array<char*, 3> args) {
    constexpr std::int64_t kOne = 1, kStrides[3] = {0, 0, 0};
    loop(args.data(), &kOne, kStrides, nullptr);
  }
  const InnerLoop loop_;
  const bool is_binary_;
  InnerLoop widen_ = nullptr, narrow_ = nullptr;
};

// Asks the pulse after every few ten thousand elements.
class Beats {
 public:
  Beats(const Pulse& pulse, std::int64_t each) : pulse_(pulse), each_(each + 1) {}
  void step() {
    if ((done_ += each_) < Pulse::kElements) return;
    pulse_.beat();
    done_ = 0;
  }

 private:
  const Pulse& pulse_;
  const std::int64_t each_;
  std::int64_t done_ = 0;
};

}  // namespace

Placed gather(const Node& node, const Value& x, std::span<const Value> positions,
              const Pulse& pulse) {
  const Blocks blocks(node, x, positions, pulse);
  Placed result{allocate(x.dtype, node.shape), false};
  const std::size_t itemsize = size_of(x.dtype);
  const Dims strides = c_strides(blocks.rest_shape(), itemsize);
  const std::int64_t elements = count(blocks.rest_shape());
  const std::int64_t bytes = elements * static_cast<std::int64_t>(itemsize);
  Beats beats(pulse, elements);
  for (std::int64_t i = 0; i < blocks.size(); ++i) {
    beats.step();
    char* to = result.value.data + i * bytes;
    if (const auto offset = blocks.offset(i)) {
      walk(blocks.rest_shape(), x.data + *offset, blocks.rest_strides(), to, strides,
           [&](char* from, char* at) { std::memcpy(at, from, itemsize); });
    } else {
      std::memset(to, 0, static_cast<std::size_t>(bytes));
      result.redo = true;
    }
  }
  return result;
}

Placed scatter(const Node& node, const Value& x, std::span<const Value> positions,
               const Value* values, const Pulse& pulse) {
  Placed result{allocate(x.dtype, x.shape, walking_order({x})), false};
  copy_elements(x, result.value, pulse);
  const Blocks blocks(node, result.value, positions, pulse);
  const DType dtype = values ? values->dtype : x.dtype;
  const Value added = values ? contiguous(*values, pulse) : Value{};
  const std::size_t itemsize = size_of(x.dtype);
  const std::int64_t elements = count(blocks.rest_shape());
  const std::int64_t bytes = values ? elements * static_cast<std::int64_t>(size_of(dtype)) : 0;
  const Dims strides =
      values ? c_strides(blocks.rest_shape(), size_of(dtype)) : Dims(blocks.rest_shape().size(), 0);
  std::optional<Combiner> combine;
  if (node.combine) combine.emplace(*node.combine, x.dtype, dtype);
  Beats beats(pulse, elements);
  for (std::int64_t i = 0; i < blocks.size(); ++i) {
    beats.step();
    const auto offset = blocks.offset(i);
    if (!offset) {
      result.redo = true;
      continue;
    }
    walk(blocks.rest_shape(), result.value.data + *offset, blocks.rest_strides(),
         added.data + i * bytes, strides, [&](char* old, char* from) {
           if (combine)
             (*combine)(old, from);
           else
             std::memcpy(old, from, itemsize);
         });
  }
  return result;
}

Placed nonzero(const Node& node, const Value& mask, const Pulse& pulse) {
  Placed result{allocate(DType::Int64, node.shape), false};
  const auto bytes = static_cast<std::size_t>(count(node.shape)) * 8;
  std::memset(result.value.data, 0, bytes);
  const auto axes = static_cast<std::int64_t>(mask.shape.size());
  const Value all = contiguous(mask, pulse);
  const std::int64_t elements = count(mask.shape);
  Beats beats(pulse, 1);
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    beats.step();
    if (all.data[i] == 0) continue;
    if (found < node.shape[0]) {
      std::int64_t rest = i;
      for (std::int64_t a = axes; a-- > 0;) {
        const std::int64_t extent = mask.shape[static_cast<std::size_t>(a)];
        const std::int64_t position = rest % extent;
        rest /= extent;
        std::memcpy(result.value.data + (found * axes + a) * 8, &position, 8);
      }
    }
    ++found;
  }
  result.redo = found != node.shape[0];
  return result;
}

Value iota(const Node& node) {
  Value value = allocate(DType::Int64, node.shape);
  for (std::int64_t i = 0; i < node.shape[0]; ++i) std::memcpy(value.data + i * 8, &i, 8);
  return value;
}

}  // namespace ufuse::ir::interp
