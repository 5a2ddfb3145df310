"""What happens in a traced call, and when is one not allowed?

``run`` calls a function's twin with lazy arrays in a session of its own, computes what is due at
the end, and gives real objects back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core

from . import escape, filters, tracebacks, tree
from .parameters import Parameters


class Options(NamedTuple):
    """Options of ``jit``."""

    numerics: str = "exact"
    debug: bool = False
    verify: float = 0  # how many calls are compared with plain NumPy
    compile: str = "background"
    strict: bool = False  # nothing but loops may run


def may_warn_late() -> bool:
    """Whether floating-point errors may be reported later than they arise.

    They may not where one of them shall raise an exception or call a function at once.
    """
    if not all(mode in ("warn", "ignore") for mode in np.geterr().values()):
        return False
    return not filters.raising()


def run(
    callee: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
) -> Any:
    """Call a twin once in a session of its own; the answer is real."""
    return traced(callee, options)(*args, **kwargs)


def traced(
    callee: Callable[..., Any], options: Options, parameters: Parameters | None = None
) -> Callable[..., Any]:
    """What calls a twin once, as ``run`` does, on the frame of its own caller."""
    fast, waits = options.numerics == "fast", options.compile == "wait"
    return functools.partial(_core.traced, Steps(callee, parameters), fast, options.debug, waits)


class Steps:
    """The steps of one traced call, for ``_core.traced``, which calls them and the twin.

    Ctrl-C may end each step at any of its instructions. All from ``due`` on are then called once
    more, which has to do no harm.
    """

    def __init__(self, callee: Callable[..., Any], parameters: Parameters | None) -> None:
        self._callee, self._parameters = callee, parameters
        self._arguments = tree.Arguments()
        self._results = tree.Results(self._arguments)
        self.result: Any = None  # of the twin
        self._is_real = False  # there is no lazy array anywhere that might be in the result

    def begin(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        """The twin, and lazy arrays in the places of the arguments."""
        wrap = self._arguments.wrap
        lazy_args = [wrap(value) for value in args]
        lazy_kwargs = {name: wrap(value) for name, value in kwargs.items()}
        if self._parameters is not None:
            self._parameters.wrap(lazy_args, lazy_kwargs)
        return self._callee, tuple(lazy_args), lazy_kwargs

    def end(self) -> None:
        """Compute what the twin returned and what it wrote."""
        if not _core.session_active():
            return  # tracing has stopped on the way
        if not _core.any_lazy() and not self._arguments.any_given():
            _core.finish([], self.result, [])
            self._is_real = True
            return
        results = tree.Results(self._arguments)
        results.collect(self.result)
        changed = _core.changed_copies()
        if changed:
            _core.mark_impure()
        results.collect(changed)
        results.collect(_core.held_lazies())
        escaped = escape.pending(results.lazies)
        if escaped:
            _core.mark_impure()
        results.collect(escaped)
        made = self._arguments.made()
        results.computed(_core.finish(results.lazies, self.result, made))
        self._results = results

    def due(self, error: BaseException) -> list[Any]:
        """The lazy arrays that the caller of a function that raised will see."""
        results = tree.Results(self._arguments)
        results.collect(_core.changed_copies())
        results.collect(_core.held_lazies())
        results.collect(error.args)
        results.collect(vars(error))
        return results.lazies

    def conclude(self, error: BaseException | None) -> Any:
        """After the session has ended: real objects in the result or the exception."""
        if error is None:
            return self.result if self._is_real else self._results.unwrap(self.result)
        unwrap = tree.Results(self._arguments).unwrap
        error.args = unwrap(error.args)
        for name, value in vars(error).items():
            vars(error)[name] = unwrap(value)
        return None

    def leave(self, error: BaseException | None) -> None:
        """The very end: what else holds lazy arrays gets real ones."""
        vars(self).clear()
        if error is not None:
            error.__traceback__ = tracebacks.without_ours(error.__traceback__)
        escape.replace(error)
