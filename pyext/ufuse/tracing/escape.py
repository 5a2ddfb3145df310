"""What if a lazy array is still referenced somewhere when its call has ended?

Results and arguments are made real by ``tree``. A value that the function put elsewhere, into a
list of the caller's, an attribute, a default argument, a dictionary's key, is computed with the
results (``pending``), and afterwards the real array takes its place wherever Python's garbage
collector finds a reference (``replace``). So no call has to know the ways by which values leave it.
Frames that a traceback or a generator keeps are left as they are.

Before untraced code is given an object of Python's own that holds others, such as a deque, a
partial or an iterator, ``make_real_inside`` does the same for that object alone.
"""

from __future__ import annotations

import gc
import sys
import types
from collections import Counter, OrderedDict, deque
from typing import Any

from ufuse import _core
from ufuse._core import is_a

from . import tree

_CONTAINERS = (list, tuple, dict)
# Classes whose objects hold others, and of which subclasses are looked into as well.
_HOLDERS = (list, tuple, dict, set, frozenset, deque, BaseException)
# Modules with more of them, and those of their classes that lead anywhere.
_MODULES = frozenset(["builtins", "collections", "functools", "itertools", "operator", "types"])
_DOORS = (
    *(type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType),
    *(types.FrameType, types.TracebackType, types.GeneratorType, types.CoroutineType),
)


def pending(known: list[Any]) -> list[Any]:
    """The lazy arrays of the active call that are not among ``known`` and will be seen."""
    if not _others(known):
        return []
    gc.collect(0)  # objects that refer to each other may be all that keeps them
    return _others(known)


def _others(known: list[Any]) -> list[Any]:
    addresses = {id(lazy) for lazy in known}
    return [lazy for lazy in _core.pending_arrays() if id(lazy) not in addresses]


def replace(error: BaseException | None = None) -> None:
    """Put real arrays into the places of lazy ones that calls have left behind.

    ``error`` is what ended the call: whatever only the frames of its traceback hold stays.
    """
    lazies = _core.arrays_left_behind()
    if error is not None:
        lazies = _held_elsewhere(lazies, error)
    if not lazies:
        return
    real = {id(lazy): _core.unwrap(lazy) for lazy in lazies}
    # One pass for all of them, for it looks at every object that there is.
    for holder in _core.holders_of(lazies):
        _replace_in(holder, real)


def make_real_inside(objects: list[Any], originals: dict[int, Any]) -> None:
    """Put real arrays into the places of lazy ones in Python's own containers among ``objects``.

    Copies of the caller's containers, of which ``originals`` has the addresses, are replaced too.
    """
    waiting = [each for each in objects if _holds_others(each)]
    seen = {id(each): each for each in waiting}
    while waiting:
        holder = waiting.pop()
        inside = gc.get_referents(holder)
        real = {id(each): _core.unwrap(each) for each in inside if tree.is_lazy(each)}
        real |= {id(each): originals[id(each)] for each in inside if id(each) in originals}
        if real:
            _replace_in(holder, real)
        for each in inside:
            if id(each) not in seen and id(each) not in originals and _holds_others(each):
                seen[id(each)] = each
                waiting.append(each)


def _holds_others(value: Any) -> bool:
    kind = type(value)
    return issubclass(kind, _HOLDERS) or (
        kind.__module__ in _MODULES and not issubclass(kind, _DOORS) and gc.is_tracked(value)
    )


def _count_of_own() -> int:
    """The references to an object of a list, while a loop over that asks how many there are."""
    return next(sys.getrefcount(each) for each in [object()])


def _held_elsewhere(lazies: list[Any], error: BaseException) -> list[Any]:
    """Those to which there are more references than the frames of a traceback have.

    What only such a frame holds, a list of its variables for example, is part of it.
    """
    held: Counter[int] = Counter()
    inside: list[Any] = []
    holders: list[Any] = []
    own = _count_of_own()
    traceback = error.__traceback__
    while traceback is not None:
        holders.append(traceback.tb_frame)
        traceback = traceback.tb_next
    while holders:
        _count(holders, held, inside)
        explained = {id(each) for each in inside if sys.getrefcount(each) - own == held[id(each)]}
        holders = [each for each in inside if id(each) in explained]
        inside = [each for each in inside if id(each) not in explained]
    return [lazy for lazy in lazies if sys.getrefcount(lazy) - own > held[id(lazy)]]


def _count(holders: list[Any], held: Counter[int], inside: list[Any]) -> None:
    """Count what ``holders`` refer to, and add the containers among it to ``inside``."""
    for each in gc.get_referents(*holders):
        held[id(each)] += 1
        if type(each) in _CONTAINERS and held[id(each)] == 1:
            inside.append(each)


def _replace_in(holder: Any, real: dict[int, Any]) -> None:
    """Replace what ``holder`` holds by ``real[address]``, where that is known.

    The methods are those of Python's classes: a subclass of the user's may have others.
    """
    if is_a(holder, (list, tuple, set, frozenset)):
        _core.replace_items(holder, real)
    elif is_a(holder, dict):
        _replace_in_dict(holder, real)
    elif is_a(holder, deque):
        for at, item in enumerate(deque.__iter__(holder)):
            if id(item) in real:
                deque.__setitem__(holder, at, real[id(item)])
    elif is_a(holder, types.CellType):
        holder.cell_contents = real[id(holder.cell_contents)]
    elif not is_a(holder, (types.FrameType, type)):
        _replace_in_object(holder, real)


def _replace_in_dict(holder: dict[Any, Any], real: dict[int, Any]) -> None:
    kind: Any = OrderedDict if is_a(holder, OrderedDict) else dict
    items = list(kind.items(holder))
    for name, value in items:
        if id(value) in real:
            kind.__setitem__(holder, name, real[id(value)])
    if any(id(name) in real for name, _ in items):
        kind.clear(holder)
        for name, value in items:
            kind.__setitem__(holder, real.get(id(name), name), real.get(id(value), value))


def _replace_in_object(holder: Any, real: dict[int, Any]) -> None:
    attributes = getattr(holder, "__dict__", None)
    if type(attributes) is dict:
        _replace_in_dict(attributes, real)
    for kind in type(holder).__mro__:
        for slot in vars(kind).values():
            if not is_a(slot, types.MemberDescriptorType):
                continue
            try:
                value = slot.__get__(holder)
                if id(value) in real:
                    slot.__set__(holder, real[id(value)])
            except (AttributeError, TypeError):  # not set, or read-only
                continue
