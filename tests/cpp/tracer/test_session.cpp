// Sessions without Python: when are values computed, when is memory written, and what does a later
// read see? The host allocates from a vector, runs the interpreter, and counts.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/interp/interpreter.h"
#include "ir/support/reasons.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/view.h"
#include "tracer/session.h"

namespace ufuse::tracer {
namespace {

class TestHost final : public Host {
 public:
  Memory allocate(const Layout& layout) override {
    ++allocations;
    std::int64_t n = 1;
    for (std::int64_t d : layout.shape) n *= d;
    auto bytes = std::make_shared<std::vector<double>>(
        static_cast<std::size_t>(n) * ir::size_of(layout.dtype) / 8 + 1);
    return {bytes->data(), bytes};
  }
  void copy(const ir::Buffer& to, const ir::Buffer& from) override {
    ++copies;
    std::vector<std::int64_t> index(to.shape.size());
    for (;;) {
      std::int64_t t = 0, f = 0;
      for (std::size_t a = 0; a < index.size(); ++a) {
        if (to.shape[a] == 0) return;
        t += index[a] * to.strides[a];
        f += index[a] * from.strides[a];
      }
      std::memcpy(static_cast<char*>(to.data) + t, static_cast<char*>(from.data) + f,
                  ir::size_of(to.dtype));
      std::size_t a = index.size();
      while (a > 0 && ++index[a - 1] == to.shape[a - 1]) index[--a] = 0;
      if (a == 0) return;
    }
  }
  std::shared_ptr<const ir::Executable> prepare(const ir::Graph& graph,
                                                const ir::RunArgs& layouts) override {
    ir::verify(graph, &loops);
    last_graph_size = graph.size();
    last_outputs = graph.outputs.size();
    return interpreter.prepare(graph, layouts);
  }
  ir::RunStatus run(Session&, std::span<const Want>, const ir::Executable& executable,
                    const ir::RunArgs& args) override {
    if (interrupts && --interrupts == 0) throw Interrupt{};
    ++runs;
    ir::RunStatus status = executable.run(args);
    status.fp |= pretended_flags;
    return status;
  }
  Site users_line_of(const Site& site) const override { return site; }
  void warn(const Site&, const std::string& message) override { told.push_back(message); }
  void redo(Session&, std::span<Want> wants, const std::vector<bool>&) override {
    ++redos;
    for (const Want& want : wants) redone_into.push_back(want.memory.data);
  }

  ir::LoopTable loops;
  ir::Interpreter interpreter{&loops};
  struct Interrupt {};
  int interrupts = 0;  // the run that is given up; 0: none
  int allocations = 0, copies = 0, runs = 0, redos = 0;
  std::uint32_t pretended_flags = 0;
  std::size_t last_graph_size = 0, last_outputs = 0;
  std::vector<void*> redone_into;
  std::vector<std::string> told;
};

numpy_shim::Ufunc ufunc(const char* name, int nin) {
  numpy_shim::Ufunc made;
  made.name = name;
  made.nin = nin;
  made.nout = 1;
  made.loops = {{nin == 1 ? "dd" : "ddd", nullptr, nullptr}};
  return made;
}

Operand number(double value) {
  Operand operand;
  operand.weak = numpy_shim::WeakScalar{};
  operand.weak->kind = numpy_shim::WeakScalar::Kind::Float;
  operand.weak->value = value;
  return operand;
}

struct Fixture {
  TestHost host;
  Session session{host, host.loops, 0};
  std::vector<double> memory = std::vector<double>(8);
  std::int32_t line = 0;

  Fixture() { std::iota(memory.begin(), memory.end(), 0.0); }

