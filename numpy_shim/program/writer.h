// Typing in progress: one loop becoming one Program. Private to numpy_shim/program.
//
// Statements stand in statements.cpp, expressions in expressions.cpp, what operators mean for which
// numbers in operators.cpp and for arrays in arrays.cpp, reductions in reductions.cpp, indices in
// items.cpp, attributes in attributes.cpp, lists in lists.cpp, arrays as indices in selections.cpp,
// random numbers in draws.cpp, calls in calls.cpp.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "numpy_shim/program/source.h"
#include "numpy_shim/program/typing.h"

namespace ufuse::numpy_shim::program {

using ir::DType;
using ir::Op;
using ir::program::ArrayReg;
using ir::program::Box;
using ir::program::Exit;
using ir::program::kNone;
using ir::program::Primitive;
using ir::program::Program;
using ir::program::Reg;
using ir::program::Rounds;
using ir::program::Step;
using ir::program::Steps;
using ir::program::Where;

// What an elementwise operation on arrays does with their elements: `body`, from those in
// `registers`, one of each array, to `result`. Nothing of it has been done yet.
struct Elements {
  Steps body;
  std::vector<ArrayReg> arrays;
  std::vector<Reg> registers;
  Reg result = kNone;
  bool raises = false;  // it may raise a flag that NumPy reports
};

// What is known of the value of an expression or a variable.
struct Value {
  enum class Kind : std::uint8_t {
    Unbound,
    Number,
    Array,
    Elements,  // of a new array
    Tuple,     // parts
    List,      // reg; parts: one item, of which there is no register; none where it was empty
    Nothing,   // None
    Slice,     // parts: start, stop, step, each a Number or Nothing
    Given,     // a function, a module, or something that is only held
    OneOf,     // parts, by the variable's selector
    Mixed,     // parts: a float and an int; reg: 1 where it is the int, else 0
  };
  Kind kind = Kind::Unbound;
  // Number.
  DType dtype = DType::Int64;
  Reg reg = kNone;
  Box box = Box::Python;
  Reg numpy = kNone;          // Either: whether it is NumPy's
  bool non_negative = false;  // an integer that cannot be below zero
  std::optional<std::int64_t> known;
  // Array, Elements.
  ArrayReg array = kNone;
  int rank = 0;
  bool writeable = false;
  bool is_new = false;  // the program has made it, and no variable holds it yet
  // In the text of a function: which arguments of the call in the loop's own text it may be part
  // of, and which arrays that stand outside; a bit each.
  std::uint64_t arguments = 0;
  std::uint64_t outside = 0;
  std::shared_ptr<const Elements> elements;
  std::vector<Value> parts;
  Given given;
  int variable = -1;  // Given: of which variable it was the value at the entry

  bool is_number() const { return kind == Kind::Number; }
  bool is_python() const { return kind == Kind::Number && box == Box::Python; }
  bool is_int() const { return is_python() && dtype == DType::Int64; }
};

// The bit of Value::outside for an array that may be any.
inline constexpr std::uint64_t kElsewhere = std::uint64_t{1} << 63;

// Of all variables at one place of the text.
using Env = std::vector<Value>;

// One of Python's numbers as NEP 50 sees it.
WeakScalar weak_of(const Value& v);

class Writer {
 public:
  // A variable of the loop's own text (0), or of one place where a function is called.
  using Key = std::pair<int, int>;
  // What is found out while a program is written, and needed from its beginning: all is written
  // anew then.
  struct Marks {
    // Variables that need a register for whose numbers they hold, or for which of several types.
    std::set<Key> tagged, selected;
    // Places where functions are called: the call, and the place around it.
    std::map<std::pair<const Expr*, int>, int> instances;
    // Attributes that are assigned, by the world's number of them.
    struct Attribute {
      Given given;
      bool in_function = false;  // by a function that the loop calls
      bool is_tagged = false;    // Python's numbers, and NumPy's
    };
    std::map<int, Attribute> assigned;
    // Those where arrays are changed, and which arguments are, of calls in the loop's own text.
    std::set<int> changing;
    std::set<std::pair<int, std::size_t>> changed;
    // The same of arrays that stand outside, by the call and the world's number of them.
    std::map<std::pair<int, int>, Given> changed_outside;
  };
  struct Restart {};

  Writer(const Loop& loop, const Entered& entered, World& world, Marks& marks);
  Program run();
  static bool same_value(const Value& a, const Value& b);
  static bool holds_the_same(const Value& a, const Value& b);
  static bool is_plain(DType t);

