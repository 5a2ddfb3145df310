// How does a reduction read as C++? With scalar accumulators in loops of its own, or along a run,
// by the templates of codegen/runtime. Accumulators beside lanes in blocks stand in blocks.cpp.
#include "codegen/emit/kernel_printer.h"

namespace ufuse::codegen {

bool KernelPrinter::starts_at_first(const Stmt& s) {
  return s.arg >= 0 ||
         (s.initial < 0 && ir::reduction_info(s.reduction).identity == ir::Identity::None);
}

// The first `count` of the reduction's loops.
void KernelPrinter::open_loops(const Stmt& s, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) open_for(name(s.vars[i]), "0", extent(s.vars[i]));
}
void KernelPrinter::close_loops(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) close();
}

void KernelPrinter::print_fold(const Stmt& s) {
  if (s.lanes) return print_fold_block(s);
  if (s.form == Stmt::Form::Lanes) return print_fold_one(s);
  print_horizontal(s);
  if (is_array(s.result)) line(use(s.result) + " = " + run_name(s) + ";");
}

// ---- Scalar accumulators ----

void KernelPrinter::print_fold_one(const Stmt& s) {
  const bool first = starts_at_first(s);
  line(type_of(dtype(s.result)) + " " + value_name(s.result) +
       (s.initial >= 0 ? " = " + use(s.initial) : " = {}") + ";");
  if (s.arg >= 0) line(type_of(dtype(s.element)) + " " + best_name(s) + " = {};");
  if (first) line("bool first" + value_name(s.result) + " = true;");
  open_loops(s, s.vars.size());
  print_body(s.body);
  print_update(s, "");
  if (first) line("first" + value_name(s.result) + " = false;");
  close_loops(s.vars.size());
}

// One element into the accumulators; `at` is their subscript.
void KernelPrinter::print_update(const Stmt& s, const std::string& at) {
  const std::string acc = value_name(s.result) + at, e = use(s.element);
  const std::string first = "first" + value_name(s.result);
  if (s.arg >= 0) {
    const std::string best = best_name(s) + at;
    const std::string take = "take" + value_name(s.result);
    line("const bool " + take + " = " + first + " | (" + e + (s.arg == 1 ? " > " : " < ") + best +
         ");");
    line(best + " = " + take + " ? " + e + " : " + best + ";");
    line(acc + " = " + take + " ? " + name(s.vars.back()) + " : " + acc + ";");
    return;
  }
  const std::string sum = combine(s, acc, e);
  line(acc + " = " + (starts_at_first(s) ? first + " ? " + e + " : " + sum : sum) + ";");
}

// ---- Along a run ----

// The result is a scalar while it is made, also where an array keeps it for each lane.
std::string KernelPrinter::run_name(const Stmt& s) const {
  return value_name(s.result) + (is_array(s.result) ? "_run" : "");
}

void KernelPrinter::print_horizontal(const Stmt& s) {
  if (s.arg >= 0) return print_arg_extremum(s);
  if (starts_at_first(s)) return print_extremum(s);
  line(type_of(dtype(s.result)) + " " + run_name(s) + " = " +
       (s.initial >= 0 ? use(s.initial) : "{}") + ";");
  const std::size_t outer = s.vars.size() - 1;
  open_loops(s, outer);
  print_element(s);
  print_run(s);
  close_loops(outer);
}