  LazyArray argument(std::size_t first, std::int64_t n) {
    return session.argument({DType::Float64, {n}, {8}}, {memory.data() + first, nullptr}, true);
  }
  // Operands are read after `enter`, which may flush.
  LazyArray apply(const char* name, const LazyArray& a, double b) {
    session.enter({0, ++line});
    const Operand operands[] = {session.operand(a), number(b)};
    return session.call(ufunc(name, 2), operands).front();
  }
  // target[...] = value, where nobody holds the value.
  void assign_temporary(const LazyArray& target, const LazyArray& value) {
    const Operand operand = session.operand(value);
    session.assign(target, operand, value.storage);
  }
  LazyArray slice(const LazyArray& x, std::int64_t start, std::int64_t stop) {
    numpy_shim::IndexItem item;
    item.kind = numpy_shim::IndexItem::Kind::Slice;
    item.start = start;
    item.stop = stop;
    return session.view(x, numpy_shim::basic_index(x.layout, {&item, 1}));
  }
  std::vector<double> values(const LazyArray& x) {
    session.force({&x, 1});
    std::vector<double> found;
    const char* data = static_cast<char*>(x.storage->memory.data) + x.offset;
    for (std::int64_t i = 0; i < x.layout.shape[0]; ++i)
      found.push_back(*reinterpret_cast<const double*>(data + i * x.layout.strides[0]));
    return found;
  }
};

using Values = std::vector<double>;

// x[positions] for an array of positions.
LazyArray at(Session& session, const LazyArray& x, const LazyArray& positions) {
  const Session::KeyItem key[] = {session.operand(positions)};
  return session.gather(x, session.select(x, key));
}

TEST_CASE_FIXTURE(Fixture, "nothing is computed before it is asked for, and then once") {
  const LazyArray x = argument(0, 4);
  const LazyArray y = apply("add", x, 1);
  const LazyArray z = apply("multiply", y, 2);
  CHECK(host.runs == 0);
  CHECK(values(z) == Values{2, 4, 6, 8});
  CHECK(host.runs == 1);
  CHECK(host.last_outputs == 2);  // y lives and was on the way
  CHECK(values(y) == Values{1, 2, 3, 4});
  CHECK(host.runs == 1);
}

TEST_CASE_FIXTURE(Fixture, "a value that nobody holds is not stored") {
  const LazyArray x = argument(0, 4);
  LazyArray y = apply("add", x, 1);
  y = apply("multiply", y, 2);
  CHECK(values(y) == Values{2, 4, 6, 8});
  CHECK(host.last_outputs == 1);
}

TEST_CASE_FIXTURE(Fixture, "what stands in memory is read, not computed again") {
  const LazyArray x = argument(0, 4);
  const LazyArray y = apply("add", x, 1);
  const LazyArray z = apply("multiply", y, 2);
  values(y);
  values(z);
  CHECK(host.last_graph_size <= 4);  // input, parameter, broadcast, multiply
}

TEST_CASE_FIXTURE(Fixture, "a whole write reaches the caller's memory at the end") {
  const LazyArray x = argument(0, 4);
  session.assign(x, session.operand(apply("add", x, 1)));
  CHECK(memory[0] == 0);
  CHECK(x.storage->is_dirty());
  session.finish({});
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{1, 2, 3, 4});
  CHECK(memory[4] == 4);
}

TEST_CASE_FIXTURE(Fixture, "an exception finds the caller's memory as NumPy would have left it") {
  const LazyArray x = argument(0, 4);
  session.assign(x, session.operand(apply("add", x, 1)));
  session.abort();
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{1, 2, 3, 4});
}

TEST_CASE_FIXTURE(Fixture, "a run that is given up can be asked for again") {
  const LazyArray x = argument(0, 4);
  const LazyArray y = apply("add", x, 1);
  session.assign(x, session.operand(apply("multiply", y, 2)));
  host.interrupts = 1;
  CHECK_THROWS_AS(values(y), TestHost::Interrupt);
  CHECK(memory[1] == 1);
  CHECK(values(y) == Values{1, 2, 3, 4});
  session.finish({});
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{2, 4, 6, 8});
}

