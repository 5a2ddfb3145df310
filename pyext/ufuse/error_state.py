"""What do ``np.errstate`` and ``warnings.catch_warnings`` mean while operations wait to be run?

Operations are recorded now and run later, so the session is told of each change of the error state,
and what is pending runs before the warnings' filters change. Twins call these in place of NumPy's
and Python's own (see ``handlers``).
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from . import _core

# Warnings: those of pending operations come before what changes or adds to them.


def _settle() -> None:
    """Compute all that is pending, with its warnings."""
    if _core.session_active():
        _core.call_numpy(_nothing, "flush", False)


def _nothing() -> None:
    """The call of NumPy that is none."""


class CatchWarnings(warnings.catch_warnings):
    """``warnings.catch_warnings`` for twins: an operation warns where it stands, not later."""

    def __enter__(self) -> Any:
        _settle()
        return super().__enter__()

    def __exit__(self, *exc_info: Any) -> None:
        _settle()
        super().__exit__(*exc_info)


# Error state: told to the session at each change.


def report_mask() -> int:
    """The floating-point flags that the error state asks to report, as ``_core`` counts them."""
    modes = np.geterr().values()  # divide, over, under, invalid
    return sum(1 << bit for bit, mode in enumerate(modes) if mode != "ignore")


def tell() -> None:
    """Let the session know of the error state in force from here on."""
    if _core.session_active():
        _core.set_errmask(report_mask())


class ErrState(np.errstate):
    """``np.errstate`` for twins; also a decorator, as NumPy's is."""

    def __enter__(self) -> None:
        super().__enter__()
        tell()

    def __exit__(self, *exc_info: Any) -> None:
        super().__exit__(*exc_info)
        tell()

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with self._recreate():
                return function(*args, **kwargs)

        return inner

    def _recreate(self) -> ErrState:
        return type(self)(**self._settings)

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._settings = settings


class Variable:
    """The context variable that NumPy 2 keeps its error state in, for ``errstate`` decorators."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def set(self, value: Any) -> Any:
        token = self._real.set(value)
        tell()
        return token

    def reset(self, token: Any) -> None:
        self._real.reset(token)
        tell()
