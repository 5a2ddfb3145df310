"""What does the text of a loop do, in the words of ``_core.Loop``?

``read`` turns a ``for`` or ``while`` statement of Python's syntax tree into nested tuples, which
``_core`` types and compiles. What these have no word for raises ``Unreadable``: such a loop stays
Python's, and the loops inside it are tried by themselves.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, NamedTuple

Node = tuple[Any, ...]
Loop = ast.For | ast.While
_LARGEST = 2**63


class Unreadable(Exception):
    """Why a loop is not read, and where that stands."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line


class Step(NamedTuple):
    """One step on the way from a loop to a statement in it.

    Attributes
    ----------
    owner : ast.stmt
        The statement that holds the block.
    block : list of ast.stmt
        Its ``body`` or ``orelse``.
    position : int
        Of the next statement on the way in the block.
    """

    owner: ast.stmt
    block: list[ast.stmt]
    position: int


class Text(NamedTuple):
    """What is read of a loop or of a function.

    Attributes
    ----------
    tree : tuple
        The statement, or the statements of the function.
    variables : tuple of str
        Names of local variables; ``("Local", i)`` in the tree is the i-th of them.
    outside : tuple of str
        Other names, ``("Outside", i)``.
    assigned : tuple of str
        The variables that the text assigns.
    statements : tuple of ast.stmt
        By number.
    ways : tuple of tuple of Step
        From the loop to each of them.
    why_not : str
        Why the loop is not read, if so. Then there is nothing in the text but the statement.
    """

    tree: Any
    variables: tuple[str, ...]
    outside: tuple[str, ...]
    assigned: tuple[str, ...]
    statements: tuple[ast.stmt, ...]
    ways: tuple[tuple[Step, ...], ...]
    why_not: str = ""


_BINARY = {
    ast.Add: "Add",
    ast.Sub: "Subtract",
    ast.Mult: "Multiply",
    ast.MatMult: "MatrixMultiply",
    ast.Div: "Divide",
    ast.FloorDiv: "FloorDivide",
    ast.Mod: "Remainder",
    ast.Pow: "Power",
    ast.LShift: "LeftShift",
    ast.RShift: "RightShift",
    ast.BitAnd: "BitAnd",
    ast.BitOr: "BitOr",
    ast.BitXor: "BitXor",
}
_UNARY = {ast.USub: "Negative", ast.UAdd: "Positive", ast.Invert: "Invert", ast.Not: "Not"}
_COMPARED = {
    ast.Lt: "Less",
    ast.LtE: "LessEqual",
    ast.Gt: "Greater",
    ast.GtE: "GreaterEqual",
    ast.Eq: "Equal",
    ast.NotEq: "NotEqual",
}
_NOTHING: Node = ("Nothing",)


