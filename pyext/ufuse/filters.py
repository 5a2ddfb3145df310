"""What do contexts that decide about warnings mean while operations wait to be run?

Operations are recorded now and run later, so what is pending runs before the warnings' filters
change. Twins call these in place of the real ones (see ``handlers``). NumPy's error state needs no
stand-in: the session asks for it at each operation.
"""

from __future__ import annotations

import functools
from typing import Any

from . import _core


def _settle() -> None:
    """Compute all that is pending, with its warnings."""
    if _core.session_active():
        _core.call_numpy(_nothing, "flush", False)


def _nothing() -> None:
    """The call of NumPy that is none."""


@functools.cache
def settling(kind: Any) -> Any:
    """A class of context managers that say what becomes of warnings, for twins: an operation warns
    where it stands, not later."""

    class Settling(kind):
        def __enter__(self) -> Any:
            _settle()
            return super().__enter__()

        def __exit__(self, *exc_info: Any) -> Any:
            _settle()
            return super().__exit__(*exc_info)

    return Settling
