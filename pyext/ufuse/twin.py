"""How does a Python function get to see lazy arrays instead of NumPy's own?

A *twin* shares its original's code object; its globals are a dictionary in which the names that the
code uses are swapped (``swap.py`` holds the rules), and its closure has cells swapped likewise.
NumPy's own Python functions are twinned in the same way, so most of NumPy is traced through NumPy's
source, keyword handling and messages included. ``jit`` asks for twins; nothing here records or runs
an operation.

Callables and modules are swapped when the twin is made and checked by identity before each call
(``Twin.refresh``). All other globals of user code are read from the real module at the moment of
use, so a counter that somebody else changes in the middle of a call is seen as it is.
"""

from __future__ import annotations

import atexit
import builtins
import types
import weakref
from collections.abc import Iterator
from typing import Any

from . import locking, scan, swap
from .names import is_fixed, is_pure

# (globals or cell, name, value)
Guard = tuple["dict[str, Any] | types.CellType", str, Any]
_MISSING = object()
_twins: weakref.WeakKeyDictionary[types.FunctionType, Twin] = weakref.WeakKeyDictionary()


class LiveGlobals(dict[str, Any]):
    """Globals of a twin of user code: swapped names, and everything else as the module has it now.

    ``LOAD_GLOBAL`` takes CPython's general path for a dict subclass, which honours ``__missing__``.
    """

    __slots__ = ("real",)
    real: dict[str, Any]

    def __missing__(self, name: str) -> Any:
        return self.real[name]


def names_used(code: types.CodeType) -> Iterator[str]:
    """The names in ``co_names`` of a code object and of the code nested in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_used(constant)


class Twin:
    """The twin of one Python function.

    Parameters
    ----------
    original : types.FunctionType
        The function whose code is to meet lazy arrays.

    Attributes
    ----------
    function : types.FunctionType
        The twin itself.
    """

    def __init__(self, original: types.FunctionType) -> None:
        self.original = weakref.ref(original)
        self.function: types.FunctionType
        self._code: types.CodeType
        self._names: list[tuple[str, Any]] = []
        self._cells: list[tuple[types.CellType, types.CellType | None, Any]] = []
        self._children: list[Twin] = []
        self._stable = swap.is_stable(original)

    def build(self) -> None:
        """Make the function and swap what its code names; called once, under the lock."""
        original = self.original()
        assert original is not None
        self._code = original.__code__
        real = original.__globals__
        names: dict[str, Any]
        if self._stable:
            names = {}
        else:
            names = LiveGlobals()
            names.real = real
        names["__builtins__"] = swap.builtins_for(self._stable)
        for name in ("__name__", "__package__", "__spec__", "__file__"):
            if name in real:
                names[name] = real[name]
        # Shared, so that a warning shown "once per place" is shown once for both.
        names["__warningregistry__"] = real.setdefault("__warningregistry__", {})
        self.function = types.FunctionType(
            self._code, names, original.__name__, original.__defaults__, self._closure(original)
        )
        self.function.__kwdefaults__ = original.__kwdefaults__
        self.function.__qualname__ = original.__qualname__
        self.function.__module__ = original.__module__
        self.function.__doc__ = original.__doc__
        self.function.__dict__.update(original.__dict__)

    def fill(self) -> None:
        """Swap the globals and cells; after registration, because a function may name itself."""
        original = self.original()
        assert original is not None
        real, names = original.__globals__, self.function.__globals__
        extra = swap.extra_names(original)
        names.update(extra)
        self._names.clear()
        self._children.clear()
        for name in set(names_used(self._code)):
            if name in extra:
                self._guard(name, real.get(name, _MISSING))
                continue
            value = real.get(name, _MISSING)
            if value is _MISSING:
                # A builtin, an attribute's name, or nothing.
                names.pop(name, None)
                self._guard(name, _MISSING)
            elif self._stable:
                names[name] = swap.late(value, names, name)
            elif swap.is_code(value):
                names[name] = self._swap(value)
                self._guard(name, value)
            else:
                names.pop(name, None)
                self._guard(name, swap.DATA)
        for _cell, twin_cell, value in self._cells:
            if twin_cell is not None:
                twin_cell.cell_contents = self._swap(value)

    def _guard(self, name: str, value: Any) -> None:
        if not self._stable and (value is not _MISSING or not hasattr(builtins, name)):
            self._names.append((name, value))

    def _swap(self, value: Any) -> Any:
        swapped = swap.swap(value)
        inner = getattr(value, "_function", value)
        if isinstance(swapped, types.FunctionType) and isinstance(inner, types.FunctionType):
            child = _twins.get(inner)
            if child is not None and child is not self:
                self._children.append(child)
        return swapped

    def _closure(self, original: types.FunctionType) -> tuple[types.CellType, ...]:
        """Cells of the twin: new ones for what is swapped, the real ones for data."""
        closure = []
        self._cells = []
        for cell, _, value in free_variables(original):
            if swap.is_code(value):
                twin_cell = types.CellType()
                closure.append(twin_cell)
                self._cells.append((cell, twin_cell, value))
            else:
                closure.append(cell)
                self._cells.append((cell, None, swap.DATA))
        return tuple(closure)

    def up_to_date(self, seen: set[int]) -> bool:
        """Whether code, swapped names and cells of this twin and its helpers are as they were."""
        if self._stable or id(self) in seen:
            return True
        seen.add(id(self))
        original = self.original()
        if original is None:
            return True
        if original.__code__ is not self._code:
            return False
        if original.__defaults__ is not self.function.__defaults__:
            return False
        if original.__kwdefaults__ is not self.function.__kwdefaults__:
            return False
        real = original.__globals__
        for name, value in self._names:
            current = real.get(name, _MISSING)
            if current is not value and (value is not swap.DATA or swap.is_code(current)):
                return False
        contents = {id(cell): current for cell, _, current in free_variables(original)}
        for cell, _, value in self._cells:
            current = contents.get(id(cell))
            if current is not value and (value is not swap.DATA or swap.is_code(current)):
                return False
        return all(child.up_to_date(seen) for child in self._children)

    def guards(self, seen: set[int]) -> list[Guard] | None:
        """What must stay as it is for a recorded call to be good: ``(globals, name, value)``.

        A cell stands in the place of the globals for a variable of the enclosing function. ``...``
        as the value says that there must be none. None when there is more to a call than that: a
        variable that is no constant, or a helper that is not pure.
        """
        original = self.original()
        if original is None or not scan.scan(original).pure:
            return None
        cells = free_variables(original)
        if not all(value is ... or is_pure(value) for _, _, value in cells):
            return None
        seen.add(id(self))
        named = original.__kwdefaults__ or {}
        if not all(map(is_fixed, (*(original.__defaults__ or ()), *named.values()))):
            return None
        real = original.__globals__
        rows: list[Guard] = [*cells, *((named, name, value) for name, value in named.items())]
        rows += [(real, name, real.get(name, ...)) for name in set(names_used(self._code))]
        for child in self._children:
            if child._stable or id(child) in seen:
                continue
            more = child.guards(seen)
            if more is None:
                return None
            rows += more
        return rows

    def functions(self, seen: set[int]) -> Iterator[types.FunctionType]:
        """The user's functions that this twin and its helpers stand for."""
        original = self.original()
        if original is None or self._stable or id(self) in seen:
            return
        seen.add(id(self))
        yield original
        for child in self._children:
            yield from child.functions(seen)


