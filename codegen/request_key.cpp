#include "codegen/request_key.h"

#include <cstddef>
#include <span>
#include <utility>

namespace ufuse::codegen {
namespace {

class Key {
 public:
  static std::string of(const ir::Graph& graph, const ir::RunArgs& layouts) {
    Key key;
    for (std::size_t i = 0; i < graph.size(); ++i) {
      const ir::Node& n = graph[graph.at(i)];
      key.add(n.op, n.dtype, n.id, n.slot, n.constant, n.reduction, n.order, n.run_axes, n.chunk,
              n.combine ? static_cast<int>(*n.combine) : -1, n.bounds);
      key.list(n.shape);
      key.list(n.ints);
      key.list(n.inputs);
    }
    key.list(graph.outputs);
    for (std::span<const ir::Buffer> buffers : {layouts.inputs, layouts.outputs}) {
      key.add(buffers.size());
      for (const ir::Buffer& b : buffers) {
        key.add(b.dtype);
        key.list(b.shape);
        key.list(b.strides);
      }
    }
    key.add(layouts.alias.size());
    for (int a : layouts.alias) key.add(a);
    return std::move(key.text_);
  }

 private:
  template <class... T>
  void add(const T&... values) {
    (text_.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  }
  template <class T>
  void list(const T& values) {
    add(values.size());
    const auto bytes = std::as_bytes(std::span(values));
    text_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::string text_;
};

}  // namespace

std::string request_key(const ir::Graph& graph, const ir::RunArgs& layouts) {
  return Key::of(graph, layouts);
}

}  // namespace ufuse::codegen
