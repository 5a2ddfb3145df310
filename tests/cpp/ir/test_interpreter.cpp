// The interpreter on whole graphs: memory layouts, index maps, block calls, in-place outputs, flags
// per node.
#include <doctest/doctest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <numeric>

#include "ir/build.h"
#include "tests/cpp/ir/ir_testing.h"

namespace ufuse::ir {
namespace {

using testing::array;
using testing::bits_of;
using testing::values_of;

std::vector<double> counting(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 0.0);
  return values;
}
testing::Array grid(std::int64_t rows, std::int64_t columns) {
  return array(DType::Float64, {rows, columns}, counting(static_cast<std::size_t>(rows * columns)));
}

// modf, as NumPy's loops have it: walks its strides, and clears the flags at its end.
void modf_loop(char** args, const std::int64_t* dims, const std::int64_t* strides, void* data) {
  ++*static_cast<int*>(data);
  for (std::int64_t i = 0; i < dims[0]; ++i) {
    double whole = 0;
    *reinterpret_cast<double*>(args[1]) = std::modf(*reinterpret_cast<double*>(args[0]), &whole);
    *reinterpret_cast<double*>(args[2]) = whole;
    for (int k = 0; k < 3; ++k) args[k] += strides[k];
  }
  std::feclearexcept(FE_ALL_EXCEPT);
}

}  // namespace

TEST_CASE("interpreter: index maps") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 3});
  SUBCASE("transpose") {
    g.outputs = {transpose(g, x, {1, 0})};
    CHECK(values_of<double>(g, {grid(2, 3)}) == std::vector<double>{0, 3, 1, 4, 2, 5});
  }
  SUBCASE("broadcast with axes in another order") {
    g.outputs = {broadcast(g, x, {3, 2, 2}, {1, -1, 0})};
    CHECK(values_of<double>(g, {grid(2, 3)}) ==
          std::vector<double>{0, 3, 0, 3, 1, 4, 1, 4, 2, 5, 2, 5});
  }
  SUBCASE("slice backwards") {
    g.outputs = {slice(g, x, {1, 2}, {-1, -2}, {2, 2})};
    CHECK(values_of<double>(g, {grid(2, 3)}) == std::vector<double>{5, 3, 2, 0});
  }
  SUBCASE("reshape of a transpose copies in C order") {
    g.outputs = {reshape(g, transpose(g, x, {1, 0}), {6})};
    CHECK(values_of<double>(g, {grid(2, 3)}) == std::vector<double>{0, 3, 1, 4, 2, 5});
  }
  SUBCASE("nothing") {
    g.outputs = {slice(g, x, {0, 0}, {1, 1}, {2, 0})};
    CHECK(values_of<double>(g, {grid(2, 3)}).empty());
  }
}

TEST_CASE(
    "interpreter: strided, reversed, Fortran-ordered and record-strided inputs; strided outputs") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 3}), y = input(g, 1, DType::Float64, {2, 3});
  g.outputs = {elementwise(g, Op::Subtract, {x, y}), x};
  testing::Array a = grid(4, 6), b = grid(3, 2);
  a.shape = {2, 3}, a.strides = {2 * 48, -16}, a.start = 32;  // grid(4, 6)[::2, 4::-2]
  b.shape = {2, 3}, b.strides = {8, 16};                      // grid(3, 2).T
  std::vector<double> out(12, -1), plain(6);
  std::vector<Buffer> in = {a.buffer(), b.buffer()};
  std::vector<Buffer> outs = {{out.data() + 11, DType::Float64, {2, 3}, {-48, -16}},
                              {plain.data(), DType::Float64, {2, 3}, {24, 8}}};
  const RunArgs args{in, {}, outs, {}, {}};
  Interpreter().prepare(g, args)->run(args);
  CHECK(plain == std::vector<double>{4, 2, 0, 16, 14, 12});
  CHECK(out == std::vector<double>{-1, 7, -1, 11, -1, 15, -1, -4, -1, 0, -1, 4});

  // A field of records: strides that are no multiple of the element's size.
  Graph h;
  const NodeId z = input(h, 0, DType::Complex128, {3});
  h.outputs = {elementwise(h, Op::ImagPart, {z})};
  testing::Array record = array(DType::Float64, {9}, counting(9));
  record.dtype = DType::Complex128, record.shape = {3}, record.strides = {24}, record.start = 8;
  CHECK(values_of<double>(h, {record}) == std::vector<double>{2, 5, 8});
  h.outputs = {z};
  CHECK(values_of<double>(h, {record}) == std::vector<double>{1, 2, 4, 5, 7, 8});
}

