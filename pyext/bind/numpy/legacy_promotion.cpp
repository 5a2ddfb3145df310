// Does NumPy 1, which promotes by the values of numbers, choose the dtype that NEP 50 does? NumPy
// itself is asked: about the dtypes alone wherever the values cannot matter, so that nothing is
// computed for the question.
#include <algorithm>

#include "numpy_shim/promote.h"
#include "pyext/bind/lazy/lazy_number.h"
#include "pyext/bind/numpy/native_call.h"

namespace ufuse::pyext {
namespace {

using numpy_shim::WeakScalar;
using tracer::Operand;

// The dtype that NumPy 1 promotes to, which beside arrays goes by the values of numbers; `number`
// gives the one of an operand without axes. Unset: none of ours.
template <class Number>
std::optional<DType> legacy_promotion(std::span<PyObject* const> objects,
                                      std::span<const Operand> operands, const Number& number) {
  py::tuple real(objects.size());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const Operand& operand = operands[i];
    if (operand.weak)
      real[i] = borrow(seen_number(objects[i]));
    else if (operand.layout.shape.empty())
      real[i] = number(i);
    else
      real[i] = numpy().module.attr("empty")(1, descr_of(operand.layout.dtype));
  }
  const py::object chosen = numpy().result_type(*real);
  return dtype_from_object(chosen.ptr());
}

// The number of a dtype that needs most of it, where zero needs least.
py::object extreme_of(DType dtype) {
  const py::object descr = descr_of(dtype);
  if (ir::is_in(dtype, ir::kInexact))
    return descr.attr("type")(numpy().module.attr("finfo")(descr).attr("max"));
  if (!ir::is_in(dtype, ir::kInteger)) return descr.attr("type")(1);
  const py::object facts = numpy().module.attr("iinfo")(descr);
  const py::object least = facts.attr("min");
  return descr.attr("type")(least.equal(py::int_(0)) ? facts.attr("max") : least);
}

}  // namespace

void check_promotion(Call& call, std::span<PyObject* const> objects,
                     std::span<const Operand> operands) {
  if (!numpy().version.promotes_by_value() || operands.size() < 2) return;
  bool any_0d = false, any_nd = false, one_dtype = true;
  std::optional<DType> dtype;
  for (const Operand& operand : operands) {
    const bool is_0d = operand.weak || operand.layout.shape.empty();
    (is_0d ? any_0d : any_nd) = true;
    if (operand.weak) {
      one_dtype = false;
    } else {
      one_dtype &= !dtype || *dtype == operand.layout.dtype;
      dtype = operand.layout.dtype;
    }
  }
  if (!any_0d || one_dtype) return;
  // The largest dtype stays what it is beside any number that is no more than it.
  const auto largest = [](const Operand& x) {
    if (x.weak) return x.weak->kind != WeakScalar::Kind::Complex;
    return x.layout.dtype == DType::Float64;
  };
  if (std::ranges::all_of(operands, largest)) return;
  const auto least = [&](std::size_t i) {
    return py::object(descr_of(operands[i].layout.dtype).attr("type")(0));
  };
  auto chosen = legacy_promotion(objects, operands, least);
  if (any_nd) {
    const auto most = [&](std::size_t i) { return extreme_of(operands[i].layout.dtype); };
    if (legacy_promotion(objects, operands, most) != chosen) {
      // It is the values that decide: they are looked at, and another call's may decide otherwise.
      call.session().mark_impure();
      chosen =
          legacy_promotion(objects, operands, [&](std::size_t i) { return unwrap(objects[i]); });
    }
  }
  if (!chosen || *chosen != numpy_shim::result_type(operands)) throw Unsupported(Reason::Promotion);
}

}  // namespace ufuse::pyext
