// How does a loop over lanes that runs in blocks read as C++? One inner loop for each segment that
// `Lanes` has cut, and between two of them a block call or the rows of a reduction.
#include <algorithm>

#include "codegen/emit/kernel_printer.h"
#include "ir/support/error.h"

namespace ufuse::codegen {

std::string KernelPrinter::array_suffix() const {
  return "[" + std::to_string(lanes_->array_size()) + "]";
}
std::string KernelPrinter::block_address(const Access& a) const {
  return "(" + names_[index(a.buffer)] + " + " + address(a, lanes_->var(), base_of(lanes_->var())) +
         ")";
}

// ---- Segments ----

// Block after block. `count`: the lanes of each, where that needs no counting.
void KernelPrinter::open_blocks(VarId var, const std::string& lo, const std::string& hi, int block,
                                const std::string& count) {
  const std::string base = base_of(var), step = std::to_string(block);
  open("for (rt::Index " + base + " = " + lo + "; " + base + " < " + hi + "; " + base +
       " += " + step + ")");
  line("const rt::Index " + count_of(var) + " = " +
       (count.empty() ? "rt::block(" + hi + " - " + base + ", " + step + ")" : count) + ";");
}

void KernelPrinter::open_lanes(VarId var) {
  open_for(name(var), base_of(var), base_of(var) + " + " + count_of(var));
}

void KernelPrinter::print_blocks(const Stmt& s, const std::string& lo, const std::string& hi) {
  const Lanes lanes(k_, s.vars[0], s.body);
  lanes_ = &lanes;
  const bool whole = lanes.var() != k_.parallel && k_.vars[index(lanes.var())].extent.literal();
  open_blocks(lanes.var(), lo, hi, lanes.block(), whole ? hi : "");
  print_arrays();
  open_streams(s.body, lanes.var(), lanes.block());
  print_segments(s.body, nullptr);
  close_streams(s.body, lanes.var());
  close();
  lanes_ = nullptr;
}

void KernelPrinter::print_arrays() {
  for (ValueId v : lanes_->arrays())
    line(type_of(dtype(v)) + " " + value_name(v) + array_suffix() + ";");
}

// The sum of a block of a run's elements as a callable.
void KernelPrinter::print_block_sum(const Stmt& s) {
  const VarId var = s.vars.back();
  const std::string type = type_of(dtype(s.result));
  const std::string sum = dtype(s.result) == ir::DType::Float16 ? "rt::f32" : type;  // rt::Term
  const std::string count = count_of(var);
  open("const auto f" + run_name(s) + " = [&](rt::Index " + base_of(var) + ", rt::Index " + count +
       ", rt::Flags& flags) -> " + sum);
  std::string element = "e" + value_name(s.result);
  if (s.calls) {
    const Lanes lanes(k_, var, s.body, s.element);
    lanes_ = &lanes;
    print_arrays();
    print_segments(s.body, nullptr);
    element = is_array(s.element) ? value_name(s.element) + "[k]" : use(s.element);
    lanes_ = nullptr;
  } else {
    line(type + " " + element + "[" + std::to_string(loop::kBlock) + "];");
    open_lanes(var);
    print_body(s.body);
    line(element + "[" + place_of(var) + "] = " + use(s.element) + ";");
    close();
    element += "[k]";
  }
  line("return rt::pairwise<" + sum + ">(0, " + count + ", [&](rt::Index k) { return " + element +
       "; });");
  close("};");
}

// Prints a body: runs of lane statements become inner loops. `fold`: the reduction whose body this
// is.
void KernelPrinter::print_segments(const Body& body, const Stmt* fold) {
  std::vector<const Stmt*> open_segment;
  const auto flush = [&] {
    // Loads alone make no segment: whoever uses them loads again.
    if (!std::all_of(open_segment.begin(), open_segment.end(), [&](const Stmt* s) {
          return lanes_->load_of(s->result) != nullptr && !is_array(s->result);
        }))
      print_segment(open_segment, nullptr);
    open_segment.clear();
  };
  for (const Stmt& s : body) {
    if (!lanes_->is_lane(s)) {
      print_stmt(s);  // the same for all lanes
      continue;
    }
    if (lanes_->stored_by_call(s)) continue;
    if (!Lanes::ends_segment(s)) {
      open_segment.push_back(&s);
      continue;
    }
    flush();
    if (s.kind == Stmt::Kind::Call) {
      print_call_block(s);
    } else if (s.kind == Stmt::Kind::Fold && s.form == Stmt::Form::Lanes) {
      print_fold_block(s);
    } else if (s.kind == Stmt::Kind::Fold) {
      print_segment({&s}, nullptr);
    } else {
      throw InternalError("printer: a loop over lanes inside a block");
    }
  }
  if (fold != nullptr || !open_segment.empty()) print_segment(open_segment, fold);
}

void KernelPrinter::print_segment(const std::vector<const Stmt*>& stmts, const Stmt* fold) {
  open_lanes(lanes_->var());
  reload_for(stmts, fold);
  for (const Stmt* s : stmts) {
    if (s->kind == Stmt::Kind::Fold) {
      print_horizontal(*s);
      if (is_array(s->result)) line(use(s->result) + " = " + run_name(*s) + ";");
    } else {
      print_scalar(*s);
    }
  }
  if (fold != nullptr) print_update(*fold, "[" + lane_index() + "]");
  close();
}

// Loads of other segments are loaded again: cheaper than keeping them. `fold`: whose element the
// statements make.
void KernelPrinter::reload_for(const std::vector<const Stmt*>& stmts, const Stmt* fold) {
  std::set<ValueId> made;
  for (const Stmt* s : stmts)
    if (s->result >= 0) made.insert(s->result);
  for (const Stmt* s : stmts) {
    for (ValueId v : s->args) reload(v, made);
    if (s->kind == Stmt::Kind::Fold) {
      walk(s->body, [&](const Stmt& t) {
        for (ValueId v : t.args) reload(v, made);
      });
      reload(s->element, made);
      reload(s->initial, made);
    }
  }
  if (fold != nullptr) reload(fold->element, made);
}

void KernelPrinter::reload(ValueId v, std::set<ValueId>& made) {
  if (v < 0 || made.contains(v) || is_array(v)) return;
  if (const Stmt* load = lanes_->load_of(v)) {
    made.insert(v);
    print_scalar(*load);
  }
}

// ---- Streams ----

// What a block of lanes stores to memory too large for the caches lies in an array first.
void KernelPrinter::open_streams(const Body& body, VarId var, int block) {
  for (const Stmt& s : body) {
    if (!k_.may_stream(s)) continue;
    const loop::Buffer& buffer = k_.buffers[index(s.access.buffer)];
    const std::string &name = names_[index(s.access.buffer)], array = name + "_block";
    line(type_of(buffer.dtype) + " " + array + "[" + std::to_string(block) + "];");
    line(type_of(buffer.dtype) + "* const " + target_name(s) + " = stream ? " + array + " : " +
         name + " + " + address(s.access, var, base_of(var)) + ";");
  }
}
void KernelPrinter::close_streams(const Body& body, VarId var) {
  for (const Stmt& s : body)
    if (k_.may_stream(s))
      line("if (stream) rt::stream(" + names_[index(s.access.buffer)] + " + " +
           address(s.access, var, base_of(var)) + ", " + target_name(s) + ", " + count_of(var) +
           ");");
}

// A loop over lanes that would need no blocks otherwise.
void KernelPrinter::print_stream(const Stmt& s, const std::string& lo, const std::string& hi) {
  const VarId var = s.vars[0];
  open_blocks(var, lo, hi, loop::kStreamBlock);
  open_streams(s.body, var, loop::kStreamBlock);
  open_lanes(var);
  print_body(s.body);
  close();
  close_streams(s.body, var);
  close();
}

// ---- Calls ----

void KernelPrinter::print_call_block(const Stmt& s) {
  const ir::LoopEntry& entry = loops_[k_.calls[index(s.index)]];
  Texts pointers, steps;
  const std::string serial = "_" + std::to_string(serial_++);
  for (std::size_t i = 0; i < s.args.size(); ++i) {
    const ValueId v = s.args[i];
    const std::string type = type_of(entry.inputs[i]);
    if (is_array(v)) {
      pointers.push_back("(char*)" + value_name(v));
      steps.push_back("sizeof(" + type + ")");
    } else if (const Stmt* load = lanes_->load_of(v)) {
      pointers.push_back("(char*)" + block_address(load->access));
      steps.push_back(number(lanes_->stride(*load)) + " * (rt::Index)sizeof(" + type + ")");
    } else {  // the same for all lanes
      const std::string name = "a" + std::to_string(i) + serial;
      line(type + " " + name + " = " + use(v) + ";");
      pointers.push_back("(char*)&" + name);
      steps.push_back("0");
    }
  }
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const ValueId v = s.results[i];
    const std::string type = type_of(entry.outputs[i]);
    std::string name = "unused" + std::to_string(i) + serial;
    if (const Stmt* store = lanes_->store_of(v))
      name = k_.may_stream(*store) ? target_name(*store) : block_address(store->access);
    else if (v >= 0)
      name = value_name(v);
    else
      line(type + " " + name + array_suffix() + ";");
    pointers.push_back("(char*)" + name);
    steps.push_back("sizeof(" + type + ")");
  }
  print_invocation(s, pointers, steps, count_of(lanes_->var()));
}