TEST_CASE("interpreter: params, constants, 0-d and empty arrays") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {3});
  const NodeId p = broadcast_to(g, param(g, 1, DType::Float64), {3});
  g.outputs = {elementwise(g, Op::Multiply, {x, p})};
  CHECK(values_of<double>(g, {array<double>(DType::Float64, {3}, {1, 2, 3})}, {{}, bits_of(2.5)}) ==
        std::vector<double>{2.5, 5, 7.5});
  Graph h;
  h.outputs = {elementwise(h, Op::Sqrt, {constant(h, DType::Float64, bits_of(2.0))})};
  CHECK(values_of<double>(h, {}) == std::vector<double>{std::sqrt(2.0)});
  Graph e;
  e.outputs = {elementwise(e, Op::Sqrt, {input(e, 0, DType::Float64, {0, 4})})};
  CHECK(values_of<double>(e, {testing::empty(DType::Float64, {0, 4})}).empty());
}

namespace {

struct Stopper : Watch {
  explicit Stopper(int left) : left(left) {}
  bool stops(bool) noexcept override { return --left < 0; }
  void without_forks(const std::function<void()>& body) override { body(); }
  int left;
};

}  // namespace

TEST_CASE("interpreter: a run that is given up leaves lasting memory as it was") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {100'000});
  const NodeId y = elementwise(g, Op::Sqrt, {elementwise(g, Op::Add, {x, x})});
  g.outputs = {y, arg_reduce(g, true, y, 0)};
  for (int asked = 0;; ++asked) {
    std::vector<double> memory(100'000, 8.0);
    std::int64_t largest = -1;
    const std::vector<Buffer> in = {{memory.data(), DType::Float64, {100'000}, {8}}};
    const std::vector<Buffer> out = {in[0], {&largest, DType::Int64, {}, {}}};
    const std::vector<int> alias = {0, -1};
    const std::vector<char> lasting = {1, 0};
    Stopper stopper(asked);
    const RunArgs args{in, {}, out, alias, lasting, &stopper};
    const RunStatus status = Interpreter().prepare(g, args)->run(args);
    CHECK(std::ranges::count(memory, status.stopped ? 8.0 : 4.0) == 100'000);
    if (status.stopped) continue;
    CHECK(largest == 0);
    CHECK(asked > 3);
    break;
  }
}

TEST_CASE("interpreter: block calls run once for all their outputs, on the operand's own strides") {
  int calls = 0;
  LoopTable loops;
  loops.add({"modf", {DType::Float64}, {DType::Float64, DType::Float64}, modf_loop, &calls});
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 3});
  const NodeId half = broadcast_to(g, constant(g, DType::Float64, bits_of(0.5)), {3, 2});
  const NodeId y = elementwise(g, Op::Multiply, {transpose(g, x, {1, 0}), half});
  g.outputs = {ufunc(g, loops, 0, 1, {y}), ufunc(g, loops, 0, 0, {y})};
  const testing::Outcome outcome = testing::run(g, {grid(2, 3)}, {}, &loops);
  const std::vector<double> whole = {0, 1, 0, 2, 1, 2}, part = {0, 0.5, 0.5, 0, 0, 0.5};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(outcome.outputs[0].at<double>(i) == whole[i]);
    CHECK(outcome.outputs[1].at<double>(i) == part[i]);
  }
  CHECK(calls == 1);  // y is laid out like the transpose, so there is one run of six
}

TEST_CASE("interpreter: outputs may overwrite inputs that other outputs still need") {
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {2, 2});
  g.outputs = {elementwise(g, Op::Negative, {transpose(g, x, {1, 0})}), x, x};
  testing::Array a = grid(2, 2), b = testing::empty(DType::Float64, {2, 2}), c = b;
  std::vector<Buffer> in = {a.buffer()}, out = {a.buffer(), b.buffer(), c.buffer()};
  const std::vector<int> alias = {0, -1, -1};
  const RunArgs args{in, {}, out, alias, {}};
  Interpreter().prepare(g, args)->run(args);
  const double wanted[] = {-0.0, -2, -1, -3};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(a.at<double>(i) == wanted[i]);
    CHECK(b.at<double>(i) == static_cast<double>(i));
    CHECK(c.at<double>(i) == static_cast<double>(i));
  }
}

