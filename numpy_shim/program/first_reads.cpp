// What does a round of a loop read before it assigns it?
//
// Statements are followed in order. A variable counts as assigned only where all ways to a place
// assign it: the bodies of inner loops may never run, and of branches only one does.
#include <algorithm>
#include <utility>
#include <vector>

#include "numpy_shim/program/typing.h"

namespace ufuse::numpy_shim::program {
namespace {

using Truths = std::vector<bool>;  // by number of the variable

class Reads {
 public:
  explicit Reads(std::size_t variables) : assigned_(variables), read_first_(variables) {}

  void round(const Statement& loop) {
    if (loop.kind == Statement::Kind::For)
      target(loop.targets[0]);
    else
      read(loop.value);
    list(loop.body);
  }
  const Truths& read_first() const { return read_first_; }

 private:
  void read(const Expr& e) {
    if (e.kind == Expr::Kind::Local) {
      const auto variable = static_cast<std::size_t>(e.integer);
      if (!assigned_[variable]) read_first_[variable] = true;
    }
    std::ranges::for_each(e.parts, [&](const Expr& part) { read(part); });
  }

  void target(const Expr& e) {
    if (e.kind == Expr::Kind::Local)
      assigned_[static_cast<std::size_t>(e.integer)] = true;
    else if (e.kind == Expr::Kind::Tuple)
      std::ranges::for_each(e.parts, [&](const Expr& part) { target(part); });
    else
      read(e);
  }

  void list(const Statements& statements) {
    std::ranges::for_each(statements, [&](const Statement& s) { statement(s); });
  }

  void statement(const Statement& s) {
    using enum Statement::Kind;
    read(s.value);
    if (s.kind == Augment) std::ranges::for_each(s.targets, [&](const Expr& e) { read(e); });
    const Truths before = assigned_;
    if (s.kind == If) {
      list(s.body);
      const Truths first = std::exchange(assigned_, before);
      list(s.other);
      for (std::size_t i = 0; i < first.size(); ++i) assigned_[i] = assigned_[i] && first[i];
      return;
    }
    std::ranges::for_each(s.targets, [&](const Expr& e) { target(e); });
    if (s.kind != For && s.kind != While) return;
    list(s.body);
    assigned_ = before;
    list(s.other);
    assigned_ = before;
  }

  Truths assigned_, read_first_;
};

}  // namespace

std::vector<bool> read_first(const Loop& loop) {
  Reads reads(loop.variables.size());
  reads.round(loop.statement);
  return reads.read_first();
}

}  // namespace ufuse::numpy_shim::program