 private:
  // ---- Statements (statements.cpp) ----
  Value input(const Given& given, int variable);
  Value value_of(const Given& given, int variable);
  void outer_for(const Statement& s);
  void outer_while(const Statement& s);
  template <class Begin, class End>
  void outermost(const Statement& s, const Begin& begin, const End& end);
  // False where what follows is never reached.
  bool statements(const Statements& list);
  bool statement(const Statement& s);
  void enter_statement(const Statement& s);
  // 0: it is a statement of a function that the loop calls.
  int own_line(const Statement& s) const;
  bool branch(const Statement& s);
  bool jump(bool is_break);
  bool give_back(const Statement& s);
  void inner_for(const Statement& s);
  template <class Begin>
  void inner_rounds(const Statement& s, const Rounds& rounds, int outside, std::vector<Env>& broken,
                    const Begin& begin);
  template <class Body>
  void between_rounds(const Statement& s, const Body& body);
  template <class Begin>
  Steps one_round(const Statement& s, const Rounds& rounds, int outside, bool once,
                  std::vector<Env>& broken, const Begin& begin);
  bool inner_while(const Statement& s);
  std::optional<Env> while_rounds(const Statement& s, int outside);

  // ---- What a loop goes over (iterations.cpp) ----
  struct Iteration {
    ir::program::Over over;
    Reg count = kNone;       // as in Rounds
    Value items;             // an array or a list
    bool counts_up = false;  // of a range, or what counts: never negative
    std::optional<std::int64_t> step_known;
    std::vector<Iteration> parts;
  };
  // Inside of another one: how many items a list has is asked once, and must stay so.
  enum class Place : std::uint8_t { Alone, Inside };
  Iteration iteration(const Expr& e, Place place = Place::Alone);
  Iteration entered(const Walked& walked, int& items, Place place = Place::Alone);
  Iteration over_range(const Expr& e);
  Iteration over_items(const Value& items, Place place);
  Iteration over_tuple(const Value& tuple);
  Value chosen(const std::vector<Value>& parts, Reg position);
  Iteration side_by_side(std::vector<Iteration> parts);
  Iteration counted(Iteration part, Reg start, bool counts_up);
  Iteration reversed(const Iteration& range);
  Iteration zipped(const Expr& e);
  Value element(const Iteration& over, Reg position);
  Value row_of(const Value& array, Reg position);
  void check_lengths(const Iteration& over);
  Reg rounds_of(const Rounds& rounds);

  // What `x[key]` names where arrays stand in the key.
  struct Selection {
    Value view;                 // of x: what slices, new axes and single integers leave
    int first = 0;              // of its axes: the first one that is indexed
    std::vector<Value> arrays;  // of integers, one for each axis, or one mask
    int mask_axes = 0;          // of the mask
    std::vector<Reg> lengths;   // of the positions
    int indexed() const { return mask_axes != 0 ? mask_axes : static_cast<int>(arrays.size()); }
  };
  struct Written {
    Selection selection;
    Value values;
    Reg number = kNone;  // in the place of values
  };
  // A target of an assignment, after everything has been computed and checked.
  struct Target {
    const Expr* expr = nullptr;
    Value value;
    // Of an item: the array, where in it, and what is put there. Of part of an array: that, and
    // `value`, its elements.
    ArrayReg array = kNone;
    bool is_part = false;
    std::vector<Reg> at;
    Reg stored = kNone;
    std::vector<Reg> list;           // of an item of a list: the operands of StoreItem
    std::optional<Written> written;  // of an item that arrays index
    std::optional<int> attribute;    // Assigned::object
    bool is_variable() const { return array == kNone && list.empty() && !attribute; }
  };
  void assign(const Statement& s);
  void augment(const Statement& s);
  std::vector<Value> taken_apart(const Value& whole, std::size_t count);
  void plan_target(const Expr& target, const Value& value, std::vector<Target>& into);
  void check_order(const Expr& target, const std::vector<Target>& before) const;
  void commit(const std::vector<Target>& targets);
  void mark_written(const Value& array);
  void set(int variable, const Value& value);
  void move_to(int variable, Value& tuple);
  void move_parts(const Value& place, Value& v);
  static bool types_in(const Value& v, std::vector<int>& types);
  Value own_copy(const Value& value);
  Reg own_register(const Value& value);