TEST_CASE("interpreter: flags belong to the node that raises them, quiet rows raise none") {
  const auto data_loop = [](char** args, const std::int64_t* dims, const std::int64_t* strides,
                            void* data) { modf_loop(args, dims, strides, data); };
  int calls = 0;
  LoopTable loops;
  loops.add({"modf", {DType::Float64}, {DType::Float64, DType::Float64}, data_loop, &calls});
  Graph g;
  const NodeId x = input(g, 0, DType::Float64, {4}), y = input(g, 1, DType::Float64, {4});
  const NodeId quotient = elementwise(g, Op::Divide, {x, y});  // 1/0: divide by zero; 0/0: invalid
  const NodeId whole = ufunc(g, loops, 0, 0, {quotient});      // clears the flags
  const NodeId larger =
      elementwise(g, Op::Maximum, {whole, quotient});          // quiet, although there is a NaN
  const NodeId square = elementwise(g, Op::Square, {larger});  // overflow, underflow
  const NodeId number = cast(g, quotient, DType::Int32);       // invalid
  g.outputs = {square, number};
  const double largest = std::numeric_limits<double>::max(),
               least = std::numeric_limits<double>::min();
  std::vector<testing::Array> in = {array<double>(DType::Float64, {4}, {1, 0, largest, least}),
                                    array<double>(DType::Float64, {4}, {0, 0, 1, 1})};
  std::vector<Buffer> buffers = {in[0].buffer(), in[1].buffer()};
  const std::vector<std::uint32_t> flags =
      Interpreter(&loops).node_flags(g, {buffers, {}, {}, {}, {}});
  REQUIRE(flags.size() == g.size());
  CHECK(flags[quotient.value] == (1 | 8));
  CHECK(flags[whole.value] == 0);
  CHECK(flags[larger.value] == 0);
  CHECK(flags[square.value] == (2 | 4));
  CHECK(flags[number.value] == 8);
  CHECK(testing::run(g, in, {}, &loops).status.fp == 15);
}

TEST_CASE("interpreter: a prepared graph outlives the graph and the loop table") {
  std::shared_ptr<const Executable> executable;
  int calls = 0;
  {
    LoopTable loops;
    loops.add({"modf", {DType::Float64}, {DType::Float64, DType::Float64}, modf_loop, &calls});
    Graph g;
    g.outputs = {ufunc(g, loops, 0, 1, {input(g, 0, DType::Float64, {2})})};
    executable = Interpreter(&loops).prepare(g, {});
  }
  double in[] = {1.5, -2.5}, out[2];
  std::vector<Buffer> inputs = {{in, DType::Float64, {2}, {8}}},
                      outputs = {{out, DType::Float64, {2}, {8}}};
  executable->run({inputs, {}, outputs, {}, {}});
  CHECK(out[0] == 1);
  CHECK(out[1] == -2);
  REQUIRE(executable->report().groups.size() == 1);
  CHECK(executable->report().groups[0].origin == "interpreter");
  CHECK(*executable->report().groups[0].ops == std::vector<std::string>{"modf"});
  CHECK(executable->report().bytes_minimum == 32);
}

}  // namespace ufuse::ir
