// See numpy_redo.h.
#include "pyext/bind/numpy/numpy_redo.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <unordered_set>

#include "numpy_shim/layout.h"
#include "pyext/bind/numpy/ufunc_registry.h"

namespace ufuse::pyext {
namespace {

using ir::Node;
using ir::NodeId;
using ir::NodeKind;
using ir::Op;
using tracer::Session;

py::tuple tuple_of(const ir::Dims& dims) {
  py::tuple made(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) made[i] = dims[i];
  return made;
}

py::object module_attribute(const char* module, const char* name) {
  return py::module_::import(module).attr(name);
}

}  // namespace

WarningLog::WarningLog()
    : log_(module_attribute("types", "SimpleNamespace")(py::arg("write") = lines_.attr("append"))) {
}

py::object WarningLog::run(std::uint8_t mask, const std::function<py::object()>& compute) {
  const LoggedErrors logged(mask, log_);
  return compute();
}

std::vector<std::string> WarningLog::take() {
  std::vector<std::string> messages;
  for (py::handle line : lines_) {
    // "Warning: overflow encountered in exp\n"
    const std::string text = py::str(line);
    messages.push_back(text.substr(9, text.size() - 10));
  }
  lines_.attr("clear")();
  return messages;
}

namespace {

// Whether an array owns its memory, and nobody else has a reference to the array.
bool is_own_array(PyObject* object, const Layout& layout) {
  auto* array = reinterpret_cast<PyArrayObject*>(object);
  return PyArray_CheckExact(object) && Py_REFCNT(object) == 1 &&
         PyArray_CHKFLAGS(array, NPY_ARRAY_OWNDATA | NPY_ARRAY_BEHAVED) &&
         layout_of(array) == layout;
}

class NumpyEvaluation {
 public:
  // Counts first how often each value is needed, so that it can be freed after its last use.
  // `keeps`: those that are pending stay for further evaluations, as variables hold them in NumPy.
  NumpyEvaluation(Call& call, Session& session, std::span<const tracer::Want> wants, bool keeps)
      : call_(call), session_(session), keeps_(keeps) {
    if (keeps)
      for (const NodeId id : session.pending()) kept_.insert(id.value);
    for (const tracer::Want& want : wants) kept_.erase(want.node.value);
    std::vector<NodeId> open;
    const auto use = [&](NodeId id) {
      if (uses_[id.value]++ == 0) open.push_back(id);
    };
    for (const tracer::Want& want : wants) use(want.node);
    while (!open.empty()) {
      const NodeId id = open.back();
      open.pop_back();
      std::ranges::for_each(operands_of(id), use);
    }
  }

  // The value of a want; asked once for each.
  py::object value(NodeId root) {
    // Operands first, without recursion: a chain may be long.
    std::vector<NodeId> stack{root};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      if (done_.contains(id.value)) {
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (NodeId operand : operands_of(id))
        if (!done_.contains(operand.value)) {
          stack.push_back(operand);
          ready = false;
        }
      if (!ready) continue;
      stack.pop_back();
      call_.answer_signals();
      compute(id);
      done_.insert(id.value);
      for (NodeId operand : operands_of(id)) release(operand);
      if (kept_.contains(id.value)) keep(id);
    }
    py::object made = values_.at(root.value);
    release(root);
    return made;
  }

  std::vector<py::object> values(std::span<const tracer::Want> wants) {
    std::vector<py::object> found;
    for (const tracer::Want& want : wants) found.push_back(value(want.node));
    return found;
  }

  struct Raised {
    NodeId node;
    std::string message;
  };
  std::vector<Raised> raised;

 private:
  ir::NodeIds operands_of(NodeId id) const {
    if (standing(id)) return {};
    ir::NodeIds operands = session_.graph()[id].inputs;
    if (const tracer::CallRecord* record = session_.call_record(id))
      for (std::size_t k = 0; k < operands.size(); ++k)
        if (record->operands[k]) operands[k] = record->operands[k];
    if (const tracer::ReduceRecord* record = session_.reduce_record(id))
      operands.push_back(record->operand);
    return operands;
  }

  // The array that holds a node's value already; null: there is none.
  const tracer::Want* standing(NodeId id) const {
    const tracer::Want* found = session_.computed(id);
    return found || !keeps_ ? found : session_.redone(id);
  }

  void release(NodeId id) {
    if (--uses_.at(id.value) == 0) values_.erase(id.value);
  }

  void compute(NodeId id) {
    const std::uint8_t mask = session_.may_warn(id) ? session_.node_info(id).report_mask : 0;
    py::object made = log_.run(mask, [&] { return computed(id); });
    for (std::string& message : log_.take()) note(id, std::move(message));
    values_.emplace(id.value, std::move(made));
  }

