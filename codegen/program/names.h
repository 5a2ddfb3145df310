// What are a program's registers and arrays called in its text?
//
// A variable's registers end in an underline and a number, its arrays in `_a` and a number; no
// other name of the text does.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"

namespace ufuse::codegen {

inline bool is_word(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// A text in which each word is replaced.
template <class Replacement>
std::string with_words(std::string_view text, const Replacement& replacement) {
  std::string made;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    while (is_word(text[i]) && end < text.size() && is_word(text[end])) ++end;
    made += replacement(text.substr(i, end - i));
    i = end;
  }
  return made;
}

class ProgramNames {
 public:
  explicit ProgramNames(const ir::program::Program& program);

  using Reg = ir::program::Reg;
  using ArrayReg = ir::program::ArrayReg;

  ir::DType dtype(Reg r) const { return p_.registers[static_cast<std::size_t>(r)].dtype; }
  // As values are kept. In memory a truth is an rt::b8.
  static std::string type_of(ir::DType t) { return t == ir::DType::Bool ? "bool" : memory_type(t); }
  static std::string memory_type(ir::DType t) { return std::string(ir::info(t).cpp_type); }
  std::string name(Reg r) const {
    const std::string& of = p_.registers[static_cast<std::size_t>(r)].name;
    return is_plain(of) ? of + "_" + std::to_string(r) : "t" + std::to_string(r);
  }
  std::string operand(Reg r) const {
    return dtype(r) == ir::DType::Bool ? "rt::b8(" + name(r) + ")" : name(r);
  }

  ir::DType element_type(ArrayReg a) const { return p_.arrays[static_cast<std::size_t>(a)].dtype; }
  int rank(ArrayReg a) const { return p_.arrays[static_cast<std::size_t>(a)].rank; }
  std::string array_name(ArrayReg a) const {
    const std::string& of = p_.arrays[static_cast<std::size_t>(a)].name;
    return is_plain(of) ? of + "_a" + std::to_string(a) : "a" + std::to_string(a);
  }
  // An array is an rt::Part. One whose elements the program itself reads or writes stays in
  // registers, because functions are given a copy of it.
  bool stays_in_registers(ArrayReg a) const { return has_elements_.contains(a); }
  std::string part_type(ArrayReg a) const { return "rt::Part<" + std::to_string(rank(a)) + ">"; }
  std::string data(ArrayReg a) const { return array_name(a) + ".at"; }
  std::string length(ArrayReg a, int axis) const {
    return array_name(a) + ".length[" + std::to_string(axis) + "]";
  }
  std::string stride(ArrayReg a, int axis) const {
    return array_name(a) + ".stride[" + std::to_string(axis) + "]";
  }

  // A row of ops.def over the operands of a step that computes. `raises`: flags are looked at.
  // Operands in `hidden` (bit i) are unknown to the compiler.
  std::string op_text(const ir::program::Step& s, bool raises, std::uint32_t hidden = 0) const;
  std::string cast_text(const ir::program::Step& s) const {
    return "rt::cast<" + memory_type(dtype(s.result)) + ">(" + operand(s.args[0]) + ")";
  }

 private:
  static bool is_plain(const std::string& name) {
    return !name.empty() && std::ranges::all_of(name, is_word);
  }

  void note_elements(const ir::program::Steps& list);

  const ir::program::Program& p_;
  std::set<ArrayReg> has_elements_;
};

}  // namespace ufuse::codegen