class _Reader:
    def __init__(self, local: frozenset[str], fixed: frozenset[str]) -> None:
        self.local, self.fixed = local, fixed
        self.variables: dict[str, int] = {}
        self.outside: dict[str, int] = {}
        self.assigned: dict[str, None] = {}
        self.statements: list[ast.stmt] = []
        self.ways: list[tuple[Step, ...]] = []
        self.way: tuple[Step, ...] = ()
        self.in_while = False  # inside the loop

    # Statements.

    def statement(self, node: ast.stmt) -> Node:
        number = len(self.ways)
        self.ways.append(self.way)
        self.statements.append(node)
        read = getattr(self, f"read_{type(node).__name__}", None)
        if read is None:
            raise Unreadable(f"`{_words(node)}` statement", node.lineno)
        kind, targets, value, op, body, other = read(node)
        return kind, number, node.lineno, targets, value, op, body, other

    def block(self, owner: ast.stmt, block: list[ast.stmt]) -> tuple[Node, ...]:
        before, made = self.way, []
        for position, each in enumerate(block):
            self.way = (*before, Step(owner, block, position))
            made.append(self.statement(each))
        self.way = before
        return tuple(made)

    def read_Assign(self, node: ast.Assign) -> Node:
        value = self.expression(node.value)
        return "Assign", tuple(map(self.target, node.targets)), value, "", (), ()

    def read_AnnAssign(self, node: ast.AnnAssign) -> Node:
        if node.value is None or not isinstance(node.target, ast.Name):
            raise Unreadable("annotation", node.lineno)
        value = self.expression(node.value)
        return "Assign", (self.target(node.target),), value, "", (), ()

    def read_AugAssign(self, node: ast.AugAssign) -> Node:
        op = self.operator(node, node.op)
        target = self.target(node.target)
        return "Augment", (target,), self.expression(node.value), op, (), ()

    def read_For(self, node: ast.For) -> Node:
        self.look_at_end(node)
        over = self.argument(node.iter)
        target = self.target(node.target)
        body, other = self.block(node, node.body), self.block(node, node.orelse)
        return "For", (target,), over, "", body, other

    def look_at_end(self, node: Loop) -> None:
        if jumps(node.orelse):
            raise Unreadable("`break` or `continue` in an `else`", node.lineno)

    def read_While(self, node: ast.While) -> Node:
        self.look_at_end(node)
        before, self.in_while = self.in_while, bool(self.way)
        test = self.expression(node.test)
        body = self.block(node, node.body)
        self.in_while = before
        return "While", (), test, "", body, self.block(node, node.orelse)

    def read_If(self, node: ast.If) -> Node:
        test = self.expression(node.test)
        return "If", (), test, "", self.block(node, node.body), self.block(node, node.orelse)

    def read_Assert(self, node: ast.Assert) -> Node:
        return "Assert", (), self.expression(node.test), "", (), ()

    def read_Break(self, node: ast.Break) -> Node:
        return "Break", (), _NOTHING, "", (), ()

    def read_Continue(self, node: ast.Continue) -> Node:
        return "Continue", (), _NOTHING, "", (), ()

    def read_Pass(self, node: ast.Pass) -> Node:
        return "Pass", (), _NOTHING, "", (), ()

    def read_Raise(self, node: ast.Raise) -> Node:
        return "Raise", (), _NOTHING, "", (), ()

    def read_Return(self, node: ast.Return) -> Node:
        value = _NOTHING if node.value is None else self.expression(node.value)
        return "Return", (), value, "", (), ()

    def read_Expr(self, node: ast.Expr) -> Node:
        if isinstance(node.value, ast.Constant):
            return self.read_Pass(ast.Pass())
        return "Evaluate", (), self.expression(node.value), "", (), ()

    # Targets.

    def target(self, node: ast.expr) -> Node:
        if isinstance(node, ast.Name):
            if node.id not in self.local or node.id in self.fixed:
                raise Unreadable(
                    f"`{node.id}`, which other functions see, is assigned", node.lineno
                )
            self.assigned[node.id] = None
            return self.local_name(node.id)
        if isinstance(node, (ast.Tuple, ast.List)):
            return "Tuple", *map(self.target, node.elts)
        if isinstance(node, ast.Subscript):
            return "Item", self.expression(node.value), self.expression(node.slice)
        if isinstance(node, ast.Attribute):
            return self.value_Attribute(node)
        raise Unreadable(f"{_words(node)} is assigned", node.lineno)

    # Expressions.

    def expression(self, node: ast.expr) -> Node:
        read = getattr(self, f"value_{type(node).__name__}", None)
        if read is None:
            raise Unreadable(_words(node), node.lineno)
        made: Node = read(node)
        return made

    def check_name(self, name: str) -> None:
        if name.startswith("__") and not name.endswith("__"):
            raise Unreadable(f"`{name}`, which Python changes in a class", 0)

    def local_name(self, name: str) -> Node:
        self.check_name(name)
        return "Local", self.variables.setdefault(name, len(self.variables))

    def operator(self, node: ast.AST, op: ast.operator) -> str:
        if type(op) not in _BINARY:
            raise Unreadable("a matrix product", getattr(node, "lineno", 0))
        return _BINARY[type(op)]

    def value_Constant(self, node: ast.Constant) -> Node:
        value = node.value
        if value is None:
            return _NOTHING
        if value is ...:
            return ("Ellipsis",)
        if isinstance(value, bool):
            return "Bool", value
        if isinstance(value, int) and value < _LARGEST:
            return "Int", value
        if isinstance(value, float):
            return "Float", value
        if isinstance(value, complex):
            return "Complex", value.real, value.imag
        raise Unreadable(f"the constant {value!r}", node.lineno)

    def value_Name(self, node: ast.Name) -> Node:
        if node.id in self.local:
            # In the rest of a round that Python does it is a copy, and might never change.
            if self.in_while and node.id in self.fixed:
                raise Unreadable(f"`{node.id}`, which other functions see, in a while", node.lineno)
            return self.local_name(node.id)
        return "Outside", self.outside.setdefault(node.id, len(self.outside))

    def value_Attribute(self, node: ast.Attribute) -> Node:
        self.check_name(node.attr)
        return "Attribute", self.expression(node.value), node.attr

    def value_UnaryOp(self, node: ast.UnaryOp) -> Node:
        return "Unary", _UNARY[type(node.op)], self.expression(node.operand)

    def value_BinOp(self, node: ast.BinOp) -> Node:
        op = self.operator(node, node.op)
        return "Binary", op, self.expression(node.left), self.expression(node.right)

    def value_Compare(self, node: ast.Compare) -> Node:
        first = node.comparators[0]
        if (
            isinstance(node.ops[0], (ast.Is, ast.IsNot))
            and isinstance(first, ast.Constant)
            and first.value is None
        ):
            return "Compare", (type(node.ops[0]).__name__,), self.expression(node.left), _NOTHING
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            return self.membership(node, first)
        if not all(type(op) in _COMPARED for op in node.ops):
            raise Unreadable("`is` or `in`", node.lineno)
        ops = tuple(_COMPARED[type(op)] for op in node.ops)
        return "Compare", ops, *map(self.expression, [node.left, *node.comparators])

    def membership(self, node: ast.Compare, among: ast.expr) -> Node:
        """``x in (1, 2)``: equal to one of some numbers."""
        numbers = among.elts if isinstance(among, (ast.Tuple, ast.List, ast.Set)) else []
        are_written = numbers and all(isinstance(each, ast.Constant) for each in numbers)
        if not are_written or not isinstance(node.left, ast.Name):
            raise Unreadable("`in` something else than numbers that are written there", node.lineno)
        left = self.expression(node.left)
        equal: list[Node] = [("Compare", ("Equal",), left, self.expression(n)) for n in numbers]
        found: Node = equal[0] if len(equal) == 1 else ("Or", *equal)
        is_in = isinstance(node.ops[0], ast.In)
        return "Choice", found, ("Bool", is_in), ("Bool", not is_in)

    def value_BoolOp(self, node: ast.BoolOp) -> Node:
        kind = "And" if isinstance(node.op, ast.And) else "Or"
        return kind, *map(self.expression, node.values)

    def value_IfExp(self, node: ast.IfExp) -> Node:
        return "Choice", *map(self.expression, [node.test, node.body, node.orelse])

    def value_Subscript(self, node: ast.Subscript) -> Node:
        return "Item", self.expression(node.value), self.expression(node.slice)

    def value_Slice(self, node: ast.Slice) -> Node:
        parts = (node.lower, node.upper, node.step)
        return "Slice", *(_NOTHING if each is None else self.expression(each) for each in parts)

    def value_Tuple(self, node: ast.Tuple) -> Node:
        return "Tuple", *map(self.expression, node.elts)

    def argument(self, node: ast.expr) -> Node:
        if isinstance(node, ast.List):
            return "List", *map(self.argument, node.elts)
        return self.expression(node)

    def value_Call(self, node: ast.Call) -> Node:
        given: list[Node] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                raise Unreadable("a call with `*`", node.lineno)
            given.append(self.argument(each))
        for keyword in node.keywords:
            if keyword.arg is None:
                raise Unreadable("a call with `**`", node.lineno)
            given.append(("Keyword", keyword.arg, self.argument(keyword.value)))
        return "Call", self.expression(node.func), *given


