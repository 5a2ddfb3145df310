// See description.h.
#include "tracer/description.h"

#include <algorithm>
#include <unordered_map>

#include "ir/build.h"
#include "tracer/session.h"

namespace ufuse::tracer {
namespace {

void append_elements(std::string& bytes, const char* data, const Layout& layout, std::size_t axis) {
  if (axis == layout.shape.size()) {
    bytes.append(data, ir::size_of(layout.dtype));
    return;
  }
  for (std::int64_t i = 0; i < layout.shape[axis]; ++i)
    append_elements(bytes, data + i * layout.strides[axis], layout, axis + 1);
}

}  // namespace

LazyArray Session::placeholder(const Layout& layout) {
  const auto id = static_cast<std::uint32_t>(inputs_.size());
  inputs_.push_back({layout, {}, arguments_++, 0, false});
  const NodeId node = ir::input(graph_, id, layout.dtype, layout.shape);
  note_nodes(graph_.size() - 1);
  LazyArray made = from_result({node, layout, false});
  made.storage->argument = static_cast<int>(placeholders_.size());
  placeholders_.push_back(node);
  return made;
}

Description Session::described(std::span<const LazyArray> results) {
  if (is_refused_) refuse();
  Description made;
  std::vector<NodeId> outputs;
  for (const LazyArray& result : results) outputs.push_back(read(result));
  std::vector<NodeId> roots = placeholders_;
  roots.insert(roots.end(), outputs.begin(), outputs.end());
  made.arguments = placeholders_.size();
  std::unordered_map<std::uint32_t, NodeId> renamed;
  for (NodeId id : needed(roots)) {  // the arguments first, for they were there first
    ir::Node node = graph_[id];
    const Want* standing = computed(id);
    if (standing != nullptr || (node.op == ir::Op::Input && inputs_[node.id].memory)) {
      const Memory& memory = standing ? standing->memory : inputs_[node.id].memory;
      const Layout& layout = standing ? standing->layout : inputs_[node.id].layout;
      const std::size_t number = made.arguments + made.elsewhere.size();
      append_elements(made.elsewhere.emplace_back(), static_cast<const char*>(memory.data), layout,
                      0);
      renamed[id.value] =
          ir::input(made.graph, static_cast<std::uint32_t>(number), node.dtype, node.shape);
      made.origins.push_back(id);
      continue;
    }
    if (node.op == ir::Op::Input) {
      node.id = static_cast<std::uint32_t>(renamed.size());
    } else if (node.op == ir::Op::Param) {
      made.params.push_back(params_[node.id].bits);
      node.id = static_cast<std::uint32_t>(made.params.size() - 1);
    }
    for (NodeId& operand : node.inputs) operand = renamed.at(operand.value);
    renamed[id.value] = made.graph.add(std::move(node));
    made.origins.push_back(id);
  }
  for (NodeId output : outputs) made.graph.outputs.push_back(renamed.at(output.value));
  return made;
}

// What is made of numbers and of other arrays may be computed.
void Session::check_described(std::span<const Want> wants) {
  std::vector<NodeId> roots;
  for (const Want& want : wants) roots.push_back(want.node);
  for (NodeId id : needed(roots))
    if (std::ranges::find(placeholders_, id) != placeholders_.end()) refuse();
}

void Session::refuse() {
  is_refused_ = true;
  host_.refuse();
}

}  // namespace ufuse::tracer
