// See words.h.
#include "codegen/jit/words.h"

#include <algorithm>
#include <utility>

namespace ufuse::codegen {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(separator));
    parts.push_back(part);
    text.remove_prefix(std::min(part.size() + 1, text.size()));
  }
  return parts;
}

std::optional<std::vector<std::string>> shell_words(std::string_view command) {
  std::vector<std::string> words;
  std::string word;
  bool any = false;  // a word has begun: '' is one, though it is empty
  char quote = 0;
  const auto end_word = [&] {
    if (any) words.push_back(std::exchange(word, {}));
    any = false;
  };
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char c = command[i];
    const bool last = i + 1 == command.size();
    if (quote == '\'') {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\\') {
      if (last) return std::nullopt;
      // Within double quotes a backslash stands for itself before most characters.
      if (quote && command[i + 1] != '"' && command[i + 1] != '\\') word += c;
      word += command[++i];
      any = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '"' || c == '\'') {
      quote = c;
      any = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      end_word();
    } else {
      word += c;
      any = true;
    }
  }
  if (quote) return std::nullopt;
  end_word();
  return words;
}

std::vector<std::string> driver_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted = false, any = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
    } else if (c == '"') {
      quoted = !quoted;
      any = true;
    } else if (c == ' ' && !quoted) {
      if (any || !word.empty()) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(word);
  return words;
}

std::string join(const std::vector<std::string>& words, char between) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += word;
  }
  return text;
}

}  // namespace ufuse::codegen
