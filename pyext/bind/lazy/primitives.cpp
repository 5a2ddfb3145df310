// Primitives that stand for functions of NumPy: creation, where, copyto, views. The handlers of the
// Python package call them; each calls NumPy's function where it has no native form, or says so.
#include "numpy_shim/assign.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/view.h"
#include "pyext/bind/call/session.h"
#include "pyext/bind/lazy/lazy_ops.h"
#include "pyext/bind/numpy/python_number.h"

namespace ufuse::pyext {
namespace {

py::object fall_back(const char* function, const py::tuple& args, Reason reason) {
  return numpy_call(numpy().module.attr(function).ptr(), args.ptr(), nullptr, reason, true);
}

// np.full(shape, value, dtype) in C order, or np.empty where value is None.
py::object full(py::handle shape, py::handle value, py::handle dtype) {
  return native_or(
      Call::active(),
      [&](Call& call) {
        call.enter();
        const std::optional<DType> type = dtype_argument(dtype.ptr());
        if (!type) throw Unsupported(Reason::Dtype);
        const ir::Dims dims = to_shape(shape.ptr());
        for (std::int64_t d : dims)
          if (d < 0) throw Unsupported(Reason::Shape);
        const Layout layout{*type, dims, numpy_shim::c_strides(dims, ir::size_of(*type))};
        if (value.is_none()) return make_lazy(call.session().empty(layout));
        const LazyArray target = call.session().empty(layout);
        const tracer::Operand operand = to_operand(call, value.ptr());
        if (!operand.weak && !operand.layout.shape.empty()) throw Unsupported(Reason::Arguments);
        call.session().assign(target, operand);
        return to_python(call, target);
      },
      [&](Reason reason) {
        if (value.is_none()) return fall_back("empty", py::make_tuple(shape, dtype), reason);
        return fall_back("full", py::make_tuple(shape, value, dtype), reason);
      });
}

py::object where(py::handle condition, py::handle x, py::handle y) {
  return native_or(
      Call::active(),
      [&](Call& call) {
        call.enter();
        const tracer::Operand operands[] = {to_operand(call, condition.ptr()),
                                            to_operand(call, x.ptr()), to_operand(call, y.ptr())};
        if (operands[0].weak) throw Unsupported(Reason::Arguments);
        PyObject* const values[] = {x.ptr(), y.ptr()};
        check_promotion(call, values, std::span(operands).subspan(1));
        return to_python(call, call.session().where(operands[0], operands[1], operands[2]));
      },
      [&](Reason reason) { return fall_back("where", py::make_tuple(condition, x, y), reason); });
}

// np.copyto(target, source, casting, where); NotImplemented where that has no native form.
py::object copyto(py::handle target, py::handle source, py::handle casting, py::handle where) {
  return native_or(
      tracing_call(target.ptr()),
      [&](Call& call) -> py::object {
        call.enter();
        LazyObject* lazy = as_lazy(target.ptr());
        const DType to = lazy->array.layout.dtype;
        if (lazy->array.scalar || !PyUnicode_Check(casting.ptr()))
          throw Unsupported(Reason::Arguments);
        const std::string rule = text_of(casting.ptr());
        // A NumPy scalar is cast like an array, where an assignment takes it as a number.
        py::object given = as_array(source.ptr());
        if (scalar_dtype(source.ptr())) {  // a constant of the program or the like
          auto* array = reinterpret_cast<PyArrayObject*>(given.ptr());
          given = make_lazy(call.session().constant(layout_of(array),
                                                    memory_of(given.ptr(), PyArray_DATA(array))));
        }
        if (is_plain_number(given.ptr()) || PyBool_Check(given.ptr())) {
          if (rule != "same_kind") throw Unsupported(Reason::Arguments);
          if (is_plain_number(given.ptr()))
            numpy_shim::check_copied_number(call.session().version, weak_scalar(given.ptr()), to);
        } else {
          const Layout& from = to_array(call, given.ptr()).layout;
          if (!numpy_shim::can_cast(from.dtype, to, rule)) throw Unsupported(Reason::Arguments);
        }
        if (where.ptr() == Py_True) {
          assign(call, lazy->array, given.ptr());
          return py::none();
        }
        if (!is_lazy(where.ptr())) throw Unsupported(Reason::Arguments);
        const tracer::Operand mask = to_operand(call, where.ptr());
        call.session().assign_where(lazy->array, mask, assigned_value(call, to, given.ptr()));
        if (call.take_immediate()) call.session().force({&lazy->array, 1});
        return py::none();
      },
      [](Reason) { return borrow(Py_NotImplemented); });
}

template <class MakeView>
py::object view(py::handle object, MakeView make_view, const char* function,
                const py::tuple& args) {
  return native_or(
      is_lazy(object.ptr()) ? tracing_call(object.ptr()) : nullptr,
      [&](Call& call) {
        call.enter();
        const LazyArray& array = as_lazy(object.ptr())->array;
        if (array.scalar) throw Unsupported(Reason::Arguments);
        return make_lazy(call.session().view(array, make_view(array.layout)));
      },
      [&](Reason reason) { return fall_back(function, args, reason); });
}

py::object broadcast_to(py::handle object, py::handle shape) {
  return native_or(
      is_lazy(object.ptr()) ? tracing_call(object.ptr()) : nullptr,
      [&](Call& call) {
        call.enter();
        LazyArray array = as_lazy(object.ptr())->array;
        if (array.scalar) array = zero_d(call, array);
        LazyArray view = call.session().view(
            array, numpy_shim::broadcast_to(array.layout, to_shape(shape.ptr())));
        view.read_only = true;
        return make_lazy(std::move(view));
      },
      [&](Reason reason) {
        return fall_back("broadcast_to", py::make_tuple(object, shape), reason);
      });
}

py::object expand_dims(py::handle object, py::handle axis) {
  return view(
      object,
      [&](const Layout& layout) { return numpy_shim::expand_dims(layout, to_dims(axis.ptr())); },
      "expand_dims", py::make_tuple(object, axis));
}

py::object arange(std::int64_t start, std::int64_t step, std::int64_t elements, py::handle dtype) {
  return native_or(
      Call::active(),
      [&](Call& call) {
        call.enter();
        const std::optional<DType> type = dtype_argument(dtype.ptr());
        if (!type) throw Unsupported(Reason::Dtype);
        return make_lazy(call.session().arange(start, step, elements, *type));
      },
      [&](Reason reason) {
        return fall_back("arange", py::make_tuple(start, start + step * elements, step, dtype),
                         reason);
      });
}

py::object argwhere(py::handle object) {
  return native_or(
      is_lazy(object.ptr()) ? tracing_call(object.ptr()) : nullptr,
      [&](Call& call) {
        call.enter();
        return make_lazy(call.session().argwhere(to_operand(call, object.ptr())));
      },
      [&](Reason reason) { return fall_back("argwhere", py::make_tuple(object), reason); });
}

py::object bincount(py::handle list, py::handle weights, py::handle minlength) {
  return native_or(
      Call::active(),
      [&](Call& call) {
        call.enter();
        std::optional<tracer::Operand> added;
        if (!weights.is_none()) added = to_operand(call, weights.ptr());
        const std::int64_t at_least = to_integer(minlength.ptr());
        if (at_least < 0) throw Unsupported(Reason::Arguments);
        return to_python(call,
                         call.session().bincount(to_operand(call, list.ptr()), added, at_least));
      },
      [&](Reason reason) {
        return fall_back("bincount", py::make_tuple(list, weights, minlength), reason);
      });
}

}  // namespace

void bind_primitives(py::module_& m) {
  m.def("full", full, py::arg("shape"), py::arg("value"), py::arg("dtype"),
        "np.full(shape, value, dtype), or np.empty where value is None; no memory is touched "
        "before it is needed.");
  m.def("where", where, py::arg("condition"), py::arg("x"), py::arg("y"),
        "np.where with three arguments.");
  m.def("copyto", copyto, py::arg("target"), py::arg("source"), py::arg("casting"),
        py::arg("where") = true,
        "np.copyto(target, source, casting, where) for a lazy target; NotImplemented where NumPy "
        "has to be "
        "asked.");
  m.def("broadcast_to", broadcast_to, py::arg("x"), py::arg("shape"), "np.broadcast_to.");
  m.def(
      "as_array", [](py::handle object) { return as_array(object.ptr()); }, py::arg("x"),
      "A NumPy scalar, lazy or not, as the 0-d array that NumPy's conversions make of it; "
      "anything else as it is.");
  m.def("expand_dims", expand_dims, py::arg("x"), py::arg("axis"), "np.expand_dims.");
  m.def("arange", arange, py::arg("start"), py::arg("step"), py::arg("elements"), py::arg("dtype"),
        "np.arange of integers that fit int64.");
  m.def("argwhere", argwhere, py::arg("a"), "np.argwhere.");
  m.def("bincount", bincount, py::arg("x"), py::arg("weights") = py::none(),
        py::arg("minlength") = 0, "np.bincount.");
}

}  // namespace ufuse::pyext
