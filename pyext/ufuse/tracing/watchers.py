"""Who is told of the calls of jitted functions, and who wants them to be the plain functions?"""

from __future__ import annotations

import threading
from typing import Any

from ufuse import _core

# Who is told of each call (as ``logs.Seen``): nobody but while there are logs or profiles.
watchers = _core.watchers


class _Plainly(threading.local):
    """While it is entered, jitted functions called by this thread are the plain ones.

    There are watchers meanwhile, so that it costs nothing at other times.
    """

    entered = 0

    @property
    def running(self) -> bool:
        return self.entered > 0

    def __enter__(self) -> None:
        watchers.append(_nobody)
        self.entered += 1

    def __exit__(self, *_: object) -> None:
        self.entered -= 1
        watchers.remove(_nobody)

    @classmethod
    def for_ever(cls) -> None:
        """All calls of all threads are plain from now on."""
        watchers.append(_nobody)
        cls.entered = 1


def _nobody(_: Any) -> None:
    """A watcher that is told of calls and forgets them."""


plainly = _Plainly()
