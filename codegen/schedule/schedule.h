// How does a graph run? The schedule says it as data: which groups of values share a loop nest and
// in which order the groups run, for every value in a nest where it lives, and for every loop its
// order, its lanes and how it is shared out. Made by `schedule`, which asks all the questions and
// weighs all the costs; followed by loop/lower.h without a question; printed for golden files and
// explain.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codegen/loop/ir.h"
#include "codegen/schedule/index.h"
#include "codegen/schedule/views.h"
#include "ir/backend.h"
#include "ir/graph.h"

namespace ufuse::codegen {

// Memory of our own, for one run.
struct Temp {
  ir::DType dtype;
  std::int64_t elements;
};

// A value that a group leaves in memory.
struct Target {
  ir::NodeId node;
  Place place;  // Output or Temp
  loop::Streaming streaming = loop::Streaming::No;
};

using WantedId = int;  // index into Group::values; -1: none

// One element of a buffer: its start + offset + sum of var * stride + sum of factor * stride.
struct Address {
  struct Term {
    VarId var;
    std::int64_t stride;
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  struct Fixed {  // of an unrolled variable
    std::int64_t factor, stride;
    friend auto operator<=>(const Fixed&, const Fixed&) = default;
  };
  loop::Buffer::Role role = loop::Buffer::Role::Input;
  int index = 0;
  std::int64_t offset = 0;
  ir::SmallVector<Term, 2> terms;  // sorted by variable
  ir::SmallVector<Fixed, 2> fixed;
  friend auto operator<=>(const Address&, const Address&) = default;

  std::int64_t stride(VarId var) const {
    std::int64_t sum = 0;
    for (const Term& term : terms)
      if (term.var == var) sum += term.stride;
    return sum;
  }
};

// A node wanted at an index: one value for each combination of the variables that it varies with.
// It stands in the outermost loop in which all of them are bound.
struct Wanted {
  enum class Home : std::uint8_t {
    Memory,    // read from Group::addresses[detail]
    Chosen,    // read from there, farther by its positions, the operands, times `steps`
    Position,  // its own position: what Group::addresses[detail] says, as a number
    Inline,    // computed where it stands
    Call,      // a block call of NumPy's own inner loop
    Unrolled,  // a reduction of a few elements, written out: Group::reductions[detail]
    Loops,     // a reduction with loops of its own: Group::reductions[detail]
    Row,       // read from a row of scratch, Group::rows[detail], at the variable `at`
    Carried,   // a scan's, from one iteration of the loop over `at` to the next
  };
  Home home = Home::Inline;
  ir::NodeId node = {};
  Vars vars = {};
  // Values in the order of the node's inputs, seen through index maps. Unrolled: the elements, in C
  // order. Loops: the element.
  std::vector<WantedId> operands = {};
  std::vector<std::uint8_t> order = {};  // in which the operands are made, if not as they stand
  WantedId initial = -1;                 // of a reduction, where it is given
  int detail = -1;
  VarId at = -1;
  // Memory: the array has one stride, as NumPy's iterator would see it.
  bool has_one_stride = false;
  ir::Dims steps = {};  // Chosen: how far the memory's next position is, by operand
  // Operands of which the compiler must not find out that they are always the same: what they would
  // make needless may warn. Bit i: operand i.
  std::uint32_t hidden = 0;
};

struct Reduction {
  loop::Stmt::Form form = loop::Stmt::Form::Lanes;  // Loops
  std::vector<VarId> vars;                          // Loops: outermost first
  ir::Dims extents;                                 // Unrolled: of the reduced axes
  bool in_blocks = false;     // Loops: elements are made a block at a time, in an array
  bool stops = false;         // Loops: nothing is lost when elements after the answer are left out
  bool from_squares = false;  // Unrolled: extreme square roots are found by the squares, the
                              // elements, where that is beyond doubt
  bool starts_bare = false;   // Unrolled: without the +0.0 that sums begin with
};

// Values kept for one run of a reduction, filled before it by a loop over `var` of its own.
struct Row {
  VarId var, run;   // `run`: the reduction's variable
  WantedId filled;  // the value at `var`
};

// A loop over the targets.
struct Loop {
  VarId var;
  std::size_t axis;       // of the targets' shape
  bool merges = false;    // all addresses advance as if it were one with the loop inside it
  bool parallel = false;  // shared out over the threads
  bool carries = false;   // from one iteration to the next: they run in order, on one thread
};

// The true elements of a mask in memory, in C order without gaps: their positions are written, not
// in a loop over the target.
struct Listing {
  Address mask, written;
  ir::Dims extents;                    // of the mask
  std::int64_t row_step, column_step;  // of the target
};

struct Store {
  WantedId value;
  std::size_t target;  // index into Group::targets
  Address address;
  // A scatter's: positions that are values, and how far the next one is along the target's axes.
  std::vector<WantedId> positions = {};
  ir::Dims steps = {};
};

// Values that share one loop nest, which becomes one kernel.
struct Group {
  std::vector<Target> targets;        // of one shape and one order of axes
  std::vector<std::int64_t> extents;  // by variable
  std::vector<Loop> loops;            // outermost first
  bool lanes = false;                 // the innermost of them runs in vector lanes
  int unrolled_axis = -1;             // an axis of the targets whose positions are all written out
  std::vector<Wanted> values;         // operands before users
  std::vector<Address> addresses;
  std::vector<Reduction> reductions;
  std::vector<Row> rows;
  std::vector<Store> stores;
  std::optional<Listing> listing;  // a group of nothing else
  std::vector<Store> exact;  // the same without `from_squares`, for lanes in doubt; empty: none are
};

struct Schedule {
  ir::Graph graph;  // with the nodes that scheduling has rewritten
  std::vector<Temp> temps;
  std::vector<Group> groups;  // in the order in which they run
};

// Throws Unsupported for a buffer whose strides are no multiples of its item size.
Schedule schedule(ir::Graph graph, const ir::RunArgs& layouts);

// As text, a line for every node. `loops`: of the block calls, for their names.
std::string print(const Schedule& schedule, const Group& group, const ir::LoopTable& loops);

}  // namespace ufuse::codegen
