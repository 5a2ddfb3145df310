// For which programs does the compiler do all it can?
#include <doctest/doctest.h>

#include <utility>

#include "codegen/program/effort.h"

namespace ufuse::codegen {

TEST_CASE("effort: programs whose loops compute numbers are worth all of it") {
  using ir::program::Program;
  using ir::program::Step;
  const auto around = [](ir::program::Steps body) {
    Step s;
    s.kind = Step::Kind::Count;
    s.body = std::move(body);
    return s;
  };
  Step number, array, branch;
  array.kind = Step::Kind::Elements;
  array.body = {number};
  branch.kind = Step::Kind::If;
  branch.other = {array};
  const auto effort = [](ir::program::Steps body) {
    Program p;
    p.body = std::move(body);
    return effort_for(p);
  };
  CHECK(effort({around({number})}) == Effort::Full);
  CHECK(effort({around({number, array})}) == Effort::Little);
  CHECK(effort({around({number, branch})}) == Effort::Little);
  CHECK(effort({around({around({number, array}), number})}) == Effort::Little);
  CHECK(effort({around({around({number}), array})}) == Effort::Full);
}

}  // namespace ufuse::codegen
