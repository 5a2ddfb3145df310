// Dead code elimination: a node stays when an output needs it. One sweep from the last node to the
// first marks, since operands come before their users.
#include "ir/passes/passes.h"

namespace ufuse::ir {

Graph dce(const Graph& graph) {
  std::vector<bool> needed(graph.size(), false);
  for (NodeId output : graph.outputs) needed[output.value] = true;
  for (std::size_t i = graph.size(); i-- > 0;)
    if (needed[i])
      for (NodeId operand : graph[graph.at(i)].inputs) needed[operand.value] = true;

  Graph result;
  std::vector<NodeId> renamed(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    if (!needed[i]) continue;
    Node node = graph[graph.at(i)];
    for (NodeId& operand : node.inputs) operand = renamed[operand.value];
    renamed[i] = result.add(std::move(node));
  }
  for (NodeId output : graph.outputs) result.outputs.push_back(renamed[output.value]);
  return result;
}

}  // namespace ufuse::ir
