"""The same module in which each operation tells its value.

``marked(text, file, told, before)`` gives the code of a module. It runs as the text does, with the
same names, lines and columns, and calls ``told(value, operation)`` with the value of each call,
operator and index; nothing is evaluated twice but what ``x += y`` changes.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from ufuse import _core

from .sites import Chain, chain_of
from .text import copied

_LONGEST_TEXT = 200
# Arguments that say where and how, and are no operands.
_NO_OPERANDS = frozenset(["out", "where", "dtype", "axis"])


class Operand(NamedTuple):
    """Where the value of an operand is found while an operation tells its own.

    Attributes
    ----------
    text : str
        As in the program.
    kind : {"name", "operation", "number", "parts", "unknown"}
        A name or a chain of attributes; an operation, which has told its value just before; a
        number of the text; several operands; anything else.
    value : tuple or number
        Of a name the chain ``("self", "x")``; of a number itself; of several these operands.
    """

    text: str
    kind: str
    value: Any = None


class Operation(NamedTuple):
    """An operation of a program's text.

    Attributes
    ----------
    text, file, line : str, str, int
        Long texts are cut.
    statement : int
        Differs from statement to statement of a file.
    kind : str
        ``"Call"``, ``"Subscript"``, or the class in ``ast`` of an operator: ``"Add"``, ``"USub"``.
    changes : bool
        ``x += y``, whose value is ``x`` afterwards; what it was is the first operand.
    keywords : frozenset of str
        The names of a call's arguments that have one. ``out=`` is changed by it.
    function : tuple of str
        Of a call of ``np.log``: ``("np", "log")``; of ``(x + y).sum`` this is ``("", "sum")``.
    operands : tuple of Operand
    """

    text: str
    file: str
    line: int
    statement: int
    kind: str
    changes: bool
    keywords: frozenset[str]
    function: Chain
    operands: tuple[Operand, ...]


Told = Callable[[Any, Operation], Any]


def marked(
    program: str | bytes | ast.Module | ast.Expression, file: str, told: Told, before: Told
) -> types.CodeType:
    """The code of a module, or of an expression, whose operations tell their values.

    Parameters
    ----------
    program : str, bytes, ast.Module or ast.Expression
        A module's source, or what Python has parsed, which is changed.
    file : str
        Its name, for tracebacks.
    told : callable
        ``told(value, operation)`` stands in the place of each operation, and gives the value. After
        ``x += y`` it is called with ``x``.
    before : callable
        ``before(x, operation)`` is called ahead of ``x += y``, where looking at ``x`` twice does no
        harm.

    Raises
    ------
    SyntaxError
        As Python's own.
    """
    tree = program if isinstance(program, ast.AST) else ast.parse(program, file)
    mode = "eval" if isinstance(tree, ast.Expression) else "exec"
    compile(tree, file, mode, dont_inherit=True)  # gives the warnings that Python has for it
    marks = _Marks(file)
    code = _core.quietly(compile, marks.visit(tree), file, mode, 0, True)
    hooks: dict[Any, Any] = {_TOLD: told, _BEFORE: before}
    return _filled(code, {**hooks, **{_place(i): each for i, each in enumerate(marks.operations)}})


_TOLD, _BEFORE = b"\0ufuse: told", b"\0ufuse: before"


def _place(number: int) -> bytes:
    """A constant that stands in the code for an operation until this is filled in."""
    return b"\0ufuse: operation %d" % number


def _filled(code: types.CodeType, places: dict[Any, Any]) -> types.CodeType:
    def put(each: Any) -> Any:
        if isinstance(each, types.CodeType):
            return _filled(each, places)
        return places.get(each, each) if isinstance(each, bytes) else each

    return code.replace(co_consts=tuple(map(put, code.co_consts)))


def _number(node: ast.expr) -> Any:
    """The value of a number in the text, which may have a sign; else None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float, complex))
    return cast(ast.Constant, node).value if is_number else None


def _is_operation(node: ast.expr) -> bool:
    """Whether an expression tells its value. Numbers do not."""
    if isinstance(node, ast.UnaryOp):
        return not isinstance(node.op, ast.Not) and _number(node) is None
    if isinstance(node, ast.Subscript):
        return isinstance(node.ctx, ast.Load)
    return isinstance(node, (ast.Call, ast.BinOp))


