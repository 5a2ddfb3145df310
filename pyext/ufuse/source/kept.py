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
    key = _key(code, variant)
    found = None if key is None else _core.kept_entry(key)
    return None if found is None else tuple(marshal.loads(found))


def put(code: types.CodeType, variant: str, made: tuple[Any, ...]) -> None:
    """Keep what was made of a code object, where there is a folder for it."""
    key = _key(code, variant)
    if key is not None:
        _core.keep_entry(key, marshal.dumps(made))


def _key(code: types.CodeType, variant: str) -> bytes | None:
    """Under what something is kept; None: no other process has the same code.

    It was typed in, not read from a file, or somebody has put other constants into it than
    compilers make.
    """
    if not os.path.isfile(code.co_filename):
        return None
    plain = _without_slices(code) if sys.version_info >= (3, 14) else code
    try:
        return marshal.dumps((_maker(), variant, plain), _PLAIN)
    except ValueError:
        return None


def _without_slices(constant: Any) -> Any:
    """A constant with lists, which no code has for constants, in the places of slices.

    From Python 3.14 on there are slices among the constants, and marshal's format has them only
    together with references.
    """
    if isinstance(constant, types.CodeType):
        return constant.replace(co_consts=_without_slices(constant.co_consts))
    if isinstance(constant, tuple):
        return tuple(map(_without_slices, constant))
    if isinstance(constant, slice):
        return [constant.start, constant.stop, constant.step]
    return constant


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
