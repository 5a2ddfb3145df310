"""What if a lazy array is still referenced somewhere when its call has ended?

Results and arguments are made real by ``tree``. A value that the function put elsewhere, into a
list of the caller's, an attribute, a default argument, a dictionary's key, is computed with the
results (``pending``), and afterwards the real array takes its place wherever Python's garbage
collector finds a reference (``replace``). So no call has to know the ways by which values leave it.
Frames that a traceback or a generator keeps are left as they are.
"""

from __future__ import annotations

import gc
import types
from collections import deque
from typing import Any

from . import _core


def pending(known: list[Any]) -> list[Any]:
    """The lazy arrays of the active call that are not among ``known`` and will be seen."""
    found = _core.pending_arrays()
    if len(found) <= len(known):
        addresses = {id(lazy) for lazy in known}
        found = [lazy for lazy in found if id(lazy) not in addresses]
    if not found:
        return []
    del found
    gc.collect(0)  # what a call leaves in circles is nobody's
    addresses = {id(lazy) for lazy in known}
    return [lazy for lazy in _core.pending_arrays() if id(lazy) not in addresses]


def replace() -> None:
    """Put real arrays into the places of lazy ones that calls have left behind."""
    lazies = _core.arrays_left_behind()
    while lazies:
        lazy = lazies.pop()
        real = _core.unwrap(lazy)
        for holder in gc.get_referrers(lazy):
            if holder is not lazies:
                _replace_in(holder, lazy, real)


def _replace_in(holder: Any, lazy: Any, real: Any) -> None:
    if isinstance(holder, tuple):
        _core.replace_in_tuple(holder, lazy, real)
    elif isinstance(holder, dict):
        _replace_in_dict(holder, lazy, real)
    elif isinstance(holder, (list, deque)):
        for at, item in enumerate(holder):
            if item is lazy:
                holder[at] = real
    elif isinstance(holder, set):
        holder.discard(lazy)
        holder.add(real)
    elif isinstance(holder, types.CellType):
        holder.cell_contents = real
    elif not isinstance(holder, (types.FrameType, type)):
        _replace_in_object(holder, lazy, real)


def _replace_in_dict(holder: dict[Any, Any], lazy: Any, real: Any) -> None:
    for name, value in list(holder.items()):
        if value is lazy:
            holder[name] = real
    if any(name is lazy for name in holder):
        items = [(real if name is lazy else name, value) for name, value in holder.items()]
        holder.clear()
        holder.update(items)


def _replace_in_object(holder: Any, lazy: Any, real: Any) -> None:
    attributes = getattr(holder, "__dict__", None)
    if type(attributes) is dict:
        _replace_in_dict(attributes, lazy, real)
    for kind in type(holder).__mro__:
        for slot in vars(kind).values():
            if not isinstance(slot, types.MemberDescriptorType):
                continue
            try:
                if slot.__get__(holder) is lazy:
                    slot.__set__(holder, real)
            except (AttributeError, TypeError):  # not set, or read-only
                continue
