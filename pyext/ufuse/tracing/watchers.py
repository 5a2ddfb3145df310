"""Who is told of the calls of jitted functions, and what does a thread want of them?"""

from __future__ import annotations

import threading
from typing import Any

from ufuse import _core

# Who is told of each call (as ``logs.Seen``): nobody but while there are logs or profiles.
watchers = _core.watchers


class _Stances(threading.local):
    """What this thread wants of the jitted functions that it calls: see ``ufuse.stance``."""

    everywhere = "default"
    entered: tuple[str, ...] = ()

    @property
    def now(self) -> str:
        """The stance of the innermost ``with`` block."""
        return self.entered[-1] if self.entered else self.everywhere


stances = _Stances()


class Stance:
    """Context manager: this thread's stance while it is entered.

    There are watchers meanwhile, so that it costs nothing at other times.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        watchers.append(_nobody)
        stances.entered = (*stances.entered, self._name)

    def __exit__(self, *_: object) -> None:
        stances.entered = stances.entered[:-1]
        watchers.remove(_nobody)


def plain_for_ever() -> None:
    """All calls of all threads are those of the plain functions from now on."""
    watchers.append(_nobody)
    _Stances.everywhere = "plain"


def _nobody(_: Any) -> None:
    """A watcher that is told of calls and forgets them."""
