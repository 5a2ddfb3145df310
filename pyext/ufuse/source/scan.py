"""Can a function be traced, and is it pure?

``scan(function, facts)`` judges by what the text of a function, and of those inside it, says
(``source/facts.py``). ``twin`` asks it before it makes a twin, and ``jit`` before each kind of
call. Nothing here runs user code or knows of lazy arrays. What is done with arrays is not judged
here: call sites, attributes and items see it when it happens.
"""

from __future__ import annotations

import builtins
import sys
import types
import weakref
from collections.abc import Callable
from typing import NamedTuple

from ufuse._core import is_a

from . import names
from .facts import Facts

_WEAK = (weakref.ref, weakref.proxy, weakref.finalize, weakref.WeakValueDictionary)
_GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


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
        self.meanings = names.Meanings(function, facts.values)
        self.is_of_library = names.is_library(function.__globals__.get("__name__"))
        self.pure = True
        self.line = self.code.co_firstlineno

    def see_fail(self, _: int, reason: str, detail: str) -> None:
        raise _Finding(reason, detail)

    def see_unseen(self, *_: object) -> None:
        self.pure = False

    see_outside = see_unseen

    def see_import(self, *_: object) -> None:
        # NumPy's functions import from NumPy, whose globals do not change.
        self.pure &= self.is_of_library

    def see_global(self, at: int, name: str) -> None:
        value = self.meanings.of(at)
        self.see_value(value)
        is_builtin = hasattr(builtins, name) and value is getattr(builtins, name)
        if is_builtin and name in names.REFLECTIVE:
            raise _Finding("reflection", f"`{name}` can see every local name")
        self.pure &= name in names.PURE_BUILTINS if is_builtin else names.is_pure(value)

    def see_value(self, value: object) -> None:
        if value is sys.getrefcount:
            raise _Finding("reflection", "`getrefcount` counts references")
        if any(value is each for each in _WEAK) or type(value) is weakref.WeakValueDictionary:
            raise _Finding("reflection", "weak references tell when an array is let go of")

    def see_attr(self, at: int, base: int, name: str, _: object) -> None:
        self.see_value(self.meanings.of(at))
        is_of_module = is_a(self.meanings.of_name(base), types.ModuleType)
        if name == "resize" and not is_of_module:
            # It counts the references to the array.
            raise _Finding("memory_exposed", "`.resize` changes the size of an array in place")
        if name == "random":
            self.pure = False

    def look(self) -> None:
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
