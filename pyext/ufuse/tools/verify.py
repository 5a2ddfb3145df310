"""How are calls of a jitted function compared with plain NumPy?

``jit(verify=N)``, ``UFUSE_DEBUG=check`` and ``%%ufuse`` give a function a ``Verifier``, which
answers its calls until as many as wanted have been compared. Then it removes itself, and calls cost
no more than without. ufuse runs on the caller's own arguments, as always. Plain NumPy runs
afterwards, on copies that were made before, and with the random streams put back to where they
were; numbers that other threads draw from the global streams meanwhile are drawn again later. A
call that could have effects is not made twice (``effects``): it is not compared, and ``explain``
and the log ``verify`` say why.
"""

from __future__ import annotations

import functools
import logging
import math
import random
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core, compare, copies
from ufuse.function import Function
from ufuse.tracing.run import may_warn_late
from ufuse.tracing.watchers import Stance, stances

from . import effects, explain, lockstep

# After so many calls that could not be compared nobody tries any more, unless all calls are to be
# compared.
_PATIENCE = 100
_LOG = logging.getLogger("ufuse.verify")


class Verdict(NamedTuple):
    """The outcome of one call.

    Attributes
    ----------
    name : str
        The function.
    compared : bool
        Whether plain NumPy ran as well.
    said : str
        The first difference, or why there was no comparison; empty where both are the same.
    fast : bool
        Whether the function may differ in the last bits: ``numerics="fast"``.
    raised : bool
        Whether it raised an exception.
    """

    name: str
    compared: bool
    said: str
    fast: bool = False
    raised: bool = False

    def __str__(self) -> str:
        if not self.compared:
            return f"not compared with NumPy: {self.said}"
        if not self.said:
            return "raises what NumPy raises" if self.raised else "same as NumPy"
        if self.fast:
            return f'differs from NumPy as numerics="fast" may: {self.said}'
        return f"DIFFERS from NumPy: {self.said}"