TEST_CASE_FIXTURE(Fixture, "an interrupted call writes what is due, and no more") {
  const LazyArray x = argument(0, 4);
  const LazyArray lost = apply("add", x, 1), due = apply("add", x, 2);
  session.assign(x, number(7));
  host.interrupts = 1;
  const LazyArray results[] = {lost};
  CHECK_THROWS_AS(session.finish(results), TestHost::Interrupt);
  CHECK(memory[1] == 1);
  session.abort_with({&due, 1});
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{7, 7, 7, 7});
  CHECK(due.storage->memory);
  CHECK(!lost.storage->memory);
  CHECK(lost.storage->session == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "values from before a write keep what they saw") {
  const LazyArray x = argument(0, 4);
  const LazyArray before = apply("add", x, 10);
  session.assign(x, number(0));
  const LazyArray after = apply("add", x, 10);
  const LazyArray results[] = {before, after};
  session.finish(results);
  CHECK(values(before) == Values{10, 11, 12, 13});
  CHECK(values(after) == Values{10, 10, 10, 10});
  CHECK(memory[1] == 0);
}

TEST_CASE_FIXTURE(Fixture, "a partial write happens at once, after its readers") {
  const LazyArray x = argument(0, 4);
  const LazyArray before = apply("add", x, 10);
  session.assign(slice(x, 1, 3), number(7));
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{0, 7, 7, 3});
  CHECK(values(before) == Values{10, 11, 12, 13});
  CHECK(values(apply("add", x, 0)) == Values{0, 7, 7, 3});
}

TEST_CASE_FIXTURE(Fixture,
                  "what takes long to compute is stored with the part that is made of it") {
  const LazyArray x = argument(0, 2), target = argument(2, 4);
  const auto outputs_of_a_write = [&](int operations, bool is_held) {
    LazyArray value = apply("add", x, 1);
    for (int i = 1; i < operations; ++i) value = apply("add", value, 1);
    const LazyArray written = apply("multiply", value, 2);
    if (!is_held) value = x;
    assign_temporary(slice(target, 1, 3), written);
    return host.last_outputs;
  };
  CHECK(outputs_of_a_write(3, true) == 1);
  CHECK(outputs_of_a_write(40, false) == 1);
  CHECK(outputs_of_a_write(40, true) == 2);
  CHECK(Values(memory.begin(), memory.begin() + 6) == Values{0, 1, 2, 80, 82, 5});
}

TEST_CASE_FIXTURE(Fixture, "a shifted write reads the old elements") {
  const LazyArray x = argument(0, 5);
  const LazyArray target = slice(x, 1, 5);
  session.assign(target, session.operand(slice(x, 0, 4)));
  CHECK(Values(memory.begin(), memory.begin() + 5) == Values{0, 0, 1, 2, 3});
  CHECK(host.copies == 1);
}

TEST_CASE_FIXTURE(Fixture, "a shifted write after a pending one") {
  const LazyArray x = argument(0, 4);
  session.assign(x, session.operand(apply("add", x, 1)));
  const LazyArray shifted = apply("multiply", slice(x, 0, 3), 10);
  session.assign(slice(x, 1, 4), session.operand(shifted));
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{1, 10, 20, 30});
}

TEST_CASE_FIXTURE(Fixture, "an identical map is written in place") {
  const LazyArray x = argument(0, 4);
  const LazyArray part = slice(x, 1, 3);
  assign_temporary(part, apply("add", part, 1));
  CHECK(Values(memory.begin(), memory.begin() + 4) == Values{0, 2, 3, 3});
  CHECK(host.runs == 1);
  CHECK(host.allocations == 0);
}

TEST_CASE("in place not where a warning may ask for a redo") {
  Fixture f;
  f.session.set_report_mask(15);
  const LazyArray x = f.argument(0, 4);
  const LazyArray part = f.slice(x, 1, 3);
  LazyArray value = f.apply("add", part, 1);
  value = f.apply("multiply", value, 2);
  f.assign_temporary(part, value);
  CHECK(f.host.runs == 1);
  CHECK(f.host.copies == 1);
  CHECK(f.host.redos == 0);
  CHECK(f.memory[1] == 4);
}

TEST_CASE("a reported flag is redone into memory of its own") {
  Fixture f;
  f.session.set_report_mask(1);
  f.host.pretended_flags = 1;
  const LazyArray x = f.argument(0, 4);
  f.session.assign(x, f.session.operand(f.apply("multiply", f.apply("add", x, 1), 2)));
  f.session.finish({});
  CHECK(f.host.redos == 1);
  REQUIRE(f.host.redone_into.size() == 1);
  CHECK(f.host.redone_into[0] != f.memory.data());
}

