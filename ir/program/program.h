// What is a loop of Python's once its types are known? Structured statements over registers.
//
// A Program is one `for` or `while` loop, with the loops and branches inside it. Numbers are
// registers, arrays are descriptors (an address, lengths, strides) that are known at run time.
// Every operation says which dtype it computes in; nothing is promoted or defaulted here. Made by
// numpy_shim/program, which knows what Python and NumPy mean by an operator; printed as C++ by
// codegen/program.
//
// What a program cannot do as Python would (an exception, a warning, an integer beyond 64 bits) it
// leaves to Python: it *exits* before the statement in question has had any effect, and tells where
// each variable is. So every statement of the user's first computes and checks, and only then
// assigns and stores. Functions that it calls stand in its place with their own statements, and may
// change arrays before: these are saved, and put back where the program exits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/graph.h"

namespace ufuse::ir::program {

// A register holds one number of its dtype, a truth where that is Bool. One of UInt64 may hold an
// object of Python's instead: its address. The steps below that are about lists say so.
using Reg = int;
inline constexpr Reg kNone = -1;
struct Register {
  DType dtype = DType::Int64;
  std::string name;  // of the variable that it holds; empty: none
};

// A descriptor of an array: address, lengths, strides in bytes. Elements are whole, native and
// aligned.
using ArrayReg = int;
struct ArrayRegister {
  DType dtype = DType::Float64;
  int rank = 0;
  std::string name;
};

// Whose number is it to Python: a bool, int, float or complex of its own, or a NumPy scalar?
// Either: the truth `numpy` says so at run time; the dtype is the one that both share.
enum class Box : std::uint8_t { Python, NumPy, Either };

// Where a variable's value is when Python goes on.
struct Where {
  enum class Kind : std::uint8_t {
    Unbound,
    Nothing,  // None
    Same,     // what variable `reg` held when the program was entered
    Number,   // reg, box, numpy
    Array,    // reg is an ArrayReg
    Object,   // reg
    Tuple,    // parts
    OneOf,    // parts, of which the register `reg` has the position
  };
  Kind kind = Kind::Unbound;
  int reg = kNone;
  Box box = Box::Python;
  Reg numpy = kNone;
  std::vector<Where> parts;
  friend bool operator==(const Where&, const Where&) = default;
};

// What a `for` goes over.
struct Over {
  enum class Kind : std::uint8_t {
    Range,      // count numbers, from `start` in steps of `step`
    Array,      // array
    List,       // list
    Tuple,      // items
    Enumerate,  // parts[0], counted from `start` on
    Zip,        // parts, side by side
  };
  Kind kind = Kind::Range;
  bool strict = false;  // Zip: parts of different lengths are an error of Python's
  Reg count = kNone, start = kNone, step = kNone;
  ArrayReg array = kNone;
  Reg list = kNone;
  std::vector<Where> items;
  std::vector<Over> parts;
};

// The rounds of a `for`: the position of the one at hand, and how many there are. Over nothing but
// a list, which may become longer or shorter meanwhile, `count` is the list.
struct Rounds {
  int loop = 0;  // the user's statement
  Reg position = kNone, count = kNone;
  Over over;
};

struct Exit {
  enum class Kind : std::uint8_t {
    Leave,      // Python goes on before `statement`
    Exhausted,  // the loop has ended: Python goes on with its `else`
    Broke,      // by `break`
    Returned,   // the function returns `value`
  };
  Kind kind = Kind::Leave;
  int statement = 0;
  std::vector<Where> variables;  // by number of the variable, and then of the attributes
  Where value;
  std::vector<Rounds> loops;  // inside the program, outermost first
  bool at_round = false;      // Leave: before the next round of the inner loop that is `statement`
};

// What Python's and NumPy's scalars do beyond the rows of ops.def.
enum class Primitive : std::uint8_t {
#define PRIMITIVE(id, name, leaves, cpp) id,
#include "ir/program/primitives.def"
#undef PRIMITIVE
};
struct PrimitiveInfo {
  std::string_view name;
  bool leaves;                  // the expression is true where the program has to exit
  std::string_view expression;  // C++ over x0, x1 and T; `r` is the result where it leaves
};
const PrimitiveInfo& primitive_info(Primitive p);

// What a view does with an axis. Repeat: a new one, along which the same elements stand again and
// again.
enum class Axis : std::uint8_t { Index, Slice, New, Repeat };

struct Step;
using Steps = std::vector<Step>;
struct Step {
  enum class Kind : std::uint8_t {
    Constant,  // result = constant
    Copy,      // result = args[0]
    Cast,      // result = args[0] as the result's dtype
    Compute,   // result = op(args), a row of ops.def
    Call,      // result = primitive(args); exits where it says so
    Loop,      // result = NumPy's inner loop `row`, output `slot`, of one element; exits where it
               // raises a flag
    Finite,    // exits where args[0], computed of the other args, shows a flag that NumPy reports
    Length,    // result = length of axis `axis` of `array`
    Load,      // result = array[args]
    Store,     // array[args...] = last of args
    View,      // target = array, at args: of each axis of `array` an index or a slice, and new axes
    Transpose,  // target = array, with its axes in reverse
    SameArray,  // target = array
    // Whole arrays: first everything that may fail, then what is assigned.
    Fit,       // exits where the arrays do not broadcast to target, target is large, or elements of
               // it share memory
    Elements,  // body once for each element of target, with those of `arrays` in args, matched from
               // the last axis on; then target = result. What overlaps target is read before. Where
               // it `raises`, exits at a flag: where it is computed `aside`, nothing has been
               // written then, else target may have been, and nothing else. Where target
               // repeats its elements, and is read where it is written, they are computed one after
               // the other
    NewArray,  // target = a new array of the lengths args, without values; exits where that is
               // large
    InRows,    // exits where NumPy would not lay out what is computed of the arrays in rows
    InOneRow,  // exits where an array has fewer than two elements, or they do not stand side by
               // side in the order of their indices
    LoopOver,  // target = NumPy's inner loop `row` over `arrays`, of target's shape, or over the
               // number of args where an array is kNone; exits at a flag, and where NumPy would
               // call the loop in another way
    Reduce,  // result = NumPy's inner loop `row` over all elements of `arrays[0]`, from args[0] on;
             // without args from the first element on. Or target, which has one element along the
             // axes that are reduced. Exits as LoopOver does
    // Elements at positions: the axes of an array from `axis` on are indexed by `arrays`, integers
    // for one axis each, or one mask for as many axes as it has. The positions have the lengths
    // args.
    CountTrue,  // result = how much of the mask is true; exits where its lengths are others than
                // those of the axes of `array`
    Within,     // exits where a position is outside of `array`
    Gather,     // target = array at the positions, whose axes come first in it; exits where a
                // position is outside, and where NumPy would not lay out the others in rows
    Apart,      // exits where `target` may share memory with itself or with one of `arrays`, or
                // lies less than `gap` bytes from it
    Scatter,  // target at the positions = `array`, which broadcasts; where that is kNone, the last
              // of args
    Product,  // result or target = the matrix product of two arrays, by NumPy's inner loop `row`
    Dot,      // result = np.dot of two vectors, by the same loop
    Save,     // keeps the elements of `array` aside: wherever the program exits before the Release,
              // they are put back; exits where they are many
    Release,  // `arrays`, which have been saved, stay as they are
    // Lists of Python's, which hold numbers, of its own or NumPy's (`of_numpy`), tuples of these,
    // or such lists. An item is args[1] of the list args[0], counted from its end where that is
    // negative.
    ListLength,  // result = how many items the list args[0] has
    ListItem,  // result = an item of a list, or of a tuple that another one gave; exits where there
               // is none of the result's dtype and kind (UInt64: a list; or where `axis` is above
               // zero, a tuple of so many), and at a NaN
    ObjectFor,  // result = the object that an item, which is a number, becomes where args[2] is put
                // there; exits where it is no number, at a NaN, and where there is no memory
    StoreItem,  // an item = the number args[2], by the object args[3] that is for it
    NewObject,  // result = an object of the number args[0]; exits as ObjectFor does
    AppendItem,  // the object args[1] behind the items of args[0]; exits where there is no memory
    NoteItem,    // keeps the item of StoreItem aside, which has the same args, and gets them back
               // where the program exits before the next KeepItems; exits where there is no memory
    NoteEnd,    // the same of AppendItem
    KeepItems,  // what has been noted stays as it is now
    Guard,      // exits where args[0] is false
    Poll,       // asks from time to time whether to go on; the attributes can be seen then
    Chance,     // for tests: exits where so many of these steps have been passed
    If,         // where args[0]: body, else other
    Count,      // for result from 0 below args[0], or, of a list, how many items it has then: body
    Repeat,     // for ever: body
    Break,      // out of the Count, Repeat or Block that is `depth` levels out (0: the innermost)
    Continue,   // the next round of that loop
    Block,      // body, once
    Exit,       // always
  };
  Kind kind = Kind::Copy;
  Reg result = kNone;
  std::vector<Reg> args;
  Scalar constant;
  Op op = Op::Add;
  Primitive primitive = Primitive::AddChecked;
  std::uint32_t row = 0, slot = 0;
  ArrayReg array = kNone, target = kNone;
  int axis = 0;
  std::vector<ArrayReg> arrays;
  // Elements: whether a flag may be raised that NumPy reports. Dot: whether it exits
  // there.
  // ObjectFor: `aside`, where the object must not be the item itself, as another number.
  bool raises = false, aside = false;
  bool of_numpy = false;  // ListItem, ObjectFor, NewObject: the number is NumPy's
  // View: what args have of each axis of `array`, one index, or start, step and length; and where
  // there is a new axis, with its length where elements are repeated.
  std::vector<Axis> axes;
  int gap = 0;
  int run = 0;  // Reduce, to a number: the loop is called for so many elements at once; 0: for all
  int depth = 0;
  int exit = kNone;  // position in Program::exits
  int line = 0;      // of the loop's own statement that it begins
  Steps body, other;
};

// What the program is entered with.
struct Input {
  enum class From : std::uint8_t { Variable, Outside, Iterable, Generator };
  From from = From::Variable;
  // Of the variable, or of the value from outside; Iterable: of the arrays and lists that the loop
  // goes over. Generator: of random numbers, from outside, of which a register gets the address.
  int index = 0;
  Where value;  // the registers that it goes to
};

// An attribute of an object outside that the program assigns.
struct Attribute {
  int index = 0;  // as in Input
  Where value;    // at the beginning, and between two statements
};

struct Program {
  std::vector<Register> registers;
  std::vector<ArrayRegister> arrays;
  std::vector<std::string> variables;  // the user's names, and then those of the attributes
  std::vector<Attribute> attributes;
  std::vector<Input> inputs;
  // The head's own state, of a `for`.
  std::optional<Rounds> head;
  Steps body;
  std::vector<Exit> exits;
  int first_line = 0;
  bool has_chances = false;      // it may be told to exit at any statement
  bool computes_arrays = false;  // whole ones, as long as they are small
  bool uses_lists = false;
};

std::string print(const Program& program);
// Throws InternalError where a register is used with another dtype than it has, an exit is missing,
// or a jump leads nowhere.
void verify(const Program& program, const LoopTable& loops);

}  // namespace ufuse::ir::program
