// A scan calls the inner loop of its op as NumPy's accumulate does: the first operand is the
// result, one element behind the output.
#include "ir/interp/scan.h"

#include <algorithm>
#include <cstring>

#include "ir/inner_loops.h"
#include "ir/interp/loop_nest.h"

namespace ufuse::ir::interp {
namespace {

// Where lines begin, one after the other in C order of the axes beside the scanned one.
class Lines {
 public:
  Lines(const Value& x, const Value& y, std::size_t axis) : x_(x), y_(y), axis_(axis) {}
  const char* from() const { return x_.data + x_offset_; }
  char* to() const { return y_.data + y_offset_; }
  bool next() {
    for (std::size_t a = x_.shape.size(); a-- > 0;) {
      if (a == axis_) continue;
      x_offset_ += x_.strides[a];
      y_offset_ += y_.strides[a];
      if (++index_[a] < x_.shape[a]) return true;
      x_offset_ -= x_.strides[a] * x_.shape[a];
      y_offset_ -= y_.strides[a] * x_.shape[a];
      index_[a] = 0;
    }
    return false;
  }

 private:
  const Value& x_;
  const Value& y_;
  const std::size_t axis_;
  Dims index_ = Dims(x_.shape.size(), 0);
  std::int64_t x_offset_ = 0, y_offset_ = 0;
};

}  // namespace

Value scan(const Node& node, const Value& x, const Pulse& pulse) {
  Value y = allocate(x.dtype, x.shape, walking_order({x}));
  if (count(x.shape) == 0) return y;
  const auto axis = static_cast<std::size_t>(node.ints[0]);
  const std::int64_t length = x.shape[axis];
  const std::int64_t strides[] = {y.strides[axis], x.strides[axis], y.strides[axis]};
  const InnerLoop loop = elementwise_loop(*node.combine, x.dtype);
  const std::int64_t most = Pulse::kElements;
  std::int64_t done = 0;  // elements since the last beat
  Lines lines(x, y, axis);
  do {
    std::memcpy(lines.to(), lines.from(), size_of(x.dtype));
    for (std::int64_t i = 1; i < length; i += most) {
      char* before = lines.to() + (i - 1) * strides[0];
      char* args[] = {before, const_cast<char*>(lines.from()) + i * strides[1],
                      before + strides[0]};
      const std::int64_t n = std::min(most, length - i);
      loop(args, &n, strides, nullptr);
      if ((done += n) < Pulse::kElements) continue;
      pulse.beat();
      done = 0;
    }
  } while (lines.next());
  return y;
}

}  // namespace ufuse::ir::interp
