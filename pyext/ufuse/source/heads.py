"""The same code, whose loops may go on natively.

Each loop that can be read (``reading``) goes over a *head*, which hands out what the loop's own
iterable would, and counts the rounds. Once they have taken long enough, and the loop has been
compiled for the types that its variables have, the head ends the rounds of Python's, the program
does the rest, and the variables get what it leaves. Of code with call sites in which tracing has
stopped, a loop that cannot go on natively goes on as it stands in the source.

Where a program exits in the middle of a round, ``continuation`` gives the function that goes on
from there to the end of the round: the same statements once more, in the order in which they are
left. File name and lines are those of the source everywhere.
"""

from __future__ import annotations

import ast
import functools
import inspect
import types
import weakref
from typing import Any

from ufuse import _core

from . import draws, reading
from .text import UNREADABLE, Definition, NoSource, compiled, copied, nested, source_of

# How a loop has gone on natively, or a round to its end.
_ENDED, _BROKE, _RETURNED, _RAISED, _RESUMED, _AS_WRITTEN = range(6)
# What stands for objects until the code object is made.
_RUN, _UNBOUND, _LOCALS = b"\0ufuse: run", b"\0ufuse: unbound", b"\0ufuse: locals"
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_HEAD = b"\0ufuse: head %d"
# Where code of functions is told apart by its place in the text, none may stand there twice.
_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
# What is kept of a loop for other processes: as `_core.Loop` takes it.
Row = tuple[Any, tuple[str, ...], tuple[str, ...], tuple[str, ...], str]
Names = tuple[frozenset[str], frozenset[str]]


def _names(code: types.CodeType) -> Names:
    """The variables of a code object, and which of them other functions see."""
    shared = frozenset([*code.co_cellvars, *code.co_freevars])
    return shared.union(code.co_varnames), shared


class Loops:
    """The loops of a function, outermost first; of those that cannot be read, the ones without
    functions and comprehensions inside.

    Parameters
    ----------
    definition : ast.FunctionDef, ast.AsyncFunctionDef or ast.Lambda
        The function, before anything is changed in it.
    code : types.CodeType
        Its code.

    Attributes
    ----------
    texts : list of reading.Text
        What is read of each loop; its statements are copies.
    written : list of ast.For or ast.While
        A copy of each loop as it stands in the source.
    """

    def __init__(self, definition: Definition, code: types.CodeType) -> None:
        self.texts: list[reading.Text] = []
        self.written: list[reading.Loop] = []
        self._numbers: dict[int, int] = {}
        self._names = _names(code)
        if not isinstance(definition, ast.Lambda):
            for loop in reading.loops(definition.body):
                self._read(loop)

    def _read(self, loop: reading.Loop) -> None:
        changed, text = copied(loop), None
        local, shared = self._names
        drawn = draws.split(changed, local)
        try:
            text = reading.read(changed, local | drawn, shared)
            kept = tuple(name for name in text.assigned if name not in drawn)
            text = text._replace(assigned=kept)
        except reading.Unreadable as error:
            if not any(isinstance(each, _SCOPES) for each in ast.walk(loop)):
                text = reading.unread(changed, str(error))
        if text is not None:
            self._numbers[id(loop)] = len(self.texts)
            self.texts.append(text)
            self.written.append(copied(loop))
        for inner in reading.loops([*loop.body, *loop.orelse]):
            self._read(inner)

    def rows(self) -> tuple[Row, ...]:
        """What ``_core.Loop`` takes of each."""
        return tuple((*text[:4], text.why_not) for text in self.texts)

    def put_heads(
        self, definition: Definition, is_traced: bool = False, without: frozenset[int] = frozenset()
    ) -> None:
        """Change the loops in the function, which may have been changed inside meanwhile.

        ``is_traced``: it has call sites, and each of its loops stands in it once more without.
        ``without``: the numbers of loops that stay as they are.
        """
        numbers = {of: number for of, number in self._numbers.items() if number not in without}
        if numbers:
            _Heads(numbers, self, is_traced).inside(definition)


