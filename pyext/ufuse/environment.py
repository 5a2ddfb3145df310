"""Do the environment variables that ufuse reads make sense?

Asked once, when the package is imported. A variable that does not is named in a warning of the
logger ``ufuse`` (to stderr, unless the program configures ``logging``) and has no effect.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

_DEBUG_WORDS = ("check", "requests")
_BACKENDS = ("deferred", "compiled", "interpreted", "numpy")
found: list[tuple[str, str]] = []  # what ``check`` complained of


def complaints() -> Iterator[tuple[str, str]]:
    """The variables whose values cannot be used, and what is wrong with each.

    Yields
    ------
    tuple of str
        Name of the variable, and a sentence.
    """
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads and not all(_is_count(word, 1, 1 << 31) for word in threads.split(",")):
        yield "OMP_NUM_THREADS", f"{threads!r} is no list of positive numbers; it is ignored"
    size = os.environ.get("UFUSE_CACHE_SIZE", "")
    if size and not _is_count(size, 0, 1 << 40):
        yield "UFUSE_CACHE_SIZE", f"{size!r} is no number of MiB; it is ignored"
    compiler = os.environ.get("UFUSE_CXX", "")
    if _is_left_open(compiler):
        yield "UFUSE_CXX", f"{compiler!r} has a quotation mark that is not closed"
    backend = os.environ.get("UFUSE_BACKEND", "")
    if backend and backend not in _BACKENDS:
        yield "UFUSE_BACKEND", f"{backend!r} is none of {', '.join(_BACKENDS)}; it is ignored"
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


def _is_count(text: str, least: int, most: int) -> bool:
    text = text.strip()
    return text.isascii() and text.isdigit() and least <= int(text) < most


def _is_left_open(command: str) -> bool:
    if not any(sign in command for sign in "'\"\\") or os.path.isfile(command):
        return False
    import shlex  # not before: hardly anybody needs it

    try:
        shlex.split(command)
    except ValueError:
        return True
    return False


def check() -> None:
    """Warn of what cannot be used."""
    found.extend(complaints())
    if not found:
        return
    import logging  # not before: it is a fifth of the time that importing ufuse takes

    for name, trouble in found:
        logging.getLogger("ufuse").warning("%s: %s", name, trouble)
        if name == "OMP_NUM_THREADS":
            # libomp ends the process, or takes any number, when it reads such a value.
            os.environ.pop(name)