def _words(node: ast.AST) -> str:
    """What a kind of syntax is called, for people."""
    name = type(node).__name__
    return {"ListComp": "a comprehension", "Starred": "`*`", "Call": "a call"}.get(
        name, name.lower()
    )


def read(loop: Loop, local: frozenset[str], fixed: frozenset[str]) -> Text:
    """Read a loop.

    Parameters
    ----------
    loop : ast.For or ast.While
        The statement.
    local : frozenset of str
        The names that are variables of its function.
    fixed : frozenset of str
        Those of them that functions inside it see: they are read only.

    Returns
    -------
    Text

    Raises
    ------
    Unreadable
        For what has no word.
    """
    reader = _Reader(local, fixed)
    tree = reader.statement(loop)
    return _text(reader, tree)


def unread(loop: Loop, why_not: str) -> Text:
    """The text of a loop that is not read."""
    empty: Loop = ast.While(ast.Constant(True), [ast.Pass()], [])
    if isinstance(loop, ast.For):
        empty = ast.For(ast.Name("_"), ast.Name("_"), [ast.Pass()], [])
    for each in (empty, *empty.body):
        each.lineno = loop.lineno
    text = read(empty, frozenset("_"), frozenset())
    return text._replace(assigned=(), statements=(loop,), why_not=why_not)


def read_function(definition: ast.FunctionDef | ast.Lambda, local: frozenset[str]) -> Text:
    """Read the statements of a function, whose parameters are the first variables.

    Raises
    ------
    Unreadable
        For what has no word, and where the parameters are more than a list of names.
    """
    arguments = definition.args
    plain = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg or arguments.kwarg or arguments.kwonlyargs:
        raise Unreadable("parameters with `*`", definition.lineno)
    reader = _Reader(local, frozenset())
    for each in plain:
        reader.local_name(each.arg)
    if isinstance(definition, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(definition.body), definition.body)]
        tree = reader.block(body[0], body)
    else:
        tree = reader.block(definition, definition.body)
    return _text(reader, tree)


def _text(reader: _Reader, tree: Any) -> Text:
    names = tuple(reader.variables), tuple(reader.outside), tuple(reader.assigned)
    return Text(tree, *names, tuple(reader.statements), tuple(reader.ways))


def jumps(block: list[ast.stmt]) -> bool:
    """Whether statements break or continue a loop around them."""
    for each in block:
        if isinstance(each, (ast.Break, ast.Continue)):
            return True
        inner = [] if isinstance(each, (ast.For, ast.While)) else getattr(each, "body", [])
        if jumps(inner) or jumps(getattr(each, "orelse", [])):
            return True
    return False


def loops(body: list[ast.stmt]) -> Iterator[Loop]:
    """The outermost loops among statements, those of functions inside them not counted."""
    for each in body:
        if isinstance(each, (ast.For, ast.While)):
            yield each
        elif not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for block in ("body", "orelse", "finalbody"):
                yield from loops(getattr(each, block, []))
            for handler in getattr(each, "handlers", []):
                yield from loops(handler.body)