// One run into the accumulator.
void KernelPrinter::print_run(const Stmt& s) {
  const std::string type = type_of(dtype(s.result)), acc = run_name(s);
  const std::string n = extent(s.vars.back());
  const bool parallel = s.form == Stmt::Form::Parallel;
  if (s.order == ir::Order::Pairwise) {
    const std::string chunk = s.chunk > 0 ? std::to_string(s.chunk) : "0";
    line(acc + " = rt::" + (parallel ? "parallel_" : "") + "sum" +
         (s.block > 0 ? "_blocks<" + type + ", " + std::to_string(s.block) : "<" + type) + ">(" +
         acc + ", " + n + ", " + chunk + ", f" + acc +
         (parallel      ? ", args->threads, flags"
          : s.block > 0 ? ", flags"
                        : "") +
         ");");
    return;
  }
  if (s.reduction == ir::Reduction::Any || s.reduction == ir::Reduction::All) {
    const bool all = s.reduction == ir::Reduction::All;
    const std::string found = std::string("rt::") + (parallel ? "parallel_" : "") + "any_or_all<" +
                              (all ? "true" : "false") + ", " + (s.stops ? "true" : "false") +
                              ">(" + (parallel ? "" : "0, ") + n + ", f" + acc +
                              (parallel ? ", args->threads, flags" : "") + ")";
    line(acc + " = " + acc + (all ? " & " : " | ") + found + ";");
    return;
  }
  line("const auto add" + acc + " = [](" + type + " a, " + type + " b) { return " +
       combine(s, "a", "b") + "; };");
  line(acc + " = rt::" + (parallel ? "parallel_fold" : "fold") + "(" + acc + ", " + n + ", f" +
       acc + ", add" + acc + (parallel ? ", " + identity(s) + ", args->threads, flags" : "") +
       ");");
}

void KernelPrinter::print_extremum(const Stmt& s) {
  const std::string type = type_of(dtype(s.result)), acc = run_name(s);
  const std::string n = extent(s.vars.back());
  const bool parallel = s.form == Stmt::Form::Parallel;
  const std::string largest = s.reduction == ir::Reduction::Max ? "true" : "false";
  const std::string in_doubt = s.order == ir::Order::Extremum ? "true" : "false";
  line("rt::Extremum<" + type + ", " + largest + ", " + in_doubt + "> x" + acc + ";");
  if (s.initial >= 0) line("x" + acc + ".start(" + use(s.initial) + ");");
  const std::size_t outer = s.vars.size() - 1;
  open_loops(s, outer);
  print_element(s);
  line("x" + acc + "." + (parallel ? "parallel_run" : "run") + "(" + n + ", f" + acc +
       (parallel ? ", args->threads, flags" : "") + ");");
  close_loops(outer);
  line("const " + type + " " + acc + " = x" + acc + ".result(flags);");
}

void KernelPrinter::print_arg_extremum(const Stmt& s) {
  const std::string acc = run_name(s);
  const bool parallel = s.form == Stmt::Form::Parallel;
  print_element(s);
  line("const " + type_of(dtype(s.result)) + " " + acc + " = rt::" + (parallel ? "parallel_" : "") +
       "arg_extremum<" + type_of(dtype(s.element)) + ", " + (s.arg == 1 ? "true" : "false") + ">(" +
       extent(s.vars.back()) + ", f" + acc + (parallel ? ", args->threads, flags" : "") + ");");
}

// The run's element as a callable. Of truths that are added up, the truth.
void KernelPrinter::print_element(const Stmt& s) {
  if (s.block > 0) return print_block_sum(s);
  const bool counts = adds_truths(s);
  open("const auto f" + run_name(s) + " = [&](rt::Index " + name(s.vars.back()) + ") -> " +
       (counts ? "bool" : type_of(dtype(s.element))));
  const Body& body = s.body;
  for (std::size_t i = 0; i + (counts ? 1 : 0) < body.size(); ++i) print_stmt(body[i]);
  line("return " + use(counts ? body.back().args[0] : s.element) + ";");
  close("};");
}

bool KernelPrinter::adds_truths(const Stmt& s) const {
  if (s.arg >= 0 || s.reduction != ir::Reduction::Sum || s.order != ir::Order::Free ||
      s.body.empty() || !is_in(dtype(s.result), ir::kInteger))
    return false;
  const Stmt& last = s.body.back();
  return last.kind == Stmt::Kind::Compute && last.op == ir::Op::Cast && last.result == s.element &&
         dtype(last.args[0]) == ir::DType::Bool;
}

}  // namespace ufuse::codegen
