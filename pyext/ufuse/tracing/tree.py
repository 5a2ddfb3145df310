"""How do arguments become lazy arrays and results real ones?

Arguments are wrapped through tuples, lists and dicts; where there are arrays in them, user code
gets copies, which ``_core`` keeps equal to the caller's own. Results are unwrapped in the same way.
Everything else passes through. ``jit`` uses one ``Arguments`` per call.

Containers may be nested deeper than Python recurses, and may hold themselves. So the walks through
them are generators, which ``_walked`` keeps on a stack of its own. A new list or dict is there
before its items are looked at. A new tuple is made of its items: one that holds itself, through a
list, is met again among them, and that second look makes it.
"""

from __future__ import annotations

import operator
import types
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import numpy as np

from ufuse import _core
from ufuse._core import is_a

_LEAVES = (np.ndarray, np.generic)
_CONTAINERS = (tuple, list, dict, set, frozenset, deque)
_METHODS = (types.BuiltinMethodType, types.MethodType)
_PLAIN = frozenset((int, float, complex, str, bool, types.NoneType))


def is_lazy(value: Any) -> bool:
    """Whether a value is a lazy array or scalar, whatever it says of its class."""
    return is_a(value, _core.ndarray)


def _base(container: Any) -> Any:
    """Which of Python's own containers an object is; a class derived from one may have methods of
    its own, which run where the user's code calls them, nowhere else."""
    return next(kind for kind in _CONTAINERS if is_a(container, kind))


def _values(container: Any) -> Iterator[Any]:
    """What a container holds."""
    base = _base(container)
    return iter(dict.values(container)) if base is dict else base.__iter__(container)


# A walk yields the walks whose values it needs.
_Walk = Generator["_Walk", Any, Any]


def _walked(walk: _Walk) -> Any:
    """The value of a walk."""
    stack = [walk]
    value = None
    while stack:
        try:
            inner = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            stack.append(inner)
            value = None
    return value


def _is_remade(kind: type) -> bool:
    """Whether a tuple of this class is its items and nothing else: a namedtuple may have
    attributes beside them, and other classes whatever they like."""
    return kind is tuple or (hasattr(kind, "_fields") and kind.__dictoffset__ == 0)


class Arguments:
    """The arguments of one call, and which container stands for which of the caller's."""

    def __init__(self) -> None:
        self._memo: dict[int, Any] = {}
        self._given: dict[int, Any] = {}
        self._keep: list[Any] = []

    def wrap(self, value: Any) -> Any:
        """``value`` as user code gets it."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        # Asked once, from the outside: each answer takes a look at all that is inside.
        if kind in (tuple, list, dict) and not _core.is_walked(value):
            self._memo[id(value)] = value
            self._keep.append((value, value))
            return value
        return _walked(self._wrapped(value))

    def _wrapped(self, value: Any) -> _Walk:
        kind = type(value)
        key = id(value)
        if kind in _PLAIN:
            return value
        if key in self._memo:
            return self._memo[key]
        if is_lazy(value) or is_a(value, _LEAVES):
            made = _core.wrap(value)
        elif is_a(value, tuple):
            items = yield from self._items(_values(value))
            if key in self._memo:
                return self._memo[key]
            if _is_remade(kind) and not all(map(operator.is_, items, _values(value))):
                made = tuple.__new__(kind, items)
            else:
                made = value
        elif kind is list:
            made = self._memo[key] = []
            made.extend((yield from self._items(value)))
            if all(map(operator.is_, made, value)):
                made = value
        elif kind is dict:
            made = self._memo[key] = {}
            names = list(value)
            made.update(zip(names, (yield from self._items(list(value.values()))), strict=True))
            if all(map(operator.is_, made.values(), value.values())):
                made = value
        else:
            return value
        self._memo[key] = made
        if made is not value:
            self._given[id(made)] = value
            if kind in (list, dict, tuple) and _core.session_active():
                _core.add_copy(made, value)
        self._keep.append((value, made))
        return made

    def _items(self, values: Any) -> _Walk:
        items = []
        for item in list(values):
            items.append(item if type(item) in _PLAIN else (yield self._wrapped(item)))
        return items

    def any_given(self) -> bool:
        """Whether something stands for an object of the caller's."""
        return bool(self._given)

    def given(self, made: Any) -> Any:
        """The caller's own object for one that ``wrap`` made; None for any other."""
        return self._given.get(id(made))

    def made(self) -> list[Any]:
        """What stands for the caller's objects."""
        return [made for _, made in self._keep]


class Results:
    """Replaces the lazy arrays in a nest of results.

    ``collect`` finds them; after they have been computed together, ``unwrap`` puts the real ones
    in their places. Containers that user code made are filled in place, so that an object that
    stands in two places stays one object.
    """

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self.lazies: list[Any] = []
        self._real: dict[int, Any] = {}
        self._seen: set[int] = set()
        self._done: dict[int, Any] = {}
        self._keep: list[Any] = []  # whose addresses stand in `_seen` and `_done`

    def collect(self, value: Any) -> None:
        """Note the lazy arrays in ``value``."""
        self._keep.append(value)
        open_values = [value]
        while open_values:
            value = open_values.pop()
            items: Iterable[Any]
            if is_lazy(value):
                if id(value) not in self._seen:
                    self._seen.add(id(value))
                    self.lazies.append(value)
                continue
            if is_a(value, _CONTAINERS):
                items = _values(value)
            elif is_a(value, types.FunctionType):
                items = _cells(value)
            elif is_a(value, _METHODS):
                items = (value.__self__,)
            else:
                continue
            if id(value) not in self._seen:
                self._seen.add(id(value))
                open_values.extend(reversed(list(items)))

    def computed(self, real: list[Any]) -> None:
        """Take the real arrays for ``lazies``, in their order."""
        self._real = {id(lazy): value for lazy, value in zip(self.lazies, real, strict=True)}

    def unwrap(self, value: Any) -> Any:
        """``value`` with real arrays."""
        return value if type(value) in _PLAIN else _walked(self._unwrapped(value))

    def _unwrapped(self, value: Any) -> _Walk:
        kind = type(value)
        if is_lazy(value):
            return self._real[id(value)] if id(value) in self._real else _core.unwrap(value)
        if kind in _PLAIN:
            return value
        known = self._arguments.given(value)
        if known is not None:
            return known
        if id(value) in self._done:
            return self._done[id(value)]
        self._keep.append(value)
        self._done[id(value)] = value
        if is_a(value, (tuple, list, set, frozenset)):
            real = {}
            for item in list(_values(value)):
                if type(item) in _PLAIN:
                    continue
                new = yield self._unwrapped(item)
                if new is not item:
                    real[id(item)] = new
            if real:
                _core.replace_items(value, real)
        elif is_a(value, (deque, dict)):
            base: Any = _base(value)
            places = dict.items(value) if is_a(value, dict) else enumerate(_values(value))
            for place, item in list(places):
                if type(item) in _PLAIN:
                    continue
                new = yield self._unwrapped(item)
                if new is not item:
                    base.__setitem__(value, place, new)
        elif is_a(value, types.FunctionType):
            for cell in value.__closure__ or ():
                try:
                    content = cell.cell_contents
                except ValueError:
                    continue
                new = yield self._unwrapped(content)
                if new is not content:
                    cell.cell_contents = new
        elif is_a(value, _METHODS) and is_lazy(value.__self__):
            self._done[id(value)] = getattr((yield self._unwrapped(value.__self__)), value.__name__)
        return self._done[id(value)]


def _cells(function: types.FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found
