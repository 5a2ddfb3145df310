"""The same function, whose loops may go on natively.

``looped(function)`` gives a function with the same source, globals and variables, in which each
loop that can be read (``reading``) goes over a *head*. The head counts the rounds; once they have
taken long enough, and the loop has been compiled for the types that its variables have, it ends the
rounds of Python's, the program does the rest, and the variables get what it leaves.

Where a program exits in the middle of a round, ``continuation`` gives the function that goes on
from there to the end of the round: the same statements once more, in the order in which they are
left. File name and lines are those of the source everywhere.
"""

from __future__ import annotations

import ast
import copy
import types
import weakref
from collections.abc import Callable
from typing import Any

from ufuse import _core
from ufuse.source.text import UNREADABLE, NoSource, compiled, nested, source_of

from . import reading

# How a loop has gone on natively, or a round to its end.
_ENDED, _BROKE, _RETURNED, _RAISED, _RESUMED = range(5)


class LoopedCode:
    """The code of a looped function, and the loops in it.

    Attributes
    ----------
    code : types.CodeType
        Of the function.
    loops : list of _core.Loop
        Those that may become native.
    left : list of (int, str)
        Lines of loops that cannot be read, and why.
    """

    def __init__(self, function: types.FunctionType) -> None:
        source, original = source_of(function), function.__code__
        if isinstance(source.definition, ast.Lambda):
            raise NoSource("a lambda has no loops")
        self.loops: list[Any] = []
        self.left: list[tuple[int, str]] = []
        self._function, self._places = function, dict[bytes, Any]()
        self._local = frozenset([*original.co_varnames, *original.co_cellvars])
        self._fixed = frozenset(original.co_cellvars)
        source.definition.body = self._block(source.definition.body)
        if not self.loops:
            self.code = original
            return
        made = list(nested(compiled(source.tree, original)))[source.position]
        constants = tuple(
            self._places.get(each, each) if isinstance(each, bytes) else each
            for each in made.co_consts
        )
        self.code = made.replace(co_consts=constants, co_qualname=original.co_qualname)

    # Statements.

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in block:
            if isinstance(each, (ast.For, ast.While)):
                made += self._loop(each)
            else:
                if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    self._inside(each)
                made.append(each)
        return made

    def _inside(self, node: ast.stmt) -> None:
        for name in ("body", "orelse", "finalbody"):
            if block := getattr(node, name, None):
                setattr(node, name, self._block(block))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self._block(part.body)

    def _loop(self, loop: reading.Loop) -> list[ast.stmt]:
        try:
            if _jumps(loop.orelse):
                raise reading.Unreadable("`break` or `continue` in an `else`", loop.lineno)
            text = reading.read(copy.deepcopy(loop), self._local, self._fixed)
        except reading.Unreadable as why:
            self.left.append((loop.lineno, f"line {why.line or loop.lineno}: {why}"))
            self._inside(loop)
            return [loop]
        resume = _Continuations(self._function, text)
        made = _core.Loop(
            self._function,
            text.tree,
            text.variables,
            text.outside,
            text.assigned,
            resume.function,
            read_function,
        )
        self.loops.append(made)
        return _with_head(loop, text, len(self.loops), self._constant, made)

    def _constant(self, value: Any) -> ast.expr:
        place = f"\0ufuse: {len(self._places)}".encode()
        self._places[place] = value
        return ast.Constant(place)


def _with_head(
    loop: reading.Loop,
    text: reading.Text,
    number: int,
    constant: Callable[[Any], ast.expr],
    made: Any,
) -> list[ast.stmt]:
    """The statements that stand in the place of a loop."""
    head, ran, way, value = (f".{name}{number}" for name in ("head", "ran", "way", "value"))
    over = loop.iter if isinstance(loop, ast.For) else ast.Constant(None)
    begin = _assign(head, ast.Call(constant(made.head), [over], []))
    after: list[ast.stmt] = [_assign(ran, ast.Call(constant(_core.run_loop), [_name(head)], []))]
    names = [*text.assigned, way, value]
    unpacked = ast.Tuple([_name(each, ast.Store()) for each in names], ast.Store())
    left: list[ast.stmt] = [ast.Assign([unpacked], _name(ran))]
    for each in text.assigned:
        is_unbound = ast.Compare(_name(each), [ast.Is()], [constant(_core.unbound)])
        left.append(ast.If(is_unbound, [ast.Delete([_name(each, ast.Del())])], []))
    left.append(_if(way, _RESUMED, [ast.Continue()]))
    left.append(_if(way, _RETURNED, [ast.Return(_name(value))]))
    left.append(_if(way, _RAISED, [ast.Raise(_name(value), None)]))
    after += [_assign(way, ast.Constant(_ENDED))]
    after += [ast.If(ast.Compare(_name(ran), [ast.IsNot()], [ast.Constant(None)]), left, [])]
    rounds: ast.For
    if isinstance(loop, ast.For):
        if loop.orelse:
            after.append(_if(way, _ENDED, loop.orelse))
        rounds = ast.For(loop.target, _name(head), loop.body, after)
    else:
        end = [*copy.deepcopy(loop.orelse), ast.Break()]
        if loop.orelse:
            after.append(_if(way, _ENDED, loop.orelse))
        test = ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), loop.test), end, []), loop.test)
        rounds = ast.For(_name(way, ast.Store()), _name(head), [test, *loop.body], after)
    again = ast.While(ast.Constant(True), [rounds, ast.Break()], [])
    return [_placed(each, loop) for each in (begin, again)]


