// See text.h. Each kind has the name of its enumerator.
#include "pyext/bind/programs/text.h"

#include <string_view>
#include <unordered_map>

namespace ufuse::pyext {
namespace {

using numpy_shim::program::Expr;
using numpy_shim::program::Operator;
using numpy_shim::program::Statement;
using numpy_shim::program::Statements;

template <class Kind>
using Names = std::unordered_map<std::string_view, Kind>;

const Names<Expr::Kind>& expressions() {
  using enum Expr::Kind;
  static const Names<Expr::Kind> names = {
      {"Int", Int},         {"Float", Float},         {"Complex", Complex},
      {"Bool", Bool},       {"Nothing", Nothing},     {"Local", Local},
      {"Outside", Outside}, {"Attribute", Attribute}, {"Unary", Unary},
      {"Binary", Binary},   {"Compare", Compare},     {"And", And},
      {"Or", Or},           {"Choice", Choice},       {"Item", Item},
      {"Slice", Slice},     {"Tuple", Tuple},         {"List", List},
      {"Call", Call},       {"Keyword", Keyword},     {"Ellipsis", Ellipsis}};
  return names;
}

const Names<Statement::Kind>& kinds_of_statements() {
  using enum Statement::Kind;
  static const Names<Statement::Kind> names = {
      {"Assign", Assign}, {"Augment", Augment}, {"For", For},     {"While", While},
      {"If", If},         {"Assert", Assert},   {"Break", Break}, {"Continue", Continue},
      {"Return", Return}, {"Pass", Pass},       {"Raise", Raise}, {"Evaluate", Evaluate}};
  return names;
}

const Names<Operator>& operators() {
  using enum Operator;
  static const Names<Operator> names = {{"Add", Add},
                                        {"Subtract", Subtract},
                                        {"Multiply", Multiply},
                                        {"Divide", Divide},
                                        {"FloorDivide", FloorDivide},
                                        {"Remainder", Remainder},
                                        {"Power", Power},
                                        {"MatrixMultiply", MatrixMultiply},
                                        {"LeftShift", LeftShift},
                                        {"RightShift", RightShift},
                                        {"BitAnd", BitAnd},
                                        {"BitOr", BitOr},
                                        {"BitXor", BitXor},
                                        {"Negative", Negative},
                                        {"Positive", Positive},
                                        {"Invert", Invert},
                                        {"Not", Not},
                                        {"Less", Less},
                                        {"LessEqual", LessEqual},
                                        {"Greater", Greater},
                                        {"GreaterEqual", GreaterEqual},
                                        {"Equal", Equal},
                                        {"NotEqual", NotEqual},
                                        {"Is", Is},
                                        {"IsNot", IsNot}};
  return names;
}

py::handle item(const py::handle& tuple, std::size_t at) {
  if (!PyTuple_Check(tuple.ptr()) || at >= static_cast<std::size_t>(PyTuple_GET_SIZE(tuple.ptr())))
    throw py::type_error("a loop's text is a tree of tuples");
  return PyTuple_GET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(at));
}

template <class Kind>
Kind named(const Names<Kind>& names, const py::handle& name) {
  const auto text = name.cast<std::string>();
  const auto it = names.find(text);
  if (it == names.end()) throw py::value_error("a loop's text has no `" + text + "`");
  return it->second;
}

Expr read_expression(const py::handle& tree) {
  using enum Expr::Kind;
  Expr e;
  e.kind = named(expressions(), item(tree, 0));
  std::size_t first = 1;  // of the parts
  const auto count = static_cast<std::size_t>(PyTuple_GET_SIZE(tree.ptr()));
  switch (e.kind) {
    case Int:
    case Local:
    case Outside:
      e.integer = item(tree, 1).cast<std::int64_t>();
      return e;
    case Bool:
      e.integer = item(tree, 1).cast<bool>();
      return e;
    case Float:
      e.real = item(tree, 1).cast<double>();
      return e;
    case Complex:
      e.real = item(tree, 1).cast<double>();
      e.imag = item(tree, 2).cast<double>();
      return e;
    case Nothing:
    case Ellipsis:
      return e;
    case Attribute:
      e.name = item(tree, 2).cast<std::string>();
      e.parts.push_back(read_expression(item(tree, 1)));
      return e;
    case Keyword:
      e.name = item(tree, 1).cast<std::string>();
      first = 2;
      break;
    case Unary:
    case Binary:
      e.op = named(operators(), item(tree, 1));
      first = 2;
      break;
    case Compare:
      for (const py::handle& op : item(tree, 1).cast<py::tuple>())
        e.ops.push_back(named(operators(), op));
      first = 2;
      break;
    case And:
    case Or:
    case Choice:
    case Item:
    case Slice:
    case Tuple:
    case List:
    case Call:
      break;
  }
  for (std::size_t i = first; i < count; ++i) e.parts.push_back(read_expression(item(tree, i)));
  return e;
}

}  // namespace

Statement read_statement(const py::handle& tree) {
  Statement s;
  s.kind = named(kinds_of_statements(), item(tree, 0));
  s.number = item(tree, 1).cast<int>();
  s.line = item(tree, 2).cast<int>();
  for (const py::handle& target : item(tree, 3).cast<py::tuple>())
    s.targets.push_back(read_expression(target));
  s.value = read_expression(item(tree, 4));
  if (py::len(item(tree, 5)) != 0) s.op = named(operators(), item(tree, 5));
  s.body = read_statements(item(tree, 6));
  s.other = read_statements(item(tree, 7));
  return s;
}

Statements read_statements(const py::handle& trees) {
  Statements list;
  for (const py::handle& tree : trees.cast<py::tuple>()) list.push_back(read_statement(tree));
  return list;
}

std::vector<std::string> read_names(const py::handle& names) {
  std::vector<std::string> list;
  for (const py::handle& name : names.cast<py::tuple>()) list.push_back(text_of(name.ptr()));
  return list;
}

}  // namespace ufuse::pyext