  void keep(NodeId id) {
    PyObject* const made = values_.at(id.value).ptr();
    auto* array = reinterpret_cast<PyArrayObject*>(made);
    const Layout layout = layout_of(array);
    if (is_own_array(made, layout))
      session_.keep_redone(id, layout, memory_of(made, PyArray_DATA(array)));
  }

  // A function that casts its output warns of both at once, in its own name and in a fixed order.
  void note(NodeId id, std::string message) {
    const std::string name =
        session_.is_output_cast(id) ? name_of(session_.graph()[id].inputs[0]) : std::string();
    const std::size_t cast = message.rfind("cast");
    if (name.empty() || cast == std::string::npos)
      return raised.push_back({id, std::move(message)});
    const NodeId made = session_.graph()[id].inputs[0];
    message.replace(cast, std::string::npos, name);
    const auto first = std::ranges::find(raised, made, &Raised::node);
    if (first == raised.end()) return raised.push_back({id, std::move(message)});
    auto at = first;
    for (; at != raised.end() && at->node == made; ++at) {
      if (at->message == message) return;
      if (rank_of(at->message) > rank_of(message)) break;
    }
    raised.insert(at, {made, std::move(message)});
  }

  static std::size_t rank_of(const std::string& message) {
    constexpr std::array kWords = {"divide", "overflow", "underflow", "invalid"};
    return static_cast<std::size_t>(
        std::ranges::find_if(kWords, [&](const char* word) { return message.starts_with(word); }) -
        kWords.begin());
  }

  // What NumPy calls the function that made a value; empty where it is none.
  std::string name_of(NodeId id) const {
    const Node& node = session_.graph()[id];
    const NodeKind kind = ir::kind_of(node.op);
    if (kind == NodeKind::Ufunc) return session_.loops()[node.id].ufunc;
    if (kind == NodeKind::Elementwise) return std::string(ir::op_info(node.op).name);
    if (kind == NodeKind::Reduce) return "reduce";
    return kind == NodeKind::Scan ? "accumulate" : "";
  }

  py::object operand(const Node& node, std::size_t k) { return values_.at(node.inputs[k].value); }

  py::object computed(NodeId id) {
    if (const tracer::Want* known = standing(id))
      return array_on(known->layout, known->memory.data, false, nullptr);
    const Node& node = session_.graph()[id];
    switch (ir::kind_of(node.op)) {
      case NodeKind::Input: {
        const Session::InputRow& row = session_.input_row(node.id);
        return array_on(row.layout, row.memory.data, false, nullptr);
      }
      case NodeKind::Param:
        return zero_d(node.dtype, session_.param_row(node.id).bits);
      case NodeKind::Const:
        return zero_d(node.dtype, node.constant);
      case NodeKind::Broadcast:
        return broadcast(node);
      case NodeKind::Transpose:
        return operand(node, 0).attr("transpose")(tuple_of(node.ints));
      case NodeKind::Slice:
        return slice(node);
      case NodeKind::Reshape:
        return operand(node, 0).attr("reshape")(tuple_of(node.shape));
      case NodeKind::Cast:
        return operand(node, 0).attr("astype")(descr_of(node.dtype));
      case NodeKind::Ufunc:
        return ufunc(id, node);
      case NodeKind::Reduce:
        return reduce(id, node);
      case NodeKind::Iota:
        return numpy().module.attr("arange")(node.shape[0]);
      case NodeKind::Scan:
        return scan(node);
      case NodeKind::Gather:
        return gather(node);
      case NodeKind::Scatter:
        return scatter(id, node);
      case NodeKind::Nonzero:
        return numpy().module.attr("argwhere")(operand(node, 0));
      case NodeKind::ArgReduce:
        return as_array(operand(node, 0).attr(node.id ? "argmax" : "argmin")(node.ints[0]));
      case NodeKind::Elementwise:
        return elementwise(id, node);
    }
    throw InternalError("NumPy's way: unknown kind of node");
  }

  // The operands of a ufunc as the user gave them, and the signature of the loop that it runs, so
  // that NumPy casts inside the call and warns of casts under the ufunc's name.
  struct Operands {
    py::tuple values;
    py::dict kwargs;
  };
  Operands ufunc_operands(NodeId id, const Node& node, const py::tuple& outputs) {
    const tracer::CallRecord* record = session_.call_record(id);
    Operands made{py::tuple(node.inputs.size()), {}};
    py::list signature;
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const bool given = record && record->operands[k];
      made.values[k] = values_.at((given ? record->operands[k] : node.inputs[k]).value);
      signature.append(descr_of(session_.graph()[node.inputs[k]].dtype));
    }
    if (!record) return made;
    for (py::handle output : outputs) signature.append(output);
    made.kwargs["signature"] = py::tuple(signature);
    made.kwargs["casting"] = "unsafe";
    return made;
  }