def _placed(made: ast.stmt, loop: ast.stmt) -> ast.stmt:
    """The statement, with the loop's first line where it has none of its own."""
    for node in ast.walk(made):
        if isinstance(node, (ast.expr, ast.stmt)) and not hasattr(node, "lineno"):
            node.lineno = node.end_lineno = loop.lineno
            node.col_offset = node.end_col_offset = loop.col_offset
    return made


def _name(name: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, context or ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, ast.Store())], value)


def _if(name: str, value: int, body: list[ast.stmt]) -> ast.stmt:
    return ast.If(ast.Compare(_name(name), [ast.Eq()], [ast.Constant(value)]), body, [])


def _jumps(block: list[ast.stmt]) -> bool:
    """Whether statements break or continue a loop around them."""
    for each in block:
        if isinstance(each, (ast.Break, ast.Continue)):
            return True
        inner = [] if isinstance(each, (ast.For, ast.While)) else getattr(each, "body", [])
        if _jumps(inner) or _jumps(getattr(each, "orelse", [])):
            return True
    return False


# ---- Where Python goes on in the middle of a round ----


class _Continuations:
    """The functions that go on from each statement of a loop."""

    def __init__(self, function: types.FunctionType, text: reading.Text) -> None:
        # It holds the code in which the loop stands that holds this.
        self._owner, self._text = weakref.ref(function), text

    def function(self, number: int) -> types.FunctionType:
        """Goes on from a statement to the end of the round of the loop.

        Parameters
        ----------
        number : int
            Of the statement.

        Returns
        -------
        types.FunctionType
            Takes the loop's variables by name, ``_core.unbound`` for one without a value, and as
            ``.rest5`` what is left of the rounds of the inner loop that is statement 5. Gives a
            tuple: how the round has ended, the value that is returned, and the local variables.
        """
        function = self._owner()
        assert function is not None
        source, original = source_of(function), function.__code__
        definition = source.definition
        assert isinstance(definition, ast.FunctionDef)
        inner = [f".rest{loop}" for loop in self._around(number)]
        parameters = [*self._text.variables, *inner]
        nothing = ast.Constant(_UNBOUND)
        definition.args = ast.arguments(
            [], [ast.arg(name) for name in parameters], None, [], [], None, [nothing] * len(parameters)
        )
        body: list[ast.stmt] = []
        for name in self._text.variables:
            is_unbound = ast.Compare(_name(name), [ast.Is()], [nothing])
            body.append(ast.If(is_unbound, [ast.Delete([_name(name, ast.Del())])], []))
        body += self._rest(number)
        definition.body = [_placed(each, self._text.statements[number]) for each in body]
        for node in ast.walk(definition.args):
            ast.copy_location(node, definition)
        code = list(nested(compiled(source.tree, original)))[source.position]
        places = {_UNBOUND: _core.unbound, _LOCALS: locals}
        constants = tuple(
            places.get(each, each) if isinstance(each, bytes) else each for each in code.co_consts
        )
        code = code.replace(co_consts=constants, co_qualname=original.co_qualname)
        cells = dict(zip(original.co_freevars, function.__closure__ or (), strict=True))
        made = types.FunctionType(
            code,
            function.__globals__,
            function.__name__,
            (_core.unbound,) * len(parameters),
            tuple(cells[name] for name in code.co_freevars),
        )
        return made

    def _around(self, number: int) -> list[int]:
        """The inner `for` loops around a statement."""
        owners = [step.owner for step in self._text.ways[number] if step.block is step.owner.body]
        return [
            at
            for at, each in enumerate(self._text.statements)
            if at and isinstance(each, ast.For) and each in owners
        ]

    def _rest(self, number: int) -> list[ast.stmt]:
        """The statements from one of them on."""
        text = self._text
        left: list[ast.stmt] | None = None
        for step in reversed(text.ways[number]):
            first = step.position if left is None else step.position + 1
            left = [*(left or []), *copy.deepcopy(step.block[first:])]
            owner = step.owner
            if owner is text.statements[0]:
                break
            if isinstance(owner, (ast.For, ast.While)) and step.block is owner.body:
                left = self._rounds(owner, left)
        made = _Leave().block(left or [])
        return [*made, _leave(_ENDED)]

    def _rounds(self, loop: reading.Loop, left: list[ast.stmt]) -> list[ast.stmt]:
        """The rest of a round of an inner loop, and the rounds after it."""
        number = next(at for at, each in enumerate(self._text.statements) if each is loop)
        broken = f".broken{number}"
        once = _Once(broken).block(left)
        again: ast.stmt
        rest = copy.deepcopy(loop)
        if isinstance(rest, ast.For):
            again = ast.For(rest.target, _name(f".rest{number}"), rest.body, rest.orelse)
        else:
            again = rest
        ended = _assign(broken, ast.Constant(False))
        return [
            _assign(broken, ast.Constant(True)),
            ast.While(ast.Constant(True), [*once, ended, ast.Break()], []),
            ast.If(ast.UnaryOp(ast.Not(), _name(broken)), [ast.copy_location(again, loop)], []),
        ]


