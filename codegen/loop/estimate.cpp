#include "codegen/loop/estimate.h"

#include <algorithm>

#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

double work_of(const Stmt& s) {
  switch (s.kind) {
    case Stmt::Kind::Load:
    case Stmt::Kind::Fold:  // to combine one element
      return cost::kLoad;
    case Stmt::Kind::Compute:
      return s.op == ir::Op::Const || s.op == ir::Op::Param ? 0 : cost::of_op(s.op);
    case Stmt::Kind::Call:
      return cost::kCall;
    case Stmt::Kind::Redo:
      return 1;
    case Stmt::Kind::Store:
    case Stmt::Kind::Loop:
    case Stmt::Kind::Segment:
    case Stmt::Kind::Doubt:
      return 0;
  }
  return 0;
}

double work_of(const Kernel& k, const Body& body, double times) {
  double sum = 0;
  for (const Stmt& s : body) {
    double inside = times;
    for (VarId var : s.vars)
      inside *= static_cast<double>(std::max<std::int64_t>(1, k.var(var).extent.value));
    sum += work_of(s) * inside + work_of(k, s.body, inside) + work_of(k, s.exact, inside);
  }
  return sum;
}

}  // namespace

double estimate(const Kernel& kernel) { return work_of(kernel, kernel.body, 1) * cost::kNsPerOp; }

}  // namespace ufuse::codegen::loop
