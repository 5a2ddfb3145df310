"""Do the environment variables that ufuse and libomp read make sense?

Asked once, when the package is imported. A variable that does not is named in a warning of the
logger ``ufuse`` (to stderr, unless the program configures ``logging``) and has no effect: libomp,
which ends the process over some of them, is started without it. ``os.environ`` stays as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from . import _core


class Variable(NamedTuple):
    """An environment variable that the package reads."""

    name: str
    default: str  # what holds where it is not set, in words
    meaning: str


VARIABLES = (
    Variable("OMP_NUM_THREADS", "the CPUs of this process", "threads of a loop"),
    Variable("KMP_BLOCKTIME", "25", "milliseconds that threads wait for the next loop"),
    Variable("UFUSE_CXX", "$CXX, g++ or clang++", "compiler"),
    Variable("UFUSE_BACKEND", "deferred", "what computes"),
    Variable("UFUSE_DISABLE", "0", "1: jitted functions are the plain ones"),
    Variable("UFUSE_CHOICES", "clock", "who chooses between ufuse and plain NumPy"),
    Variable("UFUSE_PATIENCE", "5", "seconds that a call waits for the compiler at most"),
    Variable("UFUSE_CACHE_DIR", "the user's cache folder", "where compiled loops are kept"),
    Variable("UFUSE_CACHE_SIZE", "256", "MiB of compiled loops that are kept at most"),
    Variable("UFUSE_LOGS", "none", "what is told on stderr"),
    Variable("UFUSE_LEAVE_OUT", "none", "passes over loops that are left out"),
    Variable("UFUSE_DEBUG", "none", "what is compared with NumPy"),
)
# Of the project's own tests.
_OF_TESTS = "UFUSE_TEST_"

_DEBUG_WORDS = ("check", "requests")
_BACKENDS = ("deferred", "compiled", "interpreted", "numpy")
found: list[tuple[str, str]] = []  # what ``check`` complained of

_MOST_THREADS = 1 << 16  # libomp ends the process over some hundred thousand
_OPENMP = ("OMP_", "KMP_", "GOMP_", "LIBOMP_")
_SWITCH = r"(?i:true|false|yes|no|on|off|0|1)"
_NUMBER = r"\d{1,6}"
# Values that libomp is known to accept. Anything else is tried in a child process first.
_ACCEPTED = {
    "OMP_NUM_THREADS": rf"{_NUMBER}(,{_NUMBER})*",
    "OMP_THREAD_LIMIT": _NUMBER,
    "OMP_MAX_ACTIVE_LEVELS": _NUMBER,
    "OMP_DYNAMIC": _SWITCH,
    "OMP_NESTED": _SWITCH,
    "OMP_CANCELLATION": _SWITCH,
    "OMP_WAIT_POLICY": r"(?i:active|passive)",
    "OMP_PROC_BIND": r"(?i:true|false|master|primary|close|spread)",
    "OMP_PLACES": r"(?i:threads|cores|sockets)",
    "OMP_SCHEDULE": rf"(?i:static|dynamic|guided|auto)(,{_NUMBER})?",
    "OMP_STACKSIZE": r"\d{1,5}[kK]|\d{1,2}[mM]",
    "KMP_STACKSIZE": r"\d{1,5}[kK]|\d{1,2}[mM]",
    "KMP_BLOCKTIME": rf"{_NUMBER}|infinite",
    "KMP_DUPLICATE_LIB_OK": _SWITCH,
    "KMP_INIT_AT_FORK": _SWITCH,
    "KMP_WARNINGS": _SWITCH,
}


def complaints() -> Iterator[tuple[str, str]]:
    """The variables whose values cannot be used, and what is wrong with each.

    Yields
    ------
    tuple of str
        Name of the variable, and a sentence.
    """
    threads = os.environ.get("OMP_NUM_THREADS")
    if threads is not None and not all(
        _is_count(n, 1, _MOST_THREADS + 1) for n in threads.split(",")
    ):
        yield "OMP_NUM_THREADS", f"{threads!r} is no list of positive numbers; it is ignored"
    for name in _refused():
        yield name, f"libomp ends the process over {os.environ[name]!r}; it is ignored"
    size = os.environ.get("UFUSE_CACHE_SIZE", "")
    if size and not _is_count(size, 0, 1 << 40):
        yield "UFUSE_CACHE_SIZE", f"{size!r} is no number of MiB; it is ignored"
    patience = os.environ.get("UFUSE_PATIENCE", "")
    if patience and not _is_count(patience, 0, 60 * 60 * 24 * 365):
        yield "UFUSE_PATIENCE", f"{patience!r} is no number of seconds; it is ignored"
    compiler = os.environ.get("UFUSE_CXX", "")
    if _is_left_open(compiler):
        yield "UFUSE_CXX", f"{compiler!r} has a quotation mark that is not closed"
    backend = os.environ.get("UFUSE_BACKEND", "")
    if backend and backend not in _BACKENDS:
        yield "UFUSE_BACKEND", f"{backend!r} is none of {', '.join(_BACKENDS)}; it is ignored"
    by = os.environ.get("UFUSE_CHOICES", "")
    if by not in ("", "clock", "ours") and not _is_count(by, 0, 10**18):
        yield "UFUSE_CHOICES", f"{by!r} is neither clock nor ours nor a number; it is ignored"
    switch = os.environ.get("UFUSE_DISABLE", "")
    if switch not in ("", "0", "1"):
        yield "UFUSE_DISABLE", f"{switch!r} is neither 0 nor 1; it is ignored"
    known = [variable.name for variable in VARIABLES]
    for name in sorted(os.environ):
        if name.startswith("UFUSE_") and not name.startswith(_OF_TESTS) and name not in known:
            yield name, f"there is no such variable{_similar(name, known)}; it is ignored"
    unknown = [word for word in debug_words() if word not in _DEBUG_WORDS]
    if unknown:
        yield "UFUSE_DEBUG", f"{', '.join(unknown)} is none of {', '.join(_DEBUG_WORDS)}"


def debug_words() -> list[str]:
    """The words of ``UFUSE_DEBUG``."""
    words = os.environ.get("UFUSE_DEBUG", "").split(",")
    return [word.strip() for word in words if word.strip()]


def backend() -> str:
    """What computes: the value of ``UFUSE_BACKEND``, or "deferred"."""
    name = os.environ.get("UFUSE_BACKEND", "")
    return name if name in _BACKENDS else "deferred"


def choices() -> str:
    """Who chooses between ways to answer a call: the value of ``UFUSE_CHOICES``, or "clock"."""
    by = os.environ.get("UFUSE_CHOICES", "")
    return by if by == "ours" else str(int(by)) if _is_count(by, 0, 10**18) else "clock"


def is_disabled() -> bool:
    """Whether ``UFUSE_DISABLE`` asks for plain NumPy."""
    return os.environ.get("UFUSE_DISABLE", "") == "1"


def _is_count(text: str, least: int, most: int) -> bool:
    text = text.strip()
    return text.isascii() and text.isdigit() and least <= int(text) < most


def _similar(name: str, known: list[str]) -> str:
    import difflib  # not before: hardly anybody needs it

    found = difflib.get_close_matches(name, known, n=1)
    return f" (is {found[0]} meant?)" if found else ""


def _is_left_open(command: str) -> bool:
    if not any(sign in command for sign in "'\"\\") or os.path.isfile(command):
        return False
    import shlex  # not before: hardly anybody needs it

    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def _refused() -> list[str]:
    """The variables that libomp does not start with, but for ``OMP_NUM_THREADS``."""
    unknown = [
        name
        for name, value in os.environ.items()
        if name.startswith(_OPENMP)
        and name != "OMP_NUM_THREADS"
        and not re.fullmatch(_ACCEPTED.get(name, "(?!)"), value.strip())
    ]
    if not unknown:
        return []
    with _Hidden(["OMP_NUM_THREADS"]):
        if _core.openmp_survives():
            return []
        with _Hidden(unknown) as values:
            guilty = []
            for name in unknown:
                os.environ[name] = values[name]
                if not _core.openmp_survives():
                    guilty.append(name)
                del os.environ[name]
        with _Hidden(guilty):
            return guilty if guilty and _core.openmp_survives() else unknown


class _Hidden:
    """While it is entered, these variables are not there; it gives their values."""

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._values: dict[str, str] = {}

    def __enter__(self) -> dict[str, str]:
        self._values = {name: os.environ.pop(name) for name in self._names if name in os.environ}
        return self._values

    def __exit__(self, *_: object) -> None:
        os.environ.update(self._values)


def check() -> None:
    """Warn of what cannot be used, and keep it from libomp."""
    found.extend(complaints())
    if not found:
        return
    import logging  # not before: it is a fifth of the time that importing ufuse takes

    for name, trouble in found:
        logging.getLogger("ufuse").warning("%s: %s", name, trouble)
    hidden = [name for name, _ in found if name.startswith(_OPENMP)]
    if hidden:
        away = _Hidden(hidden)
        with away:
            _core.start_openmp()
        # libomp starts anew in a forked child, before Python goes on there.
        os.register_at_fork(
            before=away.__enter__, after_in_parent=away.__exit__, after_in_child=away.__exit__
        )
