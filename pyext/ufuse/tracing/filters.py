"""What does a ``with`` statement mean while operations wait to be run?

Operations are recorded now and run later. Who holds a lock expects what was written before to be
there, and what another thread wrote; who changes the warnings' filters expects each operation to
warn where it stands. So what is pending runs where a block begins and ends. NumPy's error state
needs none of that: the session asks for it at each operation.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from ufuse import _core


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
        return super().__enter__()

    def __exit__(self, *exc_info: Any) -> None:
        _flush()
        super().__exit__(*exc_info)


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

    def __enter__(self) -> Any:
        _flush()
        entered = type(self._manager).__enter__(self._manager)
        _flush()  # others may have written before a lock was free
        return entered

    def __exit__(self, *exc_info: Any) -> Any:
        _flush()
        return type(self._manager).__exit__(self._manager, *exc_info)


def managed(manager: Any) -> Any:
    """What a ``with`` statement of traced code gets in the place of ``manager``."""
    kind = type(manager)
    if kind in _HARMLESS or not _core.session_active():
        return manager
    if not (hasattr(kind, "__enter__") and hasattr(kind, "__exit__")):
        return manager  # Python says so
    return Managed(manager)
