#include "codegen/loop/estimate.h"

#include <algorithm>

#include "codegen/schedule/cost.h"

namespace ufuse::codegen::loop {
namespace {

double work_of(const Stmt& s) {
  switch (s.kind) {
    case Stmt::Kind::Load:
      return s.along.empty() ? cost::kLoad : cost::kLoadAtPosition;
    case Stmt::Kind::Carry:
      return cost::kCarry;
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
    case Stmt::Kind::List:  // by its elements
      return 0;
  }
  return 0;
}

double work_of(const Kernel& k, const Body& body, double times) {
  double sum = 0;
  for (const Stmt& s : body) {
    double inside = times;
    if (s.kind == Stmt::Kind::List) {
      sum += cost::kListed * static_cast<double>(s.along[0].extent.value);
      double elements = 1;
      for (std::size_t i = 1; i < s.along.size(); ++i)
        elements *= static_cast<double>(s.along[i].extent.value);
      sum += cost::kLoad * elements;
    }
    if (s.kind != Stmt::Kind::Carry)  // it stands in the loop that it names
      for (VarId var : s.vars)
        inside *= static_cast<double>(std::max<std::int64_t>(1, k.var(var).extent.value));
    sum += work_of(s) * inside + work_of(k, s.body, inside) + work_of(k, s.exact, inside);
  }
  return sum;
}

}  // namespace

double estimate(const Kernel& kernel) { return work_of(kernel, kernel.body, 1) * cost::kNsPerOp; }

}  // namespace ufuse::codegen::loop
