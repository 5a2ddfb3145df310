// Is a command divided as a shell would divide it?
#include <doctest/doctest.h>

#include "codegen/jit/words.h"

namespace ufuse::codegen {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("words: a command as a shell divides it") {
  CHECK(shell_words("g++") == Words{"g++"});
  CHECK(shell_words("  ccache\tg++ -O1\n") == Words{"ccache", "g++", "-O1"});
  CHECK(shell_words("'/my compilers/g++' -g") == Words{"/my compilers/g++", "-g"});
  CHECK(shell_words("\"/my compilers/g++\" -g") == Words{"/my compilers/g++", "-g"});
  CHECK(shell_words("/my\\ compilers/g++ -g") == Words{"/my compilers/g++", "-g"});
  CHECK(shell_words("a'b'\"c\"d") == Words{"abcd"});
  CHECK(shell_words("'a\\b' \"a\\b\" \"a\\\"b\" \"a\\\\b\" a\\\\b") ==
        Words{"a\\b", "a\\b", "a\"b", "a\\b", "a\\b"});
  CHECK(shell_words("'$HOME' `x` '' \"\"") == Words{"$HOME", "`x`", "", ""});
  CHECK(shell_words("\"it's\" '\"'") == Words{"it's", "\""});
  CHECK(shell_words("") == Words{});
  CHECK(shell_words(" \t") == Words{});
  for (const char* open : {"'", "\"", "a'b", "g++ \"-g", "a\\", "\"a\\\""})
    CHECK_FALSE(shell_words(open).has_value());
}

TEST_CASE("words: the parts of a list") {
  using Parts = std::vector<std::string_view>;
  CHECK(split("a:b", ':') == Parts{"a", "b"});
  CHECK(split("a::b:", ':') == Parts{"a", "", "b"});
  CHECK(split("", ':') == Parts{});
}

TEST_CASE("words: what a driver would run") {
  CHECK(driver_words(" /usr/lib/cc1plus -quiet \"-D\" \"a b\\\"c\" \"\" x") ==
        Words{"/usr/lib/cc1plus", "-quiet", "-D", "a b\"c", "", "x"});
}

}  // namespace
}  // namespace ufuse::codegen
