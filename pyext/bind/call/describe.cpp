// Calls that are only described, as functions of `_core`: for arrays in blocks (ufuse/dask.py).
#include "ir/blocks.h"
#include "numpy_shim/layout.h"
#include "pyext/bind/call/session.h"
#include "pyext/bind/lazy/lazy_array.h"
#include "pyext/bind/numpy/numpy_facts.h"

namespace ufuse::pyext {
namespace {

py::tuple tuple_of(const ir::Dims& numbers) {
  py::list made;
  for (std::int64_t number : numbers) made.append(number);
  return py::tuple(made);
}

// What a call computes, and how the axes of its arguments and results hang together.
class Described {
 public:
  Described(Call& call, const py::list& results)
      : description_(call.session().described(lazies_in(results))),
        dimensions_(description_.graph, description_.arguments) {
    const ir::Graph& graph = description_.graph;
    for (std::size_t i = 0; i < description_.arguments; ++i)
      arguments.append(dimensions_of(graph.at(i)));
    for (ir::NodeId output : graph.outputs) {
      const ir::Node& node = graph[output];
      outputs.append(
          py::make_tuple(descr_of(node.dtype), tuple_of(node.shape), dimensions_of(output)));
    }
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const ir::NodeId id = graph.at(i);
      for (std::size_t axis = 0; axis < graph[id].shape.size(); ++axis) note_whole(call, id, axis);
    }
  }

  bool is_block_of(const Described& whole, const py::dict& given) const {
    std::unordered_map<std::uint32_t, std::int64_t> extents;
    for (const auto& [dimension, extent] : given)
      extents[py::cast<std::uint32_t>(dimension)] = py::cast<std::int64_t>(extent);
    return description_.has_values_of(whole.description_) &&
           ir::is_block_of(description_.graph, whole.description_.graph, whole.dimensions_,
                           extents);
  }

  py::list arguments, outputs;
  py::dict whole;

 private:
  py::tuple dimensions_of(ir::NodeId id) const {
    ir::Dims dimensions;
    for (std::size_t axis = 0; axis < description_.graph[id].shape.size(); ++axis)
      dimensions.push_back(dimensions_.of(id, axis));
    return tuple_of(dimensions);
  }

  void note_whole(const Call& call, ir::NodeId id, std::size_t axis) {
    const std::uint32_t dimension = dimensions_.of(id, axis);
    const ir::NodeId needs = dimensions_.whole_for(dimension);
    if (!needs || whole.contains(py::int_(dimension))) return;
    const ir::Node& node = description_.graph[needs];
    const tracer::Site site = call.session().node_info(description_.origins[needs.value]).site;
    const SourceLine at = call.line_of(call.users_line_of(site));
    const std::string_view name = node.op == ir::Op::Reduce
                                      ? ir::reduction_info(node.reduction).name
                                      : ir::op_info(node.op).name;
    whole[py::int_(dimension)] = py::make_tuple(std::string(name), at.file, at.line);
  }

  const tracer::Description description_;
  const ir::Dimensions dimensions_;
};

py::object placeholder(py::handle sample, const py::tuple& shape) {
  if (!is_supported_array(sample.ptr())) return py::none();
  const DType dtype = layout_of(reinterpret_cast<PyArrayObject*>(sample.ptr())).dtype;
  ir::Dims dims;
  for (py::handle extent : shape) dims.push_back(py::cast<std::int64_t>(extent));
  return make_lazy(active_call().session().placeholder(
      {dtype, dims, numpy_shim::c_strides(dims, ir::size_of(dtype))}));
}

bool is_unchanged(py::handle placeholder) {
  return active_call().session().is_unchanged(as_lazy(placeholder.ptr())->array);
}

}  // namespace

void bind_describe(py::module_& m) {
  m.def("placeholder", placeholder, py::arg("sample"), py::arg("shape"),
        "An argument of the active call, which is only described from here on: nothing is computed "
        "in it. It has the dtype of `sample`; None where that is not supported.");
  m.def("is_unchanged", is_unchanged, py::arg("placeholder"),
        "Whether the call has written nothing to it.");
  py::class_<Described>(m, "Described",
                        "What the active call computes: dimensions (numbers) of each axis of each "
                        "argument, (dtype, shape, dimensions) of each result, and of each "
                        "dimension of which more than a block is needed (operation, file, line).")
      .def(py::init([](const py::list& results) {
             return std::make_unique<Described>(active_call(), results);
           }),
           py::arg("results"))
      .def_readonly("arguments", &Described::arguments)
      .def_readonly("results", &Described::outputs)
      .def_readonly("whole", &Described::whole)
      .def("is_block_of", &Described::is_block_of, py::arg("whole"), py::arg("extents"),
           "Whether this is what `whole` is, with other extents of some dimensions.");
}

}  // namespace ufuse::pyext
