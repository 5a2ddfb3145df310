#include "codegen/program/frame.h"

namespace ufuse::codegen {

namespace program = ir::program;

FrameLayout::FrameLayout(const program::Program& p)
    : registers(p.registers.size()), arrays(p.arrays.size()) {
  const auto place = [&](program::Reg r) {
    if (r == program::kNone || registers[static_cast<std::size_t>(r)] != 0) return;
    registers[static_cast<std::size_t>(r)] = words;
    words += (ir::size_of(p.registers[static_cast<std::size_t>(r)].dtype) + 7) / 8;
  };
  const auto array = [&](program::ArrayReg a) {
    if (a == program::kNone || arrays[static_cast<std::size_t>(a)] != 0) return;
    arrays[static_cast<std::size_t>(a)] = words;
    words += kLengths + 2 * static_cast<std::size_t>(p.arrays[static_cast<std::size_t>(a)].rank);
  };
  const auto visit = [&](const auto& self, const program::Where& w) -> void {
    if (w.kind == program::Where::Kind::Array) {
      array(w.reg);
    } else if (w.kind == program::Where::Kind::Number || w.kind == program::Where::Kind::OneOf ||
               w.kind == program::Where::Kind::Object) {
      place(w.reg);
      place(w.numpy);
    }
    for (const program::Where& part : w.parts) self(self, part);
  };
  const auto over = [&](const auto& self, const program::Over& o) -> void {
    for (program::Reg each : {o.count, o.start, o.step, o.list}) place(each);
    array(o.array);
    for (const program::Where& item : o.items) visit(visit, item);
    for (const program::Over& part : o.parts) self(self, part);
  };
  const auto rounds = [&](const program::Rounds& r) {
    for (program::Reg each : {r.position, r.count}) place(each);
    over(over, r.over);
  };
  if (p.uses_lists) lists = words++;
  if (p.head) rounds(*p.head);
  for (const program::Input& input : p.inputs) visit(visit, input.value);
  for (const program::Exit& exit : p.exits) {
    for (const program::Where& w : exit.variables) visit(visit, w);
    visit(visit, exit.value);
    for (const program::Rounds& r : exit.loops) rounds(r);
  }
}

}  // namespace ufuse::codegen