class _Heads:
    def __init__(self, numbers: dict[int, int], loops: Loops, is_traced: bool) -> None:
        self._numbers, self._loops, self._is_traced = numbers, loops, is_traced

    def inside(self, node: Any) -> None:
        for name in ("body", "orelse", "finalbody"):
            if isinstance(block := getattr(node, name, None), list):
                setattr(node, name, self._block(block))
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            part.body = self._block(part.body)

    def _block(self, block: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for each in block:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                made.append(each)
                continue
            self.inside(each)
            number = self._numbers.get(id(each))
            if number is None or (self._loops.texts[number].why_not and not self._is_traced):
                made.append(each)
            else:
                assert isinstance(each, (ast.For, ast.While))
                loop, assigned = self._loops.written[number], self._loops.texts[number].assigned
                written = _as_written(loop, number) if self._is_traced else []
                made += _with_head(each, assigned, number, written)
        return made


def _as_written(loop: reading.Loop, number: int) -> list[ast.stmt]:
    """The rest of a loop's rounds as they stand in the source, where it goes on so."""
    way = f".way{number}"
    if isinstance(loop, ast.For):
        loop.iter = ast.copy_location(_name(f".value{number}"), loop.iter)
    loop.orelse = [_placed(_assign(way, ast.Constant(_ENDED)), loop)]
    return [_if(way, _AS_WRITTEN, [loop])]


def _with_head(
    loop: reading.Loop, assigned: tuple[str, ...], number: int, written: list[ast.stmt]
) -> list[ast.stmt]:
    """The statements that stand in the place of a loop."""
    head, ran, way, value = (f".{name}{number}" for name in ("head", "ran", "way", "value"))
    over = loop.iter if isinstance(loop, ast.For) else ast.Constant(None)
    begin = _assign(head, ast.Call(ast.Constant(_HEAD % number), [over], []))
    names = [*assigned, way, value]
    unpacked = ast.Tuple([_name(each, ast.Store()) for each in names], ast.Store())
    # What Python's own loop would not keep alive is let go.
    gone = ast.Constant(None)
    left: list[ast.stmt] = [ast.Assign([unpacked], _name(ran)), _assign(ran, gone)]
    for each in assigned:
        is_unbound = ast.Compare(_name(each), [ast.Is()], [ast.Constant(_UNBOUND)])
        left.append(ast.If(is_unbound, [ast.Delete([_name(each, ast.Del())])], []))
    left.append(_if(way, _RESUMED, [ast.Continue()]))
    left.append(_if(way, _RETURNED, [ast.Return(_name(value))]))
    left.append(_if(way, _RAISED, [ast.Raise(_name(value), None)]))
    left += [*written, _assign(value, gone)]
    after: list[ast.stmt] = [
        _assign(ran, ast.Call(ast.Constant(_RUN), [_name(head)], [])),
        _assign(way, ast.Constant(_ENDED)),
        ast.If(ast.Compare(_name(ran), [ast.IsNot()], [ast.Constant(None)]), left, []),
    ]
    if loop.orelse:
        after.append(_if(way, _ENDED, loop.orelse))
    if isinstance(loop, ast.For):
        rounds = ast.For(loop.target, _name(head), loop.body, after)
    else:
        end = [*copied(loop.orelse), ast.Break()]
        test = _placed(ast.If(ast.UnaryOp(ast.Not(), loop.test), end, []), loop.test)
        rounds = ast.For(_name(way, ast.Store()), _name(head), [test, *loop.body], after)
    again = ast.While(ast.Constant(True), [rounds, ast.Break()], [])
    # Not `head = None`: up to Python 3.11 an error in the statement that follows would be said to
    # be in this line, if it begins with a variable that has no value.
    end_of_head = ast.Delete([_name(head, ast.Del())])
    return [_placed(each, loop) for each in (begin, again, end_of_head)]


def _placed(made: ast.stmt, at: ast.stmt | ast.expr, inside: bool = False) -> ast.stmt:
    """The statement, with the line of ``at`` where it has none of its own.

    ``inside``: the user's own statements may have such ones in them.
    """
    waiting: list[ast.AST] = [made]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.expr, ast.stmt)):
            if not hasattr(node, "lineno"):
                node.lineno = node.end_lineno = at.lineno
                node.col_offset = node.end_col_offset = at.col_offset
            elif not inside:
                continue
        waiting.extend(ast.iter_child_nodes(node))
    return made