  // In its place NumPy may put the result of a ufunc: an operand that nobody needs any more, as for
  // temporaries in the user's own expressions. New memory often takes longer than the arithmetic.
  // Unset: there is none, or the result is small.
  py::object spare(NodeId id, const Node& node) const {
    constexpr npy_intp kLarge = 1 << 18;  // bytes
    for (const NodeId operand : operands_of(id)) {
      const auto value = values_.find(operand.value);
      if (uses_.at(operand.value) != 1 || value == values_.end()) continue;
      auto* array = reinterpret_cast<PyArrayObject*>(value->second.ptr());
      const Layout layout = layout_of(array);
      if (layout.dtype == node.dtype && layout.shape == node.shape &&
          numpy_shim::is_c_contiguous(layout) && PyArray_NBYTES(array) >= kLarge &&
          is_own_array(value->second.ptr(), layout))
        return value->second;
    }
    return {};
  }

  static py::object as_array(py::object object) {
    return PyArray_Check(object.ptr()) ? object : steal(PyArray_FROM_O(object.ptr()));
  }

  static py::object zero_d(ir::DType dtype, const ir::Scalar& bits) {
    return as_array(scalar_object(dtype, bits.bits));
  }

  py::object broadcast(const Node& node) {
    const py::object x = operand(node, 0);
    auto* array = reinterpret_cast<PyArrayObject*>(x.ptr());
    Layout layout{node.dtype, node.shape, ir::Dims(node.shape.size(), 0)};
    for (std::size_t i = 0; i < node.ints.size(); ++i)
      if (node.ints[i] >= 0)
        layout.strides[i] = PyArray_STRIDE(array, static_cast<int>(node.ints[i]));
    return array_on(layout, PyArray_DATA(array), false, x.ptr());
  }

  py::object slice(const Node& node) {
    const py::object x = operand(node, 0);
    auto* array = reinterpret_cast<PyArrayObject*>(x.ptr());
    const std::size_t ndim = node.shape.size();
    Layout layout{node.dtype, node.shape, ir::Dims(ndim)};
    char* data = PyArray_BYTES(array);
    for (std::size_t i = 0; i < ndim; ++i) {
      const npy_intp stride = PyArray_STRIDE(array, static_cast<int>(i));
      layout.strides[i] = stride * node.ints[ndim + i];
      if (node.shape[i] > 0) data += stride * node.ints[i];
    }
    return array_on(layout, data, false, x.ptr());
  }

  // The operator that a node stands for, if it is one of NumPy's scalars: these warn in other words
  // than the ufuncs, so they are called themselves. Unset for any other node.
  py::object scalar_operator(NodeId id, const Node& node, std::string_view ufunc) const {
    struct Row {
      const char *ufunc, *module, *function;
    };
    constexpr std::array<Row, 7> kRows = {{{"add", "operator", "add"},
                                           {"subtract", "operator", "sub"},
                                           {"multiply", "operator", "mul"},
                                           {"divide", "operator", "truediv"},
                                           {"floor_divide", "operator", "floordiv"},
                                           {"remainder", "operator", "mod"},
                                           {"divmod", "builtins", "divmod"}}};
    if (!session_.node_info(id).scalar_operator || !node.shape.empty()) return {};
    const auto row = std::ranges::find(kRows, ufunc, &Row::ufunc);
    return row == kRows.end() ? py::object() : module_attribute(row->module, row->function);
  }

  static py::tuple scalars(const py::tuple& arrays) {
    py::tuple made(arrays.size());
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = arrays[i][py::tuple(0)];
    return made;
  }

  // Some ops are no ufuncs.
  py::object elementwise(NodeId id, const Node& node) {
    if (node.op == Op::RealPart || node.op == Op::ImagPart)
      return operand(node, 0).attr(node.op == Op::RealPart ? "real" : "imag");
    if (node.op == Op::Where)
      return as_array(
          numpy().module.attr("where")(operand(node, 0), operand(node, 1), operand(node, 2)));
    const std::string name(ir::op_info(node.op).name);
    const py::object place = spare(id, node);
    const Operands given = ufunc_operands(id, node, py::make_tuple(descr_of(node.dtype)));
    if (const py::object function = scalar_operator(id, node, name))
      return as_array(function(*scalars(given.values)));
    if (place) given.kwargs["out"] = place;
    return as_array(numpy().module.attr(name.c_str())(*given.values, **given.kwargs));
  }

