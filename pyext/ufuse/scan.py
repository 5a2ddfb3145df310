"""Could a lazy array escape unseen from this function, and is the function pure?

``scan(function)`` reads the byte code of a function and of the code nested in it (comprehensions,
lambdas) once. ``twin`` asks it before it makes a twin and ``jit`` before each kind of call. Nothing
here runs user code or knows of lazy arrays: ``bytecode`` follows where each value on the stack came
from, ``names`` knows what functions and attributes do by their names, and here the verdict is made.
What cannot be followed counts as foreign, so an unknown opcode or a new Python version costs speed,
never an answer.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from . import bytecode, names
from .bytecode import CONST, FOREIGN, FRESH, Origin

_GENERATOR = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR


class Scan(NamedTuple):
    """What the byte code of one function says.

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


def _texts(code: types.CodeType) -> Iterator[str]:
    """The string constants of a code object."""
    for constant in code.co_consts:
        if isinstance(constant, str):
            yield constant


class _Finding(Exception):
    def __init__(self, reason: str, detail: str, line: int) -> None:
        super().__init__(reason)
        self.reason, self.detail, self.line = reason, detail, line


class _Scanner:
    """One function with the code nested in it; names of cells are shared between them."""

    def __init__(self, code: types.CodeType, lookup: Callable[[str, bool], Any]) -> None:
        self.root = code
        self.code, self.nested = code, False  # the one that is being read
        self.lookup = lookup
        self.assigned: dict[str, list[Origin]] = {}
        self.pure = True
        self.line = code.co_firstlineno

    # What a name stands for.

    def callable_global(self, origin: Origin) -> bool:
        """Whether a global or free name is a module, a function or a class at the moment."""
        value = self.lookup(origin[1], origin[0] == "free")
        return isinstance(value, types.ModuleType) or callable(value)

    def is_number(self, origin: Origin) -> bool:
        """Whether a global or free name is a number at the moment."""
        value = self.lookup(origin[1], origin[0] == "free")
        return isinstance(value, (int, float, complex, np.generic))

    def roots(self, origin: Origin, seen: frozenset[str] = frozenset()) -> Iterator[Origin]:
        """The origins an origin can be traced back to: const, fresh, param or foreign ones."""
        kind = origin[0]
        if kind in ("fresh", "const", "param", "foreign"):
            yield origin
        elif kind == "local":
            if origin[1] not in seen:
                for source in self.assigned.get(origin[1], [FRESH]):
                    yield from self.roots(source, seen | {origin[1]})
        elif kind == "item":
            for root in self.roots(origin[1], seen):
                yield FRESH if root == CONST else root
        elif kind == "attr":
            base = origin[1]
            if base[0] in ("global", "free") and self.callable_global(base):
                yield FRESH
            else:
                for root in self.roots(base, seen):
                    # An attribute of a parameter may be anything its object holds, except for the
                    # views that arrays have as attributes, and what is no array.
                    if origin[2] in names.FACTS:
                        yield FRESH
                        continue
                    own = root == FRESH or origin[2] in ("T", "real", "imag", "mT")
                    yield root if own else FOREIGN
        elif kind == "args":
            for source in origin[1]:
                yield from self.roots(source, seen)
        elif kind in ("global", "free"):
            known = self.callable_global(origin) or self.is_number(origin)
            yield FRESH if known else FOREIGN
        else:
            yield FOREIGN

    def result_of(self, callee: Origin, arguments: list[Origin]) -> Origin:
        """The origin of what a call returns."""
        if callee[0] == "global" and callee[1] in names.PASSING:
            return ("args", tuple(arguments))
        if callee[0] == "attr":
            return ("item", callee[1]) if callee[1][0] != "global" else FRESH
        return FRESH

    def value_of(self, origin: Origin) -> Any:
        """What a global or free name, or an attribute of a module, stands for at the moment."""
        if origin[0] in ("global", "free"):
            return self.lookup(origin[1], origin[0] == "free")
        if origin[0] == "attr":
            base = self.value_of(origin[1])
            return getattr(base, origin[2], None) if isinstance(base, types.ModuleType) else None
        return None

    def fill_by_object(self, base: Origin, name: str) -> None:
        """A random generator writes into memory; names of modules are swapped, objects are not."""
        origin = base
        while origin[0] == "attr":
            origin = origin[1]
        if origin[0] not in ("global", "free") or not isinstance(
            self.lookup(origin[1], origin[0] == "free"), types.ModuleType
        ):
            self.fail("memory_exposed", f"`.{name}` writes into an array's memory")

    # Events of the walk.

    def fail(self, reason: str, detail: str) -> None:
        raise _Finding(reason, detail, self.line)

    def variable(self, name: str) -> Origin:
        if name in self.root.co_freevars:
            return ("free", name)
        if self.nested and name not in self.code.co_freevars:
            name = f"{self.code.co_qualname}.{name}"
            self.assigned.setdefault(name, [FRESH])
        return ("local", name)

    def assign(self, name: str, value: Origin) -> None:
        origin = self.variable(name)
        if origin[0] == "free":
            self.fail("store_outer", f"`{name}` of the enclosing function is assigned")
        self.assigned.setdefault(origin[1], []).append(value)

    def call(self, callee: Origin, arguments: list[Origin], keywords: tuple[str, ...]) -> Origin:
        if callee[0] == "attr" and callee[2] in names.FILLERS and "out" in keywords:
            self.fill_by_object(callee[1], callee[2])
        kind = self.value_of(callee)
        strict = isinstance(kind, type) and names.is_strict(kind.__module__)
        if strict and any(argument != CONST for argument in arguments):
            self.fail("strict_type", f"`{kind.__name__}` takes no lazy numbers")
        return self.result_of(callee, arguments)

    def load_global(self, name: str) -> None:
        if name in names.MEMORY_GLOBALS:
            self.fail("memory_exposed", f"`{name}` hands out an array's memory")
        if name in names.REFLECTIVE and self.lookup(name, False) is getattr(builtins, name):
            self.fail("reflection", f"`{name}` can see every local name")
        value = self.lookup(name, False)
        if hasattr(builtins, name) and value is getattr(builtins, name):
            self.pure = self.pure and name in names.PURE_BUILTINS
        else:
            self.pure = self.pure and names.is_pure(value)

    def load_attribute(self, base: Origin, name: str) -> None:
        if name in names.MEMORY_ATTRIBUTES and any(
            root[0] in ("fresh", "param") for root in self.roots(base)
        ):
            if base[0] in ("global", "free") and name not in names.MEMORY_GLOBALS:
                return
            self.fail("memory_exposed", f"`.{name}` hands out an array's memory")
        if names.is_class_method(self.value_of(base), name):
            self.fail("unbound_method", f"`.{name}` is taken from a class")
        if name == "shuffle":
            self.fill_by_object(base, name)
        if name == "random":
            self.pure = False

    def import_module(self) -> None:
        self.pure = False

    # One code object.

    def run(self, code: types.CodeType, nested: bool) -> None:
        used = names.ERROR_STATE.intersection(code.co_names)
        if found := names.FILTERS.intersection(code.co_names):
            self.fail("error_state", f"`{min(found)}` changes who sees a warning")
        if used & names.LASTING or (used and names.STRICT_MODES.intersection(_texts(code))):
            self.fail("error_state", "floating-point errors shall raise or call somebody at once")
        if code.co_flags & _GENERATOR and not nested:
            self.fail("generator", "a generator or coroutine keeps its values between calls")
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)
        # A nested function's parameters are given by code that is scanned as well.
        params = frozenset(() if nested else code.co_varnames[:count])
        for name in params:
            self.assigned.setdefault(name, []).append(("param", name))
        self.code, self.nested = code, nested
        bytecode.walk(code, self)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self.run(constant, nested=True)

    # The verdict.

    def verdict(self) -> Scan:
        try:
            self.run(self.root, nested=False)
        except _Finding as found:
            return Scan(found.reason, found.detail, found.line, False)
        return Scan(None, "", 0, self.pure)


def scan(function: types.FunctionType) -> Scan:
    """Read the byte code of ``function``.

    Parameters
    ----------
    function : types.FunctionType
        A Python function; its globals and closure are looked at for what names stand for now.

    Returns
    -------
    Scan

    Examples
    --------
    >>> scan(lambda x: x.ctypes).reason
    'memory_exposed'
    >>> scan(lambda x: [x * 2, x]).reason is None
    True
    """
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def lookup(name: str, free: bool) -> Any:
        if free:
            try:
                return cells[name].cell_contents
            except (KeyError, ValueError):
                return None
        if name in function.__globals__:
            return function.__globals__[name]
        return getattr(builtins, name, None)

    return _Scanner(function.__code__, lookup).verdict()
