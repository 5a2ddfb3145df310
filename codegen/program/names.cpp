// See names.h.
#include "codegen/program/names.h"

namespace ufuse::codegen {

// The holes of a row of ops.def are {0}, {1} and {T}.
std::string ProgramNames::op_text(const ir::program::Step& s) const {
  std::string text(ir::op_info(s.op).expression);
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("{T}", memory_type(dtype(s.args.back())));
  for (std::size_t i = 0; i < s.args.size(); ++i)
    replace("{" + std::to_string(i) + "}", operand(s.args[i]));
  return "(" + type_of(dtype(s.result)) + ")(" + text + ")";
}

}  // namespace ufuse::codegen
