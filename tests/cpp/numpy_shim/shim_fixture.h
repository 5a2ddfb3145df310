// A context to call numpy_shim in: parameters are numbered and their bits kept.
#pragma once

#include <string>

#include "ir/print.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/operand.h"

namespace ufuse::numpy_shim {

class TestContext : public Context {
 public:
  ir::Graph& graph() override { return graph_; }
  ir::LoopTable& loops() override { return loops_; }
  NodeId param(DType dtype, ir::Scalar bits, int) override {
    params.push_back(bits);
    return ir::param(graph_, static_cast<std::uint32_t>(params.size() - 1), dtype);
  }

  Operand array(DType dtype, const Dims& shape) {
    const NodeId node = ir::input(graph_, inputs_++, dtype, shape);
    return {node, {dtype, shape, c_strides(shape, ir::size_of(dtype))}, false, {}};
  }
  static Operand number(std::int64_t value) {
    WeakScalar weak;
    weak.negative = value < 0;
    weak.magnitude = static_cast<std::uint64_t>(value);
    return {{}, {}, false, weak};
  }
  static Operand number(double value) {
    WeakScalar weak;
    weak.kind = WeakScalar::Kind::Float;
    weak.value = value;
    return {{}, {}, false, weak};
  }
  std::string text(const Result& result) {
    graph_.outputs = {result.node};
    ir::verify(graph_, &loops_);
    return ir::print(graph_);
  }

  std::vector<ir::Scalar> params;

 private:
  ir::Graph graph_;
  ir::LoopTable loops_;
  std::uint32_t inputs_ = 0;
};

}  // namespace ufuse::numpy_shim