  // ---- Ways that meet (ways.cpp) ----
  Value joined(int variable, const Value& a, const Value& b);
  Env joined(const Env& a, const Env& b);
  Env joined_all(std::vector<Env> envs, bool with_current);
  static bool same(const Env& a, const Env& b);
  static bool changes_type(const Env& head, const Env& joined);
  Reg tag_of(int variable);
  Reg selector_of(int variable);
  int position_of(int variable, const Value& value);
  void mark(int variable, Value& value);
  Value read(const Expr& e);
  Where where(const Value& value) const;
  Where where_variable(int variable, const Value& value);

  // ---- Expressions (expressions.cpp) ----
  Value value(const Expr& e);
  std::vector<Value> values(const Expr& e, std::size_t first);
  std::vector<Value> operands(const Expr& e);
  Value before(const Value& v, const Expr& next);
  Value outside(const Given& given, const std::string& name);
  Value compare(const Expr& e);
  void chain(const Expr& e, std::size_t at, const Value& left, Value& result);
  Value both(const Expr& e);
  Value choice(const Expr& e);
  static bool shares_dtype(const Value& a, const Value& b);
  Reg is_numpys(const Value& v);
  void take_either(Value& into, const Value& v, Reg of_numpy);
  void merge(Value& into, const Value& v);
  std::optional<bool> decided(const Expr& e);
  Reg truth(const Expr& e);
  Reg truth_of(const Value& v);

  // ---- Operators (operators.cpp) ----
  Value python_number(DType dtype, Reg reg);
  Value numpy_number(DType dtype, Reg reg);
  Value python_int(std::int64_t value);
  Value python_float(double value);
  void take_box(Value& result, const Value& a, const Value& b);
  Value widened(const Value& v);
  DType common(const Value& a, const Value& b) const;
  void settle(Value& v);
  std::optional<double> known_float(const Value& v) const;
  Reg as(const Value& v, DType dtype);
  Value unary(Operator op, const Value& x);
  Value absolute(const Value& x);
  Value binary(Operator op, Value left, Value right);
  void as_float_beside_complex(const Value& left, Value& right);
  Value python_binary(Operator op, const Value& a, const Value& b);
  Value numpy_binary(Operator op, const Value& a, const Value& b);
  Value integer_binary(Operator op, const Value& a, const Value& b);
  static void fold(Operator op, std::int64_t a, std::int64_t b, Value& v);
  Reg float_binary(Operator op, Reg a, Reg b, DType dtype, Box box);
  Reg complex_binary(Operator op, Reg a, Reg b, DType dtype);
  Value relation(Operator op, Value left, Value right);

  // ---- A float or an int (mixed.cpp) ----
  static bool mixes(const Value& a, const Value& b);
  static Value mixed(Reg is_int, const Value& a, const Value& b);
  Value as_float(const Value& v);
  Value likely(const Value& v);
  void unmix(Value& a, Value& b);
  void unmix_to_compare(Value& a, Value& b);
  Value operand(const Expr& e);
  void set_mixed(int variable, const Value& v);

  // What a call is given by place and by keyword.
  struct Arguments {
    std::vector<Value> places;
    std::map<std::string, Value> keywords;
  };

  // ---- Whole arrays (arrays.cpp) ----
  static bool is_array(const Value& v);
  Value elements(const Value& v);
  static void take_in(Elements& into, const Value& v);
  Operand operand_of(const Value& v) const;
  void check_numbers(const std::vector<Operand>& operands);
  Value elementwise(const Ufunc& f, std::vector<Value> given, const Value* out = nullptr);
  Value computed_into(const Ufunc& f, std::vector<Value> given, const Value& out);
  Value outer(const Ufunc& f, const std::vector<Value>& given);
  Value power(const Value& base, const Value& exponent);
  Value looped_over(const Ufunc& f, const Resolved& resolved, const std::vector<Value>& given,
                    const Value* out);
  Value in_place_of(const Value& out, const std::vector<Value>& given);
  Value array_operator(Operator op, std::vector<Value> given);
  Value truths(const Value& v);
  Value chosen(const Value& condition, Value x, Value y);
  std::vector<Value> arrays_of(const Elements& work) const;
  std::vector<Reg> lengths_of(const Value& v);
  Value in_memory(const Value& v);
  Value copied(const Value& array);
  Value new_array(DType dtype, const std::vector<Reg>& lengths);
  Value filled(DType dtype, const std::vector<Reg>& lengths, std::int64_t number);
  Value filled_with(DType dtype, const std::vector<Reg>& lengths, Reg number);
  Value full(const Value& lengths, const Value& number);
  void in_rows(ArrayReg array);
  Value as_numpy_lays_out(const Value& v);
  Value product(const std::string& name, const Value& left, const Value& right);
  Value flipped(const Value& v);
  Reg assigned_number(const Value& v, DType dtype);
  Value assigned_elements(const Value& v, DType dtype);
  Value as_elements_of(const Value& v, DType dtype);
  void fit(ArrayReg target, const Value& v);
  void assign_elements(ArrayReg target, const Value& v, bool is_new);
  void augment_array(Operator op, const Value& array, const Value& v);

