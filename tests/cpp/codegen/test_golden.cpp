// Does a graph still become the schedule, the loops and the C++ text that a person has read and
// found good? Each file of tests/golden/graphs holds a graph and the memory it runs on (written by
// hand), then what is made of them: where Python would have to fill much memory to show it, or
// where it depends on the machine. Other files begin with a Python function:
// tests/golden/cases.py. `make golden` writes the made parts anew: read the diff before you commit
// it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/compiler.h"
#include "codegen/schedule/views.h"
#include "ir/parse.h"

namespace {

using namespace ufuse;

struct Golden {
  std::string head;  // comment lines
  std::map<std::string, std::string> sections;
};

Golden read(const std::filesystem::path& path) {
  Golden golden;
  std::ifstream file(path);
  std::string line, section;
  while (std::getline(file, line)) {
    if (line.size() > 2 && line.front() == '[' && line.back() == ']')
      section = line.substr(1, line.size() - 2);
    else if (section.empty())
      golden.head += line + "\n";
    else
      golden.sections[section] += line + "\n";
  }
  return golden;
}

ir::Dims dims(std::istream& in) {
  ir::Dims result;
  std::string text;
  std::getline(in >> std::ws, text, ']');
  std::istringstream numbers(text.substr(1));
  for (std::string number; std::getline(numbers, number, ',');) result.push_back(std::stol(number));
  return result;
}

// "input float64 [1000, 2]" or "... [1000, 2] strides [8, 8000]" (bytes); "call exp float64 ->
// float64".
struct Memory {
  ir::LoopTable loops;
  std::vector<ir::Buffer> inputs, outputs;
  std::vector<int> alias;
};
void read_memory(const std::string& text, Memory& memory) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream in(line);
    std::string what, name;
    if (!(in >> what)) continue;
    if (what == "call") {
      ir::LoopEntry entry;
      in >> entry.ufunc;
      bool output = false;
      while (in >> name) {
        if (name == "->")
          output = true;
        else
          (output ? entry.outputs : entry.inputs).push_back(*ir::dtype_from_name(name));
      }
      memory.loops.add(std::move(entry));
      continue;
    }
    ir::Buffer buffer;
    in >> name;
    buffer.dtype = *ir::dtype_from_name(name);
    buffer.shape = dims(in);
    const auto size = static_cast<std::int64_t>(ir::size_of(buffer.dtype));
    for (std::int64_t stride : codegen::contiguous_strides(buffer.shape))
      buffer.strides.push_back(stride * size);
    int alias = -1;
    while (in >> name) {
      if (name == "strides") buffer.strides = dims(in);
      if (name == "overwrites") in >> alias;
    }
    if (what == "output") memory.alias.push_back(alias);
    (what == "input" ? memory.inputs : memory.outputs).push_back(std::move(buffer));
  }
}

}  // namespace

TEST_CASE("golden schedules, loops and C++") {
  const bool update = std::getenv("UFUSE_TEST_UPDATE_GOLDEN") != nullptr;
  const std::filesystem::path folder =
      std::filesystem::path(UFUSE_SOURCE_DIR) / "tests" / "golden" / "graphs";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".golden") continue;
    ++files;
    CAPTURE(entry.path().filename().string());
    Golden golden = read(entry.path());
    Memory memory;
    read_memory(golden.sections["memory"], memory);
    const ir::Graph graph = ir::parse(golden.sections["graph"], &memory.loops);
    const codegen::Compiler compiler(memory.loops);
    const ir::Report report =
        compiler.describe(graph, {memory.inputs, {}, memory.outputs, memory.alias, {}});
    std::string schedule, loops, cpp;
    for (const ir::GroupReport& group : report.groups) {
      schedule += *group.schedule + "\n";
      loops += *group.loops + "\n";
      cpp += *group.source + "\n";
    }
    if (update) {
      std::ofstream out(entry.path());
      out << golden.head << "[graph]\n"
          << golden.sections["graph"] << "[memory]\n"
          << golden.sections["memory"] << "[schedule]\n"
          << schedule << "[loops]\n"
          << loops << "[cpp]\n"
          << cpp;
    } else {
      CHECK(golden.sections["schedule"] == schedule);
      CHECK(golden.sections["loops"] == loops);
      CHECK(golden.sections["cpp"] == cpp);
    }
  }
  CHECK(files > 0);
}
