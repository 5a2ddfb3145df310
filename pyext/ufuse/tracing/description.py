"""What does a function compute, told without computing it?

``describe`` traces a function with arguments that have a dtype and a shape but no elements. What
it records says along which axes the arguments can be cut into blocks (``ir/blocks.h``).
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core

from . import run, tree


class Refused(Exception):
    """A function cannot be described; the text says why."""


class Argument(NamedTuple):
    """An array in C order of which no element is known."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Description:
    """What a call computes, as ``_core.Described`` tells, and what it does to its arguments."""

    def __init__(self, graph: _core.Described, kind: type | None, changed: bool) -> None:
        self.graph = graph
        self.kind = kind  # of the container of several results; None: the result is one array
        self.changed = changed  # it writes to an argument


class _Steps(run.Steps):
    """A traced call in which nothing is computed."""

    found: Description | None = None

    def begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = {id(given): _placeholder(given) for given in args if isinstance(given, Argument)}
        self._placeholders = list(made.values())
        wrap = self._arguments.wrap
        lazies = [made[id(given)] if id(given) in made else wrap(given) for given in args]
        return self._callee, tuple(lazies), {name: wrap(value) for name, value in kwargs.items()}

    def end(self) -> None:
        if not _core.session_active():
            raise Refused("tracing it has stopped on the way")
        kind = type(self.result) if type(self.result) in (tuple, list) else None
        results = list(self.result) if kind else [self.result]
        if not results or not all(map(tree.is_lazy, results)):
            raise Refused("it does not return an array, or a tuple or list of arrays, made of them")
        if _core.changed_copies() or _core.held_lazies():
            raise Refused("it puts arrays elsewhere than into its result")
        changed = not all(map(_core.is_unchanged, self._placeholders))
        self.found = Description(_core.Described(results), kind, changed)

    def due(self, error: BaseException) -> list[Any]:
        return []

    def conclude(self, error: BaseException | None) -> Any:
        return self.found

    def leave(self, error: BaseException | None) -> None:
        vars(self).clear()


def _placeholder(given: Argument) -> Any:
    made = _core.placeholder(np.empty(0, given.dtype), given.shape)
    if made is None:
        raise Refused(f"arrays of dtype {given.dtype} are not traced")
    return made


def describe(function: Any, arguments: Sequence[Argument], keywords: dict[str, Any]) -> Description:
    """Describe a call of a jitted function; it runs once, without values.

    Raises
    ------
    Refused
        Where the function needs a value, or does something that is not recorded.
    """
    plan = function.plan()
    if plan.reason is not None:
        raise Refused(_sentence(plan.reason, plan.detail))
    args, kwargs = function.joined(tuple(arguments), keywords)
    try:
        found = _core.traced(_Steps(plan.callee, None), False, False, False, *args, **kwargs)
    except _core.NeedsValue as needed:
        reason, detail, file, line = needed.args
        told = _sentence(reason, detail) or f"{_innermost(needed)} needs values"
        raise Refused(f"{told} ({file}, line {line})") from None
    assert isinstance(found, Description)
    return found


def _innermost(error: BaseException) -> str:
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_name


def _sentence(reason: str, detail: str) -> str:
    told = dict(_core.reasons()).get(reason, reason)
    return f"{detail}: {told}" if detail else told
