// Statements: what does each do to the variables, and where does it go on?
//
// A statement first computes and checks all it needs, and only then assigns and stores, so that
// Python can do it from its beginning wherever a check fails. What functions that it calls have
// changed is put back then (calls.cpp).
#include <algorithm>
#include <iterator>
#include <utility>

#include "ir/support/error.h"
#include "numpy_shim/program/writer.h"

namespace ufuse::numpy_shim::program {
namespace {

constexpr int kMostTries = 8;  // of a loop's types
constexpr int kMostPeeled = 3;

// `while True`
bool is_never_false(const Expr& e) {
  using enum Expr::Kind;
  return (e.kind == Bool || e.kind == Int) && e.integer != 0;
}

// Whether an expression has a part of this kind.
template <class Is>
bool has(const Expr& e, const Is& is) {
  return is(e) || std::ranges::any_of(e.parts, [&](const Expr& part) { return has(part, is); });
}

bool jumps(const Statements& list) {
  return std::ranges::any_of(list, [](const Statement& s) {
    using enum Statement::Kind;
    if (s.kind == Break || s.kind == Continue) return true;
    if (s.kind == For || s.kind == While) return jumps(s.other);
    return s.kind == If && (jumps(s.body) || jumps(s.other));
  });
}

}  // namespace

Program typed(const Loop& loop, const Entered& entered, World& world) {
  Writer::Marks marks;
  while (true) {
    try {
      return Writer(loop, entered, world, marks).run();
    } catch (const Writer::Restart&) {
    }
  }
}

Writer::Writer(const Loop& loop, const Entered& entered, World& world, Marks& marks)
    : loop_(loop), entered_(entered), world_(world), marks_(marks) {
  program_.variables = loop.variables;
  program_.first_line = loop.statement.line;
  program_.has_chances = entered.has_chances;
  scope_ = {0, nullptr, &loop.variables, &loop.outside};
}

Program Writer::run() {
  out_ = &program_.body;
  statement_ = &loop_.statement;
  for (std::size_t i = 0; i < loop_.variables.size(); ++i) {
    Value v = input(entered_.variables[i], static_cast<int>(i));
    env_.push_back(std::move(v));
  }
  begin_attributes();
  if (loop_.statement.kind == Statement::Kind::For)
    outer_for(loop_.statement);
  else
    outer_while(loop_.statement);
  return std::move(program_);
}

// What a variable is when the program is entered.
Value Writer::input(const Given& given, int variable) {
  Value v;
  switch (given.kind) {
    case Given::Kind::Unbound:
      break;
    case Given::Kind::Number:
    case Given::Kind::Array:
    case Given::Kind::List:
    case Given::Kind::Tuple: {
      v = value_of(given, variable);
      if (std::vector<int> types; v.kind == Value::Kind::Tuple && types_in(v, types))
        tuples_.emplace(std::pair(Key{scope_.instance, variable}, types), v);
      program_.inputs.push_back({ir::program::Input::From::Variable, variable, where(v)});
      break;
    }
    default:
      v.kind = Value::Kind::Given;
      v.given = given.identity != 0 || given.kind == Given::Kind::Generator
                    ? world_.variable(variable)
                    : given;
      if (v.given.name.empty()) v.given.name = loop_.variables[static_cast<std::size_t>(variable)];
      v.variable = variable;
      if (given.kind == Given::Kind::Nothing) v.kind = Value::Kind::Nothing;
  }
  mark(variable, v);
  return v;
}

// Registers for a value that is handed in. `variable`: whose it is, or -1.
Value Writer::value_of(const Given& given, int variable) {
  Value v;
  switch (given.kind) {
    case Given::Kind::Number:
      v = variable < 0 ? numpy_number(given.dtype, fresh(given.dtype))
                       : numpy_number(given.dtype, register_of(variable, given.dtype));
      v.box = given.box;
      return v;
    case Given::Kind::Array:
      v.kind = Value::Kind::Array;
      v.dtype = given.dtype;
      v.rank = given.rank;
      v.writeable = given.writeable;
      v.array = array_register(variable, given.dtype, given.rank);
      return v;
    case Given::Kind::List:
      return list_given(given, variable);
    case Given::Kind::Tuple:
      v.kind = Value::Kind::Tuple;
      for (const Given& part : given.parts) v.parts.push_back(value_of(part, -1));
      return v;
    default:
      v.kind = given.kind == Given::Kind::Nothing ? Value::Kind::Nothing : Value::Kind::Given;
      v.given = given;
      return v;
  }
}

// ---- The loop itself ----

void Writer::outer_for(const Statement& s) {
  const Reg position = fresh(DType::Int64);
  int items = 0;
  const Iteration over = entered(entered_.over, items);
  program_.head = Rounds{s.number, position, over.count, over.over};
  const auto begin = [&] {
    check_lengths(over);
    std::vector<Target> targets;
    plan_target(s.targets[0], element(over, position), targets);
    commit(targets);
    release();
  };
  outermost(s, begin, [&] { check_lengths(over); });
}

void Writer::outer_while(const Statement& s) {
  const auto begin = [&] {
    Step test;
    test.kind = Step::Kind::If;
    test.args = {truth(s.value)};
    release();
    test.other = written([&] { leave(exit(Exit::Kind::Exhausted, s.number)); });
    emit(std::move(test));
  };
  outermost(s, begin, [] {});
}

// Rounds until the types at their end are those at the beginning. `begin`: of a round; `end`:
// behind the last one.
template <class Begin, class End>
void Writer::outermost(const Statement& s, const Begin& begin, const End& end) {
  for (int tries = 0;; ++tries) {
    if (tries == kMostTries) fail("its variables change their types in each round");
    const Env head = env_;
    const std::size_t exits = program_.exits.size();
    Step loop;
    loop.kind = program_.head ? Step::Kind::Count : Step::Kind::Repeat;
    if (program_.head) {
      loop.result = program_.head->position;
      loop.args = {program_.head->count};
    }
    loop.line = own_line(s);
    ++nesting_;
    jumps_.push_back({nesting_, true, {}, {}, 0});
    bool ends = true;
    loop.body = written([&] {
      enter_statement(s);
      poll();
      begin();
      ends = statements(s.body);
    });
    Env behind = joined_all(std::move(jumps_.back().continued), ends);
    jumps_.pop_back();
    --nesting_;
    env_ = joined(head, behind);
    if (same(env_, head)) {
      emit(std::move(loop));
      enter_statement(s);
      begun_ = 0;
      end();
      if (program_.head) leave(exit(Exit::Kind::Exhausted, s.number));
      return;
    }
    if (changes_type(head, env_)) throw TypesChange(s.line);
    program_.exits.resize(exits);
    exit_ = kNone;
  }
}

// ---- Blocks ----

bool Writer::statements(const Statements& list) {
  for (const Statement& s : list)
    if (!statement(s)) return false;
  return true;
}

void Writer::enter_statement(const Statement& s) {
  if (scope_.instance != 0) return;  // what cannot be done there is done again from the call
  statement_ = &s;
  exit_ = kNone;
  has_drawn_ = false;
  line_ = begun_ = s.line;
  put_attributes_aside(s);
}

int Writer::own_line(const Statement& s) const { return scope_.instance == 0 ? s.line : 0; }

bool Writer::statement(const Statement& s) {
  enter_statement(s);
  if (entered_.has_chances && beginning_ == nullptr) {
    Step chance;
    chance.kind = Step::Kind::Chance;
    chance.exit = exit();
    emit(std::move(chance));
  }
  using enum Statement::Kind;
  switch (s.kind) {
    case Assign:
      assign(s);
      break;
    case Augment:
      augment(s);
      break;
    case Assert:
      guard(truth(s.value));
      break;
    case Evaluate:
      whole_ = &s.value;
      own_copy(value(s.value));  // it may warn
      break;
    case Pass:
      break;
    case For:
      inner_for(s);
      return true;
    case While:
      return inner_while(s);
    case If:
      return branch(s);
    case Break:
      return jump(true);
    case Continue:
      return jump(false);
    case Return:
      return give_back(s);
    case Raise:
      leave(exit());
      return false;
  }
  release();
  return true;
}

bool Writer::branch(const Statement& s) {
  if (const std::optional<bool> known = decided(s.value))
    return statements(*known ? s.body : s.other);
  Step step;
  step.kind = Step::Kind::If;
  step.line = own_line(s);
  step.args = {truth(s.value)};
  release();
  const Env before = env_;
  bool first = false, second = false;
  step.body = written([&] { first = statements(s.body); });
  Env after = std::exchange(env_, before);
  step.other = written([&] { second = statements(s.other); });
  emit(std::move(step));
  if (first && second)
    env_ = joined(after, env_);
  else if (first)
    env_ = std::move(after);
  return first || second;
}

bool Writer::jump(bool is_break) {
  JumpTarget& target = jumps_.back();
  if (target.outermost && is_break) {
    leave(exit(Exit::Kind::Broke, loop_.statement.number));
    return false;
  }
  (is_break ? target.broken : target.continued).push_back(env_);
  Step step;
  step.kind = is_break || target.once ? Step::Kind::Break : Step::Kind::Continue;
  step.depth = nesting_ - (is_break ? target.break_depth : target.depth);
  emit(std::move(step));
  return false;
}

bool Writer::give_back(const Statement& s) {
  Value result;
  result.kind = Value::Kind::Nothing;
  keeps_ = true;
  if (s.value.kind != Expr::Kind::Nothing) result = own_copy(value(s.value));
  keeps_ = false;
  if (!returns_) {
    release();
    leave(exit(Exit::Kind::Returned, s.number, where(result)));
    return false;
  }
  put_result(result);
  Step step;
  step.kind = Step::Kind::Break;
  step.depth = nesting_ - returns_->depth;
  emit(std::move(step));
  return false;
}

// ---- Inner loops ----

void Writer::inner_for(const Statement& s) {
  if (jumps(s.other)) fail("`break` or `continue` in the `else` of a loop");
  const Iteration over = iteration(s.value);
  release();
  const Rounds rounds{s.number, fresh(DType::Int64), over.count, over.over};
  copy(rounds.position, integer(0));
  const auto begin = [&] {
    check_lengths(over);
    std::vector<Target> targets;
    plan_target(s.targets[0], element(over, rounds.position), targets);
    commit(targets);
  };
  Step around;
  around.kind = Step::Kind::Block;
  const int outside = ++nesting_;
  around.body = written([&] {
    std::vector<Env> broken;
    inner_rounds(s, rounds, outside, broken, begin);
    const bool own = scope_.instance == 0;
    if (own) rounds_.push_back(rounds);
    between_rounds(s, [&] { check_lengths(over); });
    if (own) rounds_.pop_back();
    bool ends = statements(s.other);
    for (const Env& each : broken) {
      env_ = ends ? joined(env_, each) : each;
      ends = true;
    }
  });
  --nesting_;
  emit(std::move(around));
}

// The rounds of an inner `for`, inside the block that `break` leaves; env_ is then what holds where
// there are no more.
template <class Begin>
void Writer::inner_rounds(const Statement& s, const Rounds& rounds, int outside,
                          std::vector<Env>& broken, const Begin& begin) {
  for (int tries = 0;; ++tries) {
    if (tries == kMostTries) fail("a variable changes its type in each round");
    const Env head = env_;
    const std::size_t exits = program_.exits.size();
    std::vector<Env> left;
    Step loop;
    loop.kind = Step::Kind::Count;
    loop.result = rounds.position;
    loop.args = {rounds.count};
    loop.line = own_line(s);
    loop.body = one_round(s, rounds, outside, false, left, begin);
    env_ = joined(head, env_);
    if (same(env_, head)) {
      emit(std::move(loop));
      std::ranges::move(left, std::back_inserter(broken));
      return;
    }
    program_.exits.resize(exits);
    exit_ = kNone;
    if (!changes_type(head, env_)) continue;
    // The first round is another one than those after it.
    if (++peeled_ > kMostPeeled) fail("a variable changes its type in each round");
    env_ = head;
    Step first;
    first.kind = Step::Kind::If;
    first.args = {compute(Op::Less, DType::Bool, {rounds.position, rounds_of(rounds)})};
    first.body = written([&] {
      Step once;
      once.kind = Step::Kind::Block;
      once.body = one_round(s, rounds, outside, true, broken, begin);
      emit(std::move(once));
      copy(rounds.position, compute(Op::Add, DType::Int64, {rounds.position, integer(1)}));
      inner_rounds(s, rounds, outside, broken, begin);
    });
    --peeled_;
    emit(std::move(first));
    env_ = joined(head, env_);
    return;
  }
}

// What is done between two rounds: where Python goes on, the next one has not begun.
template <class Body>
void Writer::between_rounds(const Statement& s, const Body& body) {
  const bool own = scope_.instance == 0;
  if (own) {
    enter_statement(s);
    beginning_ = &s;
  }
  body();
  if (!own) return;
  beginning_ = nullptr;
  exit_ = kNone;
}

// One round, and what it does at its end; env_ is then what holds before the next one. `once`: it
// stands in a block of its own, not in a loop.
template <class Begin>
Steps Writer::one_round(const Statement& s, const Rounds& rounds, int outside, bool once,
                        std::vector<Env>& broken, const Begin& begin) {
  ++nesting_;
  jumps_.push_back({nesting_, false, {}, {}, outside, once});
  const bool own = scope_.instance == 0;
  if (own) rounds_.push_back(rounds);
  bool ends = true;
  Steps body = written([&] {
    between_rounds(s, [&] {
      poll();
      begin();
    });
    ends = statements(s.body);
  });
  if (own) rounds_.pop_back();
  JumpTarget target = std::move(jumps_.back());
  jumps_.pop_back();
  --nesting_;
  std::ranges::move(target.broken, std::back_inserter(broken));
  env_ = joined_all(std::move(target.continued), ends);
  return body;
}

bool Writer::inner_while(const Statement& s) {
  if (jumps(s.other)) fail("`break` or `continue` in the `else` of a loop");
  Step around;
  around.kind = Step::Kind::Block;
  const int outside = ++nesting_;
  std::optional<Env> after;
  around.body = written([&] { after = while_rounds(s, outside); });
  --nesting_;
  emit(std::move(around));
  if (!after) return false;
  env_ = std::move(*after);
  return true;
}

// What holds behind the loop; nothing where it never ends.
std::optional<Env> Writer::while_rounds(const Statement& s, int outside) {
  for (int tries = 0;; ++tries) {
    if (tries == kMostTries) fail("a variable changes its type in each round");
    const Env head = env_;
    const std::size_t exits = program_.exits.size();
    std::vector<Env> broken;
    bool ends = true;
    const auto round = [&](bool once) {
      ++nesting_;
      jumps_.push_back({nesting_, false, {}, {}, outside, once});
      ends = true;
      Steps body = written([&] {
        enter_statement(s);
        poll();
        if (is_never_false(s.value)) {
          ends = statements(s.body);
          return;
        }
        Step test;
        test.kind = Step::Kind::If;
        test.args = {truth(s.value)};
        release();
        test.other = written([&] {
          const Env before = env_;
          if (statements(s.other)) {
            broken.push_back(env_);
            Step out;
            out.kind = Step::Kind::Break;
            out.depth = nesting_ - outside;
            emit(std::move(out));
          }
          env_ = before;
        });
        emit(std::move(test));
        ends = statements(s.body);
      });
      JumpTarget target = std::move(jumps_.back());
      jumps_.pop_back();
      --nesting_;
      std::ranges::move(target.broken, std::back_inserter(broken));
      const bool goes_on = ends || !target.continued.empty();
      env_ = goes_on ? joined_all(std::move(target.continued), ends) : head;
      return body;
    };
    Step loop;
    loop.kind = Step::Kind::Repeat;
    loop.line = own_line(s);
    loop.body = round(false);
    env_ = joined(head, env_);
    if (same(env_, head)) {
      emit(std::move(loop));
      if (broken.empty()) return std::nullopt;
      Env after = broken[0];
      for (const Env& each : broken) after = joined(after, each);
      return after;
    }
    program_.exits.resize(exits);
    exit_ = kNone;
    if (!changes_type(head, env_)) continue;
    if (++peeled_ > kMostPeeled) fail("a variable changes its type in each round");
    env_ = head;
    broken.clear();
    Step first;
    first.kind = Step::Kind::Block;
    first.body = round(true);
    emit(std::move(first));
    std::optional<Env> after = while_rounds(s, outside);
    --peeled_;
    for (const Env& each : broken) after = after ? joined(*after, each) : each;
    return after;
  }
}

// ---- Assignments ----

void Writer::assign(const Statement& s) {
  keeps_ = std::ranges::any_of(s.targets, [](const Expr& e) { return e.kind != Expr::Kind::Item; });
  if (s.targets.size() == 1 && s.targets[0].kind == Expr::Kind::Local) whole_ = &s.value;
  Value v = value(s.value);
  keeps_ = false;
  for (const Expr& target : s.targets) v = before(v, target);
  // Several targets get what has been computed before the first of them changes.
  if (s.targets.size() > 1 && v.kind == Value::Kind::Elements) v = in_memory(v);
  std::vector<Target> targets;
  for (const Expr& target : s.targets) plan_target(target, v, targets);
  const bool changes_parts = std::ranges::any_of(targets, &Target::is_part);
  const bool may_raise = std::ranges::any_of(targets, [](const Target& target) {
    return target.is_part && target.value.elements->raises;
  });
  if (targets.size() > 1 && changes_parts && (may_raise || !(v.is_number() || v.is_new)))
    fail("parts of several arrays are assigned at once");
  // Which elements an index array names is known before the first target changes.
  if (targets.size() > 1 &&
      std::ranges::any_of(targets, [](const Target& target) { return target.written.has_value(); }))
    fail("one of several targets has an index array");
  // One of several may be read by the next: `a, b = b, a`.
  if (targets.size() > 1)
    for (Target& target : targets) {
      if (!target.is_part) target.value = own_copy(target.value);
      if (target.stored == kNone) continue;
      const Reg own = fresh(dtype_of(target.stored));
      copy(own, target.stored);
      target.stored = own;
    }
  commit(targets);
}

void Writer::augment(const Statement& s) {
  const Expr& target = s.targets[0];
  if (target.kind == Expr::Kind::Local) {
    const Value old = operand(target);
    if (old.kind == Value::Kind::Array) return augment_array(s.op, old, value(s.value));
    std::vector<Target> targets;
    plan_target(target, binary(s.op, old, operand(s.value)), targets);
    return commit(targets);
  }
  if (target.kind == Expr::Kind::Attribute) {
    const Value old = attribute(target);
    if (old.kind == Value::Kind::Array) return augment_array(s.op, old, value(s.value));
    Target made;
    made.attribute = attribute_target(target);
    made.value = binary(s.op, old, value(s.value));
    return commit({made});
  }
  // The array and the index are looked up once, before the value.
  const Value array = value(target.parts[0]);
  if (array.kind == Value::Kind::List) {
    const Reg at = whole_index(value(target.parts[1]));
    const Value old = list_item(array, at);
    return commit({list_target(array, at, binary(s.op, old, value(s.value)), {})});
  }
  if (array.kind != Value::Kind::Array) fail("something else than an array is indexed");
  const std::vector<Value> key = indices(array, target.parts[1]);
  if (has_arrays(key)) return augment_selection(s, array, key);
  const At where = at(array, key);
  if (!where.is_element) return augment_array(s.op, view(array, where), value(s.value));
  const Value old = load(array, where.args);
  Target made;
  made.array = array.array;
  made.at = where.args;
  made.stored = to_store(binary(s.op, old, value(s.value)), array.dtype);
  mark_written(array);
  commit({made});
}

// What so many targets get.
std::vector<Value> Writer::taken_apart(const Value& whole, std::size_t count) {
  if (whole.kind == Value::Kind::Tuple) {
    if (whole.parts.size() != count) fail("a tuple of another length is taken apart");
    return whole.parts;
  }
  const Value array = in_memory(whole);
  if (array.kind != Value::Kind::Array || array.rank == 0)
    fail("something else than a tuple or an array is taken apart");
  const auto rows = static_cast<std::int64_t>(count);
  guard(compute(Op::Equal, DType::Bool, {length(array, 0), integer(rows)}));
  std::vector<Value> parts;
  for (std::int64_t i = 0; i < rows; ++i) parts.push_back(row_of(array, integer(i)));
  return parts;
}

void Writer::plan_target(const Expr& target, const Value& value, std::vector<Target>& into) {
  switch (target.kind) {
    case Expr::Kind::Local: {
      if (value.kind == Value::Kind::Slice) fail("a slice is assigned");
      Target made;
      made.expr = &target;
      made.value = value;
      into.push_back(std::move(made));
      return;
    }
    case Expr::Kind::Tuple: {
      const std::vector<Value> parts = taken_apart(value, target.parts.size());
      for (std::size_t i = 0; i < parts.size(); ++i) plan_target(target.parts[i], parts[i], into);
      return;
    }
    case Expr::Kind::Item: {
      check_order(target, into);
      const Value array = this->value(target.parts[0]);
      if (array.kind == Value::Kind::List) {
        into.push_back(list_target(array, whole_index(this->value(target.parts[1])), value, into));
        return;
      }
      if (array.kind != Value::Kind::Array)
        fail("an item of something else than an array is assigned");
      const std::vector<Value> key = indices(array, target.parts[1]);
      Target made;
      if (has_arrays(key)) {
        made.written = written_to(select(array, key), value);
        made.array = array.array;
        into.push_back(std::move(made));
        return;
      }
      const At where = at(array, key);
      if (!where.is_element) {
        const Value part = view(array, where);
        mark_written(part);
        made.is_part = true;
        made.array = part.array;
        made.value = assigned_elements(value, array.dtype);
        fit(made.array, made.value);
        into.push_back(std::move(made));
        return;
      }
      made.array = array.array;
      made.at = where.args;
      made.stored = to_store(value, array.dtype);
      mark_written(array);
      into.push_back(std::move(made));
      return;
    }
    case Expr::Kind::Attribute: {
      check_order(target, into);
      Target made;
      made.attribute = attribute_target(target);
      made.value = value;
      into.push_back(std::move(made));
      return;
    }
    default:
      throw InternalError("a target of unknown kind");
  }
}

// Python assigns one target after the other, here all are looked up before the first is assigned:
// refuses `i, x[i] = ...`, `x[0], y[x[0]] = ...` and `p.i, x[p.i] = ...`.
void Writer::check_order(const Expr& target, const std::vector<Target>& before) const {
  const bool changes_items =
      std::ranges::any_of(before, [](const Target& each) { return !each.is_variable(); });
  const auto depends = [&](const Expr& e) {
    const bool reads_elements = e.kind == Expr::Kind::Item || e.kind == Expr::Kind::Call;
    const bool reads_assigned =
        e.kind == Expr::Kind::Attribute &&
        std::ranges::any_of(before, [](const Target& each) { return each.attribute.has_value(); });
    const bool is_assigned =
        e.kind == Expr::Kind::Local && std::ranges::any_of(before, [&](const Target& each) {
          return each.is_variable() && each.expr->integer == e.integer;
        });
    return is_assigned || reads_assigned || (reads_elements && changes_items);
  };
  if (std::ranges::any_of(target.parts, [&](const Expr& part) { return has(part, depends); }))
    fail("a target of an assignment depends on one before it");
}

void Writer::mark_written(const Value& array) {
  if (!array.writeable) fail("an array that cannot be written is assigned to");
  mark_changed(array);
}

void Writer::commit(const std::vector<Target>& targets) {
  for (const Target& target : targets)
    if (!target.list.empty()) note_item(target.list);
  for (const Target& target : targets) {
    if (target.is_variable()) {
      set(static_cast<int>(target.expr->integer), target.value);
      continue;
    }
    if (target.attribute) {
      set_attribute(*target.attribute, target.value);
      continue;
    }
    if (!target.list.empty()) {
      emit(list_step(Step::Kind::StoreItem, target.list));
      continue;
    }
    if (target.written) {
      scatter(*target.written);
      continue;
    }
    if (target.is_part) {
      assign_elements(target.array, target.value, false);
      continue;
    }
    Step store;
    store.kind = Step::Kind::Store;
    store.array = target.array;
    store.args = target.at;
    store.args.push_back(target.stored);
    emit(std::move(store));
  }
}

// The variable is this from now on.
void Writer::set(int variable, const Value& v) {
  if (v.kind == Value::Kind::Mixed) return set_mixed(variable, v);
  Value kept = in_memory(v);
  kept.is_new = false;
  const ArrayReg made = kept.array;
  switch (kept.kind) {
    case Value::Kind::Number:
      kept.reg = register_of(variable, v.dtype);
      copy(kept.reg, v.reg);
      break;
    case Value::Kind::Array:
      kept.array = array_register(variable, v.dtype, v.rank);
      copy_array(kept.array, made);
      break;
    case Value::Kind::List:
      kept.reg = register_of(variable, v.dtype);
      copy(kept.reg, v.reg);
      break;
    case Value::Kind::Tuple:
      kept = own_copy(v);
      move_to(variable, kept);
      break;
    case Value::Kind::OneOf:
      throw InternalError("a variable of several types is assigned");
    default:
      break;
  }
  mark(variable, kept);
  env_[static_cast<std::size_t>(variable)] = std::move(kept);
}

// Moves a tuple, which nobody else has, to the registers that the variable has for such tuples.
void Writer::move_to(int variable, Value& tuple) {
  std::vector<int> types;
  if (!types_in(tuple, types)) return;
  const auto [place, is_new] = tuples_.try_emplace({{scope_.instance, variable}, types});
  if (is_new) place->second = place_like(tuple);
  move_parts(place->second, tuple);
}

void Writer::move_parts(const Value& place, Value& v) {
  if (v.kind == Value::Kind::Number || v.kind == Value::Kind::Mixed) {
    copy(place.reg, v.reg);
    v.reg = place.reg;
  } else if (v.kind == Value::Kind::Array) {
    copy_array(place.array, v.array);
    v.array = place.array;
  }
  for (std::size_t i = 0; i < v.parts.size(); ++i) move_parts(place.parts[i], v.parts[i]);
}

// What tells tuples apart that need registers of their own. False: it holds something else than
// numbers and arrays of one type.
bool Writer::types_in(const Value& v, std::vector<int>& types) {
  const bool is_number = v.kind == Value::Kind::Number && v.box != Box::Either;
  const bool has_parts = v.kind == Value::Kind::Tuple || v.kind == Value::Kind::Mixed;
  if (!is_number && !has_parts && v.kind != Value::Kind::Array) return false;
  types.insert(types.end(), {static_cast<int>(v.kind), static_cast<int>(v.dtype), v.rank,
                             static_cast<int>(v.parts.size())});
  return std::ranges::all_of(v.parts, [&](const Value& part) { return types_in(part, types); });
}

// The same in registers that nobody assigns to.
Value Writer::own_copy(const Value& given) {
  const Value v = in_memory(given);
  Value own = v;
  if (v.kind == Value::Kind::List) {
    own.reg = own_register(v);
    return own;
  }
  if (v.kind == Value::Kind::Number) {
    own.reg = own_register(v);
    if (v.box == Box::Either) {
      own.numpy = fresh(DType::Bool);
      copy(own.numpy, v.numpy);
    }
  } else if (v.kind == Value::Kind::Array) {
    own.array = array_register(-1, v.dtype, v.rank);
    copy_array(own.array, v.array);
  } else if (v.kind == Value::Kind::Mixed) {
    own.reg = own_register(v);
  }
  for (Value& part : own.parts) part = own_copy(part);
  return own;
}

Reg Writer::own_register(const Value& v) {
  const Reg own = fresh(v.dtype);
  copy(own, v.reg);
  return own;
}

}  // namespace ufuse::numpy_shim::program