  // An operand of a loop that looks at strides: one number beside all elements as that number, any
  // other one as elements in memory.
  static py::object with_stride(const ir::LoopEntry& entry, std::size_t input, py::object value) {
    if (!entry.repeated || !PyArray_Check(value.ptr())) return value;
    auto* array = reinterpret_cast<PyArrayObject*>(value.ptr());
    const Layout layout = layout_of(array);
    if (entry.needs_elements(input))
      return std::ranges::count(layout.strides, 0) == 0 ? value
                                                        : steal(PyArray_NewCopy(array, NPY_CORDER));
    if (PyArray_SIZE(array) == 0) return value;
    return array_on({layout.dtype, {}, {}}, PyArray_DATA(array), false, value.ptr());
  }

  py::object ufunc(NodeId id, const Node& node) {
    const ir::LoopEntry& entry = session_.loops()[node.id];
    if (const auto it = all_outputs_.find(node.inputs.front().value); it != all_outputs_.end())
      for (const auto& [same, outputs] : it->second)
        if (same.id == node.id && same.inputs == node.inputs)
          return as_array(outputs[py::int_(node.slot)]);
    const py::object function = borrow(ufunc_of(entry));
    py::list outputs;
    for (DType output : entry.outputs) outputs.append(descr_of(output));
    Operands given = ufunc_operands(id, node, py::tuple(outputs));
    for (std::size_t k = 0; k < given.values.size(); ++k)
      given.values[k] = with_stride(entry, k, given.values[k]);
    const py::object of_scalars = scalar_operator(id, node, entry.ufunc);
    py::object result =
        of_scalars ? of_scalars(*scalars(given.values)) : function(*given.values, **given.kwargs);
    if (PyTuple_Check(result.ptr())) {
      // Computed once for all its outputs, so that it warns once.
      all_outputs_[node.inputs.front().value].emplace_back(node, result);
      result = borrow(PyTuple_GET_ITEM(result.ptr(), node.slot));
    }
    return as_array(result);
  }

  // NumPy's order of summation depends on the operand's layout, and on whether it is cast. So the
  // reduction is given the operand that the program gave it.
  py::object reduce(NodeId id, const Node& node) {
    const tracer::ReduceRecord* record = session_.reduce_record(id);
    py::object x = operand(node, 0);
    ir::Dims axes = node.ints;
    std::sort(axes.begin(), axes.end());
    if (record) {
      const Node& direct = session_.graph()[node.inputs[0]];
      const bool is_operand = record->operand == node.inputs[0];
      const bool is_cast = direct.op == Op::Cast && direct.inputs[0] == record->operand;
      if (is_operand || is_cast) x = laid_out(values_.at(record->operand.value), record->layout);
    }
    py::dict kwargs;
    kwargs["axis"] = tuple_of(axes);
    kwargs["dtype"] = descr_of(node.dtype);
    if (node.inputs.size() == 2) kwargs["initial"] = operand(node, 1)[py::tuple(0)];
    const std::string name(ir::reduction_info(node.reduction).name);
    return as_array(numpy().module.attr(name.c_str()).attr("reduce")(x, **kwargs));
  }

  py::object scan(const Node& node) {
    const py::object function = numpy().module.attr(ir::op_info(*node.combine).name.data());
    return function.attr("accumulate")(operand(node, 0), node.ints[0], descr_of(node.dtype));
  }

  // Views of an operand with its indexed axes first, and the positions of all of them; a position
  // that NumPy's own indexing does not know becomes one that it does.
  struct Places {
    py::object x;
    py::tuple key;
  };
  Places places(const Node& node, const py::object& x) {
    py::list order;
    for (const std::int64_t axis : node.ints) order.append(axis);
    for (int a = 0; a < PyArray_NDIM(reinterpret_cast<PyArrayObject*>(x.ptr())); ++a)
      if (std::ranges::find(node.ints, a) == node.ints.end()) order.append(a);
    Places made{x.attr("transpose")(order), py::tuple(node.ints.size())};
    for (std::size_t k = 0; k < node.ints.size(); ++k) {
      const py::object extent = made.x.attr("shape")[py::int_(k)];
      py::object positions = operand(node, k + 1);
      if (node.bounds == ir::Bounds::Wrap)
        positions = numpy().module.attr("remainder")(positions, extent);
      if (node.bounds == ir::Bounds::Clip)
        positions = numpy().module.attr("minimum")(numpy().module.attr("maximum")(positions, 0),
                                                   extent - py::int_(1));
      // In C order, which is that of the elements.
      made.key[k] = steal(
          PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(as_array(positions).ptr()), NPY_CORDER));
    }
    return made;
  }

