// The text of one kernel while it is being written. Private to the printer.
//
// printer.cpp writes the frame, loops and statements; expressions.cpp what stands inside a
// statement; reductions.cpp folds; blocks.cpp what runs over blocks of lanes.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

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

  // The frame and statements (printer.cpp).
  std::string options() const;
  bool rounds_between() const;
  bool has_unknown() const;
  bool may_raise(const Stmt& s) const;
  void print_entry(const std::string& pointers);
  void preliminaries();
  void print_body(const Body& body);
  void print_stmt(const Stmt& s);
  void define(ValueId v, const std::string& expression);
  void print_store(const Stmt& s);
  void print_loop(const Stmt& s);
  void print_list(const Stmt& s);
  void print_call_one(const Stmt& s);
  void print_invocation(const Stmt& s, const Texts& pointers, const Texts& steps,
                        const std::string& count);

  // Names, addresses, operations (expressions.cpp).
  static std::size_t index(int id) { return static_cast<std::size_t>(id); }
  static std::string type_of(ir::DType dtype) { return std::string(ir::info(dtype).cpp_type); }
  static std::string value_name(ValueId v) { return "t" + std::to_string(v); }
  ir::DType dtype(ValueId v) const { return k_.value(v).dtype; }
  bool is_array(ValueId v) const { return v >= 0 && k_.value(v).array > 0; }
  const std::string& name(VarId var) const { return k_.var(var).name; }
  const std::string& name(const Access& a) const { return names_[index(a.buffer)]; }
  std::string number(const loop::Number& n) const;
  std::string extent(VarId var) const { return number(k_.var(var).extent); }
  std::string address(const Access& a, VarId block_base = -1, const std::string& base = {}) const;
  std::string element(const Access& a) const;
  std::string chosen(const Stmt& s) const;
  std::string use(ValueId v) const;  // how the value is written where it is used
  std::string operand(ValueId v) const;
  std::string expression(const Stmt& s) const;
  static std::string carry_name(const Stmt& s) { return "carry" + value_name(s.result); }
  std::string carried(const Stmt& s) const;
  std::string combine(const Stmt& s, const std::string& a, const std::string& b) const;
  std::string identity(const Stmt& s) const;

  // Reductions (reductions.cpp).
  static bool starts_at_first(const Stmt& s);
  static std::string best_name(const Stmt& s) { return "best" + value_name(s.result); }
  std::string run_name(const Stmt& s) const;
  void open_loops(const Stmt& s, std::size_t count);
  void close_loops(std::size_t count);
  void print_fold(const Stmt& s);
  void print_fold_one(const Stmt& s);
  void print_update(const Stmt& s, const std::string& at);
  void print_horizontal(const Stmt& s);
  void print_run(const Stmt& s);
  void print_extremum(const Stmt& s);
  void print_arg_extremum(const Stmt& s);
  void print_element(const Stmt& s);
  bool adds_truths(const Stmt& s) const;

  // Blocks of lanes (blocks.cpp): a block's first lane, its number of lanes, and the place in it of
  // the lane at hand.
  std::string base_of(const Stmt& blocked) const;
  std::string count_of(const Stmt& blocked) const;
  std::string place_in(const Stmt& blocked) const;
  std::string place_of(ValueId v) const;
  void declare_array(ir::DType dtype, const std::string& name, std::int64_t length);
  void open_blocks(const Stmt& s, const std::string& lo, const std::string& hi);
  void close_blocks(const Stmt& s);
  void open_lanes();
  void print_arrays(const Body& body);
  // Where the lanes of a block are stored: in an array, or in memory at once.
  std::string target_name(const Access& a) const { return name(a) + "_at"; }
  std::vector<const Access*> streams_of(const Body& body) const;
  void open_streams(const Stmt& s);
  void close_streams(const Stmt& s);
  std::string block_address(const Access& a) const;
  void print_segment(const Stmt& s, const Stmt* fold = nullptr);
  void print_block_sum(const Stmt& s);
  void print_call_block(const Stmt& s);
  void print_fold_block(const Stmt& s);
  void print_rows(const Stmt& s);
  std::vector<const loop::Access*> runs_of(const Stmt& s) const;
  void open_fetching(const Stmt& s, const std::vector<const loop::Access*>& runs,
                     const std::string& start);
  void print_some_rows(const Stmt& s, const std::string& from, const std::string& to, bool first);

  const loop::Kernel& k_;
  const ir::LoopTable& loops_;
  bool raises_ = false;  // it may raise a flag that NumPy reports
  std::string text_;
  int indent_ = 0;
  int serial_ = 0;  // of names for the operands of calls
  Texts names_;     // of buffers
  std::unordered_map<ValueId, std::string> constants_;
  std::vector<const Stmt*> blocks_;  // the loops and runs in blocks that are open
};

}  // namespace ufuse::codegen