def _operand(node: ast.expr) -> Operand:
    text = _text(node)
    if (number := _number(node)) is not None:
        return Operand(text, "number", number)
    if chain := chain_of(node):
        return Operand(text, "name", chain)
    if _is_operation(node):
        return Operand(text, "operation")
    if isinstance(node, (ast.Attribute, ast.Starred, ast.NamedExpr)):
        return _operand(node.value)._replace(text=text)
    parts: list[ast.expr] | None = None
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        parts = node.elts
    elif isinstance(node, ast.IfExp):
        parts = [node.body, node.orelse]
    elif isinstance(node, ast.BoolOp):
        parts = node.values
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        parts = [each.iter for each in node.generators]
    elif isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare)):
        parts = []  # texts and truths have no part in numbers
    if parts is None:
        return Operand(text, "unknown")
    return Operand(text, "parts", tuple(map(_operand, parts)))


def _text(node: ast.AST) -> str:
    return ast.unparse(node)[:_LONGEST_TEXT]


def _may_be_read_again(node: ast.expr) -> bool:
    """Whether evaluating an expression once more does nothing but read."""
    harmless = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Slice, ast.Tuple)
    others = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)
    return all(isinstance(each, (*harmless, *others)) for each in ast.walk(node))


class _Marks(ast.NodeTransformer):
    """Puts a call around each operation. Annotations and patterns stay as they are."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._statement = 0
        self.operations: list[Operation] = []

    def visit(self, node: ast.AST) -> Any:
        """As in the base class, and statements are counted."""
        self._statement += isinstance(node, ast.stmt)
        return super().visit(node)

    def _add(
        self,
        node: ast.expr | ast.stmt,
        kind: str,
        operands: list[ast.expr],
        function: Chain = (),
        keywords: frozenset[str] = frozenset(),
    ) -> int:
        """Note an operation before its text is changed."""
        place = _text(node), self._file, node.lineno, self._statement, kind
        changes, given = isinstance(node, ast.stmt), tuple(map(_operand, operands))
        self.operations.append(Operation(*place, changes, keywords, function, given))
        return len(self.operations) - 1

    def _marked(self, node: ast.expr, number: int) -> ast.expr:
        self.generic_visit(node)
        return _call(_TOLD, node, number)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        operands = list(node.args)
        operands += [each.value for each in node.keywords if each.arg not in _NO_OPERANDS]
        function = chain_of(node.func)
        if isinstance(node.func, ast.Attribute):
            operands.insert(0, node.func.value)
            function = function or ("", node.func.attr)
        keywords = frozenset(each.arg for each in node.keywords if each.arg is not None)
        return self._marked(node, self._add(node, "Call", operands, function, keywords))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self._marked(node, self._add(node, type(node.op).__name__, [node.left, node.right]))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        if not _is_operation(node):
            self.generic_visit(node)
            return node
        return self._marked(node, self._add(node, type(node.op).__name__, [node.operand]))

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if not _is_operation(node):
            self.generic_visit(node)
            return node
        return self._marked(node, self._add(node, "Subscript", [node.value]))

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        if not _may_be_read_again(node.target):
            self.generic_visit(node)
            return node
        target = copied(node.target)
        target.ctx = ast.Load()
        number = self._add(node, type(node.op).__name__, [target, node.value])
        around = [
            ast.copy_location(ast.Expr(_call(hook, copied(target), number)), node)
            for hook in (_BEFORE, _TOLD)
        ]
        self.generic_visit(node)
        return [around[0], node, around[1]]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._definition(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._definition(node)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        self.visit(node.args)
        node.body = self._statements(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.bases = [self.visit(each) for each in node.bases]
        node.keywords = [self.visit(each) for each in node.keywords]
        node.body = self._statements(node.body)
        return node

    def _statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in body:
            visited = self.visit(each)
            made += visited if isinstance(visited, list) else [visited]
        return made

    def visit_match_case(self, node: ast.match_case) -> ast.AST:
        node.guard = node.guard and self.visit(node.guard)
        node.body = self._statements(node.body)
        return node

    def _stays(self, node: ast.AST) -> ast.AST:
        return node

    visit_arg = visit_TypeAlias = _stays


def _call(hook: bytes, value: ast.expr, number: int) -> ast.Call:
    function, place = (
        ast.copy_location(ast.Constant(each), value) for each in (hook, _place(number))
    )
    return ast.copy_location(ast.Call(function, [value, place], []), value)
