"""Which code with call sites did an earlier process make from the same code?

Reading and compiling NumPy's sources takes longer than a first call should. The result depends on
the code object alone, for a text counts only where it compiles to that code. So it is kept beside
the compiled loops, together with what the text says of its values, under the whole code object.
"""

from __future__ import annotations

import functools
import marshal
import os
import sys
import types
import zlib
from typing import Any

from ufuse import _core

# This version of marshal's format has no references to constants that were written before. Whether
# there are any depends on who else holds them, and would give equal code different keys.
_PLAIN = 2


def read(code: types.CodeType, variant: str) -> tuple[Any, ...] | None:
    """What was kept of a code object.

    Parameters
    ----------
    code : types.CodeType
        The original.
    variant : str
        Which of the codes that are made from it.

    Returns
    -------
    tuple or None
        As it was given to ``put``.
    """
    found = _core.kept_entry(_key(code, variant)) if _is_worth_it(code) else None
    return None if found is None else tuple(marshal.loads(found))


def put(code: types.CodeType, variant: str, made: tuple[Any, ...]) -> None:
    """Keep what was made of a code object, where there is a folder for it."""
    if _is_worth_it(code):
        _core.keep_entry(_key(code, variant), marshal.dumps(made))


def _is_worth_it(code: types.CodeType) -> bool:
    """Whether another process may have the same code: it was read from a file, not typed in."""
    return os.path.isfile(code.co_filename)


def _key(code: types.CodeType, variant: str) -> bytes:
    return marshal.dumps((_maker(), variant, code), _PLAIN)


@functools.cache
def _maker() -> tuple[str, int]:
    """The Python that compiles, and what rewrites the source: this package."""
    checksum = zlib.crc32(" ".join(_core.draw_names).encode())
    folder = os.path.dirname(__file__)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), "rb") as file:
                checksum = zlib.crc32(file.read(), checksum)
    return sys.version, checksum
