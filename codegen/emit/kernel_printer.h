// The text of one kernel while it is being written. Private to the printer.
//
// printer.cpp writes the frame, loops and statements; expressions.cpp what stands inside a
// statement; reductions.cpp folds outside blocks; blocks.cpp loops over lanes that run in blocks,
// as `Lanes` has cut them. While such a loop is open, `lanes_` points at it and a value may be an
// array.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/emit/lanes.h"
#include "codegen/loop/ir.h"
#include "ir/graph.h"

namespace ufuse::codegen {

class KernelPrinter {
 public:
  KernelPrinter(const loop::Kernel& kernel, const ir::LoopTable& loops);

  std::string print();

 private:
  using Access = loop::Access;
  using Body = loop::Body;
  using Stmt = loop::Stmt;
  using ValueId = loop::ValueId;
  using VarId = loop::VarId;
  using Texts = std::vector<std::string>;

  // Lines (printer.cpp).
  void line(const std::string& text);
  void open(const std::string& text);
  void close(const char* text = "}");
  void open_for(const std::string& variable, const std::string& lo, const std::string& hi);

  // The frame and statements outside blocks (printer.cpp).
  std::string options() const;
  void print_entry(const std::string& pointers);
  void preliminaries();
  int grain() const;
  void print_body(const Body& body);
  void print_stmt(const Stmt& s);
  void print_scalar(const Stmt& s);
  void define(ValueId v, const std::string& expression);
  void print_loop(const Stmt& s);
  void print_doubtful(const Stmt& s, const std::string& lo, const std::string& hi);
  void print_call_one(const Stmt& s);
  void print_invocation(const Stmt& s, const Texts& pointers, const Texts& steps,
                        const std::string& count);

  // Names, addresses, operations (expressions.cpp).
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  static std::string type_of(ir::DType dtype) { return std::string(ir::info(dtype).cpp_type); }
  static std::string value_name(ValueId v) { return "t" + std::to_string(v); }
  ir::DType dtype(ValueId v) const { return k_.values[index(v)].dtype; }
  const std::string& name(VarId var) const { return k_.vars[index(var)].name; }
  std::string number(const loop::Number& n) const;
  std::string extent(VarId var) const { return number(k_.vars[index(var)].extent); }
  std::string address(const Access& a, VarId block_base = -1, const std::string& base = {}) const;
  std::string element(const Access& a) const;
  std::string use(ValueId v) const;  // how the value is written where it is used
  std::string operand(ValueId v) const;
  std::string expression(const Stmt& s) const;
  std::string combine(const Stmt& s, const std::string& a, const std::string& b) const;
  std::string identity(const Stmt& s) const;

  // Reductions (reductions.cpp).
  static bool starts_at_first(const Stmt& s);
  static std::string best_name(const Stmt& s) { return "best" + value_name(s.result); }
  std::string run_name(const Stmt& s) const;
  void open_loops(const Stmt& s, std::size_t count);
  void close_loops(std::size_t count);
  void print_fold_one(const Stmt& s);
  void print_update(const Stmt& s, const std::string& at);
  void print_horizontal(const Stmt& s);
  void print_run(const Stmt& s);
  void print_extremum(const Stmt& s);
  void print_arg_extremum(const Stmt& s);
  void print_element(const Stmt& s);

  // Blocks of lanes (blocks.cpp).
  bool is_array(ValueId v) const { return lanes_ != nullptr && lanes_->is_array(v); }
  // The block's first lane, its number of lanes, and a lane's place in it.
  std::string base_of(VarId var) const { return "b" + name(var).substr(1); }
  std::string count_of(VarId var) const { return "m" + name(var).substr(1); }
  std::string place_of(VarId var) const { return name(var) + " - " + base_of(var); }
  std::string lane_index() const { return place_of(lanes_->var()); }
  std::string array_suffix() const;
  void open_blocks(VarId var, const std::string& lo, const std::string& hi, int block,
                   const std::string& count = {});
  void open_lanes(VarId var);
  void print_blocks(const Stmt& s, const std::string& lo, const std::string& hi);
  void print_arrays();
  bool may_stream(const Body& body) const {
    return std::any_of(body.begin(), body.end(), [&](const Stmt& s) { return k_.may_stream(s); });
  }
  // Where a block's lanes are stored: in an array, or in memory at once.
  std::string target_name(const Stmt& s) const { return names_[index(s.access.buffer)] + "_at"; }
  void open_streams(const Body& body, VarId var, int block);
  void close_streams(const Body& body, VarId var);
  void print_stream(const Stmt& s, const std::string& lo, const std::string& hi);
  void print_block_sum(const Stmt& s);
  void print_segments(const Body& body, const Stmt* fold);
  void print_segment(const std::vector<const Stmt*>& stmts, const Stmt* fold);
  void reload(ValueId v, std::set<ValueId>& made);
  void reload_for(const std::vector<const Stmt*>& stmts, const Stmt* fold);
  void print_call_block(const Stmt& s);
  std::string block_address(const Access& a) const;
  void print_fold_block(const Stmt& s);
  void print_rows(const Stmt& s);
  void print_some_rows(const Stmt& s, const std::string& from, const std::string& to, bool first);

  const loop::Kernel& k_;
  const ir::LoopTable& loops_;
  std::string text_;
  int indent_ = 0;
  int serial_ = 0;  // of names for the operands of calls
  Texts names_;     // of buffers
  std::unordered_map<ValueId, std::string> constants_;
  const Lanes* lanes_ = nullptr;
  VarId open_lanes_ = -1;  // the variable of the loop over lanes that is open
};

}  // namespace ufuse::codegen