  // ---- Reductions (reductions.cpp) ----
  // Along which axes of an array, and whether they stay, with one element each.
  struct Reduced {
    std::vector<bool> axes;
    bool stay = false;
    bool all() const { return std::ranges::find(axes, false) == axes.end(); }
  };
  static bool is_reduction(const std::string& name);
  Reduced reduced_axes(const std::string& name, const Value& v, const Arguments& rest) const;
  Value reduction(const std::string& name, const Value& v, const Arguments& rest);
  Value reduced_by(const std::string& name, const Value& given, const Reduced& reduced);
  Value along_axes(Step step, const Value& v, const Reduced& reduced);
  Value with_reduced_axes(const Value& made, const Reduced& reduced,
                          const std::vector<Reg>* lengths);
  void add_up(const Value& target, const Value& v);
  Value variance(const std::string& name, const Value& v, const Reduced& reduced);
  Value squares(const Value& v);
  Value root(const Value& v);
  Value norm(const Value& v, const Arguments& rest);
  static bool is_position(const std::string& name);
  Value positions(const std::string& name, const Value& v, const Arguments& rest);
  Reg position_of_extreme(bool largest, const Value& array, const std::vector<Reg>& index,
                          std::ptrdiff_t axis);
  Reg product_of(const std::vector<Reg>& lengths);
  Value mean_of(const Value& sums, const std::vector<Reg>& lengths, const Reduced& reduced);

  // ---- Items (items.cpp) ----
  // An index of an array: one number for an axis that goes, start, step and length for one that
  // stays.
  struct At {
    std::vector<Reg> args;
    std::vector<ir::program::Axis> axes;
    bool is_element = false;
    std::size_t left = 0;  // axes of the result
  };
  Value item(const Expr& e);
  std::vector<Value> indices(const Value& array, const Expr& e);
  static Value whole_slice();
  At at(const Value& array, const std::vector<Value>& parts);
  void whole_axis(const Value& array, int axis, At& where);
  void slice(const Value& array, int axis, const Value& slice, At& where);
  Reg whole_index(const Value& index);
  Reg index_of(const Value& index, Reg length);
  Value view(const Value& array, const At& where);
  Value transposed(const Value& array);
  void copy_array(ArrayReg to, ArrayReg from);
  Value load(const Value& array, const std::vector<Reg>& at);
  void store(const Value& array, std::vector<Reg> at, Reg element);
  Reg length(const Value& array, int axis);
  Reg to_store(const Value& v, DType dtype);

  // ---- Attributes (attributes.cpp) ----
  // One that the program assigns: where its value is, and the one at the beginning of the statement
  // of the loop's own text.
  struct Assigned {
    int object = 0;  // Given::object
    Value place, aside;
  };
  Value attribute(const Expr& e);
  void begin_attributes();
  const Assigned* assigned_attribute(int object) const;
  int attribute_target(const Expr& target);
  void set_attribute(int object, const Value& v);
  static bool has_twin(DType dtype);
  void put_attributes_aside(const Statement& s);

  // ---- Lists (lists.cpp) ----
  Value list_given(const Given& given, int variable);
  Value item_given(const Given& given);
  Value list_item(const Value& list, Reg index);
  Value read_item(const Value& like, Reg from, Reg index);
  Value list_length(const Value& list);
  Target list_target(const Value& list, Reg at, const Value& v, const std::vector<Target>& before);
  Reg object_of(Step step, const Value& v);
  void check_storable(const Value& v) const;
  Value list_method(const Value& list, const std::string& name, const Expr& e);
  Step list_step(Step::Kind kind, std::vector<Reg> args);
  bool is_noted();
  void note_item(const std::vector<Reg>& operands);