  py::object gather(const Node& node) {
    const Places from = places(node, operand(node, 0));
    return as_array(from.x[from.key]);
  }

  // NumPy's words depend on whether positions, values and what is written to have one axis.
  py::object scatter(NodeId id, const Node& node) {
    const py::object made = steal(
        PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(operand(node, 0).ptr()), NPY_KEEPORDER));
    const Places to = places(node, made);
    const NodeId values = ir::scattered_values(node);
    if (!node.combine) {
      to.x[to.key] = steal(PyArray_NewCopy(
          reinterpret_cast<PyArrayObject*>(values_.at(values.value).ptr()), NPY_CORDER));
      return made;
    }
    const py::object at = numpy().module.attr(ir::op_info(*node.combine).name.data()).attr("at");
    py::object x = to.x, key = to.key, added = values ? values_.at(values.value) : py::none();
    if (session_.node_info(id).named_at) {
      key = to.key[0].attr("reshape")(-1);
      if (values) added = added.attr("reshape")(-1);
    } else {
      x = x[py::none()];
      key = py::make_tuple(numpy().module.attr("zeros_like")(to.key[0])) + to.key;
    }
    values ? at(x, key, added) : at(x, key);
    return made;
  }

  py::object laid_out(const py::object& x, const Layout& layout) {
    auto* array = reinterpret_cast<PyArrayObject*>(x.ptr());
    if (layout_of(array) == layout) return x;
    const Layout like{layout.dtype, layout.shape,
                      numpy_shim::like_strides(layout, ir::size_of(layout.dtype))};
    if (layout_of(array) == like) return x;
    const Memory memory = call_.allocate(like);
    const py::object made = borrow(static_cast<PyObject*>(memory.owner.get()));
    numpy().copyto(made, x);
    return made;
  }

  Call& call_;
  Session& session_;
  const bool keeps_;
  std::unordered_set<std::uint32_t> kept_;  // for further evaluations, once they are made
  WarningLog log_;
  std::unordered_map<std::uint32_t, std::size_t> uses_;  // still to come
  std::unordered_map<std::uint32_t, py::object> values_;
  std::unordered_set<std::uint32_t> done_;
  std::unordered_map<std::uint32_t, std::vector<std::pair<Node, py::object>>>
      all_outputs_;  // by first operand
};

// Copies values that are views of memory which another value is about to be written to.
void keep_from(std::span<const tracer::Want> wants, std::vector<py::object>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto* array = reinterpret_cast<PyArrayObject*>(values[i].ptr());
    const tracer::ByteRange read = byte_range(array);
    for (std::size_t j = 0; j < wants.size(); ++j) {
      if (i == j || !read.overlaps(wants[j].bytes())) continue;
      values[i] = steal(PyArray_NewCopy(array, NPY_KEEPORDER));
      break;
    }
  }
}

void note(Session& session, const std::vector<NumpyEvaluation::Raised>& raised) {
  for (std::size_t i = 0; i < raised.size();) {
    const NodeId node = raised[i].node;
    std::vector<std::string> messages;
    for (; i < raised.size() && raised[i].node == node; ++i) messages.push_back(raised[i].message);
    session.note_raised(node, std::move(messages));
  }
}

}  // namespace

std::vector<py::object> numpy_values(Call& call, Session& session,
                                     std::span<const tracer::Want> wants) {
  return NumpyEvaluation(call, session, wants, false).values(wants);
}

void redo_with_numpy(Call& call, Session& session, std::span<tracer::Want> targets,
                     const std::vector<bool>& given) {
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (!given[i]) targets[i].memory = {};  // NumPy makes its own
  NumpyEvaluation evaluation(call, session, targets, true);
  std::vector<py::object> values = evaluation.values(targets);
  keep_from(targets, values);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!given[i] && is_own_array(values[i].ptr(), targets[i].layout)) {
      PyObject* array = values[i].ptr();
      targets[i].memory = memory_of(array, PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)));
      continue;
    }
    if (!given[i]) targets[i].memory = call.allocate(targets[i].layout);
    const py::object target = array_on(targets[i].layout, targets[i].memory.data, true, nullptr);
    // In C: Python code could be interrupted by Ctrl-C, and then only some would be written.
    if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.ptr()),
                         reinterpret_cast<PyArrayObject*>(values[i].ptr())) < 0)
      throw py::error_already_set();
  }
  note(session, evaluation.raised);
}

}  // namespace ufuse::pyext