_UNBOUND, _LOCALS = b"\0ufuse: unbound", b"\0ufuse: locals"


def _leave(way: int, value: ast.expr | None = None) -> ast.stmt:
    given = value or ast.Constant(None)
    variables = ast.Call(ast.Constant(_LOCALS), [], [])
    return ast.Return(ast.Tuple([ast.Constant(way), given, variables], ast.Load()))


class _Level(ast.NodeTransformer):
    """Jumps out of statements that stand in no loop any more."""

    def block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in block:
            new = self.visit(each)
            made += new if isinstance(new, list) else [new]
        return made

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._inner(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._inner(node)

    def _inner(self, node: reading.Loop) -> ast.AST:
        """Its body's jumps are its own."""
        node.orelse = self.block(node.orelse)
        return node


class _Once(_Level):
    """A round in a `while True` that is left at its end."""

    def __init__(self, broken: str) -> None:
        self._broken = broken

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [_assign(self._broken, ast.Constant(False)), ast.Break()]


class _Leave(_Level):
    """A round of the loop itself, in a function of its own."""

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return _leave(_ENDED)

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return _leave(_BROKE)

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return ast.copy_location(_leave(_RETURNED, node.value), node)

    def _inner(self, node: reading.Loop) -> ast.AST:
        node.body = _Returns().block(node.body)
        return super()._inner(node)


class _Returns(ast.NodeTransformer):
    """The same inside loops, whose other jumps stay as they are."""

    block = _Level.block

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return ast.copy_location(_leave(_RETURNED, node.value), node)


def read_function(function: types.FunctionType) -> tuple[Any, ...] | None:
    """The text of a function that a loop calls, for ``_core.Loop``; None where it is not read."""
    code = function.__code__
    if function.__closure__ or function.__defaults__ or function.__kwdefaults__:
        return None
    try:
        definition = source_of(function).definition
        if not isinstance(definition, ast.FunctionDef):
            return None
        text = reading.read_function(definition, frozenset([*code.co_varnames, *code.co_cellvars]))
    except (NoSource, reading.Unreadable):
        return None
    return text.variables, code.co_argcount, text.outside, text.tree


def looped(function: types.FunctionType) -> types.FunctionType | None:
    """The function whose loops may go on natively; None where it has no such loops.

    Raises
    ------
    NoSource
        Where the source is not known for certain.
    """
    try:
        made = LoopedCode(function)
    except UNREADABLE as error:
        raise NoSource(f"it cannot be compiled with heads: {error}") from error
    if not made.loops:
        return None
    original = function.__code__
    cells = dict(zip(original.co_freevars, function.__closure__ or (), strict=True))
    copied = types.FunctionType(
        made.code,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in made.code.co_freevars),
    )
    copied.__kwdefaults__ = function.__kwdefaults__
    copied.__qualname__ = function.__qualname__
    copied.__module__ = function.__module__
    return copied
