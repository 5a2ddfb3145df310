"""Which frames of a traceback are the user's?

A call runs through ufuse's own Python files; a traceback should not. Used where an exception
leaves a traced call.
"""

from __future__ import annotations

import os
import sysconfig
import types
from typing import Any

# The package's.
FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Python's own, in which others' may lie.
STANDARD = str(sysconfig.get_path("stdlib")).rstrip("/") + "/"


def is_ours(code: types.CodeType) -> bool:
    """Whether a code object belongs to this package."""
    return code.co_filename.startswith(FOLDER)


def is_of_python(file: str) -> bool:
    """Whether a file is Python's own; installed packages may lie below its library's folder."""
    if file.startswith(STANDARD):
        return "-packages/" not in file.removeprefix(STANDARD)
    return file.startswith("<frozen ")


def is_of_handler(traceback: types.TracebackType | None) -> bool:
    """Whether an exception that left code of this package is one of a signal's handler.

    Python runs handlers between any two instructions. The last frame of such an exception is
    neither the package's nor the standard library's.
    """
    if traceback is None:
        return False
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    file = traceback.tb_frame.f_code.co_filename
    return not (file.startswith(FOLDER) or is_of_python(file))


class UsersTraceback:
    """Context manager: an exception that leaves it has no frames of this package."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if error is not None:
            error.__traceback__ = without_ours(error.__traceback__)


def without_ours(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The same traceback without the frames of this package."""
    kept = []
    while traceback is not None:
        if not is_ours(traceback.tb_frame.f_code):
            kept.append(traceback)
        traceback = traceback.tb_next
    following: types.TracebackType | None = None
    for entry in reversed(kept):
        # A signal may come between two lines, where there is none.
        line: int | None = entry.tb_lineno
        line = -1 if line is None else line
        following = types.TracebackType(following, entry.tb_frame, entry.tb_lasti, line)
    return following
