"""How do arguments become lazy arrays and results real ones?

Arguments are wrapped through tuples, lists and dicts; user code gets fresh lists and dicts, and
what it changed in them is written back to the caller's at the end. Results are unwrapped in the
same way. Everything else passes through. ``jit`` uses one ``Arguments`` per call.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _core, twin

_LEAVES = (np.ndarray, np.generic)


def _remade(sample: tuple[Any, ...], items: list[Any]) -> Any:
    """A tuple or namedtuple like ``sample``; None for another subclass."""
    if type(sample) is tuple:
        return tuple(items)
    if hasattr(type(sample), "_fields"):
        return tuple.__new__(type(sample), items)
    return None


class Arguments:
    """The arguments of one call, and which container stands for which of the caller's.

    Parameters
    ----------
    recorded : bool
        Whether the call may leave a plan behind, which must not miss what is done to a list or
        dict. Otherwise those without arrays are handed on as they are.
    """

    def __init__(self, recorded: bool = True) -> None:
        self._recorded = recorded
        self._memo: dict[int, Any] = {}
        self._given: dict[int, Any] = {}
        self._copies: list[tuple[Any, Any, Any]] = []  # the caller's, ours, ours at the beginning
        self._keep: list[Any] = []

    def wrap(self, value: Any) -> Any:
        """``value`` as user code gets it."""
        kind = type(value)
        if kind in (int, float, complex, str, bool, types.NoneType):
            return value
        key = id(value)
        if key in self._memo:
            return self._memo[key]
        if isinstance(value, _LEAVES):
            made = _core.wrap(value)
        elif isinstance(value, tuple):
            items = [self.wrap(item) for item in value]
            if all(new is old for new, old in zip(items, value, strict=True)):
                made = value
            else:
                made = _remade(value, items)
                if made is None:
                    made = value
        elif kind is list:
            made = self._memo[key] = []
            made.extend(self.wrap(item) for item in value)
            if self._recorded or not _same(made, value):
                self._copies.append((value, made, list(made)))
            else:
                made = value
        elif kind is dict:
            made = self._memo[key] = {}
            for name, item in value.items():
                made[name] = self.wrap(item)
            if self._recorded or not _same(made, value):
                self._copies.append((value, made, dict(made)))
            else:
                made = value
        else:
            return value
        self._memo[key] = made
        if made is not value:
            self._given[id(made)] = value
        self._keep.append((value, made))
        return made

    def given(self, made: Any) -> Any:
        """The caller's own object for one that ``wrap`` made; None for any other."""
        return self._given.get(id(made))

    def changed(self) -> list[Any]:
        """Containers of ours that user code changed, whose lazy arrays are due as well."""
        return [ours for _, ours, before in self._copies if not _same(ours, before)]

    def write_back(self, unwrap: Callable[[Any], Any]) -> None:
        """Do to the caller's lists and dicts what user code did to ours."""
        for theirs, ours, before in self._copies:
            if _same(ours, before):
                continue
            if isinstance(theirs, list):
                theirs[:] = [self._original(item, unwrap) for item in ours]
            else:
                items = {name: self._original(item, unwrap) for name, item in ours.items()}
                theirs.clear()
                theirs.update(items)

    def _original(self, item: Any, unwrap: Callable[[Any], Any]) -> Any:
        known = self.given(item)
        return unwrap(item) if known is None else known


def _same(ours: Any, before: Any) -> bool:
    if len(ours) != len(before):
        return False
    if isinstance(ours, list):
        return all(new is old for new, old in zip(ours, before, strict=True))
    return all(
        new is old and ours[new] is before[old] for new, old in zip(ours, before, strict=True)
    )


class Results:
    """Replaces the lazy arrays in a nest of results.

    ``collect`` finds them; after they have been computed together, ``unwrap`` puts the real ones
    in their places. Lists and dicts, which user code made, are filled in place, so that an object
    that stands in two places stays one object.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self.lazies: list[Any] = []
        self._real: dict[int, Any] = {}
        self._seen: set[int] = set()
        self._done: dict[int, Any] = {}

    def collect(self, value: Any) -> None:
        """Note the lazy arrays in ``value``."""
        if type(value) is _core.ndarray:
            if id(value) not in self._seen:
                self._seen.add(id(value))
                self.lazies.append(value)
            return
        items: Any
        if isinstance(value, (tuple, list, set, frozenset, deque)):
            items = value
        elif isinstance(value, dict):
            items = value.values()
        elif isinstance(value, types.FunctionType):
            items = _cells(value)
        else:
            return
        if id(value) not in self._seen:
            self._seen.add(id(value))
            for item in list(items):
                self.collect(item)

    def computed(self, real: list[Any]) -> None:
        """Take the real arrays for ``lazies``, in their order."""
        self._real = {id(lazy): value for lazy, value in zip(self.lazies, real, strict=True)}

    def unwrap(self, value: Any) -> Any:
        """``value`` with real arrays."""
        kind = type(value)
        if kind is _core.ndarray:
            return self._real[id(value)] if id(value) in self._real else _core.unwrap(value)
        if kind in (int, float, complex, str, bool, types.NoneType):
            return value
        known = self._arguments.given(value)
        if known is not None:
            return known
        if id(value) in self._done:
            return self._done[id(value)]
        made = value
        if isinstance(value, tuple):
            items = [self.unwrap(item) for item in value]
            if any(new is not old for new, old in zip(items, value, strict=True)):
                remade = _remade(value, items)
                made = value if remade is None else remade
        elif isinstance(value, (list, deque)):
            self._done[id(value)] = value
            for i, item in enumerate(value):
                new = self.unwrap(item)
                if new is not item:
                    value[i] = new
        elif isinstance(value, dict):
            self._done[id(value)] = value
            for name, item in list(value.items()):
                new = self.unwrap(item)
                if new is not item:
                    value[name] = new
        elif isinstance(value, (set, frozenset)):
            if any(type(item) is _core.ndarray for item in value):
                made = type(value)(self.unwrap(item) for item in value)
        elif isinstance(value, types.FunctionType):
            made = twin.restored(value, self.unwrap)
        self._done[id(value)] = made
        return made


def _cells(function: types.FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found
