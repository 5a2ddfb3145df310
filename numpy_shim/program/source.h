// What does the text of a loop say? Python's statements and expressions, before anything is known
// of types. pyext reads it from Python's syntax tree, and answers what names stand for (`World`);
// typing.h makes a Program of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/dtype.h"
#include "ir/program/program.h"
#include "numpy_shim/ufunc.h"

namespace ufuse::numpy_shim::program {

enum class Operator : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  Divide,
  FloorDivide,
  Remainder,
  Power,
  MatrixMultiply,
  LeftShift,
  RightShift,
  BitAnd,
  BitOr,
  BitXor,
  Negative,
  Positive,
  Invert,
  Not,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  Equal,
  NotEqual,
  Is,
  IsNot,
};

struct Expr {
  enum class Kind : std::uint8_t {
    Int,        // integer
    Float,      // real
    Complex,    // real, imag
    Bool,       // integer
    Nothing,    // None, and what a slice leaves out
    Local,      // integer: the variable's number
    Outside,    // integer: the number of a global, builtin or enclosing name
    Attribute,  // parts[0].name
    Unary,      // op parts[0]
    Binary,     // parts[0] op parts[1]
    Compare,    // parts[0] ops[0] parts[1] ops[1] parts[2] ...
    And,        // parts
    Or,
    Choice,    // parts[1] if parts[0] else parts[2]
    Item,      // parts[0][parts[1]]
    Slice,     // parts: start, stop, step
    Ellipsis,  // stands in an index only
    Tuple,     // parts
    List,      // parts; stands among the arguments of a call only, and in the head of a `for`
    Call,      // parts[0](parts[1], ...), the last ones of which may be
    Keyword,   // name=parts[0]
  };
  Kind kind = Kind::Nothing;
  std::int64_t integer = 0;
  double real = 0, imag = 0;
  std::string name;
  Operator op = Operator::Add;
  std::vector<Operator> ops;
  std::vector<Expr> parts;
};

struct Statement;
using Statements = std::vector<Statement>;
struct Statement {
  enum class Kind : std::uint8_t {
    Assign,   // targets = value
    Augment,  // targets[0] op= value
    For,      // for targets[0] in value: body, other
    While,    // while value: body, other
    If,       // if value: body, other
    Assert,   // value
    Break,
    Continue,
    Return,  // value
    Pass,
    Raise,     // left to Python
    Evaluate,  // value
  };
  Kind kind = Kind::Pass;
  int number = 0;  // in the order of the text
  int line = 0;
  std::vector<Expr> targets;
  Expr value;
  Operator op = Operator::Add;
  Statements body, other;
};

struct Given;

// A function that the loop calls, whose text stands in the place of the call.
struct Function {
  std::vector<std::string> variables;  // parameters first
  std::size_t parameters = 0;
  std::size_t unnamed = 0;  // parameters that are not given by name
  std::vector<std::string> outside;
  std::vector<Given> defaults;  // of the last parameters
  Statements body;
  const void* code = nullptr;  // where two functions have the same one, they have the same text
};

struct Loop {
  std::vector<std::string> variables;
  std::vector<std::string> outside;  // names that are no variables
  Statement statement;               // For or While
};

// What a name stands for when the program is entered.
struct Given {
  enum class Kind : std::uint8_t {
    Unbound,
    Nothing,    // None
    Number,     // dtype, box; and `known`, where it never changes
    Array,      // dtype, rank
    Tuple,      // parts
    List,       // parts: one item, which stands for all; of an empty list none
    Object,     // what has attributes: `object` is the world's number of it
    Builtin,    // `name`
    Math,       // `name` of the module math
    Ufunc,      // ufunc
    NumPy,      // `name` of a function of NumPy's that is no ufunc
    DType,      // a scalar type of NumPy's: dtype
    Function,   // function; of a method `self`
    Generator,  // of random numbers; `name` of its class
    Draw,       // the method `name` of the generator `self`
    Other,      // nothing that a program can use; it may hold it
  };
  Kind kind = Kind::Other;
  ir::DType dtype = ir::DType::Int64;
  ir::program::Box box = ir::program::Box::Python;
  int rank = 0;
  bool writeable = false;
  std::vector<Given> parts;
  int object = -1;              // the world's number of what stands outside
  std::uintptr_t identity = 0;  // Other, in a variable: tells functions, modules and classes apart
  std::string name;
  const Ufunc* ufunc = nullptr;
  std::shared_ptr<const Function> function;
  std::shared_ptr<const Given> self;  // what a function is called with before its arguments
  friend bool operator==(const Given&, const Given&) = default;
};

// What pyext knows of Python's objects.
class World {
 public:
  virtual ~World() = default;
  // What a name outside of the loop's function, or of one that it calls, stands for. It stays so
  // while the program runs; the world sees to it that it is so when the program is entered.
  virtual Given outside(const Function* function, int name) = 0;
  // What a variable of the loop that has an identity holds at its beginning.
  virtual Given variable(int number) = 0;
  virtual Given attribute(const Given& object, const std::string& name) = 0;
  // Whether the program may assign it: the object itself has it, no code runs, and no other name
  // leads to it. The world sees to this, too, when the program is entered.
  virtual bool is_assignable(const Given& object, const std::string& name) = 0;
  // An attribute (Given::object) may be Python's number or NumPy's when the program is entered.
  virtual void accept_either(int attribute) = 0;
  // NumPy's own, by its name.
  virtual const Ufunc& ufunc(const std::string& name) = 0;
  virtual ir::LoopTable& loops() = 0;

  NumpyVersion version;  // whose rules hold
  // Python computes a real and a complex number part by part (from 3.14 on), instead of taking the
  // real number for a complex one.
  bool combines_by_parts = false;
};

}  // namespace ufuse::numpy_shim::program
