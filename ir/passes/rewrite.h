// A pass as a rule for one node: the frame that the passes share.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace ufuse::ir {

// Copies `graph` node by node. `rule(g, node)` gets each node with its operands already rewritten,
// ids of `g`; it returns the node of `g` to use instead (adding nodes as it likes) or an unset id
// to keep it. Nodes nobody uses any more stay: dce removes them.
template <class Rule>
requires std::invocable<Rule&, Graph&, const Node&> Graph rewrite(const Graph& graph, Rule rule) {
  Graph result;
  std::vector<NodeId> renamed;
  renamed.reserve(graph.size());
  for (std::size_t i = 0; i < graph.size(); ++i) {
    Node node = graph[graph.at(i)];
    for (NodeId& operand : node.inputs) operand = renamed[operand.value];
    const NodeId instead = rule(result, std::as_const(node));
    renamed.push_back(instead ? instead : result.add(std::move(node)));
  }
  for (NodeId output : graph.outputs) result.outputs.push_back(renamed[output.value]);
  return result;
}

}  // namespace ufuse::ir