  // ---- Arrays as indices (selections.cpp) ----
  static bool has_arrays(const std::vector<Value>& key);
  Selection select(const Value& array, const std::vector<Value>& key);
  Reg broadcast_length(const std::vector<Value>& arrays, int rank, int axis);
  Step at_positions(Step::Kind kind, const Selection& selection);
  Reg count_true(const Selection& selection);
  std::vector<Reg> lengths_of(const Selection& selection);
  Value gathered(const Selection& selection);
  Written written_to(const Selection& selection, const Value& v);
  void check_broadcast(const Value& v, const std::vector<Reg>& lengths);
  void scatter(const Written& written);
  void augment_selection(const Statement& s, const Value& array, const std::vector<Value>& key);

  // ---- New arrays of others (stacks.cpp) ----
  Value array_of(const std::string& name, const std::vector<Value>& given);
  void flatten(const Value& v, std::size_t depth, std::vector<Value>& numbers,
               std::vector<std::size_t>& lengths) const;
  Value stacked(const std::string& name, const std::vector<Value>& given);
  int axis_of(const Value& given, int rank) const;
  Value behind_each_other(const std::vector<Value>& parts, int axis);
  Value with_new_axes(const Value& array, int before, int behind);
  Value triangle(bool upper, const std::vector<Value>& given);
  Value rolled(const std::vector<Value>& given);
  Value counted_up(const std::vector<Value>& given);
  Value summed_up(const Value& v);
  Value differences(const Value& v);
  Value part_of(const Value& array, int axis, Reg start, Reg count);

  // ---- Calls (calls.cpp) ----
  bool is_builtin(const Expr& e, const std::string& name);
  Value mixed_extreme(bool largest, const Value& first, const Value& second);
  Value of_two_numbers(const std::string& name, const std::vector<Value>& given);
  bool is_instance(const Value& v, const Value& type) const;
  Value math_float(Primitive p, const std::vector<Value>& given);
  Value number(const Expr& e);
  Value argument(const Expr& e);
  Arguments arguments(const Expr& e);
  static Arguments behind_first(Arguments all);
  Value call(const Expr& e);
  Value builtin(const std::string& name, const Expr& e);
  Value extreme(bool largest, const Expr& e);
  Value math(const std::string& name, const Expr& e);
  Value ufunc(const Ufunc& f, const Expr& e);
  Value of_numbers(const Ufunc& f, std::vector<Value> given);
  Value clipped(std::vector<Value> given);
  std::optional<Value> out_of(const Ufunc& f, Arguments& given) const;
  Value of_numpy(const std::string& name, const Expr& e);
  Value method(const Value& array, const std::string& name, const Expr& e);
  std::vector<Reg> shape(const Value& v);
  DType dtype_given(const Value& v);
  Value cast(DType dtype, const Expr& e);
  std::vector<Value> bound(const Given& called, const Expr& e);
  Value inlined(const Given& called, const Expr& e);
  void put_result(const Value& v);
  Value place_like(const Value& v);
  void put(Value& place, const Value& v);
  static void set_origin(Value& v, std::uint64_t arguments, std::uint64_t outside);
  void save_arguments(int instance, std::vector<Value>& arguments);
  void save(const Value& v);
  void release();
  void mark_changed(const Value& array);
  bool may_change(const Expr& e) const;

  // ---- Random numbers (draws.cpp) ----
  using Drawing = std::function<Value()>;  // writes the steps that draw one number
  Reg generator(const Given& given);
  Reg draw(Primitive p, DType dtype, std::vector<Reg> args);
  Value drawn(const Given& of, const std::string& method, const Expr& e);
  Drawing drawn_between(bool is_up, const Drawing& real, const std::vector<Value>& bounds);
  Drawing drawn_integer(Primitive p, Reg from, const std::vector<Value>& bounds, bool has_end);
  Drawing scaled(bool has_place, const Drawing& number, const std::vector<Value>& given);
  Drawing scaled_from(Reg low, Reg range, const Drawing& number);
  Value drawn_by_python(bool is_between, const Drawing& draws, std::vector<Value> given);
  Value drawn_by_call(Reg from, std::int64_t method, const std::vector<Value>& given,
                      bool gives_integer);
  Value filled_by(const Drawing& draws, DType dtype, const std::vector<Reg>& lengths);
  std::vector<Reg> reals(const std::vector<Value>& given);