// ---- Reductions with an accumulator beside each lane ----

void KernelPrinter::print_fold_block(const Stmt& s) {
  if (s.arg >= 0) line(type_of(dtype(s.element)) + " " + best_name(s) + array_suffix() + ";");
  open_lanes(lanes_->var());
  if (s.initial >= 0 && !is_array(s.initial))
    if (const Stmt* load = lanes_->load_of(s.initial)) print_scalar(*load);
  line(use(s.result) + " = " + (s.initial >= 0 ? use(s.initial) : type_of(dtype(s.result)) + "{}") +
       ";");
  if (s.arg >= 0) line(best_name(s) + "[" + lane_index() + "] = {};");
  close();
  const bool one_segment =
      std::none_of(s.body.begin(), s.body.end(), Lanes::ends_segment) && !is_array(s.element);
  if (s.vars.size() == 1 && one_segment) return print_rows(s);
  const bool first = starts_at_first(s);
  if (first) line("bool first" + value_name(s.result) + " = true;");
  open_loops(s, s.vars.size());
  print_segments(s.body, &s);
  if (first) line("first" + value_name(s.result) + " = false;");
  close_loops(s.vars.size());
}

// Row after row, as they lie in memory; some at a time where the lanes are so few that a row is a
// trifle.
void KernelPrinter::print_rows(const Stmt& s) {
  const std::string i = name(s.vars[0]), n = extent(s.vars[0]), base = "r" + i.substr(1);
  const std::string step = std::to_string(loop::kRowsAtOnce);
  std::string start = "0";
  if (starts_at_first(s)) {
    print_some_rows(s, "0", "1", true);
    start = "1";
  }
  if (k_.vars[index(lanes_->var())].extent.literal()) {
    line("rt::Index " + base + " = " + start + ";");
    open("for (; " + base + " + " + step + " <= " + n + "; " + base + " += " + step + ")");
    print_some_rows(s, base, base + " + " + step, false);
    close();
    start = base;
  }
  open_for(i, start, n);
  print_some_rows(s, "", "", false);
  close();
}

