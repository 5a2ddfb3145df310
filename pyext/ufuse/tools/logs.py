"""What does ``UFUSE_LOGS`` print, and where do measured times go?

``UFUSE_LOGS`` is a comma-separated list of ``output_code``, ``graph``, ``fusion``, ``passes``,
``programs``, ``fallbacks``, ``recompiles``, ``cache`` and ``verify``, or ``all``. Each category is
a logger ``ufuse.<category>`` of the standard ``logging`` module; its lines go to stderr. ``jit``
hands each call to the watchers, if there are any: these logs, or a profile.

``output_code``, ``graph``, ``fusion`` and ``passes`` show what was built anew: the C++ text, what
was asked for, the groups with their schedules and loops, the loops after each pass over them.
``programs`` shows the loops of a function's own text when something has become of them: the program
that they are now, or why they are Python's.
``recompiles`` names each run of the compiler with the arguments that needed it, ``cache`` where the
code of each group came from, ``fallbacks`` what NumPy or Python ran instead of loops. ``verify``
tells of each call that is compared with plain NumPy, or why it is not (``verify.py`` writes it).
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from ufuse import _core
from ufuse._core import is_a
from ufuse.tracing.watchers import watchers

from . import explain

CATEGORIES = (
    "output_code",
    "graph",
    "fusion",
    "passes",
    "programs",
    "fallbacks",
    "recompiles",
    "cache",
    "verify",
)


class Seen(NamedTuple):
    """One call, as the watchers are told of it.

    Attributes
    ----------
    name, mode, reason : str
        As in ``explain.Explanation``; what a traced call did is in ``explain.last_call()``.
    start, end : int
        Nanoseconds of ``time.perf_counter_ns``.
    args, kwargs : tuple, dict
        The call's arguments, as it left them.
    function : object
        What was decorated.
    """

    name: str
    mode: str
    reason: str
    start: int
    end: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Any

    @property
    def signature(self) -> str:
        """Name and arguments: ``f(float64[3, 4], int)``."""
        return signature(self.name, self.args, self.kwargs)


def signature(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A call in words.

    Examples
    --------
    >>> signature("f", (np.zeros((3, 4)), 2), {"out": None})
    'f(float64[3, 4], int, out=NoneType)'
    """
    given = [described(value) for value in args]
    given += [f"{key}={described(value)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(given)})"


def described(value: Any, depth: int = 3) -> str:
    """An argument in words: dtype and shape of an array, else the type.

    Parameters
    ----------
    value : object
    depth : int
        So many containers within each other are looked into: a list may be nested without end.

    Examples
    --------
    >>> described([np.zeros((2, 3)), 4])
    '[float64[2, 3], int]'
    >>> described([[[[4]]]])
    '[[[list]]]'
    """
    if is_a(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if is_a(value, (list, tuple)) and len(value) <= 8 and depth > 0:
        return f"[{', '.join(described(item, depth - 1) for item in value)}]"
    return type(value).__name__


def loggers_from(text: str) -> dict[str, logging.Logger]:
    """The loggers that ``UFUSE_LOGS=text`` asks for, each with a handler to stderr.

    Parameters
    ----------
    text : str
        Categories, separated by commas; one that does not exist is named in a warning.

    Returns
    -------
    dict of str to logging.Logger
    """
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    unknown = sorted(set(wanted) - {*CATEGORIES, "all"})
    if unknown:
        logging.getLogger("ufuse").warning(
            "UFUSE_LOGS: %s is none of %s, all", ", ".join(unknown), ", ".join(CATEGORIES)
        )
    if "all" in wanted:
        wanted = list(CATEGORIES)
    found = {}
    for category in wanted:
        if category not in CATEGORIES:
            continue
        logger = logging.getLogger(f"ufuse.{category}")
        logger.setLevel(logging.INFO)
        if not logger.handlers:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("[%(name)s] %(message)s"))
            logger.addHandler(handler)
            logger.propagate = False
        found[category] = logger
    return found


class LogWatcher:
    """Writes what each call did to the loggers that are on."""

    def __init__(self, loggers: dict[str, logging.Logger]) -> None:
        self._loggers = loggers
        self._told_of_folder = False
        self._loops: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = {}

    def __call__(self, seen: Seen) -> None:
        name = seen.name
        if "programs" in self._loggers:
            self._tell_loops(seen)
        if seen.mode == "plain":
            self._say("fallbacks", "%s: plain: %s", name, seen.reason)
            return
        if seen.mode == "replayed":
            self._say("cache", "%s: replayed", name)
            return
        last = explain.last_call()
        for row in last.rows:
            groups = explain.groups_of(row)
            if row["fresh"]:
                self._say("graph", "%s:\n%s", name, row["graph"])
                moved, minimum = row["bytes_moved"], row["bytes_minimum"]
                self._say("fusion", "%s: %d bytes moved, minimum %d", name, moved, minimum)
            for group in groups:
                self._tell(seen, group)
        for note in last.notes:
            self._say("fallbacks", "%s: %s", name, note)

    def _tell_loops(self, seen: Seen) -> None:
        """What has become of the function's loops since its last call."""
        for loop in explain.loops_of(seen.function):
            key = seen.name, seen.function.__code__.co_filename, loop.place
            known, reason = self._loops.get(key, ((), ""))
            if (loop.programs, loop.reason) == (known, reason):
                continue
            self._loops[key] = loop.programs, loop.reason
            new = [text for text in loop.programs if text not in known]
            self._say("programs", "%s: %s", seen.name, "\n".join([str(loop), *new]))

    def _tell(self, seen: Seen, group: explain.Group) -> None:
        self._say("cache", "%s: %s: %s", seen.name, " ".join(group.ops), group.whence)
        if not group.fresh:
            return
        self._say("fusion", "%s: %s\n%s\n%s", seen.name, group, group.schedule, group.loops)
        if group.passes:
            self._say("passes", "%s: %s\n%s", seen.name, group, group.passes)
        if group.source:
            self._say("output_code", "%s:\n%s", seen.name, group.source)
        if group.asked_compiler:
            self._say("recompiles", "%s: %s", seen.signature, group)
        if not self._told_of_folder:
            self._told_of_folder = True
            known = _core.jit_statistics()
            self._say("cache", "folder: %s", known["cache_dir"] or f"none: {known['cache_note']}")

    def _say(self, category: str, message: str, *values: Any) -> None:
        logger = self._loggers.get(category)
        if logger is not None:
            logger.info(message, *values)


def start() -> None:
    """Watch as ``UFUSE_LOGS`` asks; called once, when it is set."""
    loggers = loggers_from(os.environ["UFUSE_LOGS"])
    if loggers:
        watchers.append(LogWatcher(loggers))
