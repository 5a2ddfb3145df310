"""How are a call's arguments copied so that a second run meets the same arrays?

Copies have the same values, dtype, shape, strides, flags and alignment. Copies of arrays that share
memory share memory, and an object that stands in two places has one copy. Random generators are
copied with their state: the second run draws the same numbers, and the caller's stream advances
once only. Used wherever a function is run a second time, on copies.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np

from ._core import is_a

GENERATORS = (np.random.Generator, np.random.RandomState, np.random.BitGenerator, random.Random)


def copied(value: Any, memo: dict[int, Any] | None = None, objects: bool = False) -> Any:
    """``value`` with copies of the arrays in it, through tuples, lists and dicts.

    Parameters
    ----------
    value : object
        Anything; what is no array, generator or container is returned as it is.
    memo : dict, optional
        What has been copied already, by address of the memory.
    objects : bool
        Whether objects that are no more than their attributes are copied with these.
    """
    return _Copies({} if memo is None else memo, objects).of(value)


def is_copied_object(value: Any) -> bool:
    """Whether an object of a class in Python is nothing but its attributes.

    Then it has no items, slots or state in C, and no code runs when a copy is dropped.
    """
    kind = type(value)
    if type(kind) is not type or kind.__basicsize__ != _Plain.__basicsize__:
        return False
    if kind.__new__ is not object.__new__ or type(getattr(value, "__dict__", None)) is not dict:
        return False
    others = ("__del__", "__deepcopy__", "__copy__")
    return not any(hasattr(kind, name) for name in others)


class _Plain:
    """An object of a class in Python: attributes in a dict, and nothing else."""


def state_of(generator: Any) -> Any:
    """The state of a random generator, as containers and numbers."""
    if is_a(generator, np.random.Generator):
        return generator.bit_generator.state
    if is_a(generator, np.random.RandomState):
        return generator.get_state(legacy=False)
    return generator.getstate() if is_a(generator, random.Random) else generator.state


class _Copies:
    """Copies without recursion, so containers may be nested deeply and hold themselves.

    First new containers are made without their items (tuples only when all of their items are
    there), then lists, dicts and objects are filled.
    """

    def __init__(self, memo: dict[int, Any], objects: bool) -> None:
        self._memo = memo
        self._objects = objects
        self._made: dict[int, Any] = {}
        self._shared: dict[int, Any] = {}  # of ``copy.deepcopy``

    def of(self, value: Any) -> Any:
        containers = contents(value, self._objects)[0]
        for container in containers:
            if type(container) in (list, dict):
                self._made[id(container)] = type(container)()
            elif not is_a(container, tuple):
                self._made[id(container)] = object.__new__(type(container))
        self._make_tuples([c for c in containers if is_a(c, tuple)])
        for container in containers:
            if type(container) is list:
                self._made[id(container)].extend(map(self._leaf, container))
            elif type(container) is dict:
                self._made[id(container)].update(
                    (key, self._leaf(item)) for key, item in container.items()
                )
            elif attributes := getattr(container, "__dict__", None):
                vars(self._made[id(container)]).update(
                    (name, self._leaf(item)) for name, item in attributes.items()
                )
        return self._leaf(value)

    def _make_tuples(self, tuples: list[Any]) -> None:
        waiting = tuples  # each for the tuples in it, which no tuple holds in a circle
        known = {id(c) for c in tuples}
        while waiting:
            c = waiting[-1]
            inner = [i for i in c if id(i) in known and id(i) not in self._made]
            if inner:
                waiting.extend(inner)
                continue
            waiting.pop()
            if id(c) not in self._made:
                items = [self._leaf(item) for item in c]
                self._made[id(c)] = (
                    tuple(items) if type(c) is tuple else tuple.__new__(type(c), items)
                )

    def _leaf(self, value: Any) -> Any:
        if id(value) in self._made:
            return self._made[id(value)]
        if is_a(value, GENERATORS):
            return copy.deepcopy(value, self._shared)
        if not is_a(value, np.ndarray):
            return value
        # One array under two names is one again.
        made = self._made[id(value)] = _copied_array(value, self._memo)
        return made


def contents(value: Any, objects: bool = False) -> tuple[list[Any], list[Any]]:
    """The tuples, lists, dicts (and objects) in ``value`` that are copied, and all else in it.

    Each object stands in one of the two lists once.
    """
    found: dict[int, Any] = {}
    leaves: dict[int, Any] = {}
    open_values = [value]
    while open_values:
        value = open_values.pop()
        kind = type(value)
        if id(value) in found or id(value) in leaves:
            continue
        if kind in (tuple, list):
            open_values.extend(value)
        elif is_a(value, tuple) and hasattr(value, "_fields"):
            open_values.extend(tuple.__iter__(value))
            open_values.extend(getattr(value, "__dict__", {}).values())
        elif kind is dict:
            open_values.extend(value.values())
        elif objects and is_copied_object(value):
            open_values.extend(vars(value).values())
        else:
            leaves[id(value)] = value
            continue
        found[id(value)] = value
    return list(found.values()), list(leaves.values())


def _copied_array(x: Any, memo: dict[int, Any]) -> Any:
    if type(x) is not np.ndarray or x.dtype.hasobject:
        return copy.deepcopy(x)
    owner = x
    while type(owner.base) is np.ndarray:
        owner = owner.base
    if id(owner) not in memo:
        memo[id(owner)] = (*_copied_memory(owner), owner)
    whole, buffer, shift, _ = memo[id(owner)]
    if x is owner:
        return whole
    made: Any = np.ndarray(x.shape, x.dtype, buffer, shift + _address(x), x.strides)
    made.flags.writeable = x.flags.writeable
    return made


def _copied_memory(owner: Any) -> tuple[Any, Any, int]:
    """A copy of an array that is no view, its bytes, and how far they are from the original's."""
    low, size = _extent(owner)
    whole = owner.copy("K") if owner.flags.owndata else None
    if whole is not None and whole.strides == owner.strides and whole.nbytes == size:
        buffer, start = whole.ravel("K").view(np.uint8), 0
    else:
        buffer = np.empty(size + 64, np.uint8)
        start = (low - _address(buffer)) % 64
        at = start + _address(owner) - low
        whole = np.ndarray(owner.shape, owner.dtype, buffer, at, owner.strides)
        whole[...] = owner
    whole.flags.writeable = owner.flags.writeable
    return whole, buffer, start - low


def _address(x: Any) -> int:
    address = x.__array_interface__["data"][0]
    assert is_a(address, int)
    return address


def _extent(x: Any) -> tuple[int, int]:
    """Address of the first byte an array touches, and how many bytes there are to its last."""
    low = high = _address(x)
    if x.size == 0:
        return low, 0
    for size, stride in zip(x.shape, x.strides, strict=True):
        low += min(0, (size - 1) * stride)
        high += max(0, (size - 1) * stride)
    return low, high + x.itemsize - low
