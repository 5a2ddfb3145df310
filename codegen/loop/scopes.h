// Which loops are open, and in which of them does a value stand? Used by scheduling, and by
// lowering, which also remembers where each loop's statements go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "codegen/loop/ir.h"

namespace ufuse::codegen::loop {

// One level of the nest and the variables that it binds. A Scope is a struct derived from this one.
struct ScopeBase {
  Vars vars;
  int uid = 0;
};

// Open scopes, outermost first.
template <class Scope>
class Scopes {
 public:
  const std::vector<Scope>& all() const { return stack_; }
  const Scope& operator[](std::size_t depth) const { return stack_[depth]; }
  const Scope& innermost() const { return stack_.back(); }
  std::size_t depth() const { return stack_.size() - 1; }

  void push(Scope scope) {
    scope.uid = next_uid_++;
    stack_.push_back(std::move(scope));
  }
  void pop() { stack_.pop_back(); }

  // Works on the stack cut down to `depth`, as if nothing deeper were open.
  template <class F>
  auto within(std::size_t depth, F&& f) {
    const auto cut = stack_.begin() + static_cast<std::ptrdiff_t>(depth) + 1;
    const std::vector<Scope> deeper(cut, stack_.end());
    stack_.resize(depth + 1);
    auto result = f();
    stack_.insert(stack_.end(), deeper.begin(), deeper.end());
    return result;
  }

  // The outermost scope in which all of `vars` are bound.
  std::size_t place(const Vars& vars) const {
    std::size_t found = 0, depth = 0;
    for (std::size_t i = 0; i < stack_.size() && found < vars.size(); ++i)
      for (VarId var : stack_[i].vars)
        if (contains(vars, var)) {
          ++found;
          depth = i;
        }
    return depth;
  }
  bool is_open(int uid) const {
    return std::ranges::any_of(stack_, [&](const Scope& s) { return s.uid == uid; });
  }

 private:
  std::vector<Scope> stack_;
  int next_uid_ = 0;
};

}  // namespace ufuse::codegen::loop