def _name(name: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, context or ast.Load())


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([_name(name, ast.Store())], value)


def _if(name: str, value: int, body: list[ast.stmt]) -> ast.stmt:
    return ast.If(ast.Compare(_name(name), [ast.Eq()], [ast.Constant(value)]), body, [])


def loops(code: types.CodeType, rows: tuple[Row, ...]) -> tuple[_core.Loop, ...]:
    """The loops of a code object.

    Parameters
    ----------
    code : types.CodeType
        The original.
    rows : tuple of Row
        As ``Loops.rows`` gave them.
    """
    resumes = (functools.partial(continuation, weakref.ref(code), i) for i in range(len(rows)))
    return tuple(
        _core.Loop(*row, resume, read_function) for row, resume in zip(rows, resumes, strict=True)
    )


def places(of: tuple[_core.Loop, ...]) -> dict[bytes, Any]:
    """What goes into the places of a code object: the heads of its loops, and what is done with
    them."""
    made: dict[bytes, Any] = {_RUN: _core.run_loop, _UNBOUND: _core.unbound}
    return {**made, **{_HEAD % number: loop.head for number, loop in enumerate(of)}}


def loops_of(code: types.CodeType) -> list[_core.Loop]:
    """The ``_core.Loop`` objects in a code object that was made so."""
    owners = (getattr(each, "__self__", None) for each in code.co_consts)
    return [each for each in owners if isinstance(each, _core.Loop)]


def code_of(loop: _core.Loop) -> types.CodeType | None:
    """The original code that a loop is in; None where that is gone."""
    resume = loop.resume
    return resume.args[0]() if isinstance(resume, functools.partial) else None


# ---- Where Python goes on in the middle of a round ----


def continuation(
    owner: weakref.ref[types.CodeType], loop: int, names: dict[str, Any], number: int
) -> types.FunctionType:
    """The function that goes on from a statement to the end of the round of a loop.

    Parameters
    ----------
    owner : weakref.ref of types.CodeType
        The original code of the function with the loop, which runs.
    loop : int
        Which of its loops.
    names : dict
        The global names of the function.
    number : int
        Of the statement in the loop. ``~number``: it goes on before the next round of the inner
        ``for`` that is this statement.

    Returns
    -------
    types.FunctionType
        Takes the loop's variables by name, those that have a value, and as ``.rest5`` what is left
        of the rounds of the inner loop that is statement 5. Gives a tuple: how the round has ended,
        the value that is returned, and the local variables.
    """
    code = owner()
    assert code is not None
    cells = tuple(types.CellType() for _ in code.co_freevars)
    function = types.FunctionType(code, names, closure=cells)
    source = source_of(function)
    definition = source.definition
    assert isinstance(definition, ast.FunctionDef)
    text = Loops(definition, code).texts[loop]
    rest = _Rest(text)
    nothing = ast.Constant(_UNBOUND)
    parameters = [*text.variables, *(f".rest{inner}" for inner in rest.around(number))]
    arguments = [ast.copy_location(ast.arg(name), definition) for name in parameters]
    definition.args = ast.arguments(
        [],
        arguments,
        None,
        [],
        [],
        None,
        [ast.copy_location(nothing, definition)] * len(parameters),
    )
    body: list[ast.stmt] = []
    for name in text.variables:
        is_unbound = ast.Compare(_name(name), [ast.Is()], [ast.Constant(_UNBOUND)])
        body.append(ast.If(is_unbound, [ast.Delete([_name(name, ast.Del())])], []))
    body += rest.statements(number)
    at = text.statements[max(number, ~number)]
    definition.body = [_placed(each, at, inside=True) for each in body]
    made = list(nested(compiled(source.tree, code)))[source.position]
    filled = {_UNBOUND: _core.unbound, _LOCALS: locals}
    constants = tuple(
        filled.get(each, each) if isinstance(each, bytes) else each for each in made.co_consts
    )
    made = made.replace(co_consts=constants, co_qualname=code.co_qualname)
    defaults = (_core.unbound,) * len(parameters)
    cells = tuple(types.CellType() for _ in made.co_freevars)
    return types.FunctionType(made, names, code.co_name, defaults, cells)


