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
    const bool many = reach_of(node.op) == Reach::Many;
    const auto elements =
        static_cast<double>(element_count(many ? graph[node.inputs[0]].shape : node.shape));
    interpreted_ += cost::kInterpretedNode + cost::kInterpretedElement * elements;
    numpy_ += cost::kNumPyNode + cost::kNumPyElement * elements;
    largest_ = std::max(largest_, elements * static_cast<double>(ir::size_of(node.dtype)));
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
