// Along which axes graphs can be cut into blocks, and which graphs are those of blocks.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "ir/blocks.h"
#include "ir/parse.h"

namespace ufuse::ir {
namespace {

Graph graph_of(const std::string& text) { return parse(text + "return %0\n"); }

// For each axis of input 0: '|' where it can be cut, '.' where all of it is needed.
std::string cuts(const std::string& text) {
  const Graph graph = graph_of(text);
  const Dimensions dimensions(graph, 2);
  std::string found;
  for (std::size_t axis = 0; axis < graph[graph.at(0)].shape.size(); ++axis)
    found += dimensions.whole_for(dimensions.of(graph.at(0), axis)) ? '.' : '|';
  return found;
}

// The dimensions of the last node, by the axes of input 0 or 1 ('a', 'b', 'A', 'B') that they are.
std::string names(const std::string& text) {
  const Graph graph = graph_of(text);
  const Dimensions dimensions(graph, 2);
  const NodeId last = graph.at(graph.size() - 1);
  std::string found;
  for (std::size_t axis = 0; axis < graph[last].shape.size(); ++axis) {
    char name = '?';
    for (std::size_t input = 2; input-- > 0;)
      for (std::size_t a = 0; a < graph[graph.at(input)].shape.size(); ++a)
        if (dimensions.of(graph.at(input), a) == dimensions.of(last, axis))
          name = static_cast<char>((input == 0 ? 'a' : 'A') + a);
    found += name;
  }
  return found;
}

const std::string kTwo =
    "%0 = input 0 : float64[6, 4]\n"
    "%1 = input 1 : float64[6, 4]\n";

}  // namespace

TEST_CASE("blocks: elementwise nodes hold axes together, index maps move them") {
  CHECK(names(kTwo + "%2 = add %0 %1 : float64[6, 4]\n") == "ab");
  CHECK(cuts(kTwo + "%2 = add %0 %1 : float64[6, 4]\n") == "||");
  CHECK(names(kTwo + "%2 = transpose %0 permutation=[1, 0] : float64[4, 6]\n") == "ba");
  CHECK(names(kTwo + "%2 = cast %0 : float32[6, 4]\n") == "ab");
  CHECK(names(kTwo + "%2 = broadcast %0 axes=[0, -1, 1] : float64[6, 3, 4]\n") == "a?b");
}

TEST_CASE("blocks: what needs more than a block of an axis") {
  CHECK(cuts(kTwo + "%2 = reduce add %0 axes=[1] order=sequential : float64[6]\n") == "|.");
  CHECK(cuts(kTwo + "%2 = arg_reduce argmin %0 axes=[0] : int64[4]\n") == ".|");
  CHECK(cuts(kTwo + "%2 = scan add %0 axes=[0] : float64[6, 4]\n") == ".|");
  CHECK(cuts(kTwo + "%2 = slice %0 start=[5, 0] step=[-1, 1] : float64[6, 4]\n") == ".|");
  CHECK(cuts(kTwo + "%2 = slice %0 start=[0, 0] step=[1, 1] : float64[5, 4]\n") == ".|");
  CHECK(cuts(kTwo + "%2 = slice %0 start=[0, 0] step=[1, 1] : float64[6, 4]\n") == "||");
  CHECK(cuts(kTwo + "%2 = reshape %0 : float64[24]\n") == "..");
  CHECK(cuts(kTwo + "%2 = reshape %0 : float64[6, 2, 2]\n") == "|.");
  CHECK(cuts(kTwo + "%2 = reshape %0 : float64[3, 2, 4]\n") == ".|");
  CHECK(cuts(kTwo + "%2 = reshape %0 : float64[1, 6, 1, 4]\n") == "||");
  CHECK(cuts(kTwo + "%2 = reshape %0 : float64[4, 6]\n") == "..");
}

TEST_CASE("blocks: what is found of one node holds for all that hang together with it") {
  const std::string sums = kTwo + "%2 = reduce add %1 axes=[0] order=sequential : float64[4]\n" +
                           "%3 = broadcast %2 axes=[-1, 0] : float64[6, 4]\n";
  CHECK(cuts(sums) == "||");
  CHECK(cuts(sums + "%4 = multiply %0 %3 : float64[6, 4]\n") == "||");
  CHECK(cuts(sums + "%4 = multiply %0 %1 : float64[6, 4]\n") == ".|");
}

TEST_CASE("blocks: one dimension along two axes of a value is not cut") {
  const std::string text =
      "%0 = input 0 : float64[6]\n"
      "%1 = input 1 : float64[6]\n"
      "%2 = broadcast %0 axes=[0, -1] : float64[6, 6]\n";
  const std::string outer = text + "%3 = broadcast %0 axes=[-1, 0] : float64[6, 6]\n";
  CHECK(cuts(outer + "%4 = add %2 %3 : float64[6, 6]\n") == ".");
  const std::string others = text + "%3 = broadcast %1 axes=[-1, 0] : float64[6, 6]\n";
  CHECK(cuts(others + "%4 = add %2 %3 : float64[6, 6]\n") == "|");
}

TEST_CASE("blocks: positions are cut, what stands at them is not") {
  const std::string text =
      "%0 = input 0 : float64[6, 4]\n"
      "%1 = input 1 : int64[9]\n"
      "%2 = gather %0 %1 axes=[0] bounds=wrap : float64[9, 4]\n";
  CHECK(cuts(text) == ".|");
  CHECK(names(text) == "Ab");
  CHECK(cuts(text + "%3 = scatter %0 %1 %2 axes=[0] bounds=wrap : float64[6, 4]\n") == ".|");
  const Graph graph =
      graph_of(text + "%3 = scatter %0 %1 %2 axes=[0] bounds=wrap : float64[6, 4]\n");
  const Dimensions dimensions(graph, 2);
  CHECK(dimensions.whole_for(dimensions.of(graph.at(1), 0)) == graph.at(3));
}

TEST_CASE("blocks: arrays from elsewhere are the same for all blocks") {
  const Graph graph = graph_of(
      "%0 = input 0 : float64[6, 4]\n"
      "%1 = input 2 : float64[4]\n"
      "%2 = broadcast %1 axes=[-1, 0] : float64[6, 4]\n"
      "%3 = add %0 %2 : float64[6, 4]\n");
  const Dimensions dimensions(graph, 2);
  CHECK(!dimensions.whole_for(dimensions.of(graph.at(0), 0)));
  CHECK(dimensions.whole_for(dimensions.of(graph.at(0), 1)) == graph.at(1));
}

TEST_CASE("blocks: a block's graph differs in the extents that were cut, and in nothing else") {
  const auto text = [](int rows, const std::string& order, const std::string& number) {
    const std::string n = std::to_string(rows);
    return "%0 = input 0 : float64[" + n + ", 4]\n%1 = const " + number +
           " : float64[]\n%2 = broadcast %1 axes=[-1, -1] : float64[" + n +
           ", 4]\n%3 = multiply %0 %2 : float64[" + n + ", 4]\n%4 = reduce add %3 axes=[1] " +
           order + " : float64[" + n + "]\nreturn %4\n";
  };
  const std::string order = "order=pairwise run_axes=1 chunk=0";
  const Graph whole = parse(text(60, order, "0x1p+1"));
  const Dimensions dimensions(whole, 1);
  const std::uint32_t rows = dimensions.of(whole.at(0), 0);
  const auto is_block = [&](const std::string& block, std::int64_t extent) {
    return is_block_of(parse(block), whole, dimensions, {{rows, extent}});
  };
  CHECK(is_block(text(7, order, "0x1p+1"), 7));
  CHECK(is_block(text(60, order, "0x1p+1"), 60));
  CHECK_FALSE(is_block(text(7, order, "0x1p+1"), 8));
  CHECK_FALSE(is_block(text(7, "order=sequential", "0x1p+1"), 7));
  CHECK_FALSE(is_block(text(7, "order=pairwise run_axes=1 chunk=8192", "0x1p+1"), 7));
  CHECK_FALSE(is_block(text(7, order, "0x1p+2"), 7));
}

}  // namespace ufuse::ir