// The rows from `from` to `to`, or the one at hand where these are empty, into the accumulators.
// `first`: there is nothing in them yet.
void KernelPrinter::print_some_rows(const Stmt& s, const std::string& from, const std::string& to,
                                    bool first) {
  const std::string i = name(s.vars[0]), at = "[" + lane_index() + "]";
  const std::string acc = value_name(s.result) + at, best = best_name(s) + at;
  std::vector<const Stmt*> body;
  for (const Stmt& t : s.body) body.push_back(&t);
  open_lanes(lanes_->var());
  reload_for(body, &s);
  line(type_of(dtype(s.result)) + " acc = " + acc + ";");
  if (s.arg >= 0) line(type_of(dtype(s.element)) + " best = " + best + ";");
  if (!to.empty()) open_for(i, from, to);
  for (const Stmt& t : s.body) print_scalar(t);
  const std::string e = use(s.element);
  if (s.arg >= 0) {
    if (!first) line("const bool take = " + e + (s.arg == 1 ? " > best;" : " < best;"));
    line("best = " + (first ? e : "take ? " + e + " : best") + ";");
    line("acc = " + (first ? i : "take ? " + i + " : acc") + ";");
  } else {
    line("acc = " + (first ? e : combine(s, "acc", e)) + ";");
  }
  if (!to.empty()) close();
  line(acc + " = acc;");
  if (s.arg >= 0) line(best + " = best;");
  close();
}

}  // namespace ufuse::codegen
