// Steps and registers: what the other files write a program with.
#include <algorithm>
#include <utility>

#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {

void Writer::fail(const std::string& why) const { throw NotNative(why, line_); }

// ---- Registers ----

Reg Writer::fresh(DType dtype) {
  program_.registers.push_back({dtype, {}});
  return static_cast<Reg>(program_.registers.size() - 1);
}

// A variable's own register for numbers of this dtype.
Reg Writer::register_of(int variable, DType dtype) {
  const auto [it, is_new] = registers_.try_emplace({{scope_.instance, variable}, dtype}, kNone);
  if (is_new) {
    it->second = fresh(dtype);
    program_.registers.back().name = (*scope_.names)[static_cast<std::size_t>(variable)];
  }
  return it->second;
}

// A variable's own, or a new one where there is no variable.
ArrayReg Writer::array_register(int variable, DType dtype, int rank) {
  const auto made = [&](std::string name) {
    program_.arrays.push_back({dtype, rank, std::move(name)});
    return static_cast<ArrayReg>(program_.arrays.size() - 1);
  };
  if (variable < 0) return made({});
  const auto [it, is_new] =
      array_registers_.try_emplace({{scope_.instance, variable}, {dtype, rank}}, kNone);
  if (is_new) it->second = made((*scope_.names)[static_cast<std::size_t>(variable)]);
  return it->second;
}

// ---- Steps ----

Step& Writer::emit(Step step) {
  const int begun = std::exchange(begun_, 0);
  if (step.line == 0) step.line = begun;
  out_->push_back(std::move(step));
  return out_->back();
}

Reg Writer::constant(DType dtype, ir::Scalar bits) {
  Step step;
  step.kind = Step::Kind::Constant;
  step.constant = bits;
  step.result = fresh(dtype);
  return emit(std::move(step)).result;
}
Reg Writer::integer(std::int64_t value) {
  return constant(DType::Int64, {{static_cast<std::uint64_t>(value)}});
}
Reg Writer::truth_constant(bool value) {
  return constant(DType::Bool, {{static_cast<std::uint64_t>(value)}});
}

Reg Writer::compute(Op op, DType dtype, std::vector<Reg> args) {
  Step step;
  step.kind = Step::Kind::Compute;
  step.op = op;
  step.args = std::move(args);
  step.result = fresh(dtype);
  return emit(std::move(step)).result;
}

// What never has to leave to Python.
Reg Writer::compute_primitive(Primitive p, DType dtype, std::vector<Reg> args) {
  Step step;
  step.kind = Step::Kind::Call;
  step.primitive = p;
  step.args = std::move(args);
  step.result = fresh(dtype);
  return emit(std::move(step)).result;
}
Reg Writer::primitive(Primitive p, DType dtype, std::vector<Reg> args) {
  const int at = exit();
  const Reg result = compute_primitive(p, dtype, std::move(args));
  out_->back().exit = at;
  return result;
}

Reg Writer::cast_to(Reg reg, DType dtype) {
  if (dtype_of(reg) == dtype) return reg;
  Step step;
  step.kind = Step::Kind::Cast;
  step.args = {reg};
  step.result = fresh(dtype);
  return emit(std::move(step)).result;
}

void Writer::copy(Reg to, Reg from) {
  Step step;
  step.kind = Step::Kind::Copy;
  step.args = {from};
  step.result = to;
  emit(std::move(step));
}

void Writer::guard(Reg truth) {
  Step step;
  step.kind = Step::Kind::Guard;
  step.args = {truth};
  step.exit = exit();
  emit(std::move(step));
}

void Writer::finite(Reg result, std::vector<Reg> inputs) {
  Step step;
  step.kind = Step::Kind::Finite;
  step.args = {result};
  step.args.insert(step.args.end(), inputs.begin(), inputs.end());
  step.exit = exit();
  emit(std::move(step));
}

void Writer::leave(int exit) {
  Step step;
  step.kind = Step::Kind::Exit;
  step.exit = exit;
  emit(std::move(step));
}

// At a round's beginning, which Python does where a signal's handler has raised or something has
// changed.
void Writer::poll() {
  Step step;
  step.kind = Step::Kind::Poll;
  step.exit = exit();
  emit(std::move(step));
}

// ---- Exits ----

int Writer::exit() {
  if (has_drawn_) fail("Python might have to do a statement again that has drawn a random number");
  if (exit_ != kNone) return exit_;
  const Statement& at = beginning_ != nullptr ? *beginning_ : *statement_;
  exit_ = exit(Exit::Kind::Leave, at.number);
  program_.exits.back().at_round = beginning_ != nullptr;
  return exit_;
}

int Writer::exit(Exit::Kind kind, int statement, const Where& value) {
  Exit made;
  made.kind = kind;
  made.statement = statement;
  const Env& env = scope_.instance == 0 ? env_ : caller_;
  const Scope scope = std::exchange(scope_, {0, nullptr, &loop_.variables, &loop_.outside});
  for (std::size_t i = 0; i < env.size(); ++i)
    made.variables.push_back(where_variable(static_cast<int>(i), env[i]));
  scope_ = scope;
  for (const Assigned& each : assigned_)
    made.variables.push_back(where(kind == Exit::Kind::Leave ? each.aside : each.place));
  made.value = value;
  made.loops = rounds_;
  program_.exits.push_back(std::move(made));
  return static_cast<int>(program_.exits.size() - 1);
}

}  // namespace ufuse::numpy_shim::program
