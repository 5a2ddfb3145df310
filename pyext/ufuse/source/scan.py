"""Could a lazy array escape unseen from this function, and is the function pure?

``scan(function, facts)`` judges what the text of a function, and of those inside it, does with its
values (``source/facts.py``). ``twin`` asks it before it makes a twin and ``jit`` before each kind
of call. Nothing here runs user code or knows of lazy arrays: ``names`` knows what functions and
attributes do by their names, and here the verdict is made. What cannot be followed counts as
foreign, so unknown syntax may cost speed, but no answer becomes wrong.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import names
from .facts import CONST, Facts
from .text import nested

_GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
# What a value may be: a constant, something new, a parameter or part of one, or anything else.
_CONST, _FRESH, _PARAM, _FOREIGN = 1, 2, 4, 8
_VIEWS = frozenset(["T", "real", "imag", "mT"])


class Scan(NamedTuple):
    """What the text of one function says.

    Attributes
    ----------
    reason : str or None
        Row of ``reasons.def`` why the function must run as plain NumPy; None when it can be traced.
    detail : str
        What was found, for the user.
    line : int
        Line of ``detail`` in the function's file.
    pure : bool
        Whether equal arguments and equal globals always mean the same recorded operations.
    """

    reason: str | None
    detail: str
    line: int
    pure: bool


class _Finding(Exception):
    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, detail


class _Scanner:
    """One function with those inside it."""

    def __init__(self, function: types.FunctionType, facts: Facts) -> None:
        self.code = function.__code__
        self.values, self.lines = facts.values, facts.lines
        self.assigned: dict[str, list[int]] = {}
        for variable, value in facts.assigned:
            self.assigned.setdefault(variable, []).append(value)
        self.meanings = names.Meanings(function, facts.values)
        self.pure = True
        self.line = self.code.co_firstlineno

    # What a value may be.

    @functools.cached_property
    def kinds(self) -> list[int]:
        """What each value may be; in rounds, because variables are assigned to each other."""
        kinds, before = [0] * len(self.values), None
        while kinds != before:
            before = list(kinds)
            for at, row in enumerate(self.values):
                kinds[at] |= self.kind_of(at, row, kinds)
        return kinds

    def kind_of(self, at: int, row: tuple[Any, ...], kinds: list[int]) -> int:
        kind, *what = row
        if kind == "const":
            return _CONST
        if kind in ("global", "free"):
            value = self.meanings.of(at)
            is_known = isinstance(value, (types.ModuleType, int, float, complex, np.generic))
            return _FRESH if is_known or callable(value) else _FOREIGN
        if kind == "given":
            return _PARAM
        if kind == "local":
            return _any(kinds, self.assigned.get(what[0], ()))
        if kind == "item":
            return _inside(kinds[what[0]])
        if kind == "attr":
            return self.kind_of_attribute(what[0], what[1], kinds)
        if kind == "any":
            return _any(kinds, what[0])
        if kind == "op":
            return _FRESH | kinds[what[0]]
        if kind == "call":
            called, *more = self.values[what[0]]
            if called == "global" and more[0] in names.PASSING:
                return _any(kinds, what[1])
            if called == "attr" and self.values[more[0]][0] != "global":
                return _inside(kinds[more[0]])
        return _FRESH

    def kind_of_attribute(self, base: int, name: str, kinds: list[int]) -> int:
        value = self.meanings.of_name(base)
        if isinstance(value, types.ModuleType) or callable(value):
            return _FRESH
        kind = kinds[base]
        if name in names.FACTS:
            return kind and _FRESH
        # An attribute of a parameter may be anything its object holds, except for the views that
        # arrays have as attributes, and what is no array.
        if name in _VIEWS or kind in (0, _FRESH):
            return kind
        return kind & _FRESH | _FOREIGN

    # What is done.

    def fill_by_object(self, base: int, name: str) -> None:
        """A random generator writes into an array, unless it is NumPy's global one."""
        while self.values[base][0] == "attr":
            base = self.values[base][1]
        if not isinstance(self.meanings.of(base), types.ModuleType):
            raise _Finding("memory_exposed", f"`.{name}` writes into an array's memory")

    def see_fail(self, _: int, reason: str, detail: str) -> None:
        raise _Finding(reason, detail)

    def see_import(self, _: int) -> None:
        self.pure = False

    see_unseen = see_import

    def see_global(self, at: int, name: str) -> None:
        if name in names.MEMORY_GLOBALS:
            raise _Finding("memory_exposed", f"`{name}` hands out an array's memory")
        value = self.meanings.of(at)
        is_builtin = hasattr(builtins, name) and value is getattr(builtins, name)
        if is_builtin and name in names.REFLECTIVE:
            raise _Finding("reflection", f"`{name}` can see every local name")
        self.pure &= name in names.PURE_BUILTINS if is_builtin else names.is_pure(value)

    def see_attr(self, _: int, base: int, name: str, _place: Any) -> None:
        if name in names.MEMORY_ATTRIBUTES and self.kinds[base] & (_FRESH | _PARAM):
            if self.values[base][0] in ("global", "free") and name not in names.MEMORY_GLOBALS:
                return
            raise _Finding("memory_exposed", f"`.{name}` hands out an array's memory")
        if names.is_class_method(self.meanings.of(base), name):
            raise _Finding("unbound_method", f"`.{name}` is taken from a class")
        if name == "shuffle":
            self.fill_by_object(base, name)
        if name == "random":
            self.pure = False

    def see_call(
        self, _: int, called: int, arguments: tuple[int, ...], keywords: tuple[str, ...]
    ) -> None:
        kind, *what = self.values[called]
        if kind == "attr" and what[1] in names.FILLERS and not {"out", "**"}.isdisjoint(keywords):
            self.fill_by_object(what[0], what[1])
        value = self.meanings.of(called)
        is_strict = isinstance(value, type) and names.is_strict(value.__module__)
        if is_strict and any(argument != CONST for argument in arguments):
            raise _Finding("strict_type", f"`{value.__name__}` takes no lazy numbers")

    def see_code(self, code: types.CodeType) -> None:
        self.line = code.co_firstlineno
        used = names.ERROR_STATE.intersection(code.co_names)
        if found := names.FILTERS.intersection(code.co_names):
            raise _Finding("error_state", f"`{min(found)}` changes who sees a warning")
        texts = (each for each in code.co_consts if isinstance(each, str))
        if used & names.LASTING or (used and names.STRICT_MODES.intersection(texts)):
            detail = "floating-point errors shall raise or call somebody at once"
            raise _Finding("error_state", detail)

    def look(self) -> None:
        for code in (self.code, *nested(self.code)):
            self.see_code(code)
        if self.code.co_flags & _GENERATOR:
            detail = "a generator or coroutine keeps its values between calls"
            raise _Finding("generator", detail)
        for at, (kind, *what) in enumerate(self.values):
            self.line = self.lines[at]
            see: Callable[..., None] | None = getattr(self, f"see_{kind}", None)
            if see is not None:
                see(at, *what)

    def verdict(self) -> Scan:
        try:
            self.look()
        except _Finding as found:
            return Scan(found.reason, found.detail, self.line, False)
        return Scan(None, "", 0, self.pure)


def _any(kinds: list[int], values: tuple[int, ...] | list[int]) -> int:
    found = 0
    for value in values:
        found |= kinds[value]
    return found


def _inside(kind: int) -> int:
    return (kind & ~_CONST | _FRESH) if kind & _CONST else kind


def scan(function: types.FunctionType, facts: Facts) -> Scan:
    """Judge what the text of ``function`` says.

    Parameters
    ----------
    function : types.FunctionType
        A Python function; its globals and closure are looked at for what names stand for now.
    facts : Facts
        Of its text.

    Returns
    -------
    Scan
    """
    return _Scanner(function, facts).verdict()
