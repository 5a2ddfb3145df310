// A loop over lanes that runs in blocks: which of its inner loops makes each value, and what has to
// be kept for the next one?
//
// A body is cut into segments, each of which becomes one inner loop that g++ vectorises; block
// calls and reductions end a segment. What crosses a segment is kept in an array of one block,
// except loads, which are done again, and what a call reads from or writes to memory itself. Asked
// by the printer; it knows no text.
#pragma once

#include <cstdint>
#include <set>
#include <unordered_map>

#include "codegen/loop/ir.h"

namespace ufuse::codegen {

class Lanes {
 public:
  // A loop's or a fold's body over the lanes `var`. `element`: a value that is wanted in an array,
  // if any.
  Lanes(const loop::Kernel& kernel, loop::VarId var, const loop::Body& body,
        loop::ValueId element = -1);

  static bool needs_blocks(const loop::Body& body);
  static bool ends_segment(const loop::Stmt& s);

  loop::VarId var() const { return var_; }
  // Lanes per block, and elements per array.
  int block() const { return block_; }
  std::int64_t array_size() const;

  // Whether the statement differs from lane to lane; the others stand before the inner loops.
  bool is_lane(const loop::Stmt& s) const;
  const std::set<loop::ValueId>& arrays() const { return arrays_; }
  bool is_array(loop::ValueId v) const { return arrays_.contains(v); }
  // The load behind a value that is made anew wherever it is used, if it is one.
  const loop::Stmt* load_of(loop::ValueId v) const;
  // The store of a call's result that the call does itself, if it does.
  const loop::Stmt* store_of(loop::ValueId v) const;
  bool stored_by_call(const loop::Stmt& s) const;
  // From one lane to the next, in elements.
  loop::Number stride(const loop::Stmt& load) const;

 private:
  bool depends(loop::ValueId v) const;
  void find_direct_stores(const loop::Body& body);
  void plan_segments(const loop::Body& body, int& segment);
  void plan_call(const loop::Stmt& s);
  void plan_run(const loop::Stmt& s, int segment);
  void keep(loop::ValueId v);
  void use_in(loop::ValueId v, int segment);
  bool as_numpy_walks(const loop::Stmt& load) const;

  const loop::Kernel& k_;
  loop::VarId var_;
  int block_ = loop::kBlock;
  std::unordered_map<loop::ValueId, int> segment_of_;  // where made; kKept: an array anyway
  std::unordered_map<loop::ValueId, const loop::Stmt*> loads_;
  std::unordered_map<loop::ValueId, const loop::Stmt*> stores_;
  std::set<loop::ValueId> arrays_;
};

}  // namespace ufuse::codegen
