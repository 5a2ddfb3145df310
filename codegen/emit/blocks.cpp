// How does a loop over lanes that runs in blocks read as C++? A loop over the blocks; in it, one
// inner loop for each segment, and between two of them a block call or the rows of a reduction.
#include <algorithm>
#include <set>

#include "codegen/emit/kernel_printer.h"

namespace ufuse::codegen {

// ---- The block at hand ----

std::string KernelPrinter::base_of(const Stmt& blocked) const {
  return is_one_block(k_, blocked) ? "0" : "b" + name(lanes_of(blocked)).substr(1);
}
std::string KernelPrinter::count_of(const Stmt& blocked) const {
  const VarId var = lanes_of(blocked);
  return is_one_block(k_, blocked) ? extent(var) : "m" + name(var).substr(1);
}
std::string KernelPrinter::place_in(const Stmt& blocked) const {
  const std::string& lane = name(lanes_of(blocked));
  return is_one_block(k_, blocked) ? lane : lane + " - " + base_of(blocked);
}
// A run in blocks may stand in a block of lanes, and use what that keeps.
std::string KernelPrinter::place_of(ValueId v) const {
  const auto varies = [&](const Stmt* blocked) {
    return loop::contains(k_.value(v).vars, lanes_of(*blocked));
  };
  return place_in(**std::find_if(blocks_.rbegin(), blocks_.rend(), varies));
}

std::string KernelPrinter::block_address(const Access& a) const {
  const Stmt& blocked = *blocks_.back();
  const std::string start = address(a, lanes_of(blocked), base_of(blocked));
  return start == "0" ? name(a) : "(" + name(a) + " + " + start + ")";
}

// Block after block, unless one block holds all lanes.
void KernelPrinter::open_blocks(const Stmt& s, const std::string& lo, const std::string& hi) {
  blocks_.push_back(&s);
  if (!is_one_block(k_, s)) {
    const std::string base = base_of(s), step = std::to_string(s.block);
    open("for (rt::Index " + base + " = " + lo + "; " + base + " < " + hi + "; " + base +
         " += " + step + ")");
    line("const rt::Index " + count_of(s) + " = rt::block(" + hi + " - " + base + ", " + step +
         ");");
  }
  print_arrays(s.body);
}
void KernelPrinter::close_blocks(const Stmt& s) {
  close_streams(s);
  if (!is_one_block(k_, s)) close();
  blocks_.pop_back();
}

void KernelPrinter::declare_array(ir::DType dtype, const std::string& name, std::int64_t length) {
  line(type_of(dtype) + " " + name + "[" + std::to_string(length) + "];");
}

// Of the values that segments hand on to others.
void KernelPrinter::print_arrays(const Body& body) {
  std::set<ValueId> arrays;
  const auto look = [&](const auto& self, const Body& stmts) -> void {
    for (const Stmt& s : stmts) {
      if (is_array(s.result)) arrays.insert(s.result);
      for (ValueId v : s.results)
        if (is_array(v)) arrays.insert(v);
      if (s.block == 0) self(self, s.body);  // runs in blocks have arrays of their own
    }
  };
  look(look, body);
  for (ValueId v : arrays) declare_array(dtype(v), value_name(v), k_.value(v).array);
}

void KernelPrinter::open_lanes() {
  const Stmt& blocked = *blocks_.back();
  const std::string base = base_of(blocked), count = count_of(blocked);
  open_for(name(lanes_of(blocked)), base, base == "0" ? count : base + " + " + count);
}

// ---- Segments ----

// `fold`: the reduction whose accumulators the segment's last statement updates, if there is one.
void KernelPrinter::print_segment(const Stmt& s, const Stmt* fold) {
  open_lanes();
  print_body(s.body);
  if (fold != nullptr) print_update(*fold, "[" + place_in(*blocks_.back()) + "]");
  close();
}

// The sum of a block of a run's elements as a callable.
void KernelPrinter::print_block_sum(const Stmt& s) {
  const std::string type = type_of(dtype(s.result));
  const std::string sum = dtype(s.result) == ir::DType::Float16 ? "rt::f32" : type;  // rt::Term
  const std::string count = count_of(s);
  open("const auto f" + run_name(s) + " = [&](rt::Index " + base_of(s) + ", rt::Index " + count +
       ", rt::Flags& flags) -> " + sum);
  blocks_.push_back(&s);
  print_arrays(s.body);
  print_body(s.body);
  blocks_.pop_back();
  const std::string element = is_array(s.element) ? value_name(s.element) + "[k]" : use(s.element);
  line("return rt::pairwise<" + sum + ">(0, " + count + ", [&](rt::Index k) { return " + element +
       "; });");
  close("};");
}

// ---- Streams ----

std::vector<const loop::Access*> KernelPrinter::streams_of(const Body& body) const {
  std::vector<const Access*> streams;
  walk(body, [&](const Stmt& s) {
    if (s.kind == Stmt::Kind::Store && k_.buffer(s.access).streamable) streams.push_back(&s.access);
    for (const Access& a : s.direct)
      if (a.buffer >= 0 && k_.buffer(a).streamable) streams.push_back(&a);
  });
  std::ranges::sort(streams, {}, [](const Access* a) { return a->buffer; });
  return streams;
}

// What a block of lanes stores to memory too large for the caches lies in an array first.
void KernelPrinter::open_streams(const Stmt& s) {
  for (const Access* a : streams_of(s.body)) {
    const ir::DType dtype = k_.buffer(*a).dtype;
    const std::string array = name(*a) + "_block";
    declare_array(dtype, array, s.block);
    line(type_of(dtype) + "* const " + target_name(*a) + " = stream ? " + array + " : " + name(*a) +
         " + " + address(*a, lanes_of(s), base_of(s)) + ";");
  }
}
void KernelPrinter::close_streams(const Stmt& s) {
  for (const Access* a : streams_of(s.body))
    line("if (stream) rt::stream(" + name(*a) + " + " + address(*a, lanes_of(s), base_of(s)) +
         ", " + target_name(*a) + ", " + count_of(s) + ");");
}

// ---- Calls ----

void KernelPrinter::print_call_block(const Stmt& s) {
  const ir::LoopEntry& entry = loops_[k_.calls[index(s.index)]];
  const Stmt& blocked = *blocks_.back();
  Texts pointers, steps;
  const std::string serial = "_" + std::to_string(serial_++);
  for (std::size_t i = 0; i < s.args.size(); ++i) {
    const std::string type = type_of(entry.inputs[i]);
    if (const Access& a = s.direct[i]; a.buffer >= 0) {
      pointers.push_back("(char*)" + block_address(a));
      steps.push_back(number(a.stride_along(lanes_of(blocked))) + " * (rt::Index)sizeof(" + type +
                      ")");
    } else if (is_array(s.args[i])) {
      pointers.push_back("(char*)" + value_name(s.args[i]));
      steps.push_back("sizeof(" + type + ")");
    } else {  // the same for all lanes
      const std::string name = "a" + std::to_string(i) + serial;
      if (entry.needs_elements(i)) {
        declare_array(entry.inputs[i], name, array_length(k_, blocked));
        open_lanes();
        line(name + "[" + place_in(blocked) + "] = " + use(s.args[i]) + ";");
        close();
      } else {
        line(type + " " + name + "[1] = {" + use(s.args[i]) + "};");
      }
      pointers.push_back("(char*)" + name);
      steps.push_back(entry.needs_elements(i) ? "sizeof(" + type + ")" : "0");
    }
  }
  for (std::size_t i = 0; i < s.results.size(); ++i) {
    const ir::DType dtype = entry.outputs[i];
    const Access& a = s.direct[s.args.size() + i];
    std::string name = "unused" + std::to_string(i) + serial;
    if (a.buffer >= 0)
      name = k_.buffer(a).streamable ? target_name(a) : block_address(a);
    else if (s.results[i] >= 0)
      name = value_name(s.results[i]);
    else
      declare_array(dtype, name, array_length(k_, blocked));
    pointers.push_back("(char*)" + name);
    steps.push_back("sizeof(" + type_of(dtype) + ")");
  }
  print_invocation(s, pointers, steps, count_of(blocked));
}

// ---- Reductions with an accumulator beside each lane ----

void KernelPrinter::print_fold_block(const Stmt& s) {
  if (s.arg >= 0) declare_array(dtype(s.element), best_name(s), k_.value(s.result).array);
  open_lanes();
  line(use(s.result) + " = " + (s.initial >= 0 ? use(s.initial) : type_of(dtype(s.result)) + "{}") +
       ";");
  if (s.arg >= 0) line(best_name(s) + "[" + place_in(*blocks_.back()) + "] = {};");
  close();
  if (s.rows > 0) return print_rows(s);
  const bool first = starts_at_first(s);
  if (first) line("bool first" + value_name(s.result) + " = true;");
  open_loops(s, s.vars.size());
  for (const Stmt& t : s.body)
    if (&t == &s.body.back())
      print_segment(t, &s);
    else
      print_stmt(t);
  if (first) line("first" + value_name(s.result) + " = false;");
  close_loops(s.vars.size());
}

// Row after row, as they lie in memory, or several at a time.
void KernelPrinter::print_rows(const Stmt& s) {
  const std::string i = name(s.vars[0]), n = extent(s.vars[0]), base = "r" + i.substr(1);
  const std::string step = std::to_string(s.rows);
  std::string start = "0";
  if (starts_at_first(s)) {
    print_some_rows(s, "0", "1", true);
    start = "1";
  }
  if (s.rows > 1) {
    line("rt::Index " + base + " = " + start + ";");
    open("for (; " + base + " + " + step + " <= " + n + "; " + base + " += " + step + ")");
    print_some_rows(s, base, base + " + " + step, false);
    close();
    start = base;
  }
  const std::vector<const Access*> runs = s.ahead > 0 ? runs_of(s) : std::vector<const Access*>{};
  const auto print_each = [&] {
    print_some_rows(s, "", "", false);
    close();
  };
  // Two loops: g++ makes the one that fetches slower where nothing is to be gained.
  if (!runs.empty()) {
    open_fetching(s, runs, start);
    print_each();
    close("} else {");
    ++indent_;
  }
  open_for(i, start, n);
  print_each();
  if (!runs.empty()) close();
}

// What the rows of a reduction read from end to end.
std::vector<const loop::Access*> KernelPrinter::runs_of(const Stmt& s) const {
  std::vector<const Access*> runs;
  walk(s.body, [&](const Stmt& t) {
    if (t.kind == Stmt::Kind::Load && t.along.empty() &&
        t.access.stride_along(lanes_of(*blocks_.back())) == loop::Number{1} &&
        t.access.stride_along(s.vars[0]) != loop::Number{})
      runs.push_back(&t.access);
  });
  return runs;
}

// The loop over rows that asks for later ones, where that pays.
void KernelPrinter::open_fetching(const Stmt& s, const std::vector<const Access*>& runs,
                                  const std::string& start) {
  const VarId row = s.vars[0];
  const std::string ahead = std::to_string(s.ahead), count = count_of(*blocks_.back());
  std::string pays;
  Texts fetches;
  for (const Access* run : runs) {
    const std::string stride = number(run->stride_along(row));
    pays += (pays.empty() ? "" : " || ") + ("rt::pays_to_fetch<" + type_of(k_.buffer(*run).dtype)) +
            ">(" + count + ", " + stride + ", " + extent(row) + ")";
    fetches.push_back("rt::fetch(" + block_address(*run) + " + " + ahead + " * " + stride + ", " +
                      count + ");");
  }
  open("if (" + pays + ")");
  open_for(name(row), start, extent(row));
  open("if (" + name(row) + " + " + ahead + " < " + extent(row) + ")");
  for (const std::string& fetch : fetches) line(fetch);
  close();
}

// The rows from `from` to `to`, or the one at hand where these are empty, into the accumulators.
// `first`: there is nothing in them yet.
void KernelPrinter::print_some_rows(const Stmt& s, const std::string& from, const std::string& to,
                                    bool first) {
  const std::string i = name(s.vars[0]), at = "[" + place_in(*blocks_.back()) + "]";
  const std::string acc = value_name(s.result) + at, best = best_name(s) + at;
  const Body& segment = s.body[0].body;
  open_lanes();
  for (std::size_t k = 0; k + 1 < segment.size(); ++k) print_stmt(segment[k]);
  line(type_of(dtype(s.result)) + " acc = " + acc + ";");
  if (s.arg >= 0) line(type_of(dtype(s.element)) + " best = " + best + ";");
  if (!to.empty()) open_for(i, from, to);
  print_body(segment.back().body);
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