class _Rest:
    """What is left of a round of a loop."""

    def __init__(self, text: reading.Text) -> None:
        self._text = text
        self._numbers = {id(each): at for at, each in enumerate(text.statements)}

    def around(self, number: int) -> list[int]:
        """The inner ``for`` loops of which a round has begun."""
        around = [
            self._numbers[id(step.owner)]
            for step in self._text.ways[max(number, ~number)][1:]
            if isinstance(step.owner, ast.For) and step.block is step.owner.body
        ]
        return around if number >= 0 else [*around, ~number]

    def statements(self, number: int) -> list[ast.stmt]:
        """The statements from one of them on."""
        left: list[ast.stmt] | None = None
        if number < 0:
            number = ~number
            loop = self._text.statements[number]
            assert isinstance(loop, ast.For)
            left = self._rounds(loop, [])
        for step in reversed(self._text.ways[number]):
            first = step.position if left is None else step.position + 1
            left = [*(left or []), *_rest_of(step.block[first:])]
            if step.owner is self._text.statements[0]:
                break
            if isinstance(step.owner, (ast.For, ast.While)) and step.block is step.owner.body:
                left = self._rounds(step.owner, left)
        return [*_Leave().block(left or []), _leave(_ENDED)]

    def _rounds(self, loop: reading.Loop, left: list[ast.stmt]) -> list[ast.stmt]:
        """The rest of a round of an inner loop, and the rounds after it."""
        number = self._numbers[id(loop)]
        broken = f".broken{number}"
        rest = copied(loop)
        if isinstance(rest, ast.For):
            rest.iter = ast.copy_location(_name(f".rest{number}"), rest.iter)
        return [
            _assign(broken, ast.Constant(True)),
            ast.While(
                ast.Constant(True),
                [*_Once(broken).block(left), _assign(broken, ast.Constant(False)), ast.Break()],
                [],
            ),
            ast.If(ast.UnaryOp(ast.Not(), _name(broken)), [rest], []),
        ]


def _rest_of(block: list[ast.stmt]) -> list[ast.stmt]:
    """The statements as they were written, but for one of which parts have been done."""
    first = draws.part_of(block[0]) if block else None
    begun = None if first is None or first.is_first else first.of
    made: list[ast.stmt] = []
    for each in block:
        part = draws.part_of(each)
        if part is None or part.of is begun:
            made.append(copied(each))
        elif part.is_first:
            made.append(copied(part.of))
    return made


def _leave(way: int, value: ast.expr | None = None) -> ast.stmt:
    given = value or ast.Constant(None)
    variables = ast.Call(ast.Constant(_LOCALS), [], [])
    return ast.Return(ast.Tuple([ast.Constant(way), given, variables], ast.Load()))


class _Level(ast.NodeTransformer):
    """Jumps of statements that stand in another loop, or in none, any more."""

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
        """The jumps in its body are its own."""
        node.orelse = self.block(node.orelse)
        return node


class _Once(_Level):
    """A round in a ``while True`` that is left at its end."""

    def __init__(self, broken: str) -> None:
        self._broken = broken

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        return [_assign(self._broken, ast.Constant(False)), ast.Break()]


class _Returns(_Level):
    """Statements in a function of their own."""

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return ast.copy_location(_leave(_RETURNED, node.value), node)

    def _inner(self, node: reading.Loop) -> ast.AST:
        node.body = _Returns().block(node.body)
        return super()._inner(node)


class _Leave(_Returns):
    """A round of the loop itself, in a function of its own."""

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return _leave(_ENDED)

    def visit_Break(self, node: ast.Break) -> ast.stmt:
        return _leave(_BROKE)


# ---- Functions that loops call ----


def read_function(function: types.FunctionType) -> tuple[Any, ...] | None:
    """The text of a function that a loop calls, for ``_core.Loop``; None where it is not read."""
    code = function.__code__
    try:
        definition = source_of(function).definition
        if isinstance(definition, ast.AsyncFunctionDef) or code.co_flags & _GENERATORS:
            return None
        text = reading.read_function(definition, _names(code)[0].difference(code.co_freevars))
    except (NoSource, reading.Unreadable, *UNREADABLE):
        return None
    counts = code.co_argcount, code.co_posonlyargcount
    return text.variables, *counts, text.outside, text.tree, code.co_freevars