def free_variables(function: types.FunctionType) -> list[tuple[types.CellType, str, Any]]:
    """The variables of enclosing functions: cell, name and value, which is ``...`` for none."""
    rows = []
    names = function.__code__.co_freevars
    for cell, name in zip(function.__closure__ or (), names, strict=True):
        try:
            rows.append((cell, name, cell.cell_contents))
        except ValueError:
            rows.append((cell, name, ...))
    return rows


def twin_of(function: types.FunctionType) -> Twin:
    """The up-to-date twin of a Python function, made when there is none."""
    with locking.tables:
        twin = _twins.get(function)
        if twin is None or not twin.up_to_date(set()):
            forget(twin)
            twin = Twin(function)
            _twins[function] = twin
            try:
                twin.build()
                twin.fill()
            except BaseException:
                _twins.pop(function, None)
                raise
        return twin


def forget(twin: Twin | None) -> None:
    """Drop a stale twin and its helpers' twins; the next use makes them anew."""
    if twin is None:
        return
    original = twin.original()
    if original is not None and _twins.pop(original, None) is not None:
        for child in twin._children:
            forget(child)


@atexit.register
def _let_go() -> None:
    """Functions known here would keep their modules' names alive until NumPy's are gone, and with
    them objects whose ``__del__`` calls NumPy."""
    _twins.clear()
    swap.let_go()


def restored(
    function: types.FunctionType,
) -> tuple[types.FunctionType, list[tuple[types.CellType, types.CellType]]]:
    """A function made by a twin's code, as the original code would have made it.

    Parameters
    ----------
    function : types.FunctionType
        A closure that a traced call returns.

    Returns
    -------
    types.FunctionType
        With cells that are empty yet, since what they are to hold may be made of the function.
    list of (types.CellType, types.CellType)
        Each of them, and the twin's.
    """
    names = function.__globals__
    if not isinstance(names, LiveGlobals):
        return function, []
    cells = [(types.CellType(), cell) for cell in function.__closure__ or ()]
    closure = tuple(real for real, _ in cells)
    real = types.FunctionType(
        function.__code__, names.real, function.__name__, function.__defaults__, closure
    )
    real.__kwdefaults__ = function.__kwdefaults__
    real.__qualname__ = function.__qualname__
    real.__doc__ = function.__doc__
    return real, cells