class Verifier:
    """Answers the calls of a function, and compares the first ones with plain NumPy.

    Parameters
    ----------
    function : Function
    wanted : float
        How many calls are to be compared; ``math.inf`` for all of them.
    tell : callable
        ``tell(verdict)`` after each call.
    """

    def __init__(self, function: Function, wanted: float, tell: Callable[[Verdict], None]) -> None:
        self._function = function
        self._wanted = wanted
        self._tell = tell
        self._compared = self._calls = 0

    def answering(self) -> Callable[..., Any]:
        """What answers a call that is made now."""
        answer = self._function.unverified()
        if _core.session_active() or stances.now == "plain":
            return answer
        return functools.partial(self._call, answer)

    def about(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """How many calls were compared, and why one with such arguments is not."""
        text = f"{self._compared} of {self._calls} calls compared with NumPy"
        why_not = self._why_not_to(args, kwargs)
        return text if why_not is None else f"{text}; one like this is not: {why_not}"

    def _call(self, answer: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._calls += 1
        why_not = self._why_not_to(args, kwargs)
        if why_not is None:
            return self._compare(answer, args, kwargs)
        return self._leave(answer, args, kwargs, why_not)

    def _leave(
        self,
        answer: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        why_not: str,
    ) -> Any:
        """A call that is not compared."""
        try:
            return answer(*args, **kwargs)
        finally:
            self._told(Verdict(self._function._name(), False, why_not))

    def _why_not_to(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
        reason = explain.plan_reason(self._function.plan())
        if not reason and not may_warn_late():
            reason = explain.sentences()["error_state"]
        if reason:
            return f"plain NumPy ran it: {reason}"
        return effects.reason(self._function._function, args, kwargs)

    def _compare(
        self, answer: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        try:
            before = Before(args, kwargs)
        except Exception as error:
            return self._leave(answer, args, kwargs, f"the arguments have no copies: {error!r}")
        ours = Outcome(answer, args, kwargs)
        if isinstance(ours.error, _core.InternalError):
            raise ours.error
        function, options = self._function._function, self._function._options
        found = difference(ours, before.plainly(function))
        fast = options.numerics == "fast"
        if found is not None and not fast:
            first = lockstep.first_difference(function, options, before.plainly, before.run)
            found = f"{found}\n{first}"
        self._compared += 1
        raised = ours.error is not None
        self._told(Verdict(self._function._name(), True, found or "", fast, raised))
        return ours.answer()

    def _told(self, verdict: Verdict) -> None:
        _LOG.info("%s: call %d: %s", verdict.name, self._calls, verdict)
        skipped = self._calls - self._compared
        if self._compared >= self._wanted or (skipped >= _PATIENCE and self._wanted != math.inf):
            self._function._end_verification()
        self._tell(verdict)


def complain() -> Callable[[Verdict], None]:
    """What ``jit(verify=N)`` does about a difference: it raises ``Mismatch``."""
    count = 0

    def tell(verdict: Verdict) -> None:
        nonlocal count
        count += 1
        if verdict.compared and verdict.said:
            raise compare.Mismatch(f"{verdict.name}, call {count}: {verdict.said}")

    return tell


class Outcome:
    """What one run gave, and what it left in its arguments."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.args, self.kwargs = args, kwargs
        self.result: Any = None
        self.error: Exception | None = None
        try:
            self.result = function(*args, **kwargs)
        except Exception as error:
            self.error = error
        self.streams = _streams()

    @property
    def said(self) -> str:
        """The exception in words."""
        if self.error is None:
            return "a value"
        return f"{type(self.error).__name__}: {self.error}"

    def answer(self) -> Any:
        """What the caller gets."""
        if self.error is None:
            return self.result
        try:
            raise self.error
        finally:
            self.error = None  # else its traceback would hold it, in a circle

    def sharing(self) -> list[tuple[int, int, bool, int]]:
        """Which arrays of the result lie in the memory of which others, and where there."""
        of_result, given = _arrays(self.result), _arrays((self.args, self.kwargs))
        others = given + of_result
        return [
            (i, j, array is other, _address(array) - _address(other))
            for i, array in enumerate(of_result)
            for j, other in enumerate(others)
            if np.may_share_memory(array, other)
        ]


class Before:
    """The arguments and the global random streams as they were before a call."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._given = copies.copied((args, kwargs), objects=True)
        self._streams = _streams()

    def run(self, call: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Any:
        """``call(args, kwargs)`` with new copies and streams.

        Of warnings only those are kept that are raised as errors.
        """
        now, filters = _streams(), warnings.filters
        args, kwargs = copies.copied(self._given, objects=True)
        try:
            _set_streams(self._streams)
            warnings.filters = [
                *((each if each[0] == "error" else ("ignore", *each[1:])) for each in filters),
                ("ignore", None, Warning, None, 0),
            ]
            return call(args, kwargs)
        finally:
            warnings.filters = filters
            _set_streams(now)

    def plainly(self, function: Callable[..., Any]) -> Outcome:
        """What plain NumPy gives."""
        with Stance("plain"):
            outcome: Outcome = self.run(functools.partial(Outcome, function))
        return outcome


def difference(ours: Outcome, theirs: Outcome) -> str | None:
    """The first difference of two runs in words; None where there is none."""
    if ours.said != theirs.said or type(ours.error) is not type(theirs.error):
        return f"result: {ours.said} is not {theirs.said}"
    found = compare.difference(ours.result, theirs.result, layout=True)
    found = found or compare.difference(ours.args, theirs.args, "arguments")
    found = found or compare.difference(ours.kwargs, theirs.kwargs, "arguments")
    found = found or compare.difference(ours.streams, theirs.streams, "random streams")
    if found is None and ours.sharing() != theirs.sharing():
        return "result: its memory is not shared with the arguments as NumPy's is"
    return found


def _streams() -> tuple[Any, Any]:
    """The states of the random streams of ``numpy.random`` and ``random``."""
    return np.random.get_state(legacy=False), random.getstate()


def _set_streams(states: tuple[Any, Any]) -> None:
    np.random.set_state(states[0])
    random.setstate(states[1])


def _arrays(value: Any) -> list[Any]:
    return [each for each in copies.contents(value)[1] if isinstance(each, np.ndarray)]


def _address(x: Any) -> int:
    address = x.__array_interface__["data"][0]
    assert isinstance(address, int)
    return address