  // ---- Steps (steps.cpp) ----
  Reg fresh(DType dtype);
  Reg register_of(int variable, DType dtype);
  ArrayReg array_register(int variable, DType dtype, int rank);
  Step& emit(Step step);
  Reg constant(DType dtype, ir::Scalar bits);
  Reg integer(std::int64_t value);
  Reg truth_constant(bool value);
  Reg compute(Op op, DType dtype, std::vector<Reg> args);
  Reg compute_primitive(Primitive p, DType dtype, std::vector<Reg> args);
  Reg primitive(Primitive p, DType dtype, std::vector<Reg> args);
  Reg cast_to(Reg reg, DType dtype);
  void copy(Reg to, Reg from);
  void guard(Reg truth);
  void finite(Reg result, std::vector<Reg> inputs);
  void leave(int exit);
  void poll();
  int exit();  // for what the statement at hand cannot do
  int exit(Exit::Kind kind, int statement, const Where& value = {});
  [[noreturn]] void fail(const std::string& why) const;
  DType dtype_of(Reg reg) const { return program_.registers[static_cast<std::size_t>(reg)].dtype; }
  // What `body` writes goes behind these steps.
  template <class Body>
  void write_to(Steps& steps, const Body& body) {
    Steps* const around = std::exchange(out_, &steps);
    body();
    out_ = around;
  }
  // What `body` writes, as steps of their own.
  template <class Body>
  Steps written(const Body& body) {
    Steps steps;
    write_to(steps, body);
    return steps;
  }

  // What `body(i)` writes, for each i from 0 below `count`.
  template <class Body>
  void for_each_below(Reg count, const Body& body) {
    Step each;
    each.kind = Step::Kind::Count;
    each.result = fresh(DType::Int64);
    each.args = {count};
    copy(each.result, integer(0));
    ++nesting_;
    each.body = written([&] { body(each.result); });
    --nesting_;
    emit(std::move(each));
  }

  const Loop& loop_;
  const Entered& entered_;
  World& world_;
  Marks& marks_;
  Program program_;
  Steps* out_ = nullptr;

  // Whose text is being written: the loop's own, or a function's that it calls.
  struct Scope {
    int instance = 0;
    const Function* function = nullptr;
    const std::vector<std::string>* names = nullptr;
    const std::vector<std::string>* outside = nullptr;
  };
  Scope scope_;
  Env env_;
  Env caller_;                   // the loop's own, while a function's text is being written
  std::vector<Scope> inlining_;  // the functions whose text is being written, outermost first

  // The statement of the loop's own text that is being written, its exit once it needs one, and the
  // line for messages.
  const Statement* statement_ = nullptr;
  int exit_ = kNone, line_ = 0;
  int begun_ = 0;                // the line of a statement of which no step has been written yet
  std::vector<ArrayReg> saved_;  // functions that it calls change them
  bool notes_items_ = false;     // they change lists
  bool has_drawn_ = false;       // the statement has drawn random numbers
  const Expr* whole_ = nullptr;  // the value of a statement that does nothing else than to keep it
  bool keeps_ = false;           // the statement may keep an array that it makes in a variable
  // The inner loop of the loop's own text of which a round is beginning, before its statements.
  const Statement* beginning_ = nullptr;

  // Where `break` and `continue` go.
  struct JumpTarget {
    int depth = 0;  // of Count, Repeat and Block steps at the round
    bool outermost = false;
    std::vector<Env> broken, continued;
    int break_depth = 0;  // the same at the block that a break leaves
    bool once = false;    // the round stands in a block of its own
  };
  std::vector<JumpTarget> jumps_;
  int nesting_ = 0, peeled_ = 0;
  std::vector<Rounds> rounds_;  // of inner loops of the loop's own text
  struct Returns {
    int depth = 0;
    std::optional<Value> result;
  };
  std::optional<Returns> returns_;

  std::map<std::pair<Key, DType>, Reg> registers_;
  std::map<std::pair<Key, std::pair<DType, int>>, ArrayReg> array_registers_;
  std::map<Key, Reg> tags_, selectors_;
  std::map<std::pair<Key, std::vector<int>>, Value> tuples_;  // registers for tuples in variables
  std::map<Key, std::vector<Value>> alternatives_;
  std::map<Reg, double> known_floats_;  // constants of Python's
  std::map<int, Value> outsiders_;      // numbers and arrays that stand outside
  std::map<int, Reg> generators_;       // of random numbers, likewise
  std::vector<Given> outside_;          // the same in the order of the bits of Value::outside
  std::vector<Assigned> assigned_;
};

}  // namespace ufuse::numpy_shim::program
