"""What must not happen in calls of jitted functions: ``ufuse.stance`` and ``jit(strict=True)``.

``check`` looks at the traced call that has just ended, and raises where NumPy or Python ran what
should have been loops.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, get_args

from ufuse.tracing.tracebacks import UsersTraceback
from ufuse.tracing.watchers import Stance

from . import explain, logs

if TYPE_CHECKING:
    from ufuse.function import Function

_Name = Literal["default", "plain", "fail_on_fallback", "fail_on_recompile"]


class FallbackError(RuntimeError):
    """NumPy or Python ran a part of a call; the message says which part, at which line, and why."""


class RecompileError(RuntimeError):
    """A call needed loops that no earlier call of the function had needed."""


def stance(name: _Name) -> AbstractContextManager[None]:
    """A context manager: what this thread wants of the jitted functions that it calls.

    Parameters
    ----------
    name : {"default", "plain", "fail_on_fallback", "fail_on_recompile"}
        "plain" runs the plain functions, as ``ufuse.disabled()`` does. "fail_on_fallback" raises
        ``ufuse.FallbackError`` where NumPy or Python runs something instead of loops: a call
        without native form, or a function that cannot be traced. Values that NumPy computes anew
        because a warning is due, and values that Python asks for (``if x.any()``), are no such
        case. Each call is traced, and waits for the compiler. "fail_on_recompile" raises
        ``ufuse.RecompileError`` where a function that has been traced before needs new loops,
        for another dtype for example. "default" is what holds outside of all stances.

    Returns
    -------
    context manager
        The innermost one counts. Calls inside other traced calls belong to these.

    Raises
    ------
    ValueError
        For an unknown name. The errors of the stances are raised when the call has ended: what
        the function has written is written. A function that cannot be traced has not begun.

    Examples
    --------
    >>> import numpy as np, ufuse
    >>> f = ufuse.jit(lambda x: np.sort(x) + 1)
    >>> with ufuse.stance("fail_on_fallback"):
    ...     f(np.arange(3.0))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    ufuse.tools.stance.FallbackError: <lambda>: ... NumPy call sort: This NumPy function has ...
    """
    if name not in get_args(_Name):
        raise ValueError(f"a stance is one of {', '.join(get_args(_Name))}, not {name!r}")
    return Stance(name)


def answer(function: Function[..., Any], name: str, /, *args: Any, **kwargs: Any) -> Any:
    """A call under one of the stances that raise."""
    with UsersTraceback():
        if name == "fail_on_recompile":
            return _with_known_loops(function, args, kwargs)
        refuse(function)
        with explain.waiting():
            result = function._trace(*args, **kwargs)
        check(function)
        return result


def refuse(function: Function[..., Any]) -> None:
    """Raise where a call made now would be plain NumPy's from its beginning on."""
    if reason := explain.why_plain(function.plan()):
        raise FallbackError(f"{function._name()}: {reason}")


def check(function: Function[..., Any]) -> None:
    """Raise where NumPy or Python ran a part of the traced call that has just ended."""
    last = explain.last_call()
    told = [
        str(note)
        for note in last.notes
        if note.kind == "numpy_call" and note.reason != "native_loop"
    ]
    told += [str(group) for group in last.groups if not group.is_compiled]
    if told:
        raise FallbackError(f"{function._name()}: {'; '.join(told)}")


def _with_known_loops(
    function: Function[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    function.plan()
    dispatcher = function._dispatcher
    if dispatcher is None:
        return function.way()(*args, **kwargs)
    before = dispatcher.counts[1]
    result = dispatcher(*args, **kwargs)
    if before and dispatcher.counts[1] != before:
        new = [str(group) for group in explain.last_call().groups if group.is_built_anew]
        if new:
            given = logs.signature(function._name(), args, kwargs)
            raise RecompileError(f"{given} needs new loops: {'; '.join(new)}")
    return result
