"""What does ``UFUSE_LOGS`` print, and where do measured times go?

``UFUSE_LOGS`` is a comma-separated list of ``output_code``, ``graph``, ``fusion``, ``fallbacks``,
``recompiles`` and ``cache``, or ``all``. Each category is a logger ``ufuse.<category>`` of the
standard ``logging`` module; its lines go to stderr. ``jit`` calls ``after_call`` when anybody
watches, which ``watching`` tells at the price of one look at a list.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from typing import Any

from . import explain

CATEGORIES = ("output_code", "graph", "fusion", "fallbacks", "recompiles", "cache")

# What is told of each call: (name, start, end) in nanoseconds of time.perf_counter_ns.
watchers: list[Callable[[str, int, int], None]] = []


def loggers_from(text: str) -> dict[str, logging.Logger]:
    """The loggers that ``UFUSE_LOGS=text`` asks for, each with a handler to stderr.

    Raises
    ------
    ValueError
        For a category that does not exist.
    """
    wanted = [word.strip() for word in text.split(",") if word.strip()]
    if "all" in wanted:
        wanted = list(CATEGORIES)
    unknown = sorted(set(wanted) - set(CATEGORIES))
    if unknown:
        raise ValueError(f"UFUSE_LOGS: {', '.join(unknown)} is none of {', '.join(CATEGORIES)}")
    found = {}
    for category in wanted:
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

    def __call__(self, name: str, start: int, end: int) -> None:
        notes, groups, moved, minimum = explain.last_call()
        for group in groups:
            self._say("graph", "%s: loops\n%s", name, group.loops)
            self._say("output_code", "%s:\n%s", name, group.source)
            self._say("fusion", "%s: %s", name, group)
            self._say("cache", "%s: %s", name, group.origin)
            if group.origin == "compiled":
                self._say("recompiles", "%s: %.1f ms: %s", name, group.compile_ms, group.ops)
        if groups:
            self._say("fusion", "%s: %d bytes moved, minimum %d", name, moved, minimum)
        for note in notes:
            self._say("fallbacks", "%s: %s", name, note)

    def _say(self, category: str, message: str, *values: Any) -> None:
        logger = self._loggers.get(category)
        if logger is not None:
            logger.info(message, *values)


def start() -> None:
    """Watch as ``UFUSE_LOGS`` asks; called once, when it is set."""
    watchers.append(LogWatcher(loggers_from(os.environ["UFUSE_LOGS"])))
