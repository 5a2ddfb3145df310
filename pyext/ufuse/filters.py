"""What does ``warnings.catch_warnings`` mean while operations wait to be run?

Operations are recorded now and run later, so what is pending runs before the warnings' filters
change. Twins call this in place of Python's own (see ``handlers``). NumPy's error state needs no
stand-in: the session asks for it at each operation.
"""

from __future__ import annotations

import warnings
from typing import Any

from . import _core


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
