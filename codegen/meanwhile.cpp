#include "codegen/meanwhile.h"

#include <algorithm>
#include <utility>

#include "codegen/schedule/cost.h"
#include "codegen/schedule/reach.h"
#include "codegen/schedule/views.h"

namespace ufuse::codegen {

Uncompiled::Uncompiled(const ir::Graph& graph)
    : worth_waiting_(cost::kWorthWaiting +
                     cost::kCompiledPart *
                         static_cast<double>(graph.size() / (2 * cost::kMostNodes))) {
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const ir::Node& node = graph[graph.at(i)];
    const Reach reach = reach_of(node.op);
    const auto size = static_cast<double>(ir::size_of(node.dtype));
    const auto results = static_cast<double>(element_count(node.shape));
    const double elements = reach == Reach::Many
                                ? static_cast<double>(element_count(graph[node.inputs[0]].shape))
                                : results;
    interpreted_ += cost::kInterpretedNode + cost::kInterpretedElement * elements;
    largest_ = std::max(largest_, elements * size);
    numpy_ += cost::kNumPyNode;
    if (reach == Reach::None || reach == Reach::Mapped) continue;  // it is there, or a view
    numpy_ += cost::kNumPyElement * elements;
    if (results * size > cost::kFreshBytes) numpy_ += cost::kFreshByte * results * size;
  }
}
bool Uncompiled::is_quick() const { return interpreted_ <= cost::kInterpretedMost; }
bool Uncompiled::is_worse_than_waiting() const {
  return numpy_ > worth_waiting_ || largest_ > cost::kWorthWaitingBytes;
}
std::chrono::nanoseconds Uncompiled::longest_wait() const {
  if (largest_ > cost::kWorthWaitingBytes) return std::chrono::seconds(cost::kMostPatience);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(numpy_));
}

namespace {

class LeftToNumPy final : public ir::Executable {
 public:
  explicit LeftToNumPy(ir::Report report) : report_(std::move(report)) {
    for (ir::GroupReport& group : report_.groups) group.origin = "NumPy";
  }
  ir::RunStatus run(const ir::RunArgs&) const override {
    return {.redo = true, .why = Reason::Compiling};
  }
  const ir::Report& report() const override { return report_; }
  double expected_ns() const override { return 0; }

 private:
  ir::Report report_;
};

}  // namespace

std::shared_ptr<const ir::Executable> left_to_numpy(ir::Report report) {
  return std::make_shared<LeftToNumPy>(std::move(report));
}

}  // namespace ufuse::codegen
