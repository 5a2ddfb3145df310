"""Which operation is the first one that ufuse and NumPy do differently?

A call that differed is made twice more, on copies of its arguments: as plain NumPy, and traced.
Both times a hook after each operation of the user's source keeps its value, so the first two values
that differ tell the operation and its line. Used by ``verify``.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core, compare, copies
from ufuse._core import Jitted, is_a
from ufuse.source import sites
from ufuse.source.text import NoSource
from ufuse.tracing import tree, twin
from ufuse.tracing.run import Options, run

from . import requests
from .explain import shown_file, waiting

# At most so much is kept of one call; operations after that are not compared.
_MOST_STEPS, _MOST_BYTES = 20_000, 1 << 30


class _Step(NamedTuple):
    text: str
    file: str
    line: int
    value: list[Any]  # of one item, which takes the place of a lazy array when the call has ended


class _Record:
    """The operations of one run, in order."""

    def __init__(self) -> None:
        self.steps: list[_Step] = []
        self._bytes = 0

    def keep(self, value: Any, text: str, file: str, line: int) -> None:
        if self.is_full():
            return
        kept = _kept(value)
        for each in copies.contents(kept)[1]:
            if isinstance(each, np.ndarray):
                self._bytes += each.nbytes
        self.steps.append(_Step(text, file, line, [kept]))

    def is_full(self) -> bool:
        """Whether nothing more is kept."""
        return len(self.steps) >= _MOST_STEPS or self._bytes > _MOST_BYTES


class _Current(threading.local):
    record: _Record | None = None


_current = _Current()
_codes: sites.PerCode[types.CodeType] = sites.PerCode()


def _kept(value: Any, depth: int = 8) -> Any:
    """A value as it is now: what is written into arrays later is not seen in it.

    So many containers within each other are looked into.
    """
    if tree.is_lazy(value):
        return value.copy() if isinstance(value, np.ndarray) else value
    if type(value) in (tuple, list) and depth > 0:
        return type(value)(_kept(item, depth - 1) for item in value)
    if type(value) is dict and depth > 0:
        return {name: _kept(item, depth - 1) for name, item in value.items()}
    return np.array(value, order="K") if type(value) is np.ndarray else value


def _value(value: Any, text: str, line: int) -> Any:
    record = _current.record
    if record is not None:
        record.keep(value, text, sys._getframe(1).f_code.co_filename, line)
    return value


def _site(f: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A call, at which functions of the user's are recorded as well."""
    if _current.record is None:
        return _core.site(f, *args, **kwargs)
    if is_a(f, Jitted):
        args, kwargs = f.joined(args, kwargs)
        f = f._function
    if isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType):
        f, args = f.__func__, (f.__self__, *args)
    return _core.site(_recorded(f), *args, **kwargs)


def _spread(f: Any) -> Any:
    return functools.partial(_site, f)


_HOOKS = twin.HOOKS._replace(site=_site, value=_value, own=None, spread=_spread)


def _recorded(f: Any) -> Any:
    """The function of the user's with hooks; anything else as it is."""
    if not isinstance(f, types.FunctionType) or not twin.is_traced(f):
        return f
    code = _codes.get(f.__code__)
    if code is None:
        try:
            code = sites.instrumented(f, _HOOKS).code
        except NoSource:
            return f
        _codes.set(f.__code__, code)
    return twin.with_code(f, code)


def _run(function: Any, call: Callable[[Any], Any]) -> tuple[list[_Step], bool]:
    """The operations of one run; whether they are all of them."""
    record = _current.record = _Record()
    try:
        with contextlib.suppress(Exception):  # what came before it is looked for
            call(_recorded(function))
    finally:
        _current.record = None
    return record.steps, not record.is_full()


def first_difference(
    function: Any, options: Options, plain: Callable[[Any], Any], traced: Callable[..., Any]
) -> str:
    """A sentence about the first operation that differs.

    Parameters
    ----------
    function : types.FunctionType or callable
        What was called.
    options : Options
        How it is compiled.
    plain, traced : callable
        ``plain(f)`` calls ``f`` with a copy of the arguments as plain NumPy;
        ``traced(run)`` calls ``run(args, kwargs)`` with another copy.
    """
    if _recorded(function) is function:
        return f"`{getattr(function, '__name__', function)}` is one operation"
    expected, whole = _run(function, plain)

    def in_a_session(f: Any) -> Any:
        return traced(lambda args, kwargs: run(f, args, kwargs, options))

    for context in (_core.backend(_core.current_backend()), waiting()):
        with context:
            steps, _ = _run(function, in_a_session)
        found = _first(steps, expected)
        if found is not None:
            return f"The first operation that differs is {found}"
    request = _wrong_request(function, in_a_session)
    if request is not None:
        return f"Operation by operation there is no difference. {request}"
    many = "" if whole else f" of the first {len(expected)}"
    return (
        f"None{many} of its operations differs when the call is traced again and each value is "
        "looked at: what differs lies in how they run together, or in replaying the call."
    )


def _first(ours: list[_Step], theirs: list[_Step]) -> str | None:
    for a, b in zip(ours, theirs, strict=False):
        place = f"`{_short(b.text)}` at {shown_file(b.file)}:{b.line}"
        if (a.text, a.file, a.line) != (b.text, b.file, b.line):
            return f"the one before {place}, where ufuse goes on with `{_short(a.text)}`"
        if _is_undefined(b.text):
            continue
        found = compare.difference(a.value[0], b.value[0], "value")
        if found is not None:
            return f"{place}\n{found}"
    if len(ours) == len(theirs):
        return None
    longer = ours if len(ours) > len(theirs) else theirs
    step = longer[min(len(ours), len(theirs))]
    who = "NumPy" if longer is ours else "ufuse"
    return f"`{_short(step.text)}` at {shown_file(step.file)}:{step.line}: {who} does not get there"


def _is_undefined(text: str) -> bool:
    """Whether an operation makes memory that holds anything, as ``np.empty`` does."""
    return text.partition("(")[0].rpartition(".")[2].startswith(("empty", "ndarray"))


def _short(text: str) -> str:
    text = text.partition("\n")[0]
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong_request(function: Any, in_a_session: Callable[[Any], Any]) -> str | None:
    """What the first loops do that give another value than NumPy for the same request."""
    found: list[str] = []

    def judge(row: dict[str, Any]) -> None:
        pairs = zip(row["results"], row["expected"], strict=True)
        differences = [compare.difference(a, b, "value") for a, b in pairs]
        for text in differences:
            if text is not None:
                place = f"{shown_file(row['file'])}:{row['line']}"
                found.append(f"The loops that run at {place} give another value:\n{text}")
                break

    with waiting(), requests.judged_by(judge), contextlib.suppress(Exception):
        in_a_session(twin.twin_of(function).function)
    return found[0] if found else None
