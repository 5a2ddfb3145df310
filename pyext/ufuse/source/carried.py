"""What text goes along with a function that is sent to another process?

The source of a function from a notebook, or from a script that is not on the other machine, would
be missing there. So a jitted function is sent with the statements that define it and the functions
that it names, and with the imports of their files. The other process uses this text as the source
only where it compiles to the function's own code, as with files (``text``).
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ufuse._core import is_a

from .sites import PerCode
from .text import (
    UNREADABLE,
    NoSource,
    Text,
    last_line,
    names_imported,
    names_used,
    parsed,
    sent,
    text_of,
)

# Pieces of one text, each with the number of its first line.
Excerpt = tuple[tuple[int, str], ...]
_CONTAINERS = (tuple, list, set, frozenset)


def excerpts(function: types.FunctionType, is_there: Callable[[Any], bool]) -> tuple[Excerpt, ...]:
    """The text of a function and of those that it names, as far as they must be sent.

    Parameters
    ----------
    function : types.FunctionType
        The one that is sent.
    is_there : callable
        Whether the other process imports a function or a class, and so has its file.
    """
    texts: dict[int, dict[int, str]] = {}
    for each in _reached(function, is_there):
        found = _known.get(each.__code__)
        if found is None:
            found = _statements(each)
            _known.set(each.__code__, found)
        text, lines = found
        if lines:
            texts.setdefault(text, {}).update(lines)
    return tuple(sorted(_runs(lines) for lines in texts.values()))


def received(given: Iterable[Excerpt]) -> list[Text]:
    """Make the text of other processes known, for as long as what is returned lives."""
    texts = []
    for runs in given:
        text, line = [], 1
        for first, lines in runs:
            text.append("\n" * (first - line) + lines)
            line = first + lines.count("\n")
        texts.append(sent("".join(text)))
    return texts


# Of each code object that was sent: the hash of the text it stands in, and lines by their numbers.
_known: PerCode[tuple[int, dict[int, str]]] = PerCode()


def _statements(function: types.FunctionType) -> tuple[int, dict[int, str]]:
    """The lines of a text's statements that a function stands in, and of its imports."""
    code = function.__code__
    try:
        lines = text_of(function)
        text = "".join(lines)
        body = parsed(text, code).body
    except (NoSource, *UNREADABLE):
        return 0, {}
    last, wanted = last_line(code), {}
    for statement in body:
        decorators = getattr(statement, "decorator_list", [])
        start = min(node.lineno for node in (statement, *decorators))
        end = statement.end_lineno or start
        around = start <= last and code.co_firstlineno <= end
        if around or names_imported(ast.Module([statement], [])):
            for line in range(start, end + 1):
                content = lines[line - 1]
                wanted[line] = content if content.endswith("\n") else content + "\n"
    return hash(text), wanted


def _runs(lines: dict[int, str]) -> tuple[tuple[int, str], ...]:
    runs: list[tuple[int, list[str]]] = []
    for line in sorted(lines):
        if not runs or line != runs[-1][0] + len(runs[-1][1]):
            runs.append((line, []))
        runs[-1][1].append(lines[line])
    return tuple((first, "".join(run)) for first, run in runs)


def _reached(
    function: types.FunctionType, is_there: Callable[[Any], bool]
) -> Iterator[types.FunctionType]:
    """A function and those that it can reach by names, but for those that are there."""
    pending: list[Any] = [function]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, types.FunctionType):
            if value is not function and is_there(value):
                continue
            yield value
            names = value.__globals__
            pending += [names.get(name) for name in names_used(value.__code__)]
            pending += [_content(cell) for cell in value.__closure__ or ()]
        elif is_a(value, type):
            if not is_there(value):
                pending += [*vars(value).values(), *value.__bases__]
        elif is_a(value, dict):
            pending += value.values()
        elif is_a(value, _CONTAINERS):
            pending += value
        elif not is_a(value, types.ModuleType):
            pending += _inside(value, is_there)


def _inside(value: Any, is_there: Callable[[Any], bool]) -> list[Any]:
    """What a method, partial, property or wrapper is made of, and the class of any object."""
    if is_a(value, property):
        return [value.fget, value.fset]
    if is_a(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if is_a(value, types.MethodType):
        return [value.__func__, value.__self__]
    if callable(value) and is_there(value):
        return []
    names = getattr(value, "__dict__", None)
    wrapped = names.get("__wrapped__") if is_a(names, dict) else None
    return [type(value), wrapped]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None
