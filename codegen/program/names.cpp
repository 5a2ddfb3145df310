// See names.h.
#include "codegen/program/names.h"

namespace ufuse::codegen {

ProgramNames::ProgramNames(const ir::program::Program& program) : p_(program) {
  note_elements(program.body);
}

void ProgramNames::note_elements(const ir::program::Steps& list) {
  using Kind = ir::program::Step::Kind;
  for (const ir::program::Step& s : list) {
    if (s.kind == Kind::Load || s.kind == Kind::Store) has_elements_.insert(s.array);
    if (s.kind == Kind::Elements) continue;
    note_elements(s.body);
    note_elements(s.other);
  }
}

// The holes of a row of ops.def are {0}, {1} and {T}.
std::string ProgramNames::op_text(const ir::program::Step& s, bool raises,
                                  std::uint32_t hidden) const {
  std::string text(ir::expression(s.op, dtype(s.args.back()), raises));
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("{T}", memory_type(dtype(s.args.back())));
  for (std::size_t i = 0; i < s.args.size(); ++i) {
    const std::string arg = operand(s.args[i]);
    const bool is_hidden = (hidden >> i & 1) != 0;
    replace("{" + std::to_string(i) + "}", is_hidden ? "rt::unknown(" + arg + ", unset)" : arg);
  }
  return "(" + type_of(dtype(s.result)) + ")(" + text + ")";
}

}  // namespace ufuse::codegen
