// See request_check.h.
#include "pyext/bind/numpy/request_check.h"

#include <cstring>
#include <utility>

#include "numpy_shim/layout.h"
#include "pyext/bind/call/backends.h"
#include "pyext/bind/numpy/new_array.h"
#include "pyext/bind/numpy/numpy_redo.h"

namespace ufuse::pyext {
namespace {

// Never freed: a call may still run while Python ends.
PyObject*& the_judge() {
  static PyObject* judge = nullptr;
  return judge;
}

Layout layout_of(const ir::Buffer& buffer) { return {buffer.dtype, buffer.shape, buffer.strides}; }

py::object copy_of(const py::object& array) {
  return steal(PyArray_NewCopy(reinterpret_cast<PyArrayObject*>(array.ptr()), NPY_KEEPORDER));
}

py::object copy_of(const ir::Buffer& buffer, void* data) {
  return copy_of(array_on(layout_of(buffer), data, false, nullptr));
}

py::list copies_of(std::span<const ir::Buffer> buffers) {
  py::list copies;
  for (const ir::Buffer& buffer : buffers) copies.append(copy_of(buffer, buffer.data));
  return copies;
}

py::list addresses_of(std::span<const ir::Buffer> buffers) {
  py::list rows;
  for (const ir::Buffer& buffer : buffers)
    rows.append(reinterpret_cast<std::uintptr_t>(buffer.data));
  return rows;
}

}  // namespace

void set_request_judge(py::object judge) {
  Py_XDECREF(std::exchange(the_judge(), judge.is_none() ? nullptr : judge.release().ptr()));
}
bool has_request_judge() { return the_judge() != nullptr; }

RequestCheck::RequestCheck(Call& call, tracer::Session& session,
                           std::span<const tracer::Want> wants, const ir::RunArgs& args) {
  for (const ir::Buffer& input : args.inputs) {
    const tracer::ByteRange range = tracer::byte_range(input.data, layout_of(input));
    auto bytes =
        std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(range.high - range.low));
    if (!bytes->empty()) std::memcpy(bytes->data(), range.low, bytes->size());
    const auto offset = static_cast<const char*>(input.data) - range.low;
    operands_.push_back({std::move(bytes), static_cast<std::size_t>(offset)});
  }
  for (py::object& value : numpy_values(call, session, wants)) expected_.append(copy_of(value));
}

py::list RequestCheck::run_again(const ir::Executable& executable, const ir::RunArgs& args) const {
  std::vector<std::vector<std::byte>> memory;
  std::vector<ir::Buffer> inputs(args.inputs.begin(), args.inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    memory.push_back(*operands_[i].bytes);
    inputs[i].data = memory[i].data() + operands_[i].offset;
  }
  std::vector<ir::Buffer> outputs(args.outputs.begin(), args.outputs.end());
  std::vector<py::object> owners;
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const int alias = args.alias.empty() ? -1 : args.alias[k];
    if (alias >= 0) {
      outputs[k].data = inputs[static_cast<std::size_t>(alias)].data;
      continue;
    }
    Layout layout = layout_of(outputs[k]);
    if (!tracer::fits_new_memory(layout))
      layout.strides = numpy_shim::like_strides(layout, ir::size_of(layout.dtype));
    owners.push_back(new_array(layout, descr_of(layout.dtype)));
    outputs[k].strides = layout.strides;
    outputs[k].data = PyArray_DATA(reinterpret_cast<PyArrayObject*>(owners.back().ptr()));
  }
  executable.run({inputs, args.params, outputs, args.alias});
  return copies_of(outputs);
}

void RequestCheck::compare(const std::shared_ptr<const ir::Executable>& executable,
                           const ir::RunArgs& args, const SourceLine& at) {
  const py::object judge = borrow(the_judge());
  py::list operands, parameters, sources, origins;
  for (std::size_t i = 0; i < args.inputs.size(); ++i)
    operands.append(copy_of(args.inputs[i], operands_[i].bytes->data() + operands_[i].offset));
  for (const ir::Scalar& parameter : args.params)
    parameters.append(
        py::bytes(reinterpret_cast<const char*>(parameter.bits), sizeof parameter.bits));
  const ir::Report& report = executable->report();
  for (const ir::GroupReport& group : report.groups) {
    sources.append(*group.source);
    origins.append(group.origin);
  }
  py::dict row;
  row["file"] = at.file;
  row["line"] = at.line;
  row["graph"] = *report.graph;
  row["sources"] = sources;
  row["origins"] = origins;
  row["operands"] = operands;
  row["operands_now"] = copies_of(args.inputs);
  row["parameters"] = parameters;
  py::list overwritten;
  for (const int input : args.alias) overwritten.append(input);
  row["overwritten"] = overwritten;
  row["operands_at"] = addresses_of(args.inputs);
  row["results_at"] = addresses_of(args.outputs);
  row["expected"] = expected_;
  row["results"] = copies_of(args.outputs);
  row["again"] = py::cpp_function([&] { return run_again(*executable, args); });
  judge(row);
}

}  // namespace ufuse::pyext