TEST_CASE("one operation tells its warnings by the flags, so it is written in place") {
  Fixture f;
  f.session.set_report_mask(15);
  f.host.pretended_flags = 1 | 2;
  const LazyArray x = f.argument(0, 4);
  f.session.assign(x, f.session.operand(f.apply("add", x, 1)));
  f.session.finish({});
  CHECK(f.host.copies == 0);
  CHECK(f.host.redos == 0);
  CHECK(f.memory[3] == 4);
  CHECK(f.host.told == std::vector<std::string>{"divide by zero encountered in add",
                                                "overflow encountered in add"});
}

TEST_CASE_FIXTURE(Fixture, "a result takes the memory of a dying operand where it fits") {
  const auto foreign = [&](std::size_t first) {
    return session.adopt({DType::Float64, {2}, {8}}, {memory.data() + first, nullptr}, true,
                         Role::Temporary);
  };
  LazyArray sum, product;
  {
    const LazyArray dying = foreign(2);
    sum = apply("add", dying, 1);
    session.reuse_memory(sum, dying);
  }
  CHECK(values(sum) == Values{3, 4});
  CHECK(sum.storage->memory.data == memory.data() + 2);
  // Two operations that may warn: where they were made of has to stay.
  session.set_report_mask(15);
  {
    const LazyArray dying = foreign(4);
    product = apply("multiply", apply("add", dying, 1), 2);
    session.reuse_memory(product, dying);
  }
  CHECK(values(product) == Values{10, 12});
  CHECK(product.storage->memory.data != memory.data() + 4);
  CHECK(memory[4] == 4);
}

TEST_CASE_FIXTURE(Fixture, "overlapping arguments are written at once") {
  const LazyArray x = argument(0, 4), y = argument(2, 4);
  const LazyArray sum = apply("add", y, 100);
  session.assign(x, number(-1));
  CHECK(memory[2] == -1);
  CHECK(values(sum) == Values{102, 103, 104, 105});
  CHECK(values(apply("add", y, 0)) == Values{-1, -1, 4, 5});
}

TEST_CASE_FIXTURE(Fixture, "a view of a pending array follows its writes") {
  const LazyArray x = argument(0, 4);
  const LazyArray y = apply("add", x, 0);
  const LazyArray part = slice(y, 1, 3);
  session.assign(y, number(5));
  const LazyArray sum = apply("add", part, 1);
  CHECK(values(sum) == Values{6, 6});
  CHECK(values(part) == Values{5, 5});
}

TEST_CASE_FIXTURE(Fixture, "undefined arrays cost no run") {
  const LazyArray x = session.empty({DType::Float64, {4}, {8}});
  session.assign(slice(x, 0, 2), number(1));
  CHECK(host.runs == 1);
  session.assign(slice(x, 2, 4), number(2));
  CHECK(values(x) == Values{1, 1, 2, 2});
}

TEST_CASE_FIXTURE(Fixture, "a loop is flushed when it comes around with much pending") {
  const LazyArray x = argument(0, 4);
  LazyArray y = x;
  for (int round = 0; round < 300; ++round) {
    line = 0;
    y = apply("add", y, 1);
  }
  CHECK(host.runs > 1);
  CHECK(values(y) == Values{300, 301, 302, 303});
}

TEST_CASE_FIXTURE(Fixture, "a NumPy scalar has its own value, also at the address of a dead one") {
  for (int i = 0; i < 1000; ++i) {
    ir::Scalar bits;
    const double value = i;
    std::memcpy(bits.bits, &value, sizeof value);
    const Operand operand = session.operand(session.literal(DType::Float64, bits));
    REQUIRE(session.param_row(session.graph()[operand.node].id).bits == bits);
  }
}

