// How is text taken apart into words?
//
// The command line that names a compiler, what a driver says it would run, lists of the system.
// Used by toolchain.cpp and folders.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ufuse::codegen {

// The parts between separators. There is none in an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

// The words of a command as a POSIX shell divides it: quotation marks of both kinds and backslashes
// count, nothing is expanded. Nothing where a quotation mark is not closed.
std::optional<std::vector<std::string>> shell_words(std::string_view command);

// The words of a line of `g++ -###`: some in double quotes, with backslashes before what needs
// them.
std::vector<std::string> driver_words(std::string_view line);

std::string join(const std::vector<std::string>& words, char between = ' ');

}  // namespace ufuse::codegen
