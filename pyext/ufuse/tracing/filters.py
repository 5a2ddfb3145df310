"""What does a ``with`` statement mean while operations wait to be run?

Operations are recorded now and run later. Who holds a lock expects what was written before to be
there, and what another thread wrote; who changes the warnings' filters expects each operation to
warn where it stands. So what is pending runs where a block begins and ends; and where a warning is
an exception, or goes into a list that the function can look at, nothing is left pending. NumPy's
error state needs none of that: the session asks for it at each operation.
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ufuse import _core
from ufuse._core import is_a


def raising() -> bool:
    """Whether the filters in force make an exception of a floating-point warning."""
    for action, message, category, module, line in warnings.filters:
        if issubclass(RuntimeWarning, category):
            if action == "error":
                return True
            if message is None and module is None and line == 0:
                break  # decides for all warnings that come here
    return False


def set_filters(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call a function of ``warnings`` that changes the filters."""
    try:
        return _core.call_numpy(function, "flush", False, *args, **kwargs)
    finally:
        _look()


class _Blocks(threading.local):
    """How many ``with`` blocks of this thread put warnings into a list."""

    recording = 0


_blocks = _Blocks()


def _records(manager: Any) -> bool:
    return is_a(manager, warnings.catch_warnings) and bool(vars(manager).get("_record"))


def _shown_by() -> Any:
    return getattr(warnings, "_showwarnmsg_impl", None)


def _look() -> None:
    """The filters, or who is shown warnings, may be others than before."""
    if _core.session_active():
        _core.warns_at_once(raising() or _blocks.recording > 0)


def _flush() -> None:
    """Compute all that is pending, with its warnings."""
    if _core.session_active():
        _core.call_numpy(_nothing, "flush", False)


def _nothing() -> None:
    """Stands for a function of NumPy, before which all that is pending is computed."""


class CatchWarnings(warnings.catch_warnings):
    """``warnings.catch_warnings`` for twins: an operation warns where it stands, not later."""

    def __enter__(self) -> Any:
        _flush()
        try:
            return super().__enter__()
        finally:
            _blocks.recording += _records(self)
            _look()

    def __exit__(self, *exc_info: Any) -> None:
        _flush()
        _blocks.recording -= _records(self)
        super().__exit__(*exc_info)
        _look()


# Context managers that change nothing that a pending operation depends on, or that compute all that
# is pending. Classes derived from them may do anything, as `pytest.warns` does.
_HARMLESS = (np.errstate, CatchWarnings, contextlib.nullcontext, contextlib.suppress)


class Managed:
    """A context manager around another one.

    Parameters
    ----------
    manager : object
        What the user's code names in its ``with`` statement.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._records = False

    def __enter__(self) -> Any:
        _flush()
        before = _shown_by()
        entered = type(self._manager).__enter__(self._manager)
        _flush()  # others may have written before a lock was free
        self._records = _records(self._manager) or _shown_by() is not before
        _blocks.recording += self._records
        _look()
        return entered

    def __exit__(self, *exc_info: Any) -> Any:
        _flush()
        _blocks.recording -= self._records
        try:
            return type(self._manager).__exit__(self._manager, *exc_info)
        finally:
            _look()


def managed(manager: Any) -> Any:
    """What a ``with`` statement of traced code gets in the place of ``manager``."""
    kind = type(manager)
    if kind in _HARMLESS or not _core.session_active():
        return manager
    if not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
        return manager  # Python says so
    return Managed(manager)