TEST_CASE_FIXTURE(Fixture, "arrays outlive their session") {
  LazyArray kept;
  {
    Session other(host, host.loops, 0);
    const LazyArray x = other.argument({DType::Float64, {4}, {8}}, {memory.data(), nullptr}, true);
    const Operand operands[] = {other.operand(x), number(1)};
    kept = other.call(ufunc("add", 2), operands).front();
    other.finish({});
    CHECK(other.events().front().kind == Event::Kind::Escape);
  }
  CHECK(kept.storage->session == nullptr);
  CHECK(static_cast<double*>(kept.storage->memory.data)[3] == 4);
}

TEST_CASE_FIXTURE(Fixture, "a pure call leaves a plan, a forced value does not") {
  const LazyArray x = argument(0, 4);
  const LazyArray y = apply("multiply", slice(x, 1, 3), 2);
  session.finish({&y, 1});
  const std::shared_ptr<const Plan> plan = session.plan();
  REQUIRE(plan);
  REQUIRE(plan->runs.size() == 1);
  REQUIRE(plan->runs[0].inputs.size() == 1);
  CHECK(plan->runs[0].inputs[0].place.offset == 8);
  CHECK(plan->runs[0].outputs.size() == 1);
  CHECK(plan->results[0].place.output == 0);
  CHECK(plan->results[0].whole);

  Fixture other;
  const LazyArray z = other.apply("add", other.argument(0, 4), 1);
  other.session.record({Event::Kind::Force, Reason::Bool, {}, {}, nullptr});
  other.session.finish({&z, 1});
  CHECK(other.session.plan() == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "a value that Python is told stands between the runs of a plan") {
  const LazyArray x = argument(0, 4);
  const LazyArray y = apply("multiply", x, 2), first = slice(y, 0, 1);
  session.force({&first, 1});
  session.record_outcome({Event::Kind::Force, Reason::Bool, {}, {}, nullptr}, first, true);
  const LazyArray z = apply("add", y, 1);
  session.finish({&z, 1});
  const std::shared_ptr<const Plan> plan = session.plan();
  REQUIRE(plan);
  REQUIRE(plan->runs.size() == 2);
  REQUIRE(plan->forced.size() == 1);
  CHECK(plan->forced[0].runs == 1);
  CHECK(plan->forced[0].place == PlanPlace{-1, 0, 0, 0});
  CHECK(plan->forced[0].outcome == ir::Scalar{{values(x)[0] != 0, 0}});
  CHECK(plan->runs[1].inputs[0].place == PlanPlace{-1, 0, 0, 0});
  CHECK(plan->runs[0].until[0] >= 2);
  CHECK(plan->results[0].place == PlanPlace{-1, 1, 0, 0});
}

TEST_CASE_FIXTURE(Fixture, "no plan writes memory of the caller's before Python is told a value") {
  const LazyArray x = argument(0, 4), y = apply("multiply", x, 2), first = slice(x, 0, 1);
  session.assign(x, session.operand(y));
  session.force({&first, 1});
  session.record_outcome({Event::Kind::Force, Reason::Bool, {}, {}, nullptr}, first, true);
  session.finish({});
  CHECK(session.plan() == nullptr);
}

TEST_CASE_FIXTURE(Fixture, "read-only targets and complex values are NumPy's affair") {
  const LazyArray x = session.argument({DType::Float64, {4}, {8}}, {memory.data(), nullptr}, false);
  CHECK_THROWS_AS(session.assign(x, number(1)), Unsupported);
  const LazyArray y = argument(4, 4);
  Operand imaginary = number(0);
  imaginary.weak->kind = numpy_shim::WeakScalar::Kind::Complex;
  CHECK_THROWS_AS(session.assign(y, imaginary), Unsupported);
}

TEST_CASE("every reason has a sentence of its own") {
  for (const ReasonRow& reason : reasons()) {
    CHECK(reason.sentence.ends_with('.'));
    CHECK(std::ranges::count(reasons(), reason.id, &ReasonRow::id) == 1);
  }
}

TEST_CASE_FIXTURE(Fixture, "positions are checked where they are used, elements can wait") {
  std::vector<std::int64_t> positions = {3, -1, 0};
  const LazyArray x = argument(0, 4);
  const LazyArray p = session.argument({DType::Int64, {3}, {8}}, {positions.data(), nullptr}, true);
  session.enter({0, ++line});
  const LazyArray y = at(session, x, p);
  CHECK(host.runs == 1);  // the check alone
  CHECK(host.last_outputs == 1);
  const LazyArray again = at(session, x, p);
  CHECK(host.runs == 1);
  CHECK(values(y) == Values{3, 3, 0});
  CHECK(values(again) == Values{3, 3, 0});
  // A check is nothing that a repeated call would have to do.
  session.finish({&y, 1});
  REQUIRE(session.plan());
  CHECK(session.plan()->runs.size() == 1);
  CHECK(session.plan()->forced.empty());
}

TEST_CASE_FIXTURE(Fixture, "a position outside of its axis is NumPy's to complain about") {
  std::vector<std::int64_t> positions = {3, 4};
  const LazyArray x = argument(0, 4);
  const LazyArray p = session.argument({DType::Int64, {2}, {8}}, {positions.data(), nullptr}, true);
  session.enter({0, ++line});
  CHECK_THROWS_AS(at(session, x, p), Unsupported);
  const LazyArray counted = session.arange(1, 1, 3, DType::Int64);
  const int runs = host.runs;
  CHECK(values(at(session, x, counted)) == Values{1, 2, 3});
  CHECK(host.runs == runs + 1);  // what is known to be within is not looked at
}

TEST_CASE_FIXTURE(Fixture, "how much a mask picks is told, and counted once") {
  const LazyArray x = argument(0, 6);
  session.enter({0, ++line});
  const Operand two[] = {session.operand(x), number(2.5)};
  numpy_shim::Ufunc greater = ufunc("greater", 2);
  greater.loops = {{"dd?", nullptr, nullptr}};
  const LazyArray mask = session.call(greater, two).front();
  const Session::KeyItem key[] = {session.operand(mask)};
  const LazyArray picked = session.gather(x, session.select(x, key));
  CHECK(picked.layout.shape == Dims{3});
  const int runs = host.runs;
  const LazyArray again = session.gather(x, session.select(x, key));
  CHECK(host.runs == runs);
  CHECK(values(picked) == Values{3, 4, 5});
  session.finish({&picked, 1});
  REQUIRE(session.plan());
  REQUIRE(session.plan()->forced.size() == 1);
  CHECK(session.plan()->forced[0].outcome.bits[0] == 3);
}

TEST_CASE_FIXTURE(Fixture,
                  "what is written at positions is one value, and memory is written last") {
  std::vector<std::int64_t> positions = {1, 1, -1};
  const LazyArray x = argument(0, 4);
  const LazyArray p = session.argument({DType::Int64, {3}, {8}}, {positions.data(), nullptr}, true);
  session.enter({0, ++line});
  const Session::KeyItem key[] = {session.operand(p)};
  const LazyArray before = at(session, x, p);
  session.combine_at(x, session.select(x, key), ufunc("add", 2), session.as_array(number(10)));
  CHECK(memory[1] == 1);
  const LazyArray after = at(session, x, p);
  CHECK(values(after) == Values{21, 21, 13});
  CHECK(values(before) == Values{1, 1, 3});
  CHECK(memory[1] == 21);
  CHECK(memory[3] == 13);
}

TEST_CASE("bytes that are reached together are told like those of each") {
  const char memory[64] = {};
  std::uint32_t random = 1;
  const auto next = [&](std::uint32_t below) {
    random = random * 1664525u + 1013904223u;
    return (random >> 16) % below;
  };
  for (int round = 0; round < 200; ++round) {
    ReachedBytes together;
    std::vector<ByteRange> each;
    for (int i = 0; i < 12; ++i) {
      const char* low = memory + next(60);
      const ByteRange range{low, low + next(5)};
      CHECK(together.overlaps(range) == any_overlap({&range, 1}, each));
      together.add(range);
      each.push_back(range);
    }
  }
}

}  // namespace
}  // namespace ufuse::tracer
